"""The name of results in messages: the scorers of a platform know only the upload's name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from segjudge.evaluation_script.files.archive import JSON_NAME, UPLOAD
from segjudge.evaluation_script.files.problems import SubmissionError, printable

#: The upload as the subject of a problem, and a single JSON file as its place.
_UPLOAD = re.compile(rf"\b{UPLOAD}(?=: )")
_PLACE = re.compile(rf"(?<![\w/.-]){re.escape(JSON_NAME)}(?=: |, | holds | is )")


def name_results(message: str, results: str) -> str:
    """Return a message with the name of the results in place of the upload's: `masks.zip`, or `my results/`."""
    name = printable(os.path.basename(os.path.abspath(results))) + ("/" if os.path.isdir(results) else "")
    message = _UPLOAD.sub(lambda _match: name, message)
    return message if _holds_files(results) else _PLACE.sub(lambda _match: name, message)


@contextmanager
def name_results_in_errors(results: str) -> Iterator[None]:
    """Raise each SubmissionError with the name of the results."""
    try:
        yield
    except SubmissionError as error:
        text = str(error)
        message = name_results(text, results)
        if message == text:
            raise
        raise SubmissionError(message) from error.__cause__


def _holds_files(results: str) -> bool:
    """Return whether results are a folder or an archive, whose members have names."""
    if not os.path.isfile(results):
        return True
    with open(results, "rb") as file:
        start = file.read(512)
    return start.startswith(b"PK") or start[257:262] == b"ustar" or ".tar" in os.path.basename(results).lower()
