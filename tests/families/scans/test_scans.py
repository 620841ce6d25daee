"""LiDAR scans: every number of SemanticKITTI's scripts, the safe rules by hand, and the cost of hostile submissions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families import PROTOCOLS, engine_of
from segjudge.evaluation_script.families.base import unit_counts
from segjudge.evaluation_script.families.scans.engine import MATCHED, _describe_segments, count_scan
from segjudge.evaluation_script.families.scans.files import read_truth
from segjudge.evaluation_script.families.scans.protocols import LABELS_END, SCAN_PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.masks.overlaps import LABEL_BITS, LabelMap
from segjudge.families import tools_of
from segjudge.families.base.unit_tools import UnitTools
from segjudge.families.scans.causes import find_names, place_classes, see_classes
from segjudge.families.truths import TruthSource
from segjudge.scoring.request import ScoreRequest, prepare
from tests import backends
from tests.builders import written, zipped
from tests.data import FAMILIES_DATA
from tests.families.promises import PROMISES, keep
from tests.families.unit_counts import count_units, pack_units, read_golden, score_units
from tests.hostile_units import Make, hostile, sentence_of

DATA = FAMILIES_DATA / "semantic_kitti"
CASES = read_golden(DATA)["cases"]
#: The scripts' names → Segjudge's metrics; the IoUs of classes are in the table.
NAMES = {
    "iou_mean": "mIoU", "accuracy_mean": "Acc", "iou_moving": "IoU-moving",
    "pq_mean": "PQ", "sq_mean": "SQ", "rq_mean": "RQ", "pq_dagger": "PQ_dagger",
    **{f"{name}_{group}": f"{name.upper()}-{group.title()}" for name in ("pq", "sq", "rq") for group in ("things", "stuff")},
}  # fmt: skip
OFFICIAL = {
    "semantic": "semantic-kitti-official",
    "panoptic": "semantic-kitti-panoptic-official",
    "moving": "semantic-kitti-moving",
}
#: Scans that the scripts pair by their order, or leave out.
BY_ORDER = ("shifted", "moving-missing")
EXACT = {"abs": 1e-12, "rel": 0}


def scans(kind: str, **points: Any) -> dict[str, bytes]:
    """Return files of sequence 08 by the names of scans; a point is a label, or a label and a number."""
    return {f"sequences/08/{kind}/{name}.label": np.asarray(point, "<u4").tobytes() for name, point in points.items()}


def thing(label: int, number: int, points: int) -> list[int]:
    return [label | number << LABEL_BITS] * points


def scored(tmp_path: Path, truth: Any, sent: Any, protocol: str) -> dict[str, Any]:
    packed = read_truth(str(written(tmp_path / "truth", scans("labels", a=truth))))
    return score_units(written(tmp_path / "sent", scans("predictions", a=sent)), packed, protocol)


# ── the scripts' numbers ────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("case", "part"),
    [
        (name, part)
        for name, entry in CASES.items()
        for part in OFFICIAL
        if "official_error" not in (entry.get(part) or {"official_error": ""}) and name not in BY_ORDER
    ],
)
def test_the_scripts_numbers_are_ours(case: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_counts, "_CELLS_AT_ONCE", 7)  # large sets are summed in batches
    protocol, published = OFFICIAL[part], read_truth(str(DATA / "truth"))
    for truth in (published, pack_units(published, tmp_path)):
        counts = count_units(DATA / case, truth, protocol)
        engine = engine_of("scans")
        values, rows = engine.report("val", counts).values, engine.report("val", counts).rows()["categories"]
        assert list(values) == list(SCAN_PROTOCOLS[protocol].metrics)
        ious = {f"iou_{row['name']}": row["IoU"] for row in rows}
        for name, expected in CASES[case][part].items():
            assert (values[NAMES[name]] if name in NAMES else ious[name]) == pytest.approx(expected, **EXACT), name
        if part == "panoptic":
            of_classes = CASES[case]["per_class"]
            for metric in ("PQ", "SQ", "RQ", "IoU"):
                assert [row[metric] for row in rows] == pytest.approx(of_classes[metric.lower()][1:], **EXACT)
            for name, column in (("matched", "tp"), ("surplus", "fp"), ("missed", "fn")):
                assert [row[name] for row in rows] == of_classes[column][1:]


@pytest.mark.parametrize(
    ("case", "protocol", "message"),
    [
        ("renamed", "semantic-kitti", "1 of 4 scans is missing: 08/000001; 1 is not in the truth: 08/000011. Send every"),
        ("shifted", "semantic-kitti-panoptic", "1 of 4 scans is missing: 08/000001; 1 is not in the truth: 08/000003"),
        ("missing", "semantic-kitti-official", "1 of 4 scans is missing: 08/000010. Send every scan"),
        ("moving-missing", "semantic-kitti-moving", "2 of 4 scans are missing: 08/000002, 08/000010"),
        ("shorter", "semantic-kitti", "08/predictions/000002.label: holds 1,490 points; the scan has 1,500 points of 4"),
        ("label-500", "semantic-kitti-panoptic", "08/predictions/000000.label: holds the label 500, which is not a label of"),
    ],
)  # fmt: skip
def test_what_the_scripts_shift_leave_out_or_stop_at_is_a_sentence(case: str, protocol: str, message: str) -> None:
    if CASES:
        with pytest.raises(SubmissionError, match=message.replace(".", r"\.")):
            score_units(DATA / case, read_truth(str(DATA / "truth")), protocol)


@pytest.mark.skipif(not CASES, reason="needs the shared data")
@pytest.mark.parametrize("case", ["perfect-raw", "perfect-mapped", "numbered-stuff"])
def test_a_perfect_answer_is_one_however_it_is_written(case: str) -> None:
    truth = read_truth(str(DATA / "truth"))
    assert set(score_units(DATA / case, truth, "semantic-kitti-panoptic").values()) == {1.0}
    values = score_units(DATA / case, truth, "semantic-kitti")
    assert (values["mIoU"], values["Acc"], values["mIoU-official"]) == (1, 1, pytest.approx(12 / 19))


# ── rules that can be counted by hand ───────────────────────────────────────


def test_means_over_the_truths_classes_over_all_and_of_what_was_answered(tmp_path: Path) -> None:
    truth, sent = [40, 40, 40, 60, 70, 70, 0, 52], [40, 40, 70, 40, 70, 0, 48, 10]
    values = scored(tmp_path, truth, sent, "semantic-kitti")
    assert values["mIoU"] == pytest.approx((3 / 4 + 1 / 3) / 2)
    assert values["mIoU-official"] == pytest.approx((3 / 4 + 1 / 3) / 19)
    assert values["Acc"] == 4 / 6
    official = scored(tmp_path, truth, sent, "semantic-kitti-official")
    assert official == {"mIoU": values["mIoU-official"], "Acc": 4 / 5}


def test_stuff_is_one_segment_and_an_object_a_class_and_a_number(tmp_path: Path) -> None:
    truth = [*thing(252, 7, 60), *thing(10, 7, 60), *thing(10, 8, 60), *[40] * 60, *[60] * 60]
    sent = [*thing(10, 7, 120), *thing(10, 9, 60), *[40] * 90, *thing(40, 3, 30)]
    assert set(scored(tmp_path, truth, sent, "semantic-kitti-panoptic").values()) == {1.0}
    official = scored(tmp_path, truth, sent, "semantic-kitti-panoptic-official")
    # Of three cars one is matched and a half of two is not; 60 points of the road's 90 are the one segment of 60.
    assert official["PQ-Things"] == pytest.approx(1 / (1 + (1 + 2) / 2) / 8)
    assert official["PQ-Stuff"] == pytest.approx((60 / 90) / (1 + 1 / 2) / 11)


def test_small_segments_can_match_and_cost_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = [*thing(10, 1, 49), *thing(10, 2, 49), *thing(10, 3, 50), *thing(30, 4, 49)]
    sent = [*thing(10, 1, 49), *[0] * 49, *thing(10, 3, 25), *[0] * 25, *[0] * 49]
    for way in ("kernel", "numpy"):
        values = scored(tmp_path / way, truth, sent, "semantic-kitti-panoptic")
        assert values["RQ-Things"] == pytest.approx((1 / (1 + 1 / 2) + 0) / 2)
        assert values["PQ-Stuff"] is None
        backends.use_numpy(monkeypatch)


def test_nothing_that_moves_is_nothing_to_average(tmp_path: Path) -> None:
    assert scored(tmp_path, [9, 10, 40], [9, 251, 40], "semantic-kitti-moving") == {"IoU-moving": None}
    assert scored(tmp_path, [9, 252, 253, 0], [251, 251, 9, 251], "semantic-kitti-moving") == {"IoU-moving": 1 / 3}
    truth = read_truth(str(written(tmp_path / "truth", scans("labels", a=[252, 40]))))
    counts = count_units(written(tmp_path / "sent", scans("predictions", a=[252, 40])), truth, "semantic-kitti-moving")
    rows = engine_of("scans").report("val", counts).rows()["categories"]
    assert [(row["name"], row["IoU"]) for row in rows] == [("static", 1), ("moving", 1)]
    assert replace(SCAN_PROTOCOLS["semantic-kitti-moving"], reported=0).metrics == ("IoU-static",)


@pytest.mark.parametrize("protocol", SCAN_PROTOCOLS)
@pytest.mark.parametrize("share", [0.1, 3])
def test_what_scans_and_classes_cost_sums_to_the_loss(
    protocol: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum holds if the truth lacks classes that the script averages, or has objects too small to count."""
    monkeypatch.setattr(unit_counts, "_CELLS_AT_ONCE", 7 if share < 1 else 1 << 15)
    tools = tools_of("scans")
    assert isinstance(tools, UnitTools)
    truth = written(tmp_path / "truth", dict(tools.make_demo(PROTOCOLS[protocol])))
    written(truth, scans("labels", small=[40] * 100 + thing(11, 1, 9)))
    sample = tmp_path / "sample.zip"
    source = TruthSource(str(truth), "", "", "", "")
    (scorer,) = prepare(ScoreRequest(str(sample), source, PROTOCOLS[protocol])).scorers.values()
    sample.write_bytes(zipped(dict(tools.make_sample([scorer.truth], PROTOCOLS[protocol], share))))
    report = scorer.score(str(sample))
    losses = tools.measure_losses(report.counts)
    value = report.values[PROTOCOLS[protocol].metrics[0]]
    assert value is not None
    assert sum(losses.totals().values()) == pytest.approx(1 - value, abs=1e-12)
    assert losses.by_category.sum(axis=0) == pytest.approx(losses.by_unit.sum(axis=0), abs=1e-12)
    assert len(losses.by_category) == len(report.rows()["categories"])
    assert (losses.by_unit >= 0).all()


