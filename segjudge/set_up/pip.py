"""Running pip and what else takes long: into a log, with a line now and then."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import suppress

from .environment import HERE, SetUpError, python_in, say

#: While pip is at work, a line comes this often, in seconds.
REPORT_EVERY = 15


def pip(folder: str, arguments: list[str], log: str, lock: int) -> None:
    """Install packages, or say why they could not be."""
    command = [
        python_in(folder),
        "-I",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--progress-bar",
        "off",
        *arguments,
    ]
    if not run(command, log, lock):
        return
    text = end_of(log, 200)
    if re.search("Retrying|NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError", text):
        why = "the package index cannot be reached. Connect this machine, or set PIP_INDEX_URL, and run it again"
    elif "No space left on device" in text:
        why = "the disk is full. Make room and run it again"
    else:
        why = f"pip says:\n{end_of(log)}"
    raise SetUpError(f"the packages could not be installed: {why}\n(the whole log: {log})")


def run(command: list[str], log: str, lock: int) -> int:
    """The exit code of a command whose output goes to the log; how far it is, is said now and then."""
    started = time.monotonic()
    with open(log, "ab") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=clean_environment(),
            cwd=HERE,
            pass_fds=(lock,),
            start_new_session=True,
        )
    try:
        while True:
            try:
                return process.wait(REPORT_EVERY)
            except subprocess.TimeoutExpired:
                say(f"  {time.monotonic() - started:.0f} s: {end_of(log, 1).strip()[:100]}")
    except BaseException:
        _end(process)
        raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)


def clean_environment() -> dict[str, str]:
    """Settings that would lead pip elsewhere are left out."""
    elsewhere = ("PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV")
    return {key: value for key, value in os.environ.items() if key not in elsewhere}


def end_of(log: str, lines: int = 20) -> str:
    """The last lines of a log."""
    with open(log, encoding="utf-8", errors="replace") as file:
        return "\n".join([line for line in file.read().splitlines() if line.strip()][-lines:])
