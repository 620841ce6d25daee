"""A JSON list of records, regardless of the cuts between its parts, and the place where it becomes invalid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from segjudge.evaluation_script.families.instances import json_parts
from segjudge.evaluation_script.files.problems import Flaw


def parts(data: bytes, size: int) -> Any:
    return (data[start : start + size] for start in range(0, len(data), size))


def read(data: bytes, size: int = 1 << 20, chunk: int | None = None) -> list[Any]:
    """Return every record, in parts of this size and chunks of that size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_parts, "CHUNK_BYTES", chunk or size)
        results = list(json_parts.cut_json(parts(data, size)))
    assert all(item.length > 0 for item in results if item.records)
    return [record for item in results for record in item.records]


def flaw(data: bytes, size: int = 1 << 20) -> str:
    with pytest.raises(Flaw) as caught:
        read(data, size)
    return caught.value.fault


@pytest.mark.parametrize("size", [1, 5, 1 << 20])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}', "is not a list of records"),
        ('{"a": 1}\n{"a": 2}', "is not a list of records"),
        ('{"a": "' + "x" * (1 << 20), "is not a list of records"),
        ("", "is empty"),
        ('{"a": 1', "is not valid JSON: a closing bracket is missing at character 7"),
        ('{"a": [1, 2}', "is not valid JSON: Expecting ',' delimiter at character 11"),
        ('{"a": "x', "a closing quote is missing for the text that begins at character 6"),
        ('{"a" 1, "b": "' + "x" * (1 << 20), "is not valid JSON: Expecting ':' delimiter at character 5"),
        ("[", "is not valid JSON: a closing bracket is missing at character 1"),
        ('[{"a": 1}', "is not valid JSON: a closing bracket is missing at character 9"),
        ('[{"a": 1},', "is not valid JSON: a closing bracket is missing at character 10"),
        ('[{"a": 1}, ', "is not valid JSON: a closing bracket is missing at character 11"),
        ('[{"a": 1} {"a": 2}]', "is not valid JSON: no comma at character 9"),
        ('[{"a": 1}] x', "is not valid JSON: text follows the list at character 11"),
        ("[] []", "is not valid JSON: text follows the list at character 3"),
        ('[{"a" 1}]', "is not valid JSON: Expecting ':' delimiter at character 6"),
        ('[{"a": 1}, ]', "is not valid JSON: Expecting value at character 11"),
        ('[{"a": "x]', "a closing quote is missing for the text that begins at character 7"),
        ('[{"a": 1, "a": 2}]', "has the key a twice in one object"),
        ('[{"a": ' + "9" * 5000 + "}]", "holds a number that cannot be read"),
    ],
)
def test_where_a_list_stops_being_one_is_said(text: str, message: str, size: int) -> None:
    results = flaw(text.encode(), size)
    if "number" in message or size == 1 << 20:
        assert message in results or (message.startswith("holds a number") and "is not valid" in results), results
    else:
        assert message.partition(":")[0] in results


def test_characters_are_counted_through_all_parts() -> None:
    text = "[" + ", ".join(['{"a": 1}'] * 50)
    for size in (20, 64, 1 << 20):
        assert flaw((text + ' {"a": 1}]').encode(), size) == f"is not valid JSON: no comma at character {len(text)}"


def test_bytes_that_are_no_utf_8_are_no_text() -> None:
    for data in (b'[{"a": "\xff"}]', b'[{"a": "\xc3'):
        for size in (1, 1 << 20):
            assert flaw(data, size) == "is not UTF-8 text"
    assert read('[{"a": "é"}]'.encode(), 1) == [{"a": "é"}]


def test_padding_may_follow_the_list_and_nothing_else() -> None:
    assert read(b"[{}] \r\n\t\0\0") == [{}]
    assert read(b"\xef\xbb\xbf\n[ ]") == []
    assert flaw(b"[{}]\x0b") == "is not valid JSON: text follows the list at character 4"


def test_a_record_has_a_longest_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_parts, "_LONGEST_RECORD", 400)
    data = json.dumps([{"a": "x" * 300}]).encode()
    assert read(data, 100) == [{"a": "x" * 300}]
    assert flaw(json.dumps([{"a": "x" * 900}]).encode(), 100) == "holds an unterminated record"


def test_a_long_record_is_priced_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_parts, "_COSTLIEST_RECORD", 5000)
    data = json.dumps([{"a": [0] * 50}]).encode()
    assert read(data, 100) == json.loads(data)
    assert "too many lists and numbers" in flaw(json.dumps([{"a": [0] * 200}]).encode(), 100)
    assert read(json.dumps([{"a": [0] * 200}]).encode(), 1 << 20)
