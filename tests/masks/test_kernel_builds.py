"""The kernel is compiled as noted, which only an intended change renews."""

from __future__ import annotations

from tests import calls
from tests.masks import kernel_builds


def test_compilers_are_asked_for_what_was_noted() -> None:
    calls.hold(kernel_builds.write_builds(), kernel_builds.FILE)
