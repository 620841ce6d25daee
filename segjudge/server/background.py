"""What works beside the server, in threads, until it is stopped."""

import threading
import time
from collections.abc import Callable

from .store import Store, outage_of, write_line

#: Seconds between two turns without work, and the longest pause after turns that failed, which doubles from the first.
_IDLE, _LONGEST_PAUSE = 0.3, 15.0


class _Loop:
    """One thread's turns: when the last one ended, and what it waits for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.turned_at = time.time()
        #: The sentence of an outage, or how the last turn failed; nothing while all is well.
        self.trouble = ""
        self._turned = time.monotonic()

    def note(self, trouble: str) -> None:
        if not trouble:
            self.turned_at, self._turned = time.time(), time.monotonic()
        self.trouble = trouble

    @property
    def age(self) -> float:
        """Seconds since the last turn that did not fail."""
        return time.monotonic() - self._turned


class Background:
    """Threads that each take one turn after the other; no defect of ours and no outage ends them."""

    #: Seconds in which everything that is under way has ended.
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
                write_line(f"{loop.name} goes on.")
            loop.note("")
            pause = _IDLE
            if not busy:
                self._stop.wait(_IDLE)
        try:
            close()
        except Exception as error:  # noqa: BLE001 - likewise
            self._note(loop, error)

    def _note(self, loop: _Loop, error: Exception) -> None:
        """Note a turn that failed: a defect in the hosts' log, an outage, which may reach that log too, on stderr."""
        outage = outage_of(error)
        if outage is None:
            text = f"{loop.name} stumbled: {error!r}"
            try:
                self._store.log(0, text)
            except Exception:  # noqa: BLE001 - the log is in the database
                write_line(text)
            loop.note(text)
            return
        if outage.sentence != loop.trouble and not self._stop.is_set():
            write_line(f"{loop.name} waits: {outage.sentence} ({outage.reason})")
        loop.note(outage.sentence)

    def _carry_through(self, action: Callable[[], object]) -> None:
        """Do something with the store in a turn, as often as it takes while the store is away, until the stop."""
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
        """Begin nothing more, and give back what is under way; safe in a signal's handler."""
        self._stop.set()

    def stop(self) -> None:
        """Wait until everything is given back."""
        self.give_up()
        deadline = time.monotonic() + self.STOP_SECONDS
        for thread in self._threads:
            while thread.is_alive() and time.monotonic() < deadline:
                self._interrupt()  # again: something may have begun meanwhile
                thread.join(timeout=0.2)

    def _interrupt(self) -> None:
        """End what does not hear of the stop by itself."""
