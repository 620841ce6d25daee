"""Set-ups that the system refuses; `tests/house/test_set_up.py` tests them with the real uv."""

from __future__ import annotations

import errno
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from segjudge.set_up import environment


def test_what_the_system_refuses_is_said_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "CHECKOUT", str(tmp_path))
    refused = PermissionError(errno.EACCES, "Permission denied", "toolkit.lock")
    what, own = (
        "toolkit.lock: Permission denied, so the environment cannot be set up",
        "clone the repository into a folder of your own",
    )
    assert environment.explain(refused) == f"{what}. Make {tmp_path} readable and writable, or {own}, and run it there"
    monkeypatch.setattr("os.getuid", lambda: -1)
    owner = pwd.getpwuid(tmp_path.stat().st_uid).pw_name
    assert environment.explain(refused) == f"{what}. This checkout belongs to {owner}; {own}, and run it there"


def test_a_python_under_a_closed_folder_is_named_and_not_the_owner_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "CHECKOUT", str(tmp_path))
    monkeypatch.setattr(environment, "ENVIRONMENTS", str(tmp_path / "environments"))
    (tmp_path / "packaging/locks").mkdir(parents=True)
    (tmp_path / "packaging/locks/client.txt").touch()
    folder, python = Path(environment.PythonEnvironment("client").folder), tmp_path / "closed/versions/python"
    for path in (folder / "stamp", folder / "bin/python", python):
        path.parent.mkdir(parents=True, exist_ok=True)
    (folder / "stamp").touch()
    python.touch()
    (folder / "bin/python").symlink_to(python)
    monkeypatch.setattr("os.access", lambda path, _mode: not str(path).startswith(str(tmp_path / "closed")))

    @contextmanager
    def refuse(_name: str) -> Iterator[int]:
        raise PermissionError(errno.EACCES, "Permission denied", "client.lock")
        yield 0

    monkeypatch.setattr(environment, "_hold_lock", refuse)
    with pytest.raises(environment.SetUpError) as refused:
        environment.PythonEnvironment("client").ensure_folder()
    what = f".venv-client runs {python}, which you may not: {tmp_path}/closed is closed to you"
    own = "clone the repository into a folder of your own, and run it there"
    assert str(refused.value) == f"{what}. Open it, or {own}"
