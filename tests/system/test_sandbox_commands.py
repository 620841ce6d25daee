"""The command lines of sandboxes, and what they limit on each kernel and machine."""

from __future__ import annotations

import os
import platform
import site
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from segjudge.system import bounds, sandbox
from segjudge.system.sandbox import ProcessLimits
from tests.calls import outcome

BEGINNING = "--die-with-parent --new-session --cap-drop ALL --proc /proc --no-namespaces --dev /dev"
AGENT = f"bwrap --unshare-all {BEGINNING} --size 7340032 --tmpfs /dev/shm --size 7340032 --tmpfs /tmp"
PYTHON = "--ro-bind-try /usr /usr --ro-bind-try /prefix /prefix --ro-bind-try /base /base"
END = "--remount-ro /dev --remount-ro / --chdir"
NO_SANDBOX = ["No sandbox: limits stop accidents, not attackers (install bwrap for a sandbox)."]


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Set what the command lines take from the interpreter and the machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for owner, name, value in (
        (sys, "executable", "python"), (sys, "prefix", "/prefix"), (sys, "base_prefix", "/base"), (os, "cpu_count", lambda: 4),
        (site, "ENABLE_USER_SITE", True), (site, "getusersitepackages", lambda: "/user"), (sandbox, "_SYSTEM", ("/usr",)),
        (sandbox, "_NETWORK", ("/etc/resolv.conf",)), (sandbox, "IMPORT_ROOT", "/root"), (sandbox, "_PACKAGES", ("package",)),
        (sandbox, "_namespace_arguments", lambda _program: ("--no-namespaces",)), (platform, "release", lambda: "5.14.2"),
        (platform, "machine", lambda: "riscv64"), (sandbox, "_LIMIT", "LIMIT"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, value)
    return monkeypatch


def test_an_agent_sees_its_folder_without_hidden_paths(tmp_path: Path, machine: pytest.MonkeyPatch) -> None:
    for name in ("agent/secret", "data", "wheels"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "agent/key").touch()
    (tmp_path / "link").symlink_to(tmp_path / "agent")
    hidden = [str(tmp_path / name) for name in ("agent/secret", "agent/key", "none", "", "link")]
    mounts = [(str(tmp_path / "data"), True), (str(tmp_path / "wheels"), False)]
    limits = ProcessLimits(seconds=100.5, memory=7 << 20, processes=9)
    command = sandbox.agent_command("bwrap", ["run"], str(tmp_path / "agent"), mounts, hidden, limits)
    assert " ".join(command).replace(str(tmp_path), "FOLDER") == (
        f"{AGENT} {PYTHON} --ro-bind-try /user /user --ro-bind-try /root/package /root/package --ro-bind-try FOLDER/agent FOLDER/agent "
        "--bind FOLDER/data FOLDER/data --ro-bind FOLDER/wheels FOLDER/wheels --tmpfs FOLDER/agent/secret --remount-ro FOLDER/agent/secret "
        "--ro-bind /dev/null FOLDER/agent/key --tmpfs FOLDER/agent --remount-ro FOLDER/agent "
        f"{END} FOLDER/agent python -I -S -c LIMIT 7340032 640 9  run"
    )
    machine.setattr(site, "ENABLE_USER_SITE", False)
    assert " ".join(sandbox.agent_command("bwrap", ["run"], "x", [], [], limits)) == (
        f"{AGENT} {PYTHON} --ro-bind-try /root/package /root/package --ro-bind-try x x {END} x python -I -S -c LIMIT 7340032 640 9  run"
    )
    command = sandbox.agent_command(None, ["run"], "x", mounts, hidden, limits)
    assert command == ["python", "-I", "-S", "-c", "LIMIT", "7340032", "640", "0", "", "run"]


@pytest.mark.parametrize(
    ("options", "size", "folder"), [({}, 8589934592, "/b"), ({"folder": "/inside", "memory": 5 << 20}, 5242880, "/inside")]
)  # fmt: skip
def test_a_scorer_reads_its_paths_and_writes_its_folders(options: Any, size: int, folder: str) -> None:
    places = (["/read"], [("/a", "/b"), ("/c", "/d")], ["/read"])
    command = sandbox.scorer_command("bwrap", ["run"], *places, python="python3.9", **options)
    assert " ".join(command) == (
        f"bwrap --unshare-all {BEGINNING} --size {size} --tmpfs /dev/shm --hostname worker --bind /a /b --ro-bind-try /usr /usr "
        f"--ro-bind-try /read /read --bind /c /d {END} {folder} python3.9 -I -S -c LIMIT 0 0 1024  run"
    )


def test_an_installer_has_the_network_and_the_settings_of_pip(tmp_path: Path, machine: pytest.MonkeyPatch) -> None:
    (tmp_path / "home/.pip").mkdir(parents=True)
    machine.setenv("PIP_FIND_LINKS", f"/var {tmp_path}/none")  # pip splits them at blanks
    command = sandbox.installer_command("bwrap", ["pip"], ["/read"], ["/write"])
    home = "HOME/.config/pip HOME/.config/pip --ro-bind-try HOME/.pip HOME/.pip"
    assert " ".join(command).replace(str(tmp_path / "home"), "HOME") == (
        f"bwrap --unshare-all --share-net {BEGINNING} --size 8589934592 --tmpfs /dev/shm --size 8589934592 --tmpfs /tmp "
        f"--ro-bind-try /usr /usr --ro-bind-try /etc/resolv.conf /etc/resolv.conf --ro-bind-try {home} --ro-bind-try /var /var "
        f"--ro-bind-try /read /read --bind /write /write {END} /tmp pip -I -S -c LIMIT 0 0 1024  pip"
    )


@pytest.mark.parametrize(
    ("release", "user", "refused", "processes"),
    [("5.14.2", 1, True, "3"), ("5.13.9", 1, False, "0"), ("6.1-rc1", 1, True, "3"), ("5.14.2", 0, False, "3")],
)
def test_the_kernel_refuses_processes_of_users(
    release: str, user: int, refused: bool, processes: str, machine: pytest.MonkeyPatch
) -> None:
    machine.setattr(platform, "release", lambda: release)
    machine.setattr(os, "getuid", lambda: user)
    assert sandbox.are_processes_refused() is refused
    assert sandbox._limit_command("python", ["run"], 1, 2, 3, is_boxed=True)[5:8] == ["1", "2", processes]


#: The numbers of the refused calls: memfd_create, memfd_secret, shmget, semget, msgget and io_uring_setup.
@pytest.mark.parametrize(
    ("name", "architecture", "calls"),
    [
        ("x86_64", 0xC000003E, (319, 447, 29, 64, 68, 425)),
        ("aarch64", 0xC00000B7, (279, 447, 194, 190, 186, 425)),
    ],
)
def test_the_filter_refuses_memory_outside_processes(
    name: str, architecture: int, calls: tuple[int, ...], machine: pytest.MonkeyPatch
) -> None:
    machine.setattr(platform, "machine", lambda: name)
    refused = [(0x15, 6 - number, 0, call) for number, call in enumerate(calls)]
    assert [*struct.iter_unpack("=HBBI", sandbox._make_filter())] == [
        (0x20, 0, 0, 4), (0x15, 0, 9, architecture), (0x20, 0, 0, 0), (0x35, 7, 0, 0x40000000), *refused, (6, 0, 0, 0x7FFF0000), (6, 0, 0, 0x50026),
    ]  # fmt: skip


def test_missing_limits_and_sandboxes_have_a_sentence(machine: pytest.MonkeyPatch) -> None:
    sentence = "On riscv64 memory outside processes (memfd, System V) is unlimited."
    assert sandbox.missing_limits("bwrap") == [sentence]
    machine.setattr(sandbox.shutil, "which", lambda _name: None)
    assert sandbox.find_sandbox() is None
    assert outcome(lambda: sandbox.find_sandbox(required=True)) == (
        "HostError: --require-sandbox: no working bwrap was found; install bubblewrap, or omit the option"
    )
    assert bounds.missing_bounds(None) == NO_SANDBOX