# ── truths, and other doors ─────────────────────────────────────────────────


def test_splits_and_sequences_are_found(tmp_path: Path) -> None:
    sequences = {f"dataset/sequences/{name}/{kind}": b"\x28\0\0\0" for name in ("00", "08", "11") for kind in
                 ("labels/000000.label", "labels/000001.label", "velodyne/000000.bin", "notes.label")}  # fmt: skip
    root = str(written(tmp_path, sequences))
    assert read_truth(root).item_names == ["08/000000", "08/000001"]
    assert read_truth(f"{root}/dataset/sequences/08/labels").item_names == ["08/000000", "08/000001"]
    assert read_truth(root, "train").item_names == ["00/000000", "00/000001"]
    assert read_truth(root, "11").item_names == ["11/000000", "11/000001"]
    assert read_truth(f"{root}/dataset/sequences/00").item_names == ["00/000000", "00/000001"]
    with pytest.raises(HostError, match="has no files sequences/SEQUENCE/labels/SCAN.label of '12'"):
        read_truth(root, "12")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"08/labels/0.label": b"\x28\0\0"}, "1 file without 4 bytes for each point: 08/labels/0.label"),
        ({"08/labels/0.label": b""}, "1 file without 4 bytes for each point"),
        ({"x/08/labels/0.label": bytes(4), "y/08/labels/0.label": bytes(4)}, "has the scan 08/0 twice, as x/08/labels"),
        ({"08/predictions/0.label": bytes(4)}, "has no files sequences/SEQUENCE/labels"),
    ],
)
def test_a_truth_that_cannot_be_read_is_the_hosts_mistake(
    files: dict[str, bytes], message: str, tmp_path: Path
) -> None:
    with pytest.raises(HostError, match=message):
        read_truth(str(written(tmp_path / "sequences", files)))


