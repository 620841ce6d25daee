"""`compress`, writers of masks and seeds give the noted results, which only an intended change renews."""

from __future__ import annotations

import pytest

from tests import calls
from tests.masks import small_files


@pytest.mark.long
def test_files_of_masks_and_drawn_scenes_are_what_was_noted() -> None:
    calls.hold(small_files.write_small_files(), small_files.FILE)
