"""Each family's accumulator in memory scores the same bits as files, in parts, in any order and with repeats."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
import struct
import time
import zlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pycocotools.mask as coco
import pytest
from PIL import Image

import segjudge
from segjudge import FrameAccumulator, SubmissionError, UsageError, score_arrays
from segjudge.evaluation_script.families.base.units import UnitCounts, decode_unit
from segjudge.evaluation_script.families.sequences.counting import decode_counts as decode_sequence
from tests.backends import use_numpy
from tests.data import TRACKS_DATA
from tests.families.contract import examples
from tests.shared import needs_shared

SIZE = (60, 80)


def of_parts(protocol: str, updates: list[tuple[Any, ...]], parts: int = 3, **options: Any) -> Any:
    """The scores of updates that came in any order, some twice, to several accumulators."""
    draw = np.random.default_rng(parts)
    some = [FrameAccumulator(protocol, **options) for _ in range(parts)]
    places = [*range(len(updates)), *draw.integers(0, len(updates), 3).tolist()]
    for place in draw.permutation(places).tolist():
        some[int(draw.integers(parts))].update(*updates[place])
    whole = FrameAccumulator(protocol, **options)
    for place in draw.permutation(parts).tolist():
        loaded = FrameAccumulator(protocol, **options)
        loaded.load_state_dict(pickle.loads(pickle.dumps(some[place].state_dict())))
        whole.merge(loaded)
    return whole.compute()


def same(actual: Any, expected: Any, *, order: bool = True) -> None:
    """Hold scores to be equal to the last bit, or where the order of units is another one nearly so."""
    (mine,), (second,) = actual.metrics.values(), expected.metrics.values()
    assert mine == (second if order else pytest.approx(second, abs=1e-12))
    warnings = [line.partition(": ")[2] for line in expected.warnings if "a bbox beside" not in line]
    assert [line.partition(": ")[2] for line in actual.warnings] == warnings
    for name, rows in expected.tables.items():
        for table, two in zip(actual.tables[name], rows, strict=True):
            assert {**table, "split": ""} == ({**two, "split": ""} if order else pytest.approx({**two, "split": ""}))


def runs(mask: Any) -> Any:
    encoded = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"size": list(encoded["size"]), "counts": encoded["counts"].decode()}


def box(mask: Any) -> list[float]:
    return coco.toBbox(coco.encode(np.asfortranarray(mask.astype(np.uint8)))).tolist()


def images(seed: int, count: int = 9) -> list[Any]:
    """Masks, labels and scores of both sides of some images; the first has no instance, the last no detection."""
    draw = np.random.default_rng(seed)
    results = []
    for image in range(count):
        sides = []
        for least in (0 if image == 0 else 1, 0 if image == count - 1 else 1):
            number = int(draw.integers(2, 6)) if least else 0
            masks = np.zeros((number, *SIZE), bool)
            for mask in masks:
                top, left = draw.integers(0, 30, 2)
                mask[top : top + draw.integers(8, 30), left : left + draw.integers(8, 45)] = True
            sides.append(
                {"masks": masks, "labels": draw.integers(1, 4, number), "scores": draw.random(number).round(1)}
            )
        truth, prediction = sides
        truth.pop("scores")
        truth["iscrowd"] = draw.random(len(truth["labels"])) < 0.2
        if len(truth["labels"]) and len(prediction["labels"]):  # found, if not quite
            prediction["masks"][0], prediction["labels"][0] = np.roll(truth["masks"][0], 2, 1), truth["labels"][0]
        results.append((prediction, truth))
    return results


def records(side: Any, image: int, start: int = 0) -> list[dict[str, Any]]:
    """The same as COCO has it in files."""
    results = [{"image_id": image, "category_id": int(label)} for label in side["labels"]]
    for number, (record, mask) in enumerate(zip(results, side["masks"]), start=start):
        record |= {"segmentation": runs(mask), "bbox": box(mask), "area": int(mask.sum()), "id": number}
        if "scores" in side:
            record["score"] = float(side["scores"][number - start])
        else:
            record["iscrowd"] = int(side["iscrowd"][number - start])
    return results


def files(found: list[Any], folder: Path) -> tuple[str, str]:
    """Results and truth as files."""
    truths: list[Any] = []
    for image, (_, truth) in enumerate(found):
        truths += records(truth, image, len(truths) + 1)
    document = {
        "images": [{"id": image, "height": SIZE[0], "width": SIZE[1]} for image in range(len(found))],
        "categories": [{"id": number, "name": str(number)} for number in (1, 2, 3)],
        "annotations": truths,
    }
    sent = [record for image, (prediction, _) in enumerate(found) for record in records(prediction, image)]
    (folder / "results.json").write_text(json.dumps(sent))
    (folder / "truth.json").write_text(json.dumps(document))
    return str(folder / "results.json"), str(folder / "truth.json")


def boxed(side: Any) -> Any:
    """Columns as detection models have them: boxes by their corners."""
    boxes = np.array([box(mask) for mask in side["masks"]]).reshape(-1, 4)
    return {
        **{key: side[key] for key in side if key != "masks"},
        "boxes": np.hstack((boxes[:, :2], boxes[:, :2] + boxes[:, 2:])),
    }


@pytest.mark.parametrize("path", ["kernel", "numpy"])
@pytest.mark.parametrize("protocol", ["coco", "places2017", "coco-boundary", "coco-box"])
def test_instances_in_memory_score_as_files_do(
    protocol: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "numpy":
        use_numpy(monkeypatch)
    results = images(5)
    expected = segjudge.score(*files(results, tmp_path), protocol)
    assert 0 < (expected.metrics["val"]["AP"] or 0) < 1
    if protocol == "coco-box":
        results = [({**boxed(item)}, {**boxed(two), "area": [m.sum() for m in two["masks"]]}) for item, two in results]
    same(of_parts(protocol, [(image, None, *sides) for image, sides in enumerate(results)]), expected)
    predictions, truths = ({image: sides[side] for image, sides in enumerate(results)} for side in (0, 1))
    same(score_arrays(predictions, truths, protocol), expected)
    same(score_arrays(list(predictions.values()), list(truths.values()), protocol), expected)


@pytest.mark.parametrize("parts", [1, 2, 7, 64])
@pytest.mark.parametrize("protocol", ["coco", "lvis", "coco-box"])
def test_parts_of_images_have_the_same_bits(protocol: str, parts: int) -> None:
    results = images(4, 30)
    results = results if protocol != "coco-box" else [(boxed(item), boxed(two)) for item, two in results]
    expected = score_arrays(*map(list, zip(*results)), protocol)
    same(of_parts(protocol, [(image, None, *sides) for image, sides in enumerate(results)], parts), expected)


def test_records_of_coco_and_columns_are_the_same() -> None:
    results = images(6)
    expected = score_arrays(*zip(*results), "coco")
    listed = [(records(item, 3), {"annotations": records(two, 3, 1)}) for item, two in results]
    same(score_arrays(*zip(*listed), "coco"), expected)
    encoded = [tuple({**side, "masks": [runs(mask) for mask in side["masks"]]} for side in sides) for sides in results]
    same(score_arrays(*zip(*encoded), "coco"), expected)


def test_polygons_are_drawn_at_the_size_that_is_said() -> None:
    square, label = [[10, 10, 30, 10, 30, 30, 10, 30]], {"category_id": 1}
    truth = {"annotations": [{**label, "segmentation": square}], "height": 60, "width": 80}
    scores = score_arrays([[{**label, "segmentation": square, "score": 0.5}]], [truth], "coco")
    assert scores["APs"] == pytest.approx(1.0)


@needs_shared
@pytest.mark.parametrize("case", ["plain", "many"])
def test_lvis_in_memory_scores_as_files_do(case: str) -> None:
    folder = TRACKS_DATA / "instances"
    golden = json.loads((folder / "golden.json").read_text())["cases"]
    case = sorted(golden)[0 if case == "plain" else -1]
    truth = json.loads((folder / golden[case].get("truth", "truth.json")).read_text())
    sent = json.loads((folder / f"{case}.json").read_text())
    for protocol in ("lvis", "lvis-boundary", "coco"):
        accumulator = FrameAccumulator(protocol, categories=truth["categories"])
        for image in truth["images"]:
            of_image = [item for item in truth["annotations"] if item["image_id"] == image["id"]]
            predicted = [item for item in sent if item["image_id"] == image["id"]]
            accumulator.update(image["id"], None, predicted, {**image, "annotations": of_image})
        same(accumulator.compute(), segjudge.score(str(folder / f"{case}.json"), str(folder / "truth.json"), protocol))


@needs_shared
@pytest.mark.parametrize("protocol", ["youtube-vis-2019", "ovis"])
def test_instances_of_videos_score_as_files_do(protocol: str) -> None:
    folder = TRACKS_DATA / "vis"
    truth, sent = (json.loads((folder / name).read_text()) for name in ("truth.json", "ordinary.json"))
    updates = []
    for video in truth["videos"]:
        annotations = [item for item in truth["annotations"] if item["video_id"] == video["id"]]
        predicted = [item for item in sent if item["video_id"] == video["id"]]
        updates.append((video["id"], None, predicted, annotations))
    expected = segjudge.score(str(folder / "ordinary.json"), str(folder / "truth.json"), protocol)
    same(of_parts(protocol, updates, categories=truth["categories"]), expected)
    with pytest.raises(UsageError, match="compares whole videos"):
        FrameAccumulator(protocol).update("a", 3, [], [])


CATEGORIES = [{"id": 1, "name": "x", "isthing": 1}]


@pytest.mark.parametrize("protocol", examples("sharing"))
def test_a_state_that_is_none_is_refused(protocol: str) -> None:
    accumulator, draw = FrameAccumulator(protocol, categories=CATEGORIES), np.random.default_rng(0)
    broken = [b"", b"[]", b"{}", b"[[1,2],[],[]]", "text", None, *(draw.bytes(length) for length in range(1, 200))]
    for data in broken:
        with pytest.raises(ValueError):
            accumulator.load_state_dict({"protocol": protocol, "frames": {"dog": {"00000": data}}})
    for state in ({}, {"protocol": protocol}, {"protocol": protocol, "frames": 5}, {"protocol": "other", "frames": {}}):
        with pytest.raises(ValueError, match=f"does not belong to an accumulator of {protocol}"):
            accumulator.load_state_dict(state)


def test_counts_of_two_frames_or_of_none_are_not_those_of_one() -> None:
    accumulator = FrameAccumulator("davis2017")
    accumulator.update("dog", "00000", np.eye(4, dtype=int), np.eye(4, dtype=int))
    counts = decode_sequence(accumulator.state_dict()["frames"]["dog"]["00000"])
    none = replace(counts, rows=counts.rows[:0], counts=counts.counts[..., :0])
    for second in (none, replace(counts, frames=["00000", "00001"])):
        with pytest.raises(ValueError, match="does not hold the counts of one frame"):
            accumulator.load_state_dict({"protocol": "davis2017", "frames": {"dog": {"00000": second.encode()}}})


def test_a_state_that_cannot_have_been_counted_makes_no_scores() -> None:
    ids = np.zeros((4, 6), np.int64)
    ids[1:3, 1:4] = 1
    strange = np.stack((ids, ids + 60_000)).astype("<u2")
    panoptic = FrameAccumulator("coco-panoptic", categories=CATEGORIES)
    panoptic.update("dog", None, (ids, {1: 1}), (ids, {1: 1}))
    tables = decode_unit(panoptic.state_dict()["frames"]["dog"][""]).tables
    for protocol, frame, data in (
        ("vspw", "00000", struct.pack("<II", *ids.shape) + zlib.compress(strange.tobytes())),
        ("coco-panoptic", "", UnitCounts("", {**tables, "truth": tables["truth"][:, :1]}).encode()),
        ("mots", "00000", b"[[4,6],[[1]],[],{}]"),
    ):
        accumulator = FrameAccumulator(protocol, categories=CATEGORIES)
        accumulator.load_state_dict({"protocol": protocol, "frames": {"dog": {frame: data}}})
        with pytest.raises(ValueError, match=f"do not give scores of {protocol} .* did not come from state_dict"):
            accumulator.compute()


def test_an_accumulator_goes_to_another_process_as_it_is() -> None:
    results = images(5)
    whole, labels = FrameAccumulator("coco"), FrameAccumulator("davis2017")
    for image, sides in enumerate(results):
        whole.update(image, None, *sides)
        labels.update("dog", image, results[3][0]["masks"][0], results[3][1]["masks"][0])
    for item in (whole, labels):
        sent = pickle.loads(pickle.dumps(item))
        assert sent.compute().metrics == item.compute().metrics
        assert copy.deepcopy(item).merge(sent).state_dict() == item.state_dict()


def test_a_track_without_masks_in_memory_says_so() -> None:
    with pytest.raises(UsageError, match="counting scores files alone"):
        FrameAccumulator(SimpleNamespace(family="counting", name="counting"))


def colours(path: Path) -> Any:
    """The ids of a panoptic PNG."""
    channels = np.asarray(Image.open(path).convert("RGB")).astype(np.int64)
    return channels[..., 0] + 256 * channels[..., 1] + 65536 * channels[..., 2]


@needs_shared
@pytest.mark.parametrize("path", ["kernel", "numpy"])
@pytest.mark.parametrize("protocol", ["coco-panoptic", "coco-panoptic-boundary"])
def test_panoptic_images_in_memory_score_as_files_do(
    protocol: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "numpy":
        use_numpy(monkeypatch)
    folder = TRACKS_DATA / "panoptic"
    truth, sent = (json.loads((folder / name).read_text()) for name in ("truth.json", "submission.json"))
    by_image = {item["image_id"]: item for item in sent["annotations"]}
    updates = []
    for first in truth["annotations"]:
        second = by_image[first["image_id"]]
        real = colours(folder / "truth" / first["file_name"]), first["segments_info"]
        segments = {segment["id"]: segment["category_id"] for segment in second["segments_info"]}
        updates.append(
            (first["image_id"], None, (colours(folder / "submission" / second["file_name"]), segments), real)
        )
    shutil.copytree(folder / "submission", tmp_path / "submission")
    shutil.copy(folder / "submission.json", tmp_path)
    expected = segjudge.score(str(tmp_path), str(folder / "truth.json"), protocol)
    same(of_parts(protocol, updates, categories=truth["categories"]), expected)


def frames_of(names: list[str], updates: list[tuple[Any, ...]]) -> dict[str, list[str]]:
    """The frames of each video, in an order of the videos."""
    return {name: [frame for video, frame, *_ in updates if video == name] for name in names}


def video_frames(folder: Path) -> tuple[Any, list[tuple[Any, ...]]]:
    """The categories of VIPSeg-like data, and an update for each frame."""
    truth = json.loads((folder / "truth.json").read_text())
    sent = json.loads((folder / "submission/pred.json").read_text())
    of_video = {item["video_id"]: item["annotations"] for item in sent["annotations"]}
    updates = []
    for video in truth["annotations"]:
        for first, second in zip(video["annotations"], of_video[video["video_id"]]):
            name = Path(first["file_name"]).stem
            picture = f"{video['video_id']}/{name}.png"
            real = colours(folder / "truth" / picture), first["segments_info"]
            predicted = colours(folder / "submission/pan_pred" / picture), second["segments_info"]
            updates.append((video["video_id"], name, predicted, real))
    return truth["categories"], updates


@needs_shared
@pytest.mark.parametrize("protocol", ["vipseg", "vipseg-official"])
def test_panoptic_videos_in_memory_score_as_files_do(protocol: str) -> None:
    folder = TRACKS_DATA / "vps"
    categories, updates = video_frames(folder)
    expected = segjudge.score(str(folder / "submission"), str(folder / "truth.json"), protocol)
    names = list(dict.fromkeys(update[0] for update in updates))
    assert names != sorted(names), "the truth's order is not that of names"
    same(of_parts(protocol, updates, 7, categories=categories, expected=frames_of(names, updates)), expected)
    same(of_parts(protocol, updates, 7, categories=categories), expected, order=False)


@needs_shared
@pytest.mark.parametrize("protocol", ["vspw", "vspw-official"])
def test_semantic_videos_in_memory_score_as_files_do(protocol: str) -> None:
    folder = TRACKS_DATA / "vspw"
    expected = segjudge.score(str(folder / "submission"), str(folder / "truth"), protocol)
    updates, names = [], (folder / "truth/val.txt").read_text().split()
    assert names != sorted(names), "the list's order is not that of names"
    for path in sorted((folder / "truth/data").glob("*/mask/*.png")):
        video = path.parent.parent.name
        if video in names:
            prediction = next((folder / "submission").rglob(f"{video}/{path.name}"))
            updates.append((video, path.stem, np.asarray(Image.open(prediction)), np.asarray(Image.open(path))))
    same(of_parts(protocol, updates, expected=frames_of(names, updates)), expected)
    same(of_parts(protocol, updates), expected, order=False)


def lines(path: Path) -> dict[int, list[dict[str, Any]]]:
    """The masks of each frame of a text of MOTS."""
    frames: dict[int, list[dict[str, Any]]] = {}
    for line in path.read_text().splitlines():
        frame, track, category, height, width, text = line.split(" ")
        segmentation = {"size": [int(height), int(width)], "counts": text}
        record = {"track_id": int(track), "category_id": int(category), "segmentation": segmentation}
        frames.setdefault(int(frame), []).append(record)
    return frames


@needs_shared
@pytest.mark.parametrize("protocol", ["mots", "kitti-mots"])
def test_tracks_in_memory_score_as_files_do(protocol: str) -> None:
    folder = TRACKS_DATA / "mots"
    truths, sent = folder / "gt", folder / "trackers/ours/data"
    updates = []
    for path in sorted(truths.glob("*/gt/gt.txt")):
        name = path.parent.parent.name
        real, predicted = lines(path), lines(sent / f"{name}.txt")
        length = int((path.parent.parent / "seqinfo.ini").read_text().lower().split("seqlength=")[1].split()[0])
        updates += [(name, index, predicted.get(index, []), real.get(index, [])) for index in range(1, length + 1)]
    same(of_parts(protocol, updates, 5), segjudge.score(str(sent), str(truths), protocol))


@needs_shared
@pytest.mark.parametrize("guided", ["class-guided", "exemplar-guided"])
def test_burst_in_memory_scores_as_files_do(guided: str) -> None:
    folder = TRACKS_DATA / "burst"
    truth, sent = (json.loads((folder / name).read_text()) for name in ("truth.json", f"{guided}.json"))
    of_sequence = {(item["dataset"], item["seq_name"]): item for item in sent["sequences"]}
    updates = []
    for first in truth["sequences"]:
        second = of_sequence[first["dataset"], first["seq_name"]]
        size = [first["height"], first["width"]]
        masks = dict(zip(second["annotated_image_paths"], second["segmentations"]))
        for position, (name, real) in enumerate(zip(first["annotated_image_paths"], first["segmentations"])):
            sides = []
            for side, categories in ((masks[name], second), (real, first)):
                sides.append([
                    {"track_id": int(track), "category_id": categories["track_category_ids"][track],
                     "segmentation": {"size": size, "counts": mask["rle"]}, "score": mask.get("score", 1.0)}
                    for track, mask in side.items()
                ])  # fmt: skip
            facts = {key: first[key] for key in ("neg_category_ids", "not_exhaustive_category_ids")}
            updates.append(
                (f"{first['dataset']}/{first['seq_name']}", position, sides[0], {"annotations": sides[1], **facts})
            )
    for protocol in ("burst", "burst-official") if guided[0] == "c" else ("burst-exemplar-guided",):
        expected = segjudge.score(str(folder / f"{guided}.json"), str(folder / "truth.json"), protocol)
        same(of_parts(protocol, updates, 4, categories=truth["categories"]), expected)


def test_a_map_of_many_labels_is_refused_soon() -> None:
    labels = np.arange(1000, 1000 + 265 * 265).reshape(265, 265)
    started = time.process_time()
    with pytest.raises(SubmissionError, match="has 70,225 masks in frame 00000. Send at most 500"):
        FrameAccumulator("mots").update("a", 0, labels, labels)
    assert time.process_time() - started < 15
