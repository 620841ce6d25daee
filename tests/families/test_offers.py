"""What families say, read, pack and make beside scores stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

from tests import calls
from tests.families import offers


def test_words_truths_samples_and_refusals_are_what_was_noted() -> None:
    calls.hold(offers.write_offers(), offers.FILE)
