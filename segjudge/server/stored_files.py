"""The server's files, in a folder under its own names, with signed URLs that are valid for an hour.

Names in requests never become paths: files are stored under random ids.
"""

import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import IO
from urllib.parse import quote

from itsdangerous import Signer
from sqlalchemy import select

from .models import Challenge, ChallengePhase, StoredFile, Submission, UploadPart
from .store import Store, unless_away

_BLOCK = 1 << 18
#: The maximum bytes of a file that a page shows.
EXCERPT = 64 << 10
_SIGNED_SECONDS = 3600.0
#: Every column that names a file.
_REFERENCES = (
    Submission.input_file, Submission.submission_input_file, Submission.stdout_file, Submission.stderr_file,
    Submission.environment_log_file, Submission.submission_result_file, Submission.metadata_file,
    Challenge.image, Challenge.script, ChallengePhase.annotation, UploadPart.file,
)  # fmt: skip
#: The prefix of the folders in which a pushed bundle is read.
PUSH_PREFIX = "push-"
MEDIA = "/media/{file}/{name}"
PART = "/upload/{upload}/{number:int}"


class FileStore:
    """Files that are stored or dropped with a transaction."""

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

    def join(self, file_ids: list[str], name: str) -> str:
        """Store several files as one, beside them, and return its id."""

        def write(target: IO[bytes]) -> None:
            for file_id in file_ids:
                with open(self.path(file_id), "rb") as source:
                    shutil.copyfileobj(source, target, _BLOCK)

        return self._add(write, name, "input_file")

    def _add(self, write: Callable[[IO[bytes]], object], name: str, kind: str) -> str:
        file_id = secrets.token_hex(16)
        with ExitStack() as undo:
            undo.callback(self._delete, file_id)
            with open(self._path_of(file_id), "xb") as target:
                write(target)
                size = target.tell()
            with self._store.write() as session:
                self._delete_after(file_id, committed=False)
                undo.pop_all()  # from here on, the end of the transaction decides
                session.add(StoredFile(id=file_id, name=os.path.basename(name)[:200], size=size, kind=kind))
        return file_id

    def sweep(self) -> None:
        """Remove a killed server's remains: files without a row, and rows of unreferenced files."""
        with self._store.write() as session:
            rows = set(session.scalars(select(StoredFile.id)))
            for file_id in rows - {file_id for column in _REFERENCES for file_id in session.scalars(select(column))}:
                self.drop(file_id)
        for name in os.listdir(self._folder):
            if name not in rows:
                self._delete(name)
        for name in os.listdir(self._store.folder):
            if name.startswith(PUSH_PREFIX):
                shutil.rmtree(os.path.join(self._store.folder, name), ignore_errors=True)

    def row(self, file_id: str | None) -> StoredFile | None:
        return self._store.get(StoredFile, file_id) if file_id else None

    def path(self, file_id: str) -> str:
        """Return a file's path; raises KeyError for an id that is not in the table."""
        if self.row(file_id) is None:
            raise KeyError(file_id)
        return self._path_of(file_id)

    def name(self, file_id: str | None) -> str:
        row = self.row(file_id)
        return row.name if row else ""

    def ending(self, file_id: str) -> str:
        """Return the last ending of a file's name, the only part that EvalAI keeps."""
        return re.sub(r"[^\w.]", "", os.path.splitext(self.name(file_id))[1], flags=re.ASCII)[:20]

    def names(self, file_ids: Iterable[str | None]) -> dict[str | None, str]:
        ids = [file_id for file_id in file_ids if file_id]
        return {file.id: file.name for file in self._store.find(StoredFile, StoredFile.id.in_(ids))}

    def text(self, file_id: str | None, *, from_end: bool = False) -> str:
        """Return the beginning of a file, or its end, for people."""
        if not file_id:
            return ""
        with open(self.path(file_id), "rb") as file:
            if from_end:
                file.seek(max(0, os.fstat(file.fileno()).st_size - EXCERPT))
            return file.read(EXCERPT).decode("utf-8", "replace")

    def drop(self, file_id: str | None) -> None:
        """Remove a file, once the transaction is committed."""
        if file_id:
            with self._store.write():
                self._delete_after(file_id, committed=True)
                self._store.remove(StoredFile, StoredFile.id == file_id)

    @contextmanager
    def abandon_unless_used(self, file_id: str) -> Iterator[None]:
        """Delete an unreferenced file if the block fails; during an outage, the next start deletes it."""
        try:
            yield
        except BaseException:
            unless_away(partial(self._abandon, file_id))
            raise

    def _abandon(self, file_id: str) -> None:
        with self._store.write() as session:
            # A commit may have succeeded although its answer was lost.
            if not any(session.scalar(select(column).where(column == file_id).limit(1)) for column in _REFERENCES):
                self.drop(file_id)

    # ── signed addresses, which the official client fetches without a token ──

    def url(self, file_id: str | None, base: str, submission: int = 0) -> str | None:
        """Return the URL of a file; None without one. With a submission, participants read the file at that URL."""
        file = self.row(file_id)
        if file is None:
            return None
        of = f"of={submission}&" if submission else ""
        return f"{base}/media/{file.id}/{quote(file.name)}?{of}{self._sign(text_to_sign(file.id, str(submission)))}"

    def part_url(self, upload: str, number: int, base: str) -> str:
        return f"{base}/upload/{upload}/{number}?{self._sign(f'{upload}/{number}')}"

    def is_signed(self, text: str, expires: str, signature: str) -> bool:
        """Return whether a signature of some text is ours and has not expired."""
        if not expires.isdecimal() or len(expires) > 12 or int(expires) < time.time():
            return False
        return self._signer.verify_signature(f"{text}?{expires}", signature)

    def _sign(self, text: str) -> str:
        # The end is signed, not the beginning: a clock set back a little must not reject new addresses.
        expires = int(time.time() + _SIGNED_SECONDS)
        return f"expires={expires}&signature={self._signer.get_signature(f'{text}?{expires}').decode()}"

    def _path_of(self, file_id: str) -> str:
        return os.path.join(self._folder, file_id)

    def _delete_after(self, file_id: str, *, committed: bool) -> None:
        self._store.run_after(partial(self._delete, file_id), committed=committed)

    def _delete(self, file_id: str) -> None:
        with suppress(OSError):
            os.remove(self._path_of(file_id))


def text_to_sign(file_id: str, submission: str) -> str:
    return file_id if submission in ("", "0") else f"{file_id} of {submission}"
