"""A long JSON list of records, parsed in pieces that fit into memory.

A piece is parsed at one go up to what looks like its last border between two
records.  Where that was part of a text, its records are parsed one by one
instead: the parser itself says where each ends.  A record that is not complete
is tried again when twice as much was read, so every byte is parsed a few times
at the most.
"""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass
from typing import Any, Iterator, List, NoReturn, Optional, Pattern, Tuple

from .archive_limits import CHUNK_BYTES
from .errors import Flaw, printable
from .json_limits import check_memory, unique_keys

EXAMPLE = '[{"image_id": 1, "category_id": 1, "segmentation": {"size": [h, w], "counts": "…"}, "score": 0.9}, …]'

SEND_RECORDS = f"Send one JSON file, plain, gzipped or zipped, with a list of records: {EXAMPLE}"
SEND_FEWER = "Send fewer records, those with the highest scores, with compressed run lengths"

#: What may stand before the list, and after it.
BLANKS, PADDING = "\ufeff \r\n\t", " \r\n\t\0"
#: Between two records of the list.
_BORDER = re.compile(r"\}\s{0,99},\s{0,99}(?=\{)")
_RAW_BORDER = re.compile(_BORDER.pattern.encode())
#: Where a record may begin, and what follows one.
_BLANK, _COMMA, _END = (re.compile(pattern) for pattern in (r"[ \t\r\n]*", r"[ \t\r\n]*,[ \t\r\n]*", r"[ \t\r\n]*\]"))
#: How many closing braces are looked at for a border.
MOST_BRACES = 100
LONGEST_RECORD = 32 << 20
#: Where no two records meet nothing is a record, or little is left: the reader soon has enough of it.
FEW = 1000
#: What a record that is longer than a piece may take in memory, roughly.
COSTLIEST_RECORD = 160 << 20
#: An error so far from the end of what was read is one whatever follows.
NEAR_THE_END = 64

_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


@dataclass(frozen=True)
class JsonPart:
    """Some of the records, and how many characters they took."""

    records: List[Any]
    length: int


def json_parts(parts: Iterator[bytes]) -> Iterator[JsonPart]:
    """The records of a JSON list, some at a time."""
    source = _Characters(parts)
    source.begin()
    more, wanted = not source.at_end(), CHUNK_BYTES
    while more:
        source.hold(wanted)
        text = source.text[:wanted]
        if wanted > CHUNK_BYTES:
            check_memory(text, COSTLIEST_RECORD, SEND_FEWER)
        records, position, more = _records(text, source)
        if more and not records:
            if wanted >= LONGEST_RECORD:
                raise Flaw("holds a record that does not end", f"Write {EXAMPLE}")
            wanted *= 2
            continue
        yield JsonPart(records, position)
        source.drop(position)
        wanted = CHUNK_BYTES
    source.finish()


