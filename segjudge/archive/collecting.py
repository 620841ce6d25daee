"""Calls and downloads of an export: paced, repeated after outages, and kept in a journal that a later run resumes.

Only `Collector.get` calls a platform, and it only reads. The journal is a file of JSON lines in the folder of the
unfinished archive: a line for each answer and for each file that arrived. A line that a killed process left incomplete
is ignored.
"""

from __future__ import annotations

import ast
import itertools
import json
import os
import pathlib
import re
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from segjudge.evaluation_script.files import HostError
from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.client import ApiError, Client
from segjudge.platforms.evalai.rows import PLACEHOLDER
from segjudge.system.download import DiskError, GoneError, download
from segjudge.system.files import make_folder, redact_address
from segjudge.system.network import growing_pauses

from .event import MissingFile

#: The journal's name in the folder of an unfinished archive.
JOURNAL = "journal.jsonl"
#: The number of tries of a call; the pauses between them grow to a minute.
_TRIES = 8
#: The seconds for which a resumed export uses an earlier run's answers; signed addresses live for an hour.
_FRESH = 1800.0
#: The maximum number of pages, and of bytes of a file.
_PAGES, _FILE_BYTES = 10_000, 1 << 40
#: The statuses of storages for a missing file.
_GONE = (403, 404, 410)
#: The maximum bytes of a storage's error, and of a file that is read as results.
_ERROR_BYTES, _RESULT_BYTES = 4096, 8 << 20


class Collector:
    """The calls of one export, which writes to the folder of an unfinished archive."""

    def __init__(
        self,
        client: Client,
        folder: pathlib.Path,
        requests_per_minute: int,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.client, self.folder, self.sleep = client, folder, sleep
        self._seconds = 60.0 / requests_per_minute
        make_folder(folder)
        folder.chmod(0o700)  # it holds the truth
        self._answers: dict[str, Any] = {}
        self._files: dict[str, dict[str, Any]] = {}
        #: What could not be had, by phase, name and submission.
        self.gaps: dict[tuple[str, str, int | None], MissingFile] = {}
        #: Other notes of this and earlier runs, such as the time of the first call.
        self.notes: dict[str, Any] = {}
        self._called_at = -60.0
        self._read_journal()

    # ── calls ────────────────────────────────────────────────────────────────

    def get(self, route: str, values: Mapping[str, int | str], *, fresh: bool = False, **params: int | str) -> Any:
        """Return an answer, from the journal unless `fresh`; raises ApiError for a rejection, HostError for outages."""
        key = json.dumps([routes.path(route, **values), params], sort_keys=True)
        if fresh or key not in self._answers:
            answer = self._repeat(lambda: self._call("GET", route, values, params=params))
            self._answers[key] = answer
            self._note({"call": key, "at": time.time(), "answer": answer})
        return self._answers[key]

    def get_pages(
        self, route: str, values: Mapping[str, int | str], *, fresh: bool = False, **params: int | str
    ) -> list[dict[str, Any]]:
        """Return the rows of all pages of a list."""
        rows: list[dict[str, Any]] = []
        for page in range(1, _PAGES):
            answer = self.get(route, values, fresh=fresh, **params, **({"page": page} if page > 1 else {}))
            rows += list_rows(answer)
            if not (isinstance(answer, dict) and answer.get("next")):
                break
        return rows

    def post(self, route: str, values: Mapping[str, int | str], body: Mapping[str, object]) -> Any:
        """Call the one method that changes something, which the host asked for."""
        return self._repeat(lambda: self._call("POST", route, values, json=body))

    def _call(self, method: str, route: str, values: Mapping[str, int | str], **options: Any) -> Any:
        wait = self._called_at + self._seconds - time.monotonic()
        if wait > 0:
            self.sleep(wait)
        self._called_at = time.monotonic()
        return self.client.call(method, route, values, **options)

    def _repeat(self, call: Callable[[], Any]) -> Any:
        """Repeat a call after errors that may pass; raises HostError when patience ends."""
        for pause in itertools.islice(growing_pauses(), _TRIES):
            try:
                return call()
            except ApiError as error:
                if not error.is_transient:
                    raise
                last = error
            self.sleep(max(pause, last.wait or 0.0))
        raise HostError(f"{self.client.host}: {last}. Run the same command later: it goes on where it stopped")

    # ── files ────────────────────────────────────────────────────────────────

    def fetch(
        self, address: object, name: str, phase: str, what: str, submission: int | None = None, note: str = ""
    ) -> bool:
        """Fetch a file to a path of the archive, unless an earlier run did; otherwise note why, and return False.

        The token is not sent.
        """
        self.gaps.pop((phase, what, submission), None)
        if reason := self._fetch(address, name):
            (self.folder / name).unlink(missing_ok=True)
            self.note_gap(phase, what, f"{reason}{note}", submission)
        return not reason

    def note_gap(self, phase: str, what: str, reason: str, submission: int | None = None) -> None:
        """Note that something cannot be had, in the place of an earlier reason."""
        self.gaps[phase, what, submission] = MissingFile(phase, what, reason, submission)

    def _fetch(self, address: object, name: str) -> str:
        """Return why a file cannot be had, or "" with the file."""
        if not address:
            return "the platform names none"
        url = urljoin(f"{self.client.host}/", str(address))
        target, entry = self.folder / name, {"file": name, "address": redact_address(url)}
        fetched = self._files.get(name, {})
        if entry.items() <= fetched.items() and target.is_file() and target.stat().st_size == fetched["length"]:
            return ""
        make_folder(target.parent)
        try:
            download(lambda: url, str(target), _FILE_BYTES, self.sleep, answers_needed=1)
        except GoneError as error:
            if error.lasting:
                return f"expired or deleted ({error.status})" if error.status in _GONE else error.why
            fault = f"{redact_address(url)}: cannot be fetched ({error.why})"
            raise HostError(f"{fault}. Run the same command later: it goes on where it stopped") from None
        except DiskError as error:
            raise HostError(str(error)) from None
        if fault := _find_fault(target):
            return fault
        self._files[name] = {**entry, "length": target.stat().st_size}
        self._note(self._files[name])
        return ""

    # ── the journal ──────────────────────────────────────────────────────────

    def note(self, key: str, *, value: object) -> None:
        """Keep a note for a later run."""
        self.notes[key] = value
        self._note({"note": key, "value": value})

    def _note(self, entry: Mapping[str, object]) -> None:
        with (self.folder / JOURNAL).open("a", encoding="utf-8") as journal:
            journal.write(f"{json.dumps(entry)}\n")

    def _read_journal(self) -> None:
        path = self.folder / JOURNAL
        if not path.exists():
            return
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):  # the next line must not continue a torn one
            os.truncate(path, len(whole))
        for line in whole.splitlines():
            entry = json.loads(line)
            if "file" in entry:
                self._files[entry["file"]] = entry
            elif "note" in entry:
                self.notes[entry["note"]] = entry["value"]
            elif 0 <= time.time() - entry["at"] < _FRESH:
                self._answers[entry["call"]] = entry["answer"]


