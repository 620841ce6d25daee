"""JSON of long texts: it gives the same values and the same sentences as if no text were cut out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.files import Flaw, long_texts, read_json
from segjudge.evaluation_script.files.limits import LOCAL_LIMITS

FRAGMENTS = (
    "a", "xyz", ":", "{", "}", "[", "]", ",", " ", "0", "é", "\x7f0", "\x01", "\n", "\\\\", '\\"', "\\u007f0", "\\", '"',
    '"abcdefg"', '"k": ', '"k":', "null", "NaN", "12345678901234",
)  # fmt: skip


@pytest.fixture
def cuts_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut out texts of any document that have few characters."""
    for name, value in (("_LONG", 3), ("_LEAST", 8), ("_SPARSE", 1), ("_MOST_QUOTES", 1 << 30)):
        monkeypatch.setattr(long_texts, name, value)


def parse(data: bytes) -> str:
    try:
        return repr(read_json(data, LOCAL_LIMITS, "[]"))
    except Flaw as flaw:
        return str(flaw)


def make_value(draw: np.random.Generator, depth: int = 0) -> Any:
    kind = draw.random()
    if kind < 0.4:
        return "".join(draw.choice(FRAGMENTS[:16], int(draw.integers(9))).tolist())
    if kind < 0.5 or depth > 3:
        return float(draw.random())
    count = int(draw.integers(4))
    if kind < 0.65:
        return [make_value(draw, depth + 1) for _ in range(count)]
    return {f"key {index}": make_value(draw, depth + 1) for index in range(count)}


@pytest.mark.parametrize("seed", range(4))
def test_documents_have_the_same_values_or_faults(seed: int, monkeypatch: pytest.MonkeyPatch, cuts_all: None) -> None:
    draw = np.random.default_rng(seed)
    documents = []
    for number in range(400):
        separators = [(",", ":"), (", ", ": "), (" ,\n", " : ")][number % 3]
        text = json.dumps(make_value(draw), ensure_ascii=number % 2 > 0, separators=separators)
        if number % 4 == 3:
            place = int(draw.integers(len(text) + 1))
            text = text[:place] + str(draw.choice(FRAGMENTS)) + text[place + int(draw.integers(3)) :]
        documents.append(text.encode() + b"\xff" * (number % 50 == 49))
    assert any(map(long_texts.cut_texts, documents))
    cut = list(map(parse, documents))
    monkeypatch.setattr(long_texts, "_LEAST", 1 << 62)
    assert cut == list(map(parse, documents))


def test_texts_between_escaped_quotes_are_whole(cuts_all: None) -> None:
    document = {"k": 'he says "no"', "p": "ends with \\", "q": "\\\\", "r": ["in a list", {"s": "inside"}]}
    data = json.dumps(document).encode()
    cut = long_texts.cut_texts(data)
    assert cut is not None
    assert {*cut.texts.values()} == {"ends with \\", "\\\\", "inside"}
    assert read_json(data, LOCAL_LIMITS, "{}") == document


def test_a_text_that_looks_like_a_mark_stays_as_it_is(cuts_all: None) -> None:
    for text in (b'{"k": "long text", "m": "\x7f0"}', b'{"k": "long text", "m": "\\u007f0"}'):
        assert long_texts.cut_texts(text) is None
        assert read_json(text, LOCAL_LIMITS, "{}") == {"k": "long text", "m": "\x7f0"}


def test_punctuation_of_long_texts_takes_no_memory() -> None:
    data = json.dumps({"counts": "[{:" * (2 << 20)}).encode()
    assert read_json(data, replace(LOCAL_LIMITS, memory_bytes=16 << 20), "{}") == json.loads(data)
