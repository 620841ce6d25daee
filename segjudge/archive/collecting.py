"""Calls and downloads of an export: paced, repeated after outages, and kept in a journal that a later run resumes.

Only `Collector.get` calls a platform, and it only reads. The journal is a file of JSON lines in the folder of the
unfinished archive: a line for each answer and for each file that arrived. A line that a killed process left incomplete
is ignored.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import json
import os
import pathlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from segjudge.evaluation_script.files import HostError, printable
from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.client import ApiError, Client
from segjudge.platforms.evalai.rows import PLACEHOLDER
from segjudge.system.files import make_folder, redact_address
from segjudge.system.network import WireError, exchange, growing_pauses, read_blocks, with_deadline

#: The journal's name in the folder of an unfinished archive.
JOURNAL = "journal.jsonl"
#: The number of calls in a minute, below EvalAI's limit of 60.
REQUESTS_PER_MINUTE = 40
#: The number of tries of a call or download; the pauses between them grow to a minute.
_TRIES = 8
#: The seconds for which a resumed export uses an earlier run's answers; signed addresses live for an hour.
_FRESH = 1800.0
#: The maximum number of pages, and of seconds without a byte and for a whole file.
_PAGES, _SILENCE, _FILE_SECONDS = 10_000, 60.0, 6 * 3600.0
#: The statuses of storages for a missing file.
_GONE = (403, 404, 410)
#: The maximum bytes of a storage's error, and of a file that is read as results.
_ERROR_BYTES, _RESULT_BYTES = 4096, 8 << 20


class _GoneError(Exception):
    """Raised with the reason if a file cannot be had, now or later."""


@dataclass(frozen=True)
class Pace:
    """The pace of calls, and how to wait."""

    requests_per_minute: int = REQUESTS_PER_MINUTE
    sleep: Callable[[float], object] = time.sleep
    #: The first and the longest pause after an outage, in seconds.
    pauses: tuple[float, float] = (2.0, 60.0)


class Collector:
    """The calls of one export, which writes to the folder of an unfinished archive."""

    def __init__(self, client: Client, folder: pathlib.Path, pace: Pace) -> None:
        self.client, self.folder, self._pace = client, folder, pace
        make_folder(folder)
        folder.chmod(0o700)  # it holds the truth
        self._answers: dict[str, Any] = {}
        self._files: dict[str, dict[str, Any]] = {}
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
        wait = self._called_at + 60.0 / self._pace.requests_per_minute - time.monotonic()
        if wait > 0:
            self._pace.sleep(wait)
        self._called_at = time.monotonic()
        return self.client.call(method, route, values, **options)

    def _repeat(self, call: Callable[[], Any]) -> Any:
        """Repeat a call after errors that may pass; raises HostError when patience ends."""
        for pause in self._list_pauses():
            try:
                return call()
            except ApiError as error:
                if not error.is_transient:
                    raise
                last = error
            self._pace.sleep(max(pause, last.wait or 0.0))
        raise HostError(f"{self.client.host}: {last}. Run the same command later: it goes on where it stopped")

    def _list_pauses(self) -> Iterator[float]:
        return itertools.islice(growing_pauses(*self._pace.pauses), _TRIES)

    def sleep(self, seconds: float) -> None:
        self._pace.sleep(seconds)

    # ── files ────────────────────────────────────────────────────────────────

    def fetch(self, address: object, name: str) -> str:
        """Fetch a file to a path of the archive, unless an earlier run did; return why it cannot be had, or "".

        The token is not sent.
        """
        if not address:
            return "the platform names none"
        url = urljoin(f"{self.client.host}/", str(address))
        if urlsplit(url).scheme not in ("http", "https"):
            return f"its address is not one of the web: {printable(redact_address(url))}"
        target, entry = self.folder / name, {"file": name, "address": redact_address(url)}
        fetched = self._files.get(name, {})
        if entry.items() <= fetched.items() and target.is_file() and target.stat().st_size == fetched["length"]:
            return ""
        make_folder(target.parent)
        for pause in self._list_pauses():
            try:
                digest = exchange(lambda session: _download(session, url, target), with_deadline(_FILE_SECONDS))
            except _GoneError as error:
                return str(error)
            except WireError as error:
                reason = str(error)
                self._pace.sleep(pause)
            else:
                self._files[name] = {**entry, "length": target.stat().st_size, "sha256": digest}
                self._note(self._files[name])
                return ""
        fault = f"{redact_address(url)}: cannot be fetched ({reason})"
        raise HostError(f"{fault}. Run the same command later: it goes on where it stopped")

    # ── the journal ──────────────────────────────────────────────────────────

    def note(self, key: str, *, value: object) -> None:
        """Keep a note for a later run."""
        self.notes[key] = value
        self._note({"note": key, "value": value})

    def _note(self, entry: Mapping[str, object]) -> None:
        with (self.folder / JOURNAL).open("a", encoding="utf-8") as journal:
            journal.write(f"{json.dumps(entry)}\n")
            journal.flush()
            os.fsync(journal.fileno())

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


def _download(session: Any, url: str, target: pathlib.Path) -> str:
    """Write a file and return its digest; raises _GoneError for a missing one."""
    partial = target.with_name(f"{target.name}.partial")
    digest = hashlib.sha256()
    # As stored: a compressed file must not be decompressed on its way.
    headers = {"Accept-Encoding": "identity"}
    # `auth` keeps an entry of ~/.netrc from being sent.
    options = {"auth": lambda request: request, "stream": True, "timeout": _SILENCE, "allow_redirects": False}
    with session.get(url, headers=headers, **options) as answer:
        if answer.status_code >= 500 or answer.status_code == 429:
            raise WireError(f"answers {answer.status_code}")
        if answer.status_code != 200:
            raise _GoneError(_explain_gone(answer))
        with partial.open("wb") as out:
            for block in read_blocks(answer, decode=False):
                digest.update(block)
                out.write(block)
    with partial.open("rb") as file:
        start = file.read(_ERROR_BYTES)
    if fault := _find_fault(start):
        partial.unlink()
        raise _GoneError(fault)
    os.replace(partial, target)
    return digest.hexdigest()


def _explain_gone(answer: Any) -> str:
    """Return why a storage does not give a file."""
    if answer.status_code not in _GONE:
        return f"the storage answers {answer.status_code}"
    start = b"".join(itertools.islice(read_blocks(answer, _ERROR_BYTES), 1))
    return f"expired or deleted ({answer.status_code}{_find_code(start)})"


def _find_fault(start: bytes) -> str:
    """Return what is wrong with a file that a storage gave, by its first bytes; "" if it is a file."""
    if start.strip() == PLACEHOLDER:
        return "never uploaded: the upload did not finish, and EvalAI holds a placeholder"
    code = _find_code(start)
    return f"expired or deleted (an error of the storage{code})" if code else ""


def _find_code(start: bytes) -> str:
    """Return the code of a storage's error in XML, after a comma; "" for other content."""
    code = re.match(rb"\s*(?:<\?xml[^>]*>\s*)?<Error>.*?<Code>(\w{1,40})</Code>", start, re.DOTALL)
    return f", {code[1].decode()}" if code else ""


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
