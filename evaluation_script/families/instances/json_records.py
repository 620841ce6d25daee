"""A long JSON list of records, parsed in parts that fit into memory.

A part is parsed at one go up to what looks like its last border between two
records.  Where that was inside a text, its records are parsed one by one
instead: the parser itself says where each ends.  A record that is not complete
is tried again when twice as much was read, so every byte is parsed a few times
at the most.
"""

from __future__ import annotations

import codecs
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, AnyStr, Iterator, List, NoReturn, Optional, Pattern, Tuple, Union

from ...files.json_limits import check_memory, unique_keys
from ...files.limits import CHUNK_BYTES
from ...files.problems import Flaw, printable
from ...masks import kernel, kernel_runs
from ...masks.kernel_runs import RecordTable

EXAMPLE = '[{"image_id": 1, "category_id": 1, "segmentation": {"size": [h, w], "counts": "…"}, "score": 0.9}, …]'
VIDEO_EXAMPLE = (
    '[{"video_id": 1, "category_id": 1, "segmentations": [{"size": [h, w], "counts": "…"}, null, …], "score": 0.9}, …]'
)

SEND_RECORDS = f"Send one JSON file, plain, gzipped or zipped, with a list of records: {EXAMPLE}"
SEND_FEWER = "Send fewer records, those with the highest scores, with compressed run lengths"

#: What may stand before the list, and after it.
BLANKS, PADDING = "\ufeff \r\n\t", " \r\n\t\0"
#: Between two records of the list, and not between the masks of a video's frames.
_BORDER = re.compile(r"\}\s{0,99},\s{0,99}(?=\{)(?!\{\s{0,99}\"(?:size|counts)\")")
_RAW_BORDER = re.compile(_BORDER.pattern.encode())
#: Where a record may begin, and what follows one.
_BLANK, _COMMA, _END = (re.compile(pattern) for pattern in (r"[ \t\r\n]*", r"[ \t\r\n]*,[ \t\r\n]*", r"[ \t\r\n]*\]"))
#: How many closing braces are looked at for a border.
MOST_BRACES = 2000
LONGEST_RECORD = 32 << 20
#: Where no border is found, so many records at the most are parsed one by one before the next part.
FEW = 1000
#: What a record that is longer than a part may take in memory, roughly.
COSTLIEST_RECORD = 160 << 20
#: An error further than this from the end of what was read is an error whatever follows.
NEAR_THE_END = 64

_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


@dataclass(frozen=True)
class PlainRecords:
    """Records of the usual form, which the kernel read."""

    text: str
    table: RecordTable


@dataclass(frozen=True)
class JsonPart:
    """Some of the records, and how many characters they took."""

    records: Union[List[Any], PlainRecords]
    length: int


def json_parts(parts: Iterator[bytes]) -> Iterator[JsonPart]:
    """Yield the records of a JSON list, some at a time."""
    source = _Characters(parts)
    more, size = source.begin(), CHUNK_BYTES
    while more:
        source.fill(size)
        text = source.text[:size]
        if size > CHUNK_BYTES:
            check_memory(text, COSTLIEST_RECORD, SEND_FEWER)
        records, position, more = _records(text, source)
        if more and isinstance(records, list) and not records:
            if size >= LONGEST_RECORD:
                raise Flaw("holds a record that does not end", f"Write {EXAMPLE}")
            size *= 2
            continue
        yield JsonPart(records, position)
        source.drop(position)
        size = CHUNK_BYTES
    source.finish()


