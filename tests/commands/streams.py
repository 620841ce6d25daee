"""A command's output and exit code under every condition of its streams, as one text.

    python -m tests.commands.streams

writes it to `tests/commands/streams.txt`. Run it after an intended change, and review the difference. With a path it
writes it there.  Each run is a fork of this process with the command `try`, which acts by its argument.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import errno
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import tempfile
import termios
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from segjudge import commands
from segjudge.commands import COMMANDS, shared
from segjudge.evaluation_script.files.packed import NotWritten
from segjudge.evaluation_script.files.problems import HostError, Problem, SubmissionError
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import OutputFile

FILE = Path(__file__).with_name("streams.txt")
_LETTERS = "– − × … · ← → ’ “ ” é 日"


# ── what the command does ───────────────────────────────────────────────────


def _raise(error: BaseException) -> Callable[[], NoReturn]:
    def act() -> NoReturn:
        raise error

    return act


def _signal(*numbers: int) -> Callable[[], None]:
    def act() -> None:
        try:
            for number in numbers:
                signal.raise_signal(number)
        finally:
            shared.say("undoes what it began")

    return act


def _open_file() -> None:
    with open("file", "w", encoding="utf-8") as file:
        print(f"descriptor above 2: {file.fileno() > 2}; read {sys.stdin.read()!r}", file=sys.stderr)


def _show_progress() -> None:
    for unit in ((), ("frame",)):
        with shared.ProgressBar(*unit) as bar:
            bar("first", 1, 4)
            bar("second", 2, 3)


def _talk() -> None:
    shared.say("said of http://me:secret@a.org/x?signature=y#z")
    shared.say("warning: a warning")
    shared.say("bad", "bad")
    shared.mention("mentioned")
    for stream in (None, sys.stderr):
        print(*shared.look(stream), shared.look(stream).paint("painted", "strong"))


_ENDINGS: dict[str, Callable[[], object]] = {
    "letters": lambda: print(_LETTERS),
    "many-lines": lambda: print("line\n" * 50_000),
    "nothing": lambda: None,
    "file": _open_file,
    "talk": _talk,
    "progress": _show_progress,
    "submission": _raise(SubmissionError.from_problem(Problem("a.png", "is odd", "Mend it"))),
    "usage": _raise(UsageError("give one of the two")),
    "option": _raise(OptionError("truth has no meaning")),
    "host": _raise(HostError("truth.zip: is broken")),
    "memory": _raise(MemoryError()),
    "memory-why": _raise(MemoryError("a worker was killed")),
    "defect": _raise(ValueError("a defect")),
    "read-error": _raise(OSError(errno.EIO, "Input/output error", "disk")),
    "full": _raise(OSError(errno.ENOSPC, "No space left on device", "out.zip")),
    "quota": _raise(OSError(errno.EDQUOT, "Disk quota exceeded", "out.zip")),
    "full-of-no-name": _raise(OSError(errno.ENOSPC, "No space left on device")),
    "not-written": _raise(NotWritten(errno.EACCES, "Permission denied", "out.zip")),
    "not-written-full": _raise(NotWritten(errno.EFBIG, "File too large", "out.zip")),
    "pipe-of-others": _raise(BrokenPipeError(errno.EPIPE, "Broken pipe")),
    "ctrl-c": _signal(signal.SIGINT),
    "terminated": _signal(signal.SIGTERM),
    "hung-up": _signal(signal.SIGHUP),
    "twice": _signal(signal.SIGINT, signal.SIGTERM),
    "interrupt": _raise(KeyboardInterrupt()),
    "leaves": _raise(SystemExit(7)),
}  # fmt: skip


def _add_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("ending", choices=_ENDINGS)
    sub.add_argument("--json", type=OutputFile)
    sub.add_argument("--code", type=int, default=0)


def _run(args: argparse.Namespace) -> int:
    _ENDINGS[args.ending]()
    return int(args.code)


# ── a process that runs it ──────────────────────────────────────────────────


def _play(message: str, **streams: str) -> str:
    """Run the command in a fork, with streams of these kinds, and describe the outcome."""
    ends = {1: _open_stream(streams.get("out", "pipe")), 2: _open_stream(streams.get("err", "pipe"))}
    child = os.fork()
    if not child:
        os._exit(_live(message.split(), ends, **streams))
    output = []
    for number, (ours, theirs) in ends.items():
        os.close(theirs) if theirs is not None else None
        text = _read_all(ours, hold=streams.get({1: "out", 2: "err"}[number], "pipe") in ("pipe", "tty"))
        output.append(f"  {'out' if number == 1 else 'err'}: {text}\n" if text else "")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return f"→ ends with {code if code >= 0 else signal.Signals(-code).name}\n{''.join(output)}"


def _open_stream(kind: str) -> tuple[int | None, int | None]:
    """Open our end of a stream and the command's."""
    if kind == "closed":
        return None, None
    if kind == "full":
        return None, os.open("/dev/full", os.O_WRONLY)
    if kind == "tty":
        ours, theirs = pty.openpty()
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        return ours, theirs
    ours, theirs = os.pipe()
    if kind == "gone":
        os.close(ours)
        return None, theirs
    return ours, theirs


def _read_all(end: int | None, *, hold: bool) -> str:
    data = b""
    while end is not None and hold:
        try:
            part = os.read(end, 1 << 16)
        except OSError:  # the error of a terminal whose other side is closed
            break
        if not part:
            break
        data += part
    if end is not None:
        os.close(end)
    return _shorten(data)


