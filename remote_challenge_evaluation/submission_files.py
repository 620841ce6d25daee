"""Where the file of a submission is, and how it comes here."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Callable

from segjudge.evalai.http_exchange import WireError
from segjudge.evalai.jobs import PLACEHOLDER
from segjudge.evalai.result_shapes import SubmissionRow

from .download import GoneError, TooLargeError, download, head
from .services import JobBlockedError, WorkerServices

#: A file that fails a submission is fetched so often again, after a pause in seconds.
_CONFIRMATIONS, _PAUSE = 2, 1.0


class SubmissionFiles:
    """The files of submissions, as the server's rows name them."""

    def __init__(self, services: WorkerServices) -> None:
        self._services = services

    def fetch(self, row: SubmissionRow, path: str) -> None:
        """Write the file; raise what `download` raises."""
        limit = self._services.settings.max_submission_bytes
        download(self._next_address(row), path, limit, self._services.stop.wait, self._watch)

    def confirm(self, row: SubmissionRow, path: str) -> None:
        """Fetch a file again before its team hears of a mistake; raise JobBlockedError if it is not the same."""
        copy, current_row = f"{path}-again", self._services.jobs.submission(row["id"])
        for _ in range(_CONFIRMATIONS):
            self._services.stop.wait(_PAUSE)
            try:
                self.fetch(current_row, copy)
            except (GoneError, TooLargeError) as error:
                raise JobBlockedError(f"the file that was scored did not come a second time: {error}") from None
            is_same = filecmp.cmp(path, copy, shallow=False)
            os.remove(copy)
            if not is_same:
                raise JobBlockedError("the file that was scored was different when it was fetched again")

    def is_awaited(self, row: SubmissionRow) -> bool:
        """Return whether the file of a large upload is not there yet."""
        if row.get("submission_input_file"):
            return False
        try:
            return head(self._address_of(row), len(PLACEHOLDER) + 1, self._watch) == PLACEHOLDER
        except WireError:
            return True  # not known: it is asked again at the next sweep

    def _watch(self) -> None:
        self._services.beat()
        self._services.stop.check()

    def _next_address(self, row: SubmissionRow) -> Callable[[], str]:
        """Return a function that gives the known address, then a new one at each call, since links expire."""
        known_rows = [row]

        def address() -> str:
            return self._address_of(known_rows.pop() if known_rows else self._services.jobs.submission(row["id"]))

        return address

    def _address_of(self, row: SubmissionRow) -> str:
        address = row.get("submission_input_file") or row.get("input_file")
        if not isinstance(address, str):
            return ""
        return f"{self._services.settings.api_server}{address}" if address.startswith("/") else address


def is_placeholder(path: str) -> bool:
    """Return whether a file is what the server keeps in the place of an incomplete upload."""
    with open(path, "rb") as file:
        return file.read(len(PLACEHOLDER) + 1) == PLACEHOLDER
