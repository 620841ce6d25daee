"""Messages from a forked job to its parent: lines for the log, and one answer.

A message is one letter, a length in two bytes and a text, and is written at once:
the system mixes no message with another when neither is longer than `PIPE_BUF`, so
threads and forks of the job may write as well.
"""

from __future__ import annotations

import os
import re
import select
import threading
from typing import Callable, Iterator, List, Tuple

#: Characters that a job may print; the participant's log keeps no more.
LOG_CHARACTERS = 1 << 20
#: Kinds of messages: a part of a line and its last part, a part of the answer and its last part.
LINE_PART, LINE_END, ANSWER_PART, ANSWER_END = b"s", b"S", b"a", b"A"
_LONGEST = getattr(select, "PIPE_BUF", 512)
_HEADER = 3
#: Characters that move a cursor, hide text or cannot be encoded.
_UNPRINTABLE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb]")


class MessageSender:
    """Writes messages to the parent, from any thread and any process that was forked meanwhile."""

    def __init__(self, writer: int) -> None:
        self._writer, self._process = writer, os.getpid()
        self._lock = threading.RLock()

    def say(self, text: str) -> None:
        """Send a line, in parts that are each written at once."""
        size = (_LONGEST - _HEADER) // 4  # characters, of which none has more bytes
        text = text[: LOG_CHARACTERS + 1]
        with self._lock:
            for start in range(0, len(text), size):
                kind = LINE_END if start + size >= len(text) else LINE_PART
                self._write(kind, text[start : start + size].encode("utf-8", "surrogatepass"))

    def answer(self, data: bytes) -> None:
        """Send the answer, unless this process was forked by the one whose answer is awaited."""
        size = _LONGEST - _HEADER
        for start in range(0, len(data) if os.getpid() == self._process else 0, size):
            self._write(ANSWER_END if start + size >= len(data) else ANSWER_PART, data[start : start + size])

    def _write(self, kind: bytes, data: bytes) -> None:
        os.write(self._writer, kind + len(data).to_bytes(2, "big") + data)


class OutputRelay:
    """The child's streams: each line that is printed is sent to the parent."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._room = say, LOG_CHARACTERS + 1
        self._line: List[str] = []
        self._lock = threading.RLock()

    def write(self, text: str) -> int:
        with self._lock:
            kept = text[: self._room]
            self._room -= len(kept)
            first, *others = kept.split("\n")
            self._line.append(first)
            for other in others:
                self.finish()
                self._line = [other]
        return len(text)

    def flush(self) -> None:
        """Do nothing: a line is sent when it is complete."""

    def finish(self) -> None:
        """Send the line that was begun."""
        with self._lock:
            line, self._line = "".join(self._line), []
            self._say(line)


class MessageReader:
    """Passes on the child's lines, and no more than fits into a log."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._room = say, LOG_CHARACTERS
        self._line: List[str] = []

    def receive(self, kind: bytes, data: bytes) -> None:
        """Add a part of a line; write the line when this is its last part."""
        if self._room < 0:
            return
        text = data.decode("utf-8", "surrogatepass")
        self._room -= len(text) + (kind == LINE_END)
        self._line.append(text)
        if self._room < 0:
            self._line = [f"… what is printed beyond {LOG_CHARACTERS:,} characters is left out …"]
        if kind == LINE_END or self._room < 0:
            line, self._line = "".join(self._line), []
            self._say(plain(line.replace("\r\n", "\n").replace("\r", "\n")))


def plain(text: str) -> str:
    """Return a text without what could move a terminal's cursor or not be encoded."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def take_messages(data: bytearray) -> Iterator[Tuple[bytes, bytes]]:
    """Yield the complete messages, and remove them from the data."""
    start = 0
    while len(data) - start >= _HEADER:
        end = start + _HEADER + int.from_bytes(data[start + 1 : start + _HEADER], "big")
        if len(data) < end:
            break
        yield bytes(data[start : start + 1]), bytes(data[start + _HEADER : end])
        start = end
    del data[:start]
