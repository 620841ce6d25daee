"""What the process of a segjudge worker answers for scripts of hosts stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

from . import hosted_scripts


def test_scripts_of_hosts_are_answered_as_noted() -> None:
    assert hosted_scripts.write_text() == hosted_scripts.FILE.read_text(encoding="utf-8"), (
        "`python -m tests.platforms.evalai.hosted_scripts` notes what is meant to be seen"
    )
