"""Signed addresses of files, which work for an hour."""

import hashlib
import hmac
import time
from urllib.parse import quote

from .models import StoredFile
from .store import Store

_SECONDS = 3600.0
MEDIA = "/media/{file}/{name}"
PART = "/upload/{upload}/{number:int}"


def signed_as(number: str, submission: str) -> str:
    """Return the text that is signed for a file's address."""
    return number if submission in ("", "0") else f"{number} of {submission}"


class SignedUrls:
    """Makes and checks signed addresses; the official client fetches them without a token."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def file(self, number: str | None, base: str, submission: int = 0) -> str | None:
        """Return where a file can be fetched; None for none.  With a submission: as its participants may read it."""
        file = self._store.get(StoredFile, number) if number else None
        if number is None or file is None:
            return None
        of = f"of={submission}&" if submission else ""
        return f"{base}/media/{number}/{quote(file.name)}?{of}{self._signed(signed_as(number, str(submission)))}"

    def part(self, upload: str, number: int, base: str) -> str:
        """Return where a part of a large upload is put."""
        return f"{base}/upload/{upload}/{number}?{self._signed(f'{upload}/{number}')}"

    def _signed(self, text: str) -> str:
        expires = int(time.time() + _SECONDS)
        return f"expires={expires}&signature={self._signature(text, str(expires))}"

    def _signature(self, text: str, expires: str) -> str:
        return hmac.new(self._store.secret, f"{text}?{expires}".encode(), hashlib.sha256).hexdigest()

    def is_valid(self, text: str, expires: str, signature: str) -> bool:
        """Return whether a signature is ours for a text, and has not expired."""
        if not expires.isdecimal() or len(expires) > 12 or int(expires) < time.time():
            return False
        return hmac.compare_digest(self._signature(text, expires).encode(), signature.encode("utf-8", "replace"))
