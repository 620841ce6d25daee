"""The standard streams of a program that was started without them, or whose readers have left."""

from __future__ import annotations

import os
import sys


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
