"""The memory, threads and disk of processes, and the cgroups that bound them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from segjudge.system import bounds, sandbox
from segjudge.system.bounds import ResourceGroup, TreeBounds, TreeWatch
from tests.calls import outcome

from .test_sandbox_commands import NO_SANDBOX

MEMORY, DISK, MB = TreeBounds(memory=5 << 20), TreeBounds(disk=3 << 20), 1 << 20


def test_a_folder_takes_its_blocks_and_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    (tree / "inner/deep").mkdir(parents=True)
    for name in ("a", "inner/b", "inner/deep/c"):
        (tree / name).write_bytes(b"x" * 5000)
    (tree / "link").symlink_to(tmp_path)
    blocks = sum(path.lstat().st_blocks * 512 for path in tree.rglob("*"))
    assert bounds._disk_bytes([str(tree), str(tmp_path / "none")], 1 << 40) - blocks == 6144
    assert bounds._disk_bytes([str(tree)], 1) < blocks  # it stops at the bound
    with monkeypatch.context() as closed:
        closed.setattr(
            os, "scandir", lambda _path: (_ for _ in ()).throw(PermissionError(13, "Permission denied", "tree"))
        )
        assert (
            outcome(lambda: bounds._disk_bytes([str(tree)], 1 << 40))
            == "PermissionError: [Errno 13] Permission denied: 'tree'"
        )


@pytest.mark.parametrize(
    ("limits", "used", "sentence"),
    [
        (TreeBounds(processes=3), {"threads": 7}, ""),
        (TreeBounds(processes=3), {"threads": 8}, "it had more than 3 processes and threads"),
        (MEMORY, {"private": 3 * MB, "shared": 2 * MB}, ""),
        (MEMORY, {"private": 6 * MB, "exact": 5 * MB}, ""),
        (MEMORY, {"private": 6 * MB, "exact": 4 * MB, "shared": 2 * MB}, "its processes took more than 5 MB of memory together"),
        (MEMORY, {"private": 6 * MB, "exact": 6 * MB, "ending": 2 * MB}, ""),
        (DISK, {"disk": 3 * MB}, ""),
        (DISK, {"disk": 3 * MB + 1}, "it wrote more than 3 MB to the disk"),
        (TreeBounds(), {"private": 1 << 50}, ""),
    ],
)  # fmt: skip
def test_processes_end_beyond_their_bounds(
    limits: TreeBounds, used: dict[str, int], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use = {**dict.fromkeys(("private", "exact", "shared", "disk", "ending"), 0), "threads": 1, **used}
    # the first exact reading counts the memory of ending processes twice
    readings = [use["exact"], *[use["exact"] - use["ending"]] * 2]
    families = iter([{1: 1}, *[{} if use["ending"] else {1: 1}] * 3])
    for name, value in {
        "descendants": lambda _above: next(families), "_private_bytes": lambda _pids: (use["private"], use["threads"]),
        "_exact_private_bytes": lambda _pids: readings.pop(0), "_tmpfs_bytes": lambda *_: use["shared"] // 2,
        "_nameless_bytes": lambda *_: use["shared"] - use["shared"] // 2, "_disk_bytes": lambda *_: use["disk"] - 1,
        "_bytes_of_removed": lambda *_: 1,
    }.items():  # fmt: skip
        monkeypatch.setattr(bounds, name, value)
    monkeypatch.setattr(bounds.threading, "Thread", lambda **_: SimpleNamespace(start=lambda: None))
    child: Any = SimpleNamespace(above=1)
    assert TreeWatch(child, limits)._excess() == sentence


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("x"), "RuntimeError"),
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (OSError("x"), "OSError"),
    ],
)
def test_processes_end_if_they_cannot_be_watched(
    error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[str] = []
    child: Any = SimpleNamespace(above=1, poll=lambda: None, end=lambda: ends.append("ends"))

    def fail(_self: TreeWatch) -> str:
        raise error

    monkeypatch.setattr(bounds.threading, "Thread", lambda **_: SimpleNamespace(start=lambda: None))
    monkeypatch.setattr(TreeWatch, "_excess", fail)
    watch = TreeWatch(child, TreeBounds())
    watch._run()
    assert (watch.sentence, ends) == (f"its use of resources cannot be measured ({reason})", ["ends"])


# ── cgroups ─────────────────────────────────────────────────────────────────

KINDS = {"all": ("memory.max",), "cpu": ("cpu.cfs_period_us", "cpu.cfs_quota_us"), "pids": ("pids.max",)}


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of three cgroup hierarchies that processes leave during the first pause."""
    for name in KINDS:
        (tmp_path / name).mkdir()
    make = os.mkdir

    def mkdir(path: str, *options: Any) -> None:
        make(path, *options)
        for name in KINDS.get(Path(path).parent.name, ()):
            Path(path, name).touch()

    def sleep(seconds: float) -> None:
        assert seconds == 0.05
        for path in tmp_path.glob("*/*/*"):
            path.unlink()

    monkeypatch.setattr(bounds, "_GROUP_ROOTS", tuple(str(tmp_path / name) for name in KINDS))
    monkeypatch.setattr(bounds, "_numbers", iter(range(9)))
    monkeypatch.setattr(os, "mkdir", mkdir)
    monkeypatch.setattr(time, "sleep", sleep)
    return tmp_path


