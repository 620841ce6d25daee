"""Segjudge builds the noted files from small bundles, which only an intended change renews."""

from __future__ import annotations

from . import built_bundles


def test_bundles_are_built_as_noted() -> None:
    assert built_bundles.write_text() == built_bundles.FILE.read_text(encoding="utf-8"), (
        "`python -m tests.platforms.built_bundles` notes what is meant to be seen"
    )