def test_a_label_of_the_truth_beyond_the_tables_is_the_hosts_mistake(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="0.label: cannot be read .holds the label 359"):
        read_truth(str(written(tmp_path, {"08/labels/0.label": np.array([359], "<u4").tobytes()}))).read_through()


# ── hostile submissions ─────────────────────────────────────────────────────

POINTS = 3000
ROAD = np.full(POINTS, 40, "<u4").tobytes()


def at(name: str) -> str:
    return f"sequences/08/predictions/{name}.label"


def upload(first: bytes | None = None, **files: bytes | None) -> bytes:
    members: dict[str, bytes | None] = {at("a"): ROAD if first is None else first, at("b"): ROAD, **files}
    return zipped({name: data for name, data in members.items() if data is not None})


def values(points: Any) -> bytes:
    return upload(np.asarray(points).astype("<u4").tobytes())


COUNT = np.arange(POINTS)
GOOD = upload()
SHORT, BROKEN = "sequences/08/predictions/a.label: holds", "the scan has 3,000 points of 4 bytes"
HOSTILE: dict[str, tuple[Make, str]] = {
    "labels-alone": (lambda: ROAD, "neither a zip nor a tar"),
    "damaged": (lambda: GOOD.replace(GOOD[60:75], bytes(15)), "damaged"),
    "no-files": (lambda: zipped({}), "has no file predictions/SCAN.label for any sequence"),
    "at-the-top": (lambda: zipped({"a.label": ROAD}), "1 of 2 scans is missing: 08/b"),
    "no-sequence": (lambda: zipped({"predictions/a.label": ROAD}), "has no file predictions/SCAN.label"),
    "other-sequence": (lambda: zipped({"09/predictions/a.label": ROAD}), "2 of 2 scans are missing: 08/a, 08/b; 1 is not"),
    "one-missing": (lambda: upload(**{at("b"): None}), "1 of 2 scans is missing: 08/b. Send every scan"),
    "surplus": (lambda: upload(**{at("c"): b"no scan"}), "scored"),
    "twice": (lambda: upload(**{"x/" + at("a"): ROAD}), "sequences/08/predictions/a.label: is also sent as x/seq"),
    "twice-by-ending": (lambda: upload(**{at("a")[:-5] + "LABEL": ROAD}), "is also sent as"),
    "no-bytes": (lambda: upload(b""), f"{SHORT} 0 points; {BROKEN}"),
    "one-byte": (lambda: upload(b"\x28"), f"{SHORT} 1 byte; {BROKEN}"),
    "one-point-less": (lambda: upload(ROAD[:-4]), f"{SHORT} 2,999 points; {BROKEN}"),
    "one-byte-more": (lambda: upload(ROAD + b"\0"), f"{SHORT} 12,001 bytes; {BROKEN}"),
    "text-of-the-length": (lambda: upload(b"40 \n" * POINTS), "holds the label 12340"),
    "bomb": (lambda: upload(bytes(60 << 20)), "unpacks to more than 200 times its size"),
    "huge": (lambda: upload(bytes(65 << 20)), "the limit is 67 MB"),
    "label-359": (lambda: values(np.where(COUNT == 7, 359, 40)), "holds the label 359, which is not a label of"),
    "all-bits": (lambda: values(np.full(POINTS, 0xFFFFFFFF)), "holds the label 65535"),
    "label-358": (lambda: values(np.full(POINTS, 358)), "scored"),
    "labels-with-all-bits": (lambda: values(np.where(COUNT % 2, 256, 127)), "scored"),
    "largest-number": (lambda: values(np.full(POINTS, 40 | 0xFFFF << 16)), "scored"),
    "a-segment-each": (lambda: values(10 | COUNT << 16), "scored"),
    "nothing": (lambda: values(np.zeros(POINTS)), "scored"),
}  # fmt: skip


