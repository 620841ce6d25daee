"""JSON of long texts, such as run lengths of noisy masks: the texts are cut out before the rest is parsed.

A parser looks at each character several times. Here the quotes are found by one search, and each text is copied once.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

#: The minimum length of a text that is cut out, and of a document whose texts are.
_LONG, _LEAST = 1 << 10, 1 << 22
#: How many windows of this length are examined first, and the maximum number of quotes in them.
_WINDOWS, _WINDOW = 8, 1 << 10
_MOST_QUOTES = 2 * _WINDOWS
#: One of how many characters may be a quote, and the maximum number of escaped ones in a text.
_SPARSE, _MOST_ESCAPED = 128, 16
#: The beginning of the texts that take the place of others.
_MARK = b"\x7f"
#: A character by its code, which may be the mark.
_ESCAPED = b"\\u"
_QUOTE, _BACKSLASH = b'"', b"\\"


class CutDocument(NamedTuple):
    """JSON without its long texts."""

    data: bytes
    #: The text for each one in its place.
    texts: Dict[str, str]
    #: The number of characters of these.
    length: int

    def restore(self, pairs: List[Tuple[str, Any]]) -> List[Tuple[str, Any]]:
        """Return the keys and values of an object with the texts that were cut out."""
        texts = self.texts
        return [(key, texts.get(value, value) if type(value) is str else value) for key, value in pairs]


def cut_texts(data: bytes) -> Optional[CutDocument]:
    """Return JSON without the long texts that are values of objects; None if it seems to have few.

    It is valid if and only if the document is.
    """
    if len(data) < _LEAST or not _seems_long(data):
        return None
    chunks: List[bytes] = []
    texts: Dict[str, str] = {}
    copied, stop, length = 0, -1, 0
    for _ in range(len(data) // (2 * _SPARSE)):
        start = data.find(_QUOTE, stop + 1) + 1
        stop = _find_end(data, start) if start else -1
        if stop < 0:
            break
        before = data[start - 3 : start - 1] if stop - start >= _LONG else b""
        text = _decode_plain(data[start:stop]) if before == b": " or before.endswith(b":") else ""
        if text:
            mark = _MARK + b"%d" % len(texts)
            chunks += (data[copied:start], mark)
            texts[mark.decode()] = text
            copied, length = stop, length + len(text)
    chunks.append(data[copied:])
    if not texts or any(_MARK in chunk or _ESCAPED in chunk for chunk in chunks[::2]):
        return None
    return CutDocument(b"".join(chunks), texts, length)


def _seems_long(data: bytes) -> bool:
    """Return whether there are few quotes in a sample."""
    step = len(data) // _WINDOWS
    starts = range(step // 2, len(data), step)
    return sum(data.count(_QUOTE, start, start + _WINDOW) for start in starts) <= _MOST_QUOTES


def _find_end(data: bytes, start: int) -> int:
    """Return the position of the quote behind a text; -1 without one, or if too many quotes are escaped before it."""
    for _ in range(_MOST_ESCAPED):
        stop = data.find(_QUOTE, start)
        if stop < 0 or data[stop - 1 : stop] != _BACKSLASH:
            return stop
        text = data[start:stop]
        if (len(text) - len(text.rstrip(_BACKSLASH))) % 2 == 0:
            return stop
        start = stop + 1
    return -1


def _decode_plain(data: bytes) -> str:
    """Return a text of printable ASCII in which only backslashes are escaped; "" for another one."""
    import numpy as np  # opening a small file need not wait for it

    if not data.isascii() or np.frombuffer(data, np.uint8).min() < ord(" "):
        return ""
    if _BACKSLASH in data:
        parts = data.split(_BACKSLASH)
        data = b"" if any(parts[1::2]) or len(parts) % 2 == 0 else _BACKSLASH.join(parts[::2])
    return data.decode("ascii")
