"""Our own families pass the conformance kit, like all others."""

from __future__ import annotations

import re
import zipfile
from itertools import count, cycle
from pathlib import Path

import pytest

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.instances import matching, metrics
from segjudge.testing import CHECKS, Case
from tests import published
from tests.builders import zipped
from tests.families.contract import examples
from tests.scoring import shares
from tests.scoring.shares import NAMES, write_files

#: The tests that take seconds, and the protocol for which each is quick.
SLOW = {"hostile": "coco", "python39": "davis2017"}
SAMPLES = examples("sharing")
#: The promises that every protocol is tried for; its row cannot change others.
EVERYWHERE = ("rules", "hidden")
#: Tests that need no arrays; `test_memory.py` of each family's folder has the others.
PROMISES = [name for name in CHECKS if name != "memory"]
#: The protocols whose results are samples of the demo, whose masks are moved to the right.
MOVED = ("grefcoco",)
#: The protocols of text files whose results all have one score, as the warning says.
OF_ONE_SCORE = ("cityscapes-instance",)
#: The images of hostile detections: more blocks and shares than one, although hundreds of variants are scored.
HOSTILE_IMAGES = 6
#: Each family once, each promise once, and the slow ones.
QUICK = {
    *zip(SAMPLES, cycle(name for name in PROMISES if name not in SLOW)),
    *((protocol, name) for name, protocol in SLOW.items()),
}
CASES = [
    pytest.param(protocol, name, marks=() if (protocol, name) in QUICK else pytest.mark.long)
    for protocol in PROTOCOLS
    for name in (PROMISES if protocol in (*SAMPLES, *examples("promises")) else EVERYWHERE)
    if name != "hostile" or protocol in SAMPLES
]


@pytest.mark.parametrize(("protocol", "name"), CASES)
def test_a_family_of_ours_keeps_its_promises(
    protocol: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks and shares hold few videos and detections, and the first of them has the hostile data."""
    monkeypatch.setattr(metrics, "BLOCK", 5)
    monkeypatch.setattr(matching, "_RECORDS_AT_ONCE", 3)
    if name == "hostile":
        monkeypatch.setattr(shares, "IMAGES", HOSTILE_IMAGES)
    files = write_files(protocol, tmp_path, NAMES[:2] if name == "hostile" else NAMES)
    case = Case(protocol, files.truth, {"results": files.results})
    if name == "suspicions" and protocol in MOVED:
        exact = tmp_path / "exact"
        exact.write_bytes(published.upload(protocol, Path(files.truth), share=0))
        case = Case(protocol, files.truth, {"exact": exact}, slips={files.results: "masks look moved"})
    if name == "suspicions" and protocol in OF_ONE_SCORE:
        numbers = count(100)
        with zipfile.ZipFile(files.results) as archive:
            members = {each: archive.read(each) for each in archive.namelist()}
        varied = {
            each: re.sub(rb"0\.9\b", lambda _: b"0.%d" % next(numbers), data) if each.endswith(".txt") else data
            for each, data in members.items()
        }
        ranked = tmp_path / "ranked.zip"
        ranked.write_bytes(zipped(varied))
        case = Case(protocol, files.truth, {"ranked": ranked}, slips={files.results: "have the score 0.9"})
    CHECKS[name](case)
