"""The requests of participants, which the Space writes and the evaluator reads: one file each, never rewritten."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from segjudge.evaluation_script.files.problems import printable
from segjudge.ledger.rows import LedgerEntry
from segjudge.system.files import file_name

#: The repositories of a challenge beside its Space, by the ending of their names.
SUBMISSIONS, RESULTS, PRIVATE = "-submissions", "-results", "-private"
#: The folder of the requests, and that of the submitted files.
REQUESTS, FILES = "requests", "files"
MOST_CHARACTERS = 100
_PATH = re.compile(rf"{REQUESTS}/([1-9][0-9]{{0,8}})\.json", re.ASCII)
#: What `segjudge.system.files.file_name` returns.
_FILE = re.compile(r"[\w &+,=@%()-][\w &+,=@%.()-]{0,119}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Request:
    """A submission of an account, or the withdrawal of an earlier one."""

    number: int
    #: The stable identifier of the account (the `sub` of its ID token), and its name, which may change.
    account: str
    team: str
    at: str
    method: str = ""
    phase: str = ""
    #: The name of the file by `clean_file`, and its SHA-256.
    file: str = ""
    sha256: str = ""
    #: The number of the submission to withdraw; 0 for a submission.
    withdraws: int = 0

    @property
    def path(self) -> str:
        """The path of the request in the data set."""
        return f"{REQUESTS}/{self.number}.json"

    @property
    def file_path(self) -> str:
        """The path of the submitted file in the data set."""
        return f"{FILES}/{self.number}/{self.file}"

    def to_entry(self) -> LedgerEntry:
        """Return the ledger's entry, which everybody reads, without the name of the file."""
        values = (self.account, self.team, self.method, self.phase)
        return LedgerEntry(self.number, *values, address="", sha256=self.sha256, at=self.at)

    def to_bytes(self) -> bytes:
        return (json.dumps(asdict(self), indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def read(cls, path: str, data: bytes) -> Request | None:
        """Return the request in a file; None for another file, and for one that the Space cannot have written."""
        match = _PATH.fullmatch(path)
        try:
            request = cls(**json.loads(data)) if match else None
        except (ValueError, TypeError, RecursionError):
            return None
        if request is None or match is None or not request.is_valid() or request.number != int(match[1]):
            return None
        return request

    def is_valid(self) -> bool:
        """Return whether the request is one that the evaluator accepts."""
        texts = (self.account, self.team, self.at, self.method, self.phase)
        if not all(isinstance(text, str) and len(text) <= MOST_CHARACTERS for text in texts):
            return False
        if not _is_moment(self.at):
            return False
        if type(self.number) is not int or type(self.withdraws) is not int or not self.account or self.withdraws < 0:
            return False
        return bool(self.withdraws or (_FILE.fullmatch(str(self.file)) and _SHA256.fullmatch(str(self.sha256))))


def _is_moment(text: str) -> bool:
    try:
        return datetime.datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def read_requests(files: Mapping[str, bytes]) -> list[Request]:
    """Return the requests among the files of the data set, the oldest first."""
    requests = [Request.read(path, data) for path, data in files.items()]
    return sorted((request for request in requests if request), key=lambda request: request.number)


def clean_text(text: str) -> str:
    """Return the name of a method or team as one printable line of limited length."""
    return printable(" ".join(text.split()))[:MOST_CHARACTERS]


def clean_file(name: str) -> str:
    """Return the name under which a participant's file is kept."""
    return file_name(name) or "file"