class _Characters:
    """A stream of UTF-8 as text, as much of it as is asked for."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._decoder = parts, codecs.getincrementaldecoder("utf-8")()
        self.text, self.passed = "", 0
        #: Was everything read?
        self.ended = False

    def hold(self, count: int) -> None:
        """Hold so many characters, or all that are left."""
        held, length = [self.text], len(self.text)
        while length < count and not self.ended:
            part = next(self._parts, None)
            self.ended = part is None
            try:
                held.append(self._decoder.decode(part or b"", final=self.ended))
            except UnicodeDecodeError:
                raise Flaw("is not UTF-8 text", "Write the JSON in UTF-8") from None
            length += len(held[-1])
        self.text = "".join(held) if len(held) > 1 else self.text

    def drop(self, count: int) -> None:
        """Go on after so many characters."""
        self.text = self.text[count:]
        self.passed += count

    def skip(self, blanks: str) -> None:
        """Go to the next character that is not blank, or to the end."""
        while True:
            self.drop(len(self.text) - len(self.text.lstrip(blanks)))
            if self.text or self.ended:
                return
            self.hold(1)

    def begin(self) -> None:
        """Go to the first record."""
        self.skip(BLANKS)
        if not self.text.startswith("["):
            raise Flaw("is JSON, but not a list of records", f"Write {EXAMPLE}")
        self.drop(1)

    def at_end(self) -> bool:
        """Is the list empty?"""
        self.skip(BLANKS)
        if not self.text.startswith("]"):
            return False
        self.drop(1)
        return True

    def finish(self) -> None:
        """Nothing but blanks may follow the list."""
        self.skip(PADDING)
        if self.text:
            self.refuse("something follows the list", 0)

    def refuse(self, why: str, position: int) -> NoReturn:
        """The text is not JSON from here on."""
        found = f"is not valid JSON: {why} at character {self.passed + position:,}"
        raise Flaw(found, "Write it with a JSON library")


def _records(text: str, source: _Characters) -> Tuple[List[Any], int, bool]:
    """The complete records at the start of a text, where the next one begins, and whether the list goes on."""
    if len(text) > CHUNK_BYTES:
        return _scanned(text, source, most=1)  # one long record: what follows it is read by pieces again
    stop, following = _last_border(text)
    if stop:
        try:
            return loaded(text[:stop]), following, True
        except json.JSONDecodeError:
            return _scanned(text, source, most=len(text))  # a border in a text, or broken JSON: the scanner tells
    return _scanned(text, source, most=FEW)


def _last_border(text: str) -> Tuple[int, int]:
    """Where the last record ends that is followed by another, and where that begins; 0 when nothing looks like it."""
    end = len(text)
    for _ in range(MOST_BRACES):
        end = text.rfind("}", 0, end)
        if end < 0:
            break
        border = _BORDER.match(text, end)
        if border:
            return end + 1, border.end()
    return 0, 0


def loaded(text: str) -> List[Any]:
    """These records without the brackets around them; JSONDecodeError when they are not whole."""
    try:
        return list(_DECODER.decode(f"[{text}]"))
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise Flaw("is nested too deeply", f"Write {EXAMPLE}") from None
    except ValueError as error:
        raise Flaw(f"holds a number that cannot be read ({printable(error)})", "Write plain numbers") from None


def _scanned(text: str, source: _Characters, most: int) -> Tuple[List[Any], int, bool]:
    """The same, record by record, up to so many."""
    ended = source.ended and len(text) == len(source.text)
    records: List[Any] = []
    position = _after(_BLANK, text, 0)
    while len(records) < most:
        found = _one(text, position, source, ended=ended)
        if found is None:
            break
        record, stop = found
        comma, end = _after(_COMMA, text, stop), _after(_END, text, stop)
        if not comma and not end:
            if ended or len(text) - _after(_BLANK, text, stop) > NEAR_THE_END:
                source.refuse("the list does not end" if not text[stop:].strip(BLANKS) else "no comma", stop)
            break
        records.append(record)
        position = comma or end
        if end:
            return records, position, False
    return records, position, True


def _after(pattern: Pattern[str], text: str, position: int) -> int:
    """Where what matches here ends; 0 when nothing does."""
    found = pattern.match(text, position)
    return found.end() if found else 0


def _one(text: str, position: int, source: _Characters, *, ended: bool) -> Optional[Tuple[Any, int]]:
    """The record that begins here and where it ends; None when it is not complete."""
    try:
        record, stop = _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        at, why = error.pos, error.msg
        if why.startswith("Unterminated"):
            at, why = (at if ended else len(text)), "the list does not end, since no quote ends the text that begins"
        elif not text[at:].strip(BLANKS):
            why = "the list does not end"
    except RecursionError:
        raise Flaw("is nested too deeply", f"Write {EXAMPLE}") from None
    except ValueError as error:
        raise Flaw(f"holds a number that cannot be read ({printable(error)})", "Write plain numbers") from None
    else:
        return record, stop
    if ended or len(text) - at > NEAR_THE_END:
        source.refuse(why, at)
    return None


def raw_json_parts(parts: Iterator[bytes]) -> List[bytes]:
    """The same pieces unparsed, cut at what looks like the last border of each; none when they cannot be cut."""
    found: List[bytes] = []
    waiting, begun = b"", False
    for part in parts:
        waiting += part
        if not begun:
            waiting = waiting.lstrip(BLANKS.encode())
            if not waiting.startswith(b"["):
                return []
            waiting, begun = waiting[1:], True
        end = waiting.rfind(b"}", 0, len(waiting))
        border = None
        for _ in range(MOST_BRACES):
            border = _RAW_BORDER.match(waiting, end) if end >= 0 else None
            if border or end < 0:
                break
            end = waiting.rfind(b"}", 0, end)
        if border:
            found.append(waiting[: end + 1])
            waiting = waiting[border.end() :]
        elif len(waiting) > 2 * CHUNK_BYTES:
            return []
    waiting = waiting.rstrip(PADDING.encode())
    return [*found, waiting[:-1]] if begun and waiting.endswith(b"]") else []
