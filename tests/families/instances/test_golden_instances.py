"""Every number of the official Places and COCO evaluation, to 1e-12 and to the last bit of its curves."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.instances import engine, json_parts, submission
from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS, PER_CATEGORY, PER_IMAGE
from segjudge.evaluation_script.families.instances.submission import read_within_cap
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS
from tests.builders import count_results, score_instances
from tests.data import GOLDEN, INSTANCES
from tests.shared import needs_shared

EXACT = 1e-12
#: Ranges of areas and caps.
EVERY_PAIR = [(area, cap) for area in range(4) for cap in range(3)]
PLACES = GOLDEN / "places"
COCO = INSTANCES / "coco100"


def golden(name: str) -> Any:
    path = {"places": GOLDEN, "coco100": INSTANCES}[name] / f"golden_{name}.json"
    return json.loads(path.read_text())["runs"] if path.exists() else {}


@pytest.fixture(scope="module")
def places_truth() -> Any:
    return json.loads(gzip.decompress((PLACES / "official_converter_gt.json.gz").read_bytes()))


def check(run: Any, truth: Any, path: Path, protocol: Any) -> None:
    score = score_instances(str(path), truth, protocol, INSTANCE_LIMITS)

    for name, number in run["stats"].items():
        assert score.values[name] == pytest.approx(number, abs=EXACT), name
    assert score.values["AP"] == pytest.approx(run["mean_ap"], abs=EXACT)
    assert len(score.categories) == len(run["per_category"])
    for mine, theirs in zip(score.categories, run["per_category"]):
        assert (mine["id"], mine["name"]) == (theirs["id"], theirs["name"])
        for name in ("AP", "AP50", "AP75", "AR"):
            if theirs[name] is None:
                assert mine[name] is None
            else:
                assert mine[name] == pytest.approx(theirs[name], abs=EXACT), (mine["name"], name)
    if "precision_sha256" in run:
        counted = count_results(str(path), truth, ScoringRules(protocol, INSTANCE_LIMITS))
        curves = counted.rank_detections().curves(EVERY_PAIR)
        for name, array in (("precision", curves.precision), ("recall", curves.recall)):
            digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
            assert digest == run[f"{name}_sha256"], name


@pytest.mark.parametrize("key", golden("places"))
def test_places_scores_as_the_official_script_says(key: str, places_truth: Any) -> None:
    ids, cap = key.split("|")
    document = json.loads(json.dumps(places_truth))
    if ids == "ids_from_1":
        for annotation in document["annotations"]:
            annotation["id"] += 1
    truth = instance_truth.read_document(json.dumps(document).encode(), "truth")
    name = "places2017-official" if cap.startswith("percat255") else "places2017"
    protocol = replace(INSTANCE_PROTOCOLS[name], id_zero_quirk=True)

    check(golden("places")[key], truth, PLACES / "preds.json.gz", protocol)


def test_the_quirk_of_id_zero_is_a_switch(places_truth: Any) -> None:
    truth = instance_truth.read_document(json.dumps(places_truth).encode(), "truth")
    run = golden("places")["ids_from_1|across255_as_README"]
    assert not INSTANCE_PROTOCOLS["places2017"].id_zero_quirk
    without_digests = {name: value for name, value in run.items() if not name.endswith("sha256")}

    check(without_digests, truth, PLACES / "preds.json.gz", INSTANCE_PROTOCOLS["places2017"])


@needs_shared
@pytest.mark.parametrize("key", golden("coco100"))
def test_coco_scores_as_the_official_code_says(key: str) -> None:
    truth = instance_truth.read(str(COCO / "instances_val2014_100.json"))["val"]
    protocol = INSTANCE_PROTOCOLS["coco"]
    if "default" not in key:
        cap = PER_CATEGORY if "percat" in key else PER_IMAGE
        protocol = replace(INSTANCE_PROTOCOLS["places2017"], cap=cap)

    check(golden("coco100")[key], truth, COCO / "instances_val2014_fakesegm100_results.json", protocol)


@needs_shared
def test_coco_boxes_score_as_the_official_code_says() -> None:
    truth = instance_truth.read(str(COCO / "instances_val2014_100.json"))["val"]
    path = str(COCO / "instances_val2014_fakebbox100_results.json")
    score = score_instances(path, truth, INSTANCE_PROTOCOLS["coco-box"], INSTANCE_LIMITS)
    assert score.values["AP"] == pytest.approx(0.5045806987249628, abs=EXACT)


def note_reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list to which each pass over the records adds the images that it reads."""
    reads: list[Any] = []

    def read(*given: Any, **options: Any) -> Any:
        reads.append(given[-1])
        return read_within_cap(*given, **options)

    monkeypatch.setattr(engine, "read_within_cap", read)
    return reads


@pytest.mark.long
@pytest.mark.parametrize("passes", [2, 5, 1000])
def test_a_large_submission_is_read_in_passes_with_the_same_bits(
    passes: int, places_truth: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = instance_truth.read_document(json.dumps(places_truth).encode(), "truth")
    rules = ScoringRules(INSTANCE_PROTOCOLS["places2017"], INSTANCE_LIMITS)
    path = str(PLACES / "preds.json.gz")
    whole = count_results(path, truth, rules)
    reads = note_reads(monkeypatch)
    monkeypatch.setattr(submission, "_MUCH_TEXT", 1000)
    monkeypatch.setattr(submission, "_BYTES_OF_PASS", (PLACES / "preds.json.gz").stat().st_size // passes + 1)
    counts = count_results(path, truth, rules)
    assert len(reads) == min(passes, len(truth.images.ids))
    assert np.concatenate(reads).tolist() == list(range(len(truth.images.ids)))
    assert counts.state_dict() == whole.state_dict()
    assert counts.compute() == whole.compute()


@pytest.mark.long
@pytest.mark.parametrize("cap", [PER_IMAGE, PER_CATEGORY])
def test_records_beyond_the_cap_are_left_out_while_reading_and_counted(
    cap: str, places_truth: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = instance_truth.read_document(json.dumps(places_truth).encode(), "truth")
    records = json.loads(gzip.decompress((PLACES / "preds.json.gz").read_bytes()))
    for record in records[::7]:
        record["category_id"] = 12345
    np.random.default_rng(1).shuffle(records)
    path = tmp_path / "results.json"
    path.write_text(json.dumps(records))
    protocol = replace(INSTANCE_PROTOCOLS["places2017"], detections=(1, 2, 3), cap=cap)
    rules = ScoringRules(protocol, replace(INSTANCE_LIMITS, json_bytes=1 << 30))
    read = (str(path), truth.images, protocol, rules)
    for module in (json_parts, submission):
        monkeypatch.setattr(module, "CHUNK_BYTES", 1 << 16)
    monkeypatch.setattr(submission, "_MOST_BEYOND", 50)
    counts, within = count_results(str(path), truth, rules), read_within_cap(*read)
    assert len(within.image) + within.dropped.sum() <= len(records)
    assert within.dropped.sum() > len(within.image) > 0
    monkeypatch.setattr(submission._Checker, "leave_out_beyond", lambda _checker, _parts: 0)
    assert len(read_within_cap(*read).image) == len(records)
    assert count_results(str(path), truth, rules).state_dict() == counts.state_dict()
