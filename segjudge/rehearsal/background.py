"""What works beside the server, in threads, until it is stopped."""

import threading
import time
from collections.abc import Callable

from .store import Store

_IDLE = 0.3


class Background:
    """Threads that each take one turn after the other; no defect of ours ends them."""

    #: Seconds in which everything that is under way has ended.
    STOP_SECONDS = 5.0

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def _add(self, turn: Callable[[], bool], close: Callable[[], None] = lambda: None) -> None:
        """Add a thread: `turn` returns whether there was something to do, `close` is called in the end."""
        self._threads.append(threading.Thread(target=self._run, args=(turn, close), daemon=True))

    def _run(self, turn: Callable[[], bool], close: Callable[[], None]) -> None:
        try:
            while not self._stop.is_set():
                try:
                    busy = turn()
                except Exception as error:  # noqa: BLE001 - whatever it is
                    self._store.log(0, f"{self._name} stumbled: {error!r}")
                    busy = False
                if not busy:
                    self._stop.wait(_IDLE)
        finally:
            close()

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

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
