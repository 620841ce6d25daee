"""The standard streams of a program that was started without them, or whose readers have left."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


def open_closed_streams() -> None:
    """Open closed standard streams, so that other files do not take their descriptors."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - until the process ends


def discard_unread(descriptor: int) -> bool:
    """Discard what is written to a standard stream if it is a pipe whose reader has closed it; return whether it is."""
    import select

    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, 0)
        if not any(event & select.POLLERR for _, event in poll.poll(0)):
            return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    return True


def outlive_readers() -> None:
    """Let a command whose text nobody reads to the end, as before `head`, go on: it may write files, and its exit code
    may judge.
    """
    stream = sys.stdout
    if stream is not sys.__stdout__ or not isinstance(stream, io.TextIOWrapper):
        return
    stream.flush()
    raw = _UnreadOutput(stream.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), stream.encoding, stream.errors, None, stream.line_buffering, stream.write_through
    )


class _UnreadOutput(io.FileIO):
    """A standard stream that discards what is written after its reader has left."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            if not discard_unread(self.fileno()):
                raise
            return super().write(data)
