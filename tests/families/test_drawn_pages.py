"""What pages draw over pictures, in little room and of long videos, stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

import pytest

from tests import calls
from tests.families import drawn_pages


def test_pictures_are_found_and_fill_their_room_as_was_noted() -> None:
    shown = drawn_pages.write_pages(drawn_pages.PICTURES).splitlines()
    assert shown == drawn_pages.FILE.read_text().splitlines()[: len(shown)]


@pytest.mark.long
def test_pages_draw_what_was_noted() -> None:
    calls.hold(drawn_pages.write_pages(), drawn_pages.FILE)
