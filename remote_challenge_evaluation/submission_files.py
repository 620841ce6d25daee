"""Where the file of a submission is, and how it comes here."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Callable

from segjudge.evalai.http_exchange import WireError
from segjudge.evalai.jobs import PLACEHOLDER
from segjudge.evalai.result_shapes import SubmissionRow

from .download import GoneError, TooLargeError, download, head
from .reporting import DelayError, Tools

#: A file that fails a submission is fetched so often again, after a pause.
_AGAIN, _PAUSE = 2, 1.0


class SubmissionFiles:
    """The files of submissions, as the server's rows name them."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def fetch(self, row: SubmissionRow, path: str) -> None:
        """Write the file; raises what `download` raises."""
        most = self._tools.settings.max_submission_bytes
        download(self._addresses(row), path, most, self._tools.stop.wait, self._watch)

    def confirm(self, row: SubmissionRow, path: str) -> None:
        """Before a team hears of a mistake: fetch the whole file again; DelayError where it comes otherwise."""
        again, fresh = f"{path}-again", self._tools.jobs.submission(row["id"])
        for _ in range(_AGAIN):
            self._tools.stop.wait(_PAUSE)
            try:
                self.fetch(fresh, again)
            except (GoneError, TooLargeError) as error:
                raise DelayError(f"the file that was scored did not come a second time: {error}") from None
            same = filecmp.cmp(path, again, shallow=False)
            os.remove(again)
            if not same:
                raise DelayError("the file that was scored came otherwise a second time")

    def is_awaited(self, row: SubmissionRow) -> bool:
        """Whether the file of a large upload is not there yet."""
        if row.get("submission_input_file"):
            return False
        try:
            return head(self._address_of(row), len(PLACEHOLDER) + 1, self._watch) == PLACEHOLDER
        except WireError:
            return True  # who knows: it is asked again at the next sweep

    def _watch(self) -> None:
        self._tools.beat()
        self._tools.stop.check()

    def _addresses(self, row: SubmissionRow) -> Callable[[], str]:
        """The one that we know, then a fresh one for each try: links expire."""
        known = [row]

        def address() -> str:
            return self._address_of(known.pop() if known else self._tools.jobs.submission(row["id"]))

        return address

    def _address_of(self, row: SubmissionRow) -> str:
        told = row.get("submission_input_file") or row.get("input_file")
        if not isinstance(told, str):
            return ""
        return f"{self._tools.settings.api_server}{told}" if told.startswith("/") else told


def is_placeholder(path: str) -> bool:
    """Whether a file is what the server keeps in the place of an upload that is not there yet."""
    with open(path, "rb") as file:
        return file.read(len(PLACEHOLDER) + 1) == PLACEHOLDER
