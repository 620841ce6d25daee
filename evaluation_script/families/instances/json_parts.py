"""A JSON list of records, read in parts.

A part is parsed at once, up to its last apparent border between two records. If that border lies inside a string, the
parser finds the end of each record instead. An incomplete record is parsed again after twice as many bytes are read, so
each byte is parsed only a few times.
"""

from __future__ import annotations

import codecs
import json
import re
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, AnyStr, Generator, Iterator, List, NamedTuple, NoReturn, Optional, Pattern, Tuple

from ...files.limits import CHUNK_BYTES, check_memory, unique_keys
from ...files.problems import Flaw
from ...masks.backend import backend
from .records import EXAMPLE, Records

SEND_FEWER = "Send fewer records (those with the highest scores), with compressed run lengths"
#: The characters before and after the list.
BLANKS, _PADDING = chr(0xFEFF) + " \r\n\t", " \r\n\t\0"
#: The border between two records of the list, which never occurs between the masks of a video's frames.
_BORDER = re.compile(r"\}\s{0,99},\s{0,99}(?=\{)(?!\{\s{0,99}\"(?:size|counts)\")")
#: The text before the first record of a non-empty list.
_BEGINNING = re.compile(rb"[ \r\n\t]*\[[ \r\n\t]*")
_RAW_BORDER = re.compile(_BORDER.pattern.encode())
#: The possible starts of a record, and its followers.
_BLANK, _COMMA, _END = (re.compile(pattern) for pattern in (r"[ \t\r\n]*", r"[ \t\r\n]*,[ \t\r\n]*", r"[ \t\r\n]*\]"))
#: The maximum number of closing braces that are tried as a border.
_MOST_BRACES = 2000
_LONGEST_RECORD = 32 << 20
#: The longest record that a table holds.
_LONGEST_IN_TABLE = 8 << 20
#: The number of characters examined of text that is not a list.
_EXAMINED = 1 << 20
#: If no border exists, the maximum number of records to parse one by one before the next part.
_MOST_PARSED = 1000
#: The approximate memory of a record that is longer than a part.
_COSTLIEST_RECORD = 160 << 20
#: An error further than this from the end of the text is an error whatever follows.
_NEAR_THE_END = 64
_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


class JsonPart(NamedTuple):
    """Some of the records, and their length in characters."""

    records: Records
    length: int
    #: The bytes of a table, which are parsed again if the table is unusual.
    data: bytes = b""

    def parse(self) -> List[Any]:
        """Return the parsed records."""
        if isinstance(self.records, list):
            return self.records
        return parse_records(self.data[: self.records.end].decode().rstrip(f",{BLANKS}"))


def cut_json(parts: Iterator[bytes], shape: Optional[int] = None) -> Iterator[JsonPart]:
    """Yield the records of a JSON list in batches: as tables of a shape up to the first unusual one, then parsed."""
    skipped = 0
    if shape is not None:
        uncut, skipped = yield from _cut_tables(parts, shape)
        parts = chain((uncut,), parts)
    source = _Characters(parts, skipped)
    more, size = skipped > 0 or source.begin(), CHUNK_BYTES
    while more:
        source.fill(size)
        text = source.text[:size]
        if size > CHUNK_BYTES:
            check_memory(text, _COSTLIEST_RECORD, SEND_FEWER)
        records, position, more = _read_complete_records(text, source)
        if more and not records:
            if size >= _LONGEST_RECORD:
                raise Flaw("holds an unterminated record", f"Write {EXAMPLE}")
            size *= 2
            continue
        yield JsonPart(records, position)
        source.drop(position)
        size = CHUNK_BYTES
    source.check_end()


