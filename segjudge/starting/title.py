"""A challenge's title: as its texts have it, and as EvalAI takes it."""

from __future__ import annotations

import re
import unicodedata

#: The most characters of a title on EvalAI, and of one in the texts.
MOST, MOST_IN_TEXTS = 100, 1000
_ADDRESS = re.compile(r"[-a-zA-Z0-9_]+")


def plain_title(text: str) -> str:
    """Return a title on one line, without what cannot be printed."""
    words = "".join(char if char.isprintable() else " " for char in text).split()
    return " ".join(words)[:MOST_IN_TEXTS]


def evalai_title(title: str) -> str:
    """Return a title that EvalAI takes, which makes addresses of its first word: short, that word of a-z, 0-9, - and _.

    Accents are left out of that word, and other marks become hyphens; a word of another script gets one before it.
    """
    first, space, rest = title.partition(" ")
    if not _ADDRESS.fullmatch(first):
        ascii_word = unicodedata.normalize("NFKD", first).encode("ascii", "ignore").decode()
        whole = sum(map(str.isalnum, ascii_word)) == sum(map(str.isalnum, unicodedata.normalize("NFKC", first)))
        word = re.sub(r"[^a-zA-Z0-9_]+", "-", ascii_word).strip("-")
        title = f"{word}{space}{rest}" if word and whole else f"Challenge {title}"
    if len(title) <= MOST:
        return title
    words, _, part = title[: MOST - 1].rpartition(" ")
    if not words:
        return title[:MOST]
    return f"{words} …" if len(part) < MOST // 2 else f"{words} {part}…"
