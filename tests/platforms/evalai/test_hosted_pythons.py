"""Installations for scripts, and the ends of their processes, are as noted; only an intended change renews them."""

from __future__ import annotations

import pytest

from tests.calls import hold

from . import hosted_pythons


@pytest.mark.long
def test_pythons_are_found_filled_and_ended_as_noted() -> None:
    hold(hosted_pythons.write_text(), hosted_pythons.FILE)
