"""A long JSON list of records, cut into pieces that fit into memory.

A piece ends where one record seems to end and another to begin; should that
have been part of a text in a record, parsing tells, and an earlier border is
tried or more is read.
"""

from __future__ import annotations

import json
import re
from typing import Any, Iterator, List, Optional, Tuple

from .errors import Flaw, shown
from .members import Limits
from .submission import json_text

EXAMPLE = '[{"image_id": 1, "category_id": 1, "segmentation": {"size": [h, w], "counts": "…"}, "score": 0.9}, …]'

#: What may stand before the list.
BLANKS = b"\xef\xbb\xbf \r\n\t"
#: Between two records of the list.
_BORDER = re.compile(rb"\}\s{0,99},\s{0,99}(?=\{)")
#: How far back a border is looked for in a piece, and how many are tried.
MOST_BRACES = 1000
MOST_BORDERS = 60
#: What a text in a record might hide between two records is no longer than this.
NEAR_THE_END = 1 << 18
LONGEST_RECORD = 32 << 20
PIECE_LIMITS = Limits(json_bytes=2 * LONGEST_RECORD)


def pieces(parts: Iterator[bytes]) -> Iterator[List[Any]]:
    """The records of a JSON list, some at a time."""
    waiting, begun = b"", False
    for part in parts:
        waiting += part
        if not begun:
            waiting = waiting.lstrip(BLANKS)
            if not waiting:
                continue
            if not waiting.startswith(b"["):
                raise Flaw("is JSON, but no list of records", f"Write {EXAMPLE}")
            waiting, begun = waiting[1:], True
        for stop, following in _borders(waiting):
            records = parsed(waiting[:stop], whole=False)
            if records is not None:
                yield records
                waiting = waiting[following:]
                break
        if len(waiting) > LONGEST_RECORD:
            raise Flaw("holds a record that does not end", f"Write {EXAMPLE}")
    yield parsed(_without_end(waiting if begun else b""), whole=True) or []


def raw_pieces(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces unparsed, cut at what looks like the last border of each."""
    waiting, begun = b"", False
    for part in parts:
        waiting += part
        if not begun:
            waiting = waiting.lstrip(BLANKS)
            if not waiting.startswith(b"["):
                return
            waiting, begun = waiting[1:], True
        for stop, following in _borders(waiting):
            yield waiting[:stop]
            waiting = waiting[following:]
            break
    if begun:
        yield _without_end(waiting)


def _without_end(waiting: bytes) -> bytes:
    """The last piece without the bracket that ends the list."""
    waiting = waiting.rstrip(b" \r\n\t\0")
    if not waiting.endswith(b"]"):
        raise Flaw("is not valid JSON: the list does not end", "Write it with a JSON library")
    return waiting[:-1]


def _borders(waiting: bytes) -> Iterator[Tuple[int, int]]:
    """Where records end that are followed by another, and where those begin; the last ones, backwards."""
    end, found = len(waiting), 0
    for _ in range(MOST_BRACES):
        end = waiting.rfind(b"}", 0, end)
        if end < 0 or found == MOST_BORDERS:
            return
        border = _BORDER.match(waiting, end)
        if border:
            found += 1
            yield end + 1, border.end()


def parsed(piece: bytes, *, whole: bool) -> Optional[List[Any]]:
    """The records of a piece; None when it seems to end inside one (its border was part of a text)."""
    text = json_text(b"[" + piece + b"]", PIECE_LIMITS)
    try:
        return list(json.loads(text))
    except RecursionError:
        raise Flaw("is nested too deeply", f"Write {EXAMPLE}") from None
    except json.JSONDecodeError as error:
        if not whole and error.pos > len(text) - NEAR_THE_END:
            return None
        raise Flaw(f"is not valid JSON ({shown(error)})", "Write it with a JSON library") from None
    except ValueError as error:
        raise Flaw(f"holds a number that cannot be read ({shown(error)})", "Write plain numbers") from None
