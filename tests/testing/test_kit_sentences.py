"""What the kit says of promises that are not kept stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

from tests import calls
from tests.testing import kit_sentences


def test_promises_that_are_not_kept_are_named_as_was_noted() -> None:
    calls.hold(kit_sentences.write_sentences(), kit_sentences.FILE)
