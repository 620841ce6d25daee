"""Running pip and other commands that take long, with their output in a log."""

import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from .environment import CHECKOUT, SetUpError, python_in, say

#: Seconds between two messages while a command runs.
REPORT_EVERY = 15
#: What pip writes after rejecting eight versions of a package; it may go on for an hour before it reports a conflict.
SEARCHING = "still looking at multiple versions"
INSTALLING = "Installing collected packages"


def install(folder: str, arguments: list[str], log: str, lock: int, *, patient: bool = True) -> None:
    """Install packages with pip; raises `SetUpError` with the reason when that fails.

    One that is not patient also fails when pip has to try many versions.
    """
    pip = [python_in(folder), "-I", "-m", "pip", "--disable-pip-version-check"]
    if not run([*pip, "install", "--progress-bar", "off", *arguments], log, lock, patient=patient):
        return
    text = log_end(log, 200)
    if re.search("Retrying|NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError", text):
        why = "the package index cannot be reached. Connect this machine, or set PIP_INDEX_URL, and run it again"
    elif "No space left on device" in text:
        why = "the disk is full. Make room and run it again"
    else:
        why = f"pip says:\n{log_end(log)}"
    raise SetUpError(f"the packages could not be installed: {why}\n(the whole log: {log})")


def run(command: list[str], log: str, lock: int, *, patient: bool = True) -> int:
    """Run a command with its output in the log, and say now and then what it does; return the exit code."""
    started = reported = time.monotonic()
    with open(log, "ab") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=clean_variables(),
            cwd=CHECKOUT,
            pass_fds=(lock,),
            start_new_session=True,
        )
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(1)
            if not patient and searches_for_long(log):
                _kill_group(process)
            elif time.monotonic() - reported >= REPORT_EVERY:
                reported = time.monotonic()
                say(f"  {reported - started:.0f} s: {log_end(log, 1).strip()[:100]}")
    except BaseException:
        _kill_group(process)
        raise


def searches_for_long(log: str) -> bool:
    """Return whether pip tried many versions and has not found any that go together."""
    text = log_end(log, 10_000)
    return SEARCHING in text and INSTALLING not in text


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a command with all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)


def clean_variables() -> dict[str, str]:
    """Return the environment variables without those that make pip install elsewhere."""
    excluded = ("PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV")
    return {key: value for key, value in os.environ.items() if key not in excluded}


def log_end(log: str, lines: int = 20) -> str:
    """Return the last lines of a log."""
    text = Path(log).read_text(encoding="utf-8", errors="replace")
    return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])