def _cut_tables(parts: Iterator[bytes], shape: int) -> Generator[JsonPart, None, Tuple[bytes, int]]:
    """Yield the usual records at the start of a list as tables.

    Return the bytes that were read beyond them, and the number of characters before these.
    """
    data = next(parts, b"")
    begun = _BEGINNING.match(data)
    if begun is None:
        return data, 0
    beginning, data = begun[0], data[begun.end() :]
    skipped, window = 0, 2 * CHUNK_BYTES
    while True:
        table = backend().read_records(data[:window], shape)
        if table is not None:
            length = table.end if data.isascii() else len(data[: table.end].decode())
            yield JsonPart(table, length, data)
            data, skipped = data[table.end :], skipped + length
            if len(data) >= window:
                continue
        elif len(data) >= CHUNK_BYTES:
            if len(data) >= _LONGEST_IN_TABLE or _find_last_border(data, _RAW_BORDER, b"}")[0]:
                break
            window = 2 * len(data)  # a long record, which has not ended
        following = b"".join(islice(parts, max(1, (window - len(data)) // CHUNK_BYTES)))
        if table is None and not following:
            break
        data += following
    return (data, len(beginning) + skipped) if skipped else (beginning + data, 0)


class _Characters:
    """A UTF-8 stream read as text on demand."""

    def __init__(self, parts: Iterator[bytes], dropped: int) -> None:
        self._parts, self._decoder = parts, codecs.getincrementaldecoder("utf-8")()
        self._dropped = dropped
        #: The text that was read and is still needed.
        self.text = ""
        #: Whether everything has been read.
        self.has_ended = False

    def fill(self, count: int) -> None:
        """Read until this many characters are available, or the stream ends."""
        texts, length = [self.text], len(self.text)
        while length < count and not self.has_ended:
            data = next(self._parts, None)
            self.has_ended = data is None
            try:
                texts.append(self._decoder.decode(data or b"", final=self.has_ended))
            except UnicodeDecodeError:
                raise Flaw("is not UTF-8 text", "Write the JSON in UTF-8") from None
            length += len(texts[-1])
        self.text = "".join(texts) if len(texts) > 1 else self.text

    def drop(self, count: int) -> None:
        """Skip this many characters."""
        self.text = self.text[count:]
        self._dropped += count

    def skip(self, blanks: str) -> None:
        """Advance to the next non-blank character, or to the end."""
        while True:
            self.drop(len(self.text) - len(self.text.lstrip(blanks)))
            if self.text or self.has_ended:
                return
            self.fill(1)

    def begin(self) -> bool:
        """Move to the first record; return True if there is one."""
        self.skip(BLANKS)
        if not self.text.startswith("["):
            self._refuse_non_list()
        self.drop(1)
        self.skip(BLANKS)
        empty = self.text.startswith("]")
        self.drop(int(empty))
        return not empty

    def _refuse_non_list(self) -> NoReturn:
        """Raise a Flaw that says whether the text is another value than a list, or ends near its beginning."""
        self.fill(_EXAMINED)
        if self.text:
            _next_record(self.text, 0, self, has_ended=self.has_ended)
        raise Flaw("is not a list of records" if self.text else "is empty", f"Write {EXAMPLE}")

    def check_end(self) -> None:
        """Raise a Flaw if anything but blanks follows the list."""
        self.skip(_PADDING)
        if self.text:
            self.refuse("text follows the list", 0)

    def refuse(self, reason: str, position: int) -> NoReturn:
        """Raise a Flaw for text that is not JSON from this position on."""
        problem = f"is not valid JSON: {reason} at character {self._dropped + position:,}"
        raise Flaw(problem, "Write it with a JSON library")


def _read_complete_records(text: str, source: _Characters) -> Tuple[List[Any], int, bool]:
    """Return the complete records at the start of some text, the start of the next, and whether the list continues."""
    if len(text) > CHUNK_BYTES:
        return _scan_records(text, source, limit=1)  # one long record; after it, parts are read again
    stop, following = _find_last_border(text, _BORDER, "}")
    if stop:
        try:
            return parse_records(text[:stop]), following, True
        except json.JSONDecodeError:
            return _scan_records(text, source, limit=len(text))  # a border inside a string, or broken JSON
    return _scan_records(text, source, limit=_MOST_PARSED)


def _find_last_border(text: AnyStr, border: Pattern[AnyStr], brace: AnyStr) -> Tuple[int, int]:
    """Return the end of the last record but one, and the start of the record after it; zeros without both."""
    end = len(text)
    for _ in range(_MOST_BRACES):
        end = text.rfind(brace, 0, end)
        if end < 0:
            break
        match = border.match(text, end)
        if match:
            return end + 1, match.end()
    return 0, 0


def parse_records(text: str) -> List[Any]:
    """Parse records without the enclosing brackets; raises JSONDecodeError if they are incomplete."""
    with _refuse_values():
        return list(_DECODER.decode(f"[{text}]"))


@contextmanager
def _refuse_values() -> Iterator[None]:
    """Raise a Flaw for JSON that the parser cannot turn into values."""
    try:
        yield
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise Flaw("is nested too deeply", f"Write {EXAMPLE}") from None
    except ValueError:
        raise Flaw("holds a number that cannot be read: it has thousands of digits", "Write plain numbers") from None


def _scan_records(text: str, source: _Characters, limit: int) -> Tuple[List[Any], int, bool]:
    """Return the same as `_read_complete_records`, parsing one record at a time, up to a number of records."""
    has_ended = source.has_ended and len(text) == len(source.text)
    records: List[Any] = []
    position = _end_of(_BLANK, text, 0)
    while len(records) < limit:
        parsed = _next_record(text, position, source, has_ended=has_ended)
        if parsed is None:
            break
        record, stop = parsed
        comma, end = _end_of(_COMMA, text, stop), _end_of(_END, text, stop)
        if not comma and not end:
            if has_ended or len(text) - _end_of(_BLANK, text, stop) > _NEAR_THE_END:
                source.refuse("no comma" if text[stop:].strip(BLANKS) else "a closing bracket is missing", stop)
            break
        records.append(record)
        position = comma or end
        if end:
            return records, position, False
    return records, position, True


def _end_of(pattern: Pattern[str], text: str, position: int) -> int:
    """Return the end of a pattern's match at a position; 0 without a match."""
    match = pattern.match(text, position)
    return match.end() if match else 0


def _next_record(text: str, position: int, source: _Characters, *, has_ended: bool) -> Optional[Tuple[Any, int]]:
    """Return the record that begins here and its end; None if it is incomplete."""
    try:
        with _refuse_values():
            return _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        error_position, reason = error.pos, error.msg
    if reason.startswith("Unterminated"):
        error_position, reason = (
            (error_position if has_ended else len(text)),
            "a closing quote is missing for the text that begins",
        )
    elif not text[error_position:].strip(BLANKS):
        reason = "a closing bracket is missing"
    if has_ended or len(text) - error_position > _NEAR_THE_END:
        source.refuse(reason, error_position)
    return None
