"""A submission's file onto this disk: streamed, bounded, taken up where it broke off."""

from __future__ import annotations

import os
from collections.abc import Callable
from urllib.parse import urlsplit

import requests

_BLOCK = 1 << 18
_TIMEOUT = (10.0, 60.0)
_TRIES = 8


class TooLargeError(Exception):
    """The file is larger than this challenge takes."""


class GoneError(Exception):
    """It could not be had; the text says why."""


def download(address: Callable[[], str], path: str, limit: int, sleep: Callable[[float], object]) -> None:
    """Write the file; `address` is asked anew for each try, since links expire.

    The token is for the API alone: files are fetched without it.
    """
    why = ""
    for attempt in range(_TRIES):
        if attempt:
            sleep(min(30.0, 0.5 * 2**attempt))
        try:
            if _tried(address(), path, limit):
                return
            why = "it broke off"
        except requests.RequestException as error:
            why = type(error).__name__
        except OSError as error:
            why = str(error)
            if not isinstance(error, ConnectionError):
                break
    raise GoneError(f"the submission's file could not be fetched ({why})")


def head(address: str, size: int) -> bytes:
    """The first bytes of a file; OSError where it cannot be had."""
    with requests.get(address, headers={"Range": f"bytes=0-{size - 1}"}, stream=True, timeout=_TIMEOUT) as answer:
        if answer.status_code not in (200, 206):
            raise ConnectionError(f"the server answers {answer.status_code}")
        return bytes(next(answer.iter_content(size), b""))


def _tried(address: str, path: str, limit: int) -> bool:
    """Whether the whole file is there now."""
    have = os.path.getsize(path) if os.path.exists(path) else 0
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"} if have else {"Accept-Encoding": "identity"}
    if urlsplit(address).scheme not in ("http", "https"):
        raise ConnectionError("the server gives no address for it")
    with requests.get(address, headers=headers, stream=True, timeout=_TIMEOUT) as answer:
        if answer.status_code == 416:
            os.unlink(path)
            return False
        if answer.status_code not in (200, 206):
            raise ConnectionError(f"the server answers {answer.status_code}")
        if answer.status_code == 200:
            have = 0
        told = answer.headers.get("Content-Length", "")
        whole = have + int(told) if told.isdecimal() else None
        if whole is not None and whole > limit:
            raise TooLargeError
        with open(path, "ab" if have else "wb") as file:
            # Else what came before it broke off would be thrown away; whether all came is looked at below.
            answer.raw.enforce_content_length = False
            for piece in answer.raw.stream(_BLOCK, decode_content=False):
                file.write(piece)
                if file.tell() > limit:
                    raise TooLargeError
            return whole is None or file.tell() == whole