@hostile(HOSTILE)
def test_hostile_submissions_get_a_sentence_soon_and_in_little_memory(
    make: Make, sentence: str, tmp_path: Path
) -> None:
    truth = read_truth(str(written(tmp_path / "t", scans("labels", a=10 | COUNT % 99 << 16, b=[40] * POINTS))))
    output = sentence_of(make(), tmp_path, lambda path: score_units(path, truth, "semantic-kitti-panoptic"))
    assert sentence in output


@backends.needs_kernel
@pytest.mark.parametrize("protocol", ["semantic-kitti-panoptic", "semantic-kitti-panoptic-official"])
@pytest.mark.parametrize("objects", [1, 40, 5_000, 65_536])
def test_segments_are_matched_as_numpy_and_a_plain_loop_match_them(
    objects: int, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, lot = SCAN_PROTOCOLS[protocol], np.random.default_rng(objects)
    compiled = backends.compiled()
    for points in (1, 7, 900, 20_000):
        truth, noise = (
            np.repeat(lot.choice([0, 1, 10, 252, 11, 40, 60, 70, 99, 358], points), lot.integers(1, 40, points))[
                :points
            ]
            | lot.integers(0, objects, points) << LABEL_BITS
            for _ in range(2)
        )
        sent = np.where(lot.random(points) < 0.3, noise, truth).astype("<u4")
        names, numbers = np.unique(truth, return_inverse=True)
        packed = numbers.astype(np.min_scalar_type(len(names)))
        tables = []
        for used in (compiled, backends.NumpyBackend("in a test")):
            backends.use(monkeypatch, used)
            tables.append(count_scan(LabelMap(truth.astype("<u4")), sent, rules))
            tables.append(count_scan(LabelMap(packed, names), sent, rules))
        for other in tables[1:]:
            assert all(np.array_equal(other[name], tables[0][name]) for name in ("cells", "segments"))
        if points < 1000:
            counts = tables[0]["segments"]
            assert counts[:, MATCHED:].tolist() == match_by_hand(truth.tolist(), sent.tolist(), rules)
    rules = compiled.kernel.match_segments(np.array([LABELS_END], "<u4"), None, sent[:1], _describe_segments(rules))
    assert rules is None


def match_by_hand(truth: list[int], sent: list[int], rules: Any) -> list[list[int]]:
    """Return the numbers of matched, surplus and missed segments by class."""
    classes = {label: index for index, labels in enumerate(rules.class_labels) for label in labels}

    def name(value: int) -> tuple[int, int] | None:
        kind = classes.get(value & 0xFFFF)
        whole = value if rules.as_script else value >> LABEL_BITS if (kind or 0) < rules.things else 0
        return None if kind is None else (kind, whole)

    pairs = [(name(one), name(two)) for one, two in zip(truth, sent, strict=True) if name(one) is not None]
    sides, both = [Counter(side) for side in zip(*pairs, strict=True)] or [Counter(), Counter()], Counter(pairs)
    counts, matched = [[0, 0, 0] for _ in rules.class_labels], set()
    for (one, two), shared in both.items():
        if two and one[0] == two[0] and 2 * shared > sides[0][one] + sides[1][two] - shared:
            counts[one[0]][0] += 1
            matched |= {(0, one), (1, two)}
    for index, column in ((1, 1), (0, 2)):
        for segment, points in sides[index].items():
            if segment and points >= rules.fewest_points and (index, segment) not in matched:
                counts[segment[0]][column] += 1
    return counts


# ── what all families promise ───────────────────────────────────────────────


@pytest.mark.parametrize("protocol", ["semantic-kitti", "semantic-kitti-panoptic"])
@PROMISES
def test_the_family_keeps_its_promises(promise: str, protocol: str, tmp_path: Path) -> None:
    names = {f"{index:03d}": np.repeat(np.roll([40, 70, 10 | 1 << 16, 252 | 2 << 16], index), 60) for index in range(5)}
    wrong, second = ({item: np.roll(points, by) for item, points in names.items()} for by in (10, 60))
    faulty = {**wrong, "001": [40], "003": [500] * 240}
    arrays = [{f"08/{item}": points for item, points in side.items()} for side in (wrong, names)]
    keep(
        promise, protocol, tmp_path, (scans("labels", **names), scans("labels", **second)),
        (scans("predictions", **wrong), scans("predictions", **faulty)), ["001.label", "003.label"],
        (arrays[0], arrays[1]),
    )  # fmt: skip


def test_each_class_of_a_scan_is_a_region_and_other_points_are_none() -> None:
    protocol = SCAN_PROTOCOLS["semantic-kitti"]
    labels = np.array([kinds[0] for kinds in protocol.class_labels], np.uint32)
    count, other = len(labels), np.uint32(0)
    true = np.append(labels, [labels[0], labels[-1], other, other])
    predicted = np.append(labels, [labels[-1], other, labels[-1], other])
    points = np.append(np.arange(1, count + 1), [30, 40, 50, 60])
    seen = see_classes(true, predicted, points, protocol)
    assert seen.truth.names == seen.prediction.names == list(protocol.class_names)
    areas = np.arange(1, count + 1)
    assert seen.truth.areas.tolist() == (areas + 30 * (areas == 1) + 40 * (areas == count)).tolist()
    assert seen.prediction.areas.tolist() == (areas + 30 * (areas == count)).tolist()
    assert np.diag(seen.shared).tolist() == areas.tolist()
    assert seen.shared[0, -1] == 30
    assert seen.shared.sum() == areas.sum() + 30
    assert find_names(np.array([9, 2, 5]), np.array([2, 5, 7])).tolist() == [-1, 0, 1]
    assert find_names(np.array([9, 2]), np.array([], int)).tolist() == [-1, -1]
    assert place_classes(np.append(labels | 7 << LABEL_BITS, other), protocol).tolist() == [*range(count), count]
