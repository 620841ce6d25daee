"""The process of a segjudge worker gives the noted answers to hosts' scripts, which only an intended change renews."""

from __future__ import annotations

import pytest

from . import hosted_scripts


@pytest.mark.long
def test_scripts_of_hosts_are_answered_as_noted() -> None:
    assert hosted_scripts.write_text() == hosted_scripts.FILE.read_text(encoding="utf-8"), (
        "`python -m tests.platforms.evalai.hosted_scripts` notes what is meant to be seen"
    )
