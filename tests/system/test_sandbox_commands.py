"""The command lines of sandboxes, and what they limit on each kernel and machine."""

from __future__ import annotations

import os
import platform
import site
import struct
import sys
from pathlib import Path

import pytest

from segjudge.system import bounds, sandbox
from tests.calls import outcome

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
    [("x86_64", 0xC000003E, (319, 447, 29, 64, 68, 425)), ("aarch64", 0xC00000B7, (279, 447, 194, 190, 186, 425))],
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
