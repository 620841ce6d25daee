"""`segjudge.testing` makes the noted variants of a submission, which only an intended change renews."""

from __future__ import annotations

from segjudge.testing import hostile

from .hostile_variants import FILE, write_variants


def test_hostile_submissions_are_those_that_were_noted() -> None:
    assert write_variants() == FILE.read_text(encoding="utf-8"), "`python -m tests.testing.hostile_variants` notes them"


def test_a_document_of_several_lines_is_damaged_as_a_whole() -> None:
    indented = dict(hostile._damage_content("a.json", b'{\n"a": 1\n}\n'))
    assert indented["a is missing"] == b"{}"
    assert not any(about.startswith("line 1 ") for about in indented)
    lines = dict(hostile._damage_content("a.jsonl", b'{"a": 1}\n{"a": 2}\n'))
    assert lines["line 1 a is missing"] == b'{}\n{"a": 2}\n'