def list_rows(answer: object) -> list[dict[str, Any]]:
    """Return the rows of a list, or of one page of it; raises HostError for another answer."""
    rows = answer.get("results") if isinstance(answer, dict) else answer
    if not isinstance(rows, list):
        raise HostError("the platform does not answer with a list. Check its address")
    return [row for row in rows if isinstance(row, dict)]


def name_of_address(address: object) -> str:
    """Return the last part of an address's path, which names its file."""
    return unquote(urlsplit(str(address)).path).rpartition("/")[2] or "file"


def ending_of_address(address: object) -> str:
    """Return the ending of the file that an address names, such as `.zip`; "" if it has none."""
    return os.path.splitext(name_of_address(address))[1]


def _find_fault(path: pathlib.Path) -> str:
    """Return what is wrong with a file that a storage gave, by its first bytes; "" if it is a file."""
    with path.open("rb") as file:
        start = file.read(_ERROR_BYTES)
    if start.strip() == PLACEHOLDER:
        return "never uploaded: the upload did not finish, and EvalAI holds a placeholder"
    error = re.match(rb"\s*(?:<\?xml[^>]*>\s*)?<Error>.*?<Code>(\w{1,40})</Code>", start, re.DOTALL)
    return f"expired or deleted (an error of the storage, {error[1].decode()})" if error else ""


def read_result(path: pathlib.Path) -> object:
    """Return the content of a result file, JSON or a Python literal; None for other text. Nothing is evaluated."""
    if path.stat().st_size > _RESULT_BYTES:
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
    return None