@pytest.mark.parametrize(
    ("asked", "kinds", "files", "entered"),
    [
        (
            {"cores": 1.5, "processes": 7, "memory": 99},
            ["cpu", "pids", "memory"],
            ["all/GROUP/memory.max: 99", "cpu/GROUP/cpu.cfs_period_us: 100000", "cpu/GROUP/cpu.cfs_quota_us: 150000", "pids/GROUP/pids.max: 7"],
            ["all", "cpu", "pids"],
        ),
        ({"memory": 5}, ["memory"], ["all/GROUP/memory.max: 5"], ["all"]),
        ({}, [], [], []),
    ],
)  # fmt: skip
def test_a_group_has_the_bounds_that_it_is_asked_for(
    asked: dict[str, Any], kinds: list[str], files: list[str], entered: list[str], groups: Path
) -> None:
    name = f"segjudge-{os.getpid()}-0"
    group = ResourceGroup(**asked)
    assert [kind for kind in ("cpu", "pids", "memory") if group.holds_bound(kind)] == kinds
    texts = {path.relative_to(groups): path.read_text() for path in groups.glob("*/*/*")}
    assert sorted(f"{path}: {text}" for path, text in texts.items()) == [file.replace("GROUP", name) for file in files]
    paths = " ".join(f"{groups}/{root}/{name}/cgroup.procs" for root in entered)
    shell = ["/bin/sh", "-c", bounds._ENTER, paths] if entered else []
    assert group.wrap(["run"]) == [*shell, "run"]
    group.close()
    assert not [*groups.glob("*/*")]


def test_a_group_removes_those_of_processes_that_have_ended(groups: Path) -> None:
    for name in ("segjudge-4194399-1", "segjudge-1-1", "segjudge-other", "other-4194399-1"):
        (groups / "all" / name).mkdir()
        (groups / "all" / name / "memory.max").unlink()
    ResourceGroup(memory=5).close()
    assert sorted(path.name for path in groups.glob("*/*")) == ["other-4194399-1", "segjudge-1-1", "segjudge-other"]
    assert bounds.missing_bounds(None) == NO_SANDBOX


@pytest.mark.parametrize(("refused", "bound"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_limit_is_missing_where_neither_kernel_nor_group_has_it(
    refused: bool, bound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    group: Any = SimpleNamespace(holds_bound=lambda kind: bound and kind == "pids", close=lambda: None)
    monkeypatch.setattr(sandbox, "missing_limits", lambda _program: ["a limit"])
    monkeypatch.setattr(sandbox, "are_processes_refused", lambda: refused)
    monkeypatch.setattr(bounds, "ResourceGroup", lambda **_asked: group)
    late = "The kernel does not limit processes here: surplus processes are killed, up to a second late."
    assert bounds.missing_bounds("bwrap") == ["a limit", *([] if refused or bound else [late])]
