"""Set-ups that the system refuses; `tests/house/test_set_up.py` tests them with the real uv."""

from __future__ import annotations

import errno
import pwd
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
