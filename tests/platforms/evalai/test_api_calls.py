"""What calls of EvalAI's API by segjudge become stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

from . import api_calls


def test_calls_become_what_was_noted() -> None:
    assert api_calls.write_text() == api_calls.FILE.read_text(encoding="utf-8"), (
        "`python -m tests.platforms.evalai.api_calls` notes what is meant to be seen"
    )