def _shorten(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace")
    text = re.sub(r'(?m)^  File ".*\n(    .*\n)*', "", text)
    # The speed of a progress bar, and its consequences.
    text = re.sub(r"\|[^|⏎\r]*\| (\d/\d) \[[^]]*?(?:s/)?([a-z]+)(?:/s)?\] *", r"|…| \1 \2", text)
    text = re.sub("  +⏎", " ⏎", text.replace("\r", "⏎"))
    text = text if len(text) < 2000 else f"{len(text)} characters"
    return text.rstrip("\n").replace("\n", "\n       ")


def _live(arguments: list[str], ends: dict[int, tuple[Any, Any]], **streams: str) -> int:
    """Run the program with these arguments and streams; return its exit code."""
    atexit._clear()  # the program runs exit functions, of which those of this process would remove its folder
    for number, (ours, theirs) in ends.items():
        os.close(ours) if ours is not None else None
        os.dup2(theirs, number) if theirs is not None else os.close(number)
    os.close(0)
    if streams.get("into") != "closed":
        os.open(os.devnull, os.O_RDONLY)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            stream = open(number, "w" if number else "r", encoding=streams.get("encoding", "utf-8"), closefd=False)  # noqa: SIM115
        except OSError:
            stream = None  # type: ignore[assignment]
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        os.environ.pop(name, None)
    os.environ.update({"TERM": "xterm", **dict(pair.split("=") for pair in streams.get("with_", "").split())})
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if "ignores" in streams:
        signal.signal(getattr(signal, streams["ignores"]), signal.SIG_IGN)
    sys.argv = ["segjudge", *arguments]
    try:
        code = import_module("segjudge.cli").main(arguments if "by" in streams else None)
    except SystemExit as leaving:
        code = leaving.code
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            return 120  # Python's exit code if it cannot write its remaining output
    return int(code)


_PLAYS = (
    *(("letters", {"encoding": encoding}) for encoding in ("utf-8", "ascii", "latin-1", "cp1252")),
    ("letters", {"out": "closed"}), ("many-lines --code 4", {"out": "gone"}), ("letters", {"out": "full"}), ("letters --code 4", {"err": "closed"}),
    ("many-lines", {"out": "gone"}), ("many-lines --json -", {"out": "gone"}), ("many-lines --json -", {"out": "closed"}),
    ("many-lines --json -", {"out": "full"}), ("many-lines --json file", {"out": "gone"}), ("many-lines", {}),
    ("nothing --json -", {"out": "closed"}), ("nothing --json none/x", {}), ("nothing --code 1", {}), ("letters é –", {"encoding": "ascii"}),
    ("file", {"into": "closed", "out": "closed"}), ("file", {"into": "closed"}), ("file", {"out": "closed", "err": "closed"}),
    *(("talk", {"err": err, "with_": variables}) for err in ("pipe", "tty") for variables in (
        "", "NO_COLOR=1", "FORCE_COLOR=1", "NO_COLOR=1 FORCE_COLOR=1", "TERM=dumb", "TERM=dumb FORCE_COLOR=1")),
    ("talk", {"out": "tty"}), ("talk --quiet", {"out": "tty", "err": "tty"}), ("talk", {"out": "closed", "err": "closed"}),
    ("progress", {}), ("progress", {"err": "tty"}), ("progress --quiet", {"err": "tty"}), ("progress", {"err": "closed"}),
    *((ending, {}) for ending in _ENDINGS if _ENDINGS[ending] not in (_talk, _show_progress, _open_file) and ending not in ("letters", "many-lines", "nothing")),
    ("full-of-no-name", {"out": "full"}), ("pipe-of-others", {"out": "gone"}), ("pipe-of-others --json -", {"out": "gone"}), ("hung-up", {"ignores": "SIGHUP"}),
    ("ctrl-c", {"ignores": "SIGINT"}), ("--help", {"out": "gone"}), ("--help", {"out": "full"}), ("lettres", {}), ("letters --jsno x", {}), ("letters --jsno=x", {}),
    ("letters --code x", {}), ("letters --code http://me:secret@a.org/", {}), ("", {}), ("letters too", {}),
)  # fmt: skip
#: Commands that a program runs in its own process; its streams and signals must not change.
_DIRECT = ("letters", "ctrl-c", "interrupt", "leaves", "usage", "full-of-no-name")


def write_streams() -> str:
    about = 'a command "try"'
    COMMANDS["try"] = type(COMMANDS["score"])("tried", about)
    module = SimpleNamespace(COMMANDS={"try": shared.Command(_add_options, _run)})
    sys.modules[f"{commands.__name__}.tried"] = module  # type: ignore[assignment]
    #: Outcome → the ways of running that led to it.
    endings: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder, contextlib.chdir(folder):
        for arguments, streams in (*_PLAYS, *((message, {"by": "a program"}) for message in _DIRECT)):
            how = ", ".join(f"{name.strip('_')} {value}" for name, value in streams.items() if value)
            sys.stdout.flush()
            text = _play(f"try {arguments}", **streams)
            endings.setdefault(text.replace(folder, "FOLDER"), []).append(
                f"$ try {arguments}{f'  ({how})' if how else ''}"
            )
    return "".join("\n".join(titles) + f" {text}" for text, titles in endings.items())


if __name__ == "__main__":
    (Path(sys.argv[1]).resolve() if sys.argv[1:] else FILE).write_text(write_streams(), encoding="utf-8")