class _Characters:
    """A stream of UTF-8 as text, of which as much is read as is asked for."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._decoder = parts, codecs.getincrementaldecoder("utf-8")()
        self._dropped = 0
        #: What was read and not yet dropped.
        self.text = ""
        #: Whether everything was read.
        self.ended = False

    def fill(self, count: int) -> None:
        """Read until there are so many characters, or nothing is left."""
        texts, length = [self.text], len(self.text)
        while length < count and not self.ended:
            part = next(self._parts, None)
            self.ended = part is None
            try:
                texts.append(self._decoder.decode(part or b"", final=self.ended))
            except UnicodeDecodeError:
                raise Flaw("is not UTF-8 text", "Write the JSON in UTF-8") from None
            length += len(texts[-1])
        self.text = "".join(texts) if len(texts) > 1 else self.text

    def drop(self, count: int) -> None:
        """Go on after so many characters."""
        self.text = self.text[count:]
        self._dropped += count

    def skip(self, blanks: str) -> None:
        """Go to the next character that is not blank, or to the end."""
        while True:
            self.drop(len(self.text) - len(self.text.lstrip(blanks)))
            if self.text or self.ended:
                return
            self.fill(1)

    def begin(self) -> bool:
        """Go to the first record; return whether there is one."""
        self.skip(BLANKS)
        if not self.text.startswith("["):
            raise Flaw("is JSON, but not a list of records", f"Write {EXAMPLE}")
        self.drop(1)
        self.skip(BLANKS)
        empty = self.text.startswith("]")
        self.drop(int(empty))
        return not empty

    def finish(self) -> None:
        """Refuse anything but blanks after the list."""
        self.skip(PADDING)
        if self.text:
            self.refuse("something follows the list", 0)

    def refuse(self, reason: str, position: int) -> NoReturn:
        """Raise a Flaw for text that is not JSON from this position on."""
        found = f"is not valid JSON: {reason} at character {self._dropped + position:,}"
        raise Flaw(found, "Write it with a JSON library")


def _records(text: str, source: _Characters) -> Tuple[Union[List[Any], PlainRecords], int, bool]:
    """Return the complete records at the start of a text, where the next one begins, and whether the list goes on."""
    if len(text) > CHUNK_BYTES:
        return _scanned(text, source, most=1)  # one long record: what follows it is read by parts again
    stop, following = _last_border(text, _BORDER, "}")
    if stop:
        try:
            return read(text[:stop]), following, True
        except json.JSONDecodeError:
            return _scanned(text, source, most=len(text))  # a border inside a text, or broken JSON
    return _scanned(text, source, most=FEW)


def _last_border(text: AnyStr, border: Pattern[AnyStr], brace: AnyStr) -> Tuple[int, int]:
    """Return where the last record ends that is followed by another, and where that begins; zeros without a border."""
    end = len(text)
    for _ in range(MOST_BRACES):
        end = text.rfind(brace, 0, end)
        if end < 0:
            break
        match = border.match(text, end)
        if match:
            return end + 1, match.end()
    return 0, 0


def read(text: str) -> Union[List[Any], PlainRecords]:
    """Read records without the brackets around them; raises JSONDecodeError when they are not complete."""
    library = kernel.library()
    table = None if library is None else kernel_runs.records(text, library)
    return loaded(text) if table is None else PlainRecords(text, table)


def loaded(text: str) -> List[Any]:
    """Parse records without the brackets around them; raises JSONDecodeError when they are not complete."""
    with _flaws_of_values():
        return list(_DECODER.decode(f"[{text}]"))


@contextmanager
def _flaws_of_values() -> Iterator[None]:
    """Raise a Flaw for JSON that the parser cannot turn into values."""
    try:
        yield
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise Flaw("is nested too deeply", f"Write {EXAMPLE}") from None
    except ValueError as error:
        raise Flaw(f"holds a number that cannot be read ({printable(error)})", "Write plain numbers") from None


def _scanned(text: str, source: _Characters, most: int) -> Tuple[List[Any], int, bool]:
    """Return the same as `_records`, record by record, up to so many."""
    ended = source.ended and len(text) == len(source.text)
    records: List[Any] = []
    position = _end_of(_BLANK, text, 0)
    while len(records) < most:
        parsed = _next_record(text, position, source, ended=ended)
        if parsed is None:
            break
        record, stop = parsed
        comma, end = _end_of(_COMMA, text, stop), _end_of(_END, text, stop)
        if not comma and not end:
            if ended or len(text) - _end_of(_BLANK, text, stop) > NEAR_THE_END:
                source.refuse("the list does not end" if not text[stop:].strip(BLANKS) else "no comma", stop)
            break
        records.append(record)
        position = comma or end
        if end:
            return records, position, False
    return records, position, True


def _end_of(pattern: Pattern[str], text: str, position: int) -> int:
    """Return where what matches at a position ends; 0 when nothing does."""
    match = pattern.match(text, position)
    return match.end() if match else 0


def _next_record(text: str, position: int, source: _Characters, *, ended: bool) -> Optional[Tuple[Any, int]]:
    """Return the record that begins here and where it ends; None when it is not complete."""
    try:
        with _flaws_of_values():
            return _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        at, reason = error.pos, error.msg
    if reason.startswith("Unterminated"):
        at, reason = (at if ended else len(text)), "the list does not end, since no quote ends the text that begins"
    elif not text[at:].strip(BLANKS):
        reason = "the list does not end"
    if ended or len(text) - at > NEAR_THE_END:
        source.refuse(reason, at)
    return None


def raw_json_parts(parts: Iterator[bytes]) -> List[bytes]:
    """Return the parts of a list unparsed, cut at what looks like borders; nothing when they cannot be cut."""
    cut: List[bytes] = []
    waiting, begun = b"", False
    for part in parts:
        waiting += part
        if not begun:
            waiting = waiting.lstrip(BLANKS.encode())
            if not waiting.startswith(b"["):
                return []
            waiting, begun = waiting[1:], True
        stop, following = _last_border(waiting, _RAW_BORDER, b"}")
        if stop:
            cut.append(waiting[:stop])
            waiting = waiting[following:]
        elif len(waiting) > 2 * CHUNK_BYTES:
            return []
    waiting = waiting.rstrip(PADDING.encode())
    return [*cut, waiting[:-1]] if begun and waiting.endswith(b"]") else []
