"""The end of a process: asked for by a signal, granted a while for what is in hand."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress

from segjudge.evalai.http_exchange import StoppedError

#: What asks for the end; a hangup only where it is not ignored, as under nohup.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stop:
    """Whether to stop, and how soon.  Unlike an Event it may be set by a signal's handler while it is waited for."""

    def __init__(self, grace: float) -> None:
        self._grace, self._asked = grace, 0
        self._until = 0.0
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def listen(self) -> None:
        """Let signals ask; a second one allows no time any more."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: self.ask())

    def ask(self) -> None:
        """Begin nothing any more."""
        self._asked += 1
        if self._asked == 1:
            self._until = time.monotonic() + self._grace
        with suppress(OSError):
            os.write(self._write, b".")

    def is_set(self) -> bool:
        """Whether nothing is begun any more."""
        return self._asked > 0

    def is_over(self) -> bool:
        """Whether what is in hand has to be left."""
        return self._asked > 1 or (self._asked == 1 and time.monotonic() >= self._until)

    def wait(self, seconds: float) -> bool:
        """Wait, and no longer than until somebody asks; whether somebody did."""
        if not self._asked:
            select.select([self._read], [], [], max(0.0, seconds))
        return self._asked > 0

    def wait_over(self, seconds: float) -> bool:
        """Wait, and no longer than what is in hand may take; whether it has to be left."""
        until = time.monotonic() + seconds
        while not self.is_over() and time.monotonic() < until:
            time.sleep(min(0.1, seconds))
        return self.is_over()

    def check(self) -> None:
        """Raise StoppedError once somebody asked: for what is easily begun again."""
        if self.is_set():
            raise StoppedError("asked to stop")

    def check_over(self) -> None:
        """Raise StoppedError once what is in hand has to be left."""
        if self.is_over():
            raise StoppedError("asked to stop")
