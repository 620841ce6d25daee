"""Addresses of files that work for an hour and for nobody who made them up."""

from __future__ import annotations

import hashlib
import hmac
import time
from urllib.parse import quote

from .store import Store

LIFE = 3600.0
MEDIA = "/media/{file}/{name}"
PART = "/upload/{upload}/{number:int}"


def signed_as(number: str, submission: str) -> str:
    """What is signed of a file's address."""
    return number if submission in ("", "0") else f"{number} of {submission}"


class SignedUrls:
    """Signed addresses; the official client fetches them without a token."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def file(self, number: str | None, base: str, submission: int = 0) -> str | None:
        """Where a file can be fetched; None for none.  With a submission: as its participants may read it."""
        row = self._store.row("SELECT name FROM files WHERE id = ?", number) if number else None
        if number is None or row is None:
            return None
        of = f"of={submission}&" if submission else ""
        return f"{base}/media/{number}/{quote(row['name'])}?{of}{self._signed(signed_as(number, str(submission)))}"

    def part(self, upload: str, number: int, base: str) -> str:
        """Where a part of a large upload is put."""
        return f"{base}/upload/{upload}/{number}?{self._signed(f'{upload}/{number}')}"

    def _signed(self, what: str) -> str:
        expires = int(time.time() + LIFE)
        return f"expires={expires}&signature={self._signature(what, str(expires))}"

    def _signature(self, what: str, expires: str) -> str:
        return hmac.new(self._store.secret, f"{what}?{expires}".encode(), hashlib.sha256).hexdigest()

    def good(self, what: str, expires: str, signature: str) -> bool:
        """Whether an address is ours, and still lasts."""
        if not expires.isdecimal() or len(expires) > 12 or int(expires) < time.time():
            return False
        return hmac.compare_digest(self._signature(what, expires).encode(), signature.encode("utf-8", "replace"))
