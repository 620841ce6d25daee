"""The server's files, in a folder and under names of its own, and signed addresses of them, which work for an hour.

No name that came in a request is ever a path: a file lies under its random id.
"""

import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from functools import partial
from typing import IO
from urllib.parse import quote

from itsdangerous import Signer
from sqlalchemy import select

from .models import Challenge, ChallengePhase, StoredFile, Submission, UploadPart
from .store import Store, unless_away

_BLOCK = 1 << 18
#: How much of a file a page shows.
EXCERPT = 64 << 10
_SIGNED_SECONDS = 3600.0
#: Every column that names a file.
_REFERENCES = (
    Submission.input_file, Submission.submission_input_file, Submission.stdout_file, Submission.stderr_file,
    Submission.environment_log_file, Submission.submission_result_file, Submission.metadata_file,
    Challenge.image, Challenge.script, ChallengePhase.annotation, UploadPart.file,
)  # fmt: skip
#: Begins the names of the folders in which a pushed bundle is read.
PUSH_PREFIX = "push-"
MEDIA = "/media/{file}/{name}"
PART = "/upload/{upload}/{number:int}"


class FileStore:
    """Files that come and go with the transaction that stores or drops them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = os.path.join(store.folder, "files")
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        self._signer = Signer(store.secret, salt="address", digest_method=hashlib.sha256)

    def keep(self, source: IO[bytes] | bytes, name: str, kind: str) -> str:
        """Store a file, streamed, and return its id."""
        if isinstance(source, bytes):
            return self._add(lambda target: target.write(source), name, kind)
        return self._add(partial(shutil.copyfileobj, source, length=_BLOCK), name, kind)

    def join(self, numbers: list[str], name: str) -> str:
        """Store several files as one, beside them, and return its id."""

        def write(target: IO[bytes]) -> None:
            for number in numbers:
                with open(self.path(number), "rb") as source:
                    shutil.copyfileobj(source, target, _BLOCK)

        return self._add(write, name, "input_file")

    def _add(self, write: Callable[[IO[bytes]], object], name: str, kind: str) -> str:
        number = secrets.token_hex(16)
        with ExitStack() as undo:
            undo.callback(self._delete, number)
            with open(self._path_of(number), "xb") as target:
                write(target)
                size = target.tell()
            with self._store.write() as session:
                self._store.run_after(partial(self._delete, number), committed=False)
                undo.pop_all()  # from here on the transaction's end decides
                session.add(StoredFile(id=number, name=os.path.basename(name)[:200], size=size, kind=kind))
        return number

    def sweep(self) -> None:
        """Remove what a killed server left: files without a row, and rows of files that nothing refers to."""
        with self._store.write() as session:
            rows = set(session.scalars(select(StoredFile.id)))
            for number in rows - {number for column in _REFERENCES for number in session.scalars(select(column))}:
                self.drop(number)
        for name in os.listdir(self._folder):
            if name not in rows:
                self._delete(name)
        for name in os.listdir(self._store.folder):
            if name.startswith(PUSH_PREFIX):
                shutil.rmtree(os.path.join(self._store.folder, name), ignore_errors=True)

    def row(self, number: str | None) -> StoredFile | None:
        return self._store.get(StoredFile, number) if number else None

    def path(self, number: str) -> str:
        """Return where a file lies; raises KeyError for an id that is not in the table."""
        if self.row(number) is None:
            raise KeyError(number)
        return self._path_of(number)

    def name(self, number: str | None) -> str:
        row = self.row(number)
        return row.name if row else ""

    def ending(self, number: str) -> str:
        """Return the last ending of a file's name, which is all that EvalAI keeps of it."""
        return re.sub(r"[^\w.]", "", os.path.splitext(self.name(number))[1], flags=re.ASCII)[:20]

    def names(self, numbers: Iterable[str | None]) -> dict[str | None, str]:
        ids = [number for number in numbers if number]
        return {file.id: file.name for file in self._store.find(StoredFile, StoredFile.id.in_(ids))}

    def text(self, number: str | None, *, from_end: bool = False) -> str:
        """Return the beginning of a file, or its end, for people."""
        if not number:
            return ""
        with open(self.path(number), "rb") as file:
            if from_end:
                file.seek(max(0, os.fstat(file.fileno()).st_size - EXCERPT))
            return file.read(EXCERPT).decode("utf-8", "replace")

    def drop(self, number: str | None) -> None:
        """Remove a file, once the transaction is committed."""
        if number:
            with self._store.write():
                self._store.run_after(partial(self._delete, number), committed=True)
                self._store.remove(StoredFile, StoredFile.id == number)

    def abandon(self, number: str) -> None:
        """Drop a file that nothing refers to in the end; while the store is away it is left to the next start."""
        unless_away(partial(self._abandon, number))

    def _abandon(self, number: str) -> None:
        with self._store.write() as session:
            # A commit whose answer was lost may have been one.
            if not any(session.scalar(select(column).where(column == number).limit(1)) for column in _REFERENCES):
                self.drop(number)

    # ── signed addresses, which the official client fetches without a token ──

    def url(self, number: str | None, base: str, submission: int = 0) -> str | None:
        """Return where a file can be fetched; None for none.  With a submission: as its participants may read it."""
        file = self.row(number)
        if file is None:
            return None
        of = f"of={submission}&" if submission else ""
        return f"{base}/media/{file.id}/{quote(file.name)}?{of}{self._sign(text_to_sign(file.id, str(submission)))}"

    def part_url(self, upload: str, number: int, base: str) -> str:
        return f"{base}/upload/{upload}/{number}?{self._sign(f'{upload}/{number}')}"

    def is_signed(self, text: str, expires: str, signature: str) -> bool:
        """Return whether a signature is ours for a text, and has not expired."""
        if not expires.isdecimal() or len(expires) > 12 or int(expires) < time.time():
            return False
        return self._signer.verify_signature(f"{text}?{expires}", signature)

    def _sign(self, text: str) -> str:
        # The end is signed, not the beginning: a clock that is set back a little must refuse no new address.
        expires = int(time.time() + _SIGNED_SECONDS)
        return f"expires={expires}&signature={self._signer.get_signature(f'{text}?{expires}').decode()}"

    def _path_of(self, number: str) -> str:
        return os.path.join(self._folder, number)

    def _delete(self, number: str) -> None:
        with suppress(OSError):
            os.remove(self._path_of(number))


def text_to_sign(number: str, submission: str) -> str:
    return number if submission in ("", "0") else f"{number} of {submission}"
