"""The background threads of the server."""

import threading
import time
from collections.abc import Callable

from .store import Store, outage_of, write_line

#: The seconds between two idle turns, and the maximum pause after failed turns, which doubles each time.
_IDLE, _LONGEST_PAUSE = 0.3, 15.0


class _Loop:
    """One thread's turns: the end of the last one, and the reason for waiting."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.turned_at = time.time()
        #: The sentence of an outage, or the failure of the last turn; "" if there is none.
        self.trouble = ""
        self._turned = time.monotonic()

    def note(self, trouble: str) -> None:
        if not trouble:
            self.turned_at, self._turned = time.time(), time.monotonic()
        self.trouble = trouble

    @property
    def age(self) -> float:
        """Return the seconds since the last turn that did not fail."""
        return time.monotonic() - self._turned


class Background:
    """Threads that each take turns in a loop; neither defects nor outages end them."""

    #: The seconds within which all work in progress ends.
    STOP_SECONDS = 5.0

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._stop, self._local = threading.Event(), threading.local()
        self._threads: list[threading.Thread] = []
        self.loops: list[_Loop] = []

    def _add(self, turn: Callable[[], bool], close: Callable[[], None] = lambda: None, name: str = "") -> None:
        """Add a thread: `turn` returns whether there was something to do, `close` is called in the end."""
        loop = _Loop(name or self._name)
        self.loops.append(loop)
        self._threads.append(threading.Thread(target=self._run, args=(loop, turn, close), daemon=True))

    def _run(self, loop: _Loop, turn: Callable[[], bool], close: Callable[[], None]) -> None:
        self._local.loop, pause = loop, _IDLE
        while not self._stop.is_set():
            try:
                busy = turn()
            except Exception as error:  # noqa: BLE001 - whatever it is
                self._note(loop, error)
                self._stop.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            if loop.trouble:
                write_line(f"{loop.name} continues.")
            loop.note("")
            pause = _IDLE
            if not busy:
                self._stop.wait(_IDLE)
        try:
            close()
        except Exception as error:  # noqa: BLE001 - likewise
            self._note(loop, error)

    def _note(self, loop: _Loop, error: Exception) -> None:
        """Log a failed turn: a defect in the hosts' log, an outage on stderr, since it may affect the log too."""
        outage = outage_of(error)
        if outage is None:
            text = f"{loop.name} failed: {error!r}"
            try:
                self._store.log(0, text)
            except Exception:  # noqa: BLE001 - the log is in the database
                write_line(text)
            loop.note(text)
            return
        if outage.sentence != loop.trouble and not self._stop.is_set():
            write_line(f"{loop.name} waits: {outage.sentence} ({outage.reason})")
        loop.note(outage.sentence)

    def _retry_during_outages(self, action: Callable[[], object]) -> None:
        """Run an action of the store in a turn, and retry it during outages until the stop."""
        pause = _IDLE
        while True:
            try:
                action()
            except Exception as error:
                if outage_of(error) is None or self._stop.is_set():
                    raise
                self._note(self._local.loop, error)
                self._stop.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                return

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def give_up(self) -> None:
        """Stop taking work and return unfinished work to the queue; safe in a signal handler."""
        self._stop.set()

    def stop(self) -> None:
        """Stop the threads; wait until their unfinished work is returned to the queue."""
        self.give_up()
        deadline = time.monotonic() + self.STOP_SECONDS
        for thread in self._threads:
            while thread.is_alive() and time.monotonic() < deadline:
                self._interrupt()  # again: work may have begun meanwhile
                thread.join(timeout=0.2)

    def _interrupt(self) -> None:
        """End work that does not notice the stop itself."""
