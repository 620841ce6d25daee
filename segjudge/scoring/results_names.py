"""The name of results in messages: the scorers of a platform know only the upload's name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from segjudge.evaluation_script.files import SubmissionError, printable
from segjudge.evaluation_script.files.archive import JSON_NAME, UPLOAD
from segjudge.system.addresses import address_of
from segjudge.system.python310 import Self

#: The upload as the subject of a problem, and a single JSON file as its place.
_UPLOAD = rf"\b{UPLOAD}(?=: )"
_PLACE = rf"(?<![\w/.-]){re.escape(JSON_NAME)}(?=: |, | holds | is )"


class ResultsName(NamedTuple):
    """The name of results: `masks.zip`, or `my results/`."""

    name: str
    #: Whether they are a folder or an archive, whose members have names.
    holds_files: bool

    @classmethod
    def read(cls, results: str) -> Self:
        """Return the name of the results at a path."""
        name = printable(os.path.basename(os.path.abspath(address_of(results)))) + (
            "/" if os.path.isdir(results) else ""
        )
        return cls(name, _holds_files(results))

    def put_into(self, message: str) -> str:
        """Return a message with this name in place of the upload's."""
        message = re.sub(_UPLOAD, lambda _match: self.name, message)
        return message if self.holds_files else re.sub(_PLACE, lambda _match: self.name, message)

    @contextmanager
    def put_into_errors(self) -> Iterator[None]:
        """Raise each SubmissionError with this name."""
        try:
            yield
        except SubmissionError as error:
            text = str(error)
            message = self.put_into(text)
            if message == text:
                raise
            raise SubmissionError(message) from error.__cause__


@contextmanager
def name_results_in_errors(results: str) -> Iterator[None]:
    """Raise each SubmissionError with the name of the results."""
    try:
        yield
    except SubmissionError:
        with ResultsName.read(results).put_into_errors():
            raise


def _holds_files(results: str) -> bool:
    if not os.path.isfile(results):
        return True
    with open(results, "rb") as file:
        start = file.read(512)
    return start.startswith(b"PK") or start[257:262] == b"ustar" or ".tar" in os.path.basename(results).lower()
