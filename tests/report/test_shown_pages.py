"""What pages and terminals show stays what it is, unless a change is meant to be seen."""

from __future__ import annotations

import json

import pytest

from tests import pages

DIGESTS = json.loads(pages.FILE.read_text())
#: A form of most families, and those of detections that are soon shown.
QUICK = {
    "davis2017", "coco", "ovis", "coco-keypoints", "places2017", "vspw", "burst", "refcoco", "semantic-kitti", "ctc", "sod",
}  # fmt: skip


@pytest.mark.parametrize(
    "protocol", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in pages.FORMS]
)
def test_what_is_shown_of_mistakes_is_what_was_noted(protocol: str) -> None:
    shown = pages.digest_all(pages.run(protocol))
    changed = [f"{name}: {part}" for name, parts in shown.items() for part in parts.items()
               if part not in DIGESTS[protocol].get(name, {}).items()]  # fmt: skip
    assert not changed, "see tests/pages.py on how to look at what changed, and how to note it"
    assert shown == DIGESTS[protocol], "a part is no longer shown"
