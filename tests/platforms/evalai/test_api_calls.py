"""Segjudge's calls of EvalAI's API have the noted outcomes, which only an intended change renews."""

from __future__ import annotations

from . import api_calls


def test_calls_become_what_was_noted() -> None:
    assert api_calls.write_text() == api_calls.FILE.read_text(encoding="utf-8"), (
        "`python -m tests.platforms.evalai.api_calls` notes what is meant to be seen"
    )
