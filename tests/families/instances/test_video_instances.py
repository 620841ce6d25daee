"""Instances in videos, as YouTube-VIS and OVIS score them: the official numbers, tubes, hostile submissions."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.masks import run_lengths as rle
from tests.backends import use_numpy
from tests.builders import score_instances, zipped
from tests.data import TRACKS_DATA
from tests.families.instances.test_lvis import agree, scored
from tests.hostile_units import sentence_of
from tests.shared import needs_shared

DATA = TRACKS_DATA / "vis"
ROWS = {"ytvis": "youtube-vis-2019", "ovis": "ovis"}
#: The official numbers come from a defect, or do not exist: these inputs are refused, or scored without the defect.
NOT_EQUALLED = {
    "short-lists": "has 1 segmentation but the video has 2 frames",
    "wrong-size": r"has a mask of size \[299, 320\] but the image is \[300, 320\]",
    "unknown-video": "has a video_id that the truth lacks",
}
toolkit = pytest.mark.skipif(sys.version_info < (3, 11), reason="the toolkit needs Python 3.11")


def golden() -> Any:
    path = DATA / "golden.json"
    return json.loads(path.read_text())["cases"] if path.exists() else {}


def cases() -> list[tuple[str, str]]:
    results = golden()
    return [
        (case, evaluator)
        for case in results
        for evaluator in ROWS
        if case not in NOT_EQUALLED and "stats" in results[case][evaluator]
    ]


def files(case: str, folder: Path) -> tuple[Path, Path]:
    """Return a case's submission and truth; one is the ordinary case without a key."""
    if case != "ordinary-without-occlusion":
        return DATA / f"{case}.json", DATA / golden()[case]["truth"]
    document = json.loads((DATA / "truth.json").read_text())
    for annotation in document["annotations"]:
        del annotation["occlusion"]
    (folder / "truth.json").write_text(json.dumps(document))
    return DATA / "ordinary.json", folder / "truth.json"


@pytest.mark.parametrize(
    ("annotation", "area"),
    [
        ({"areas": [4, None, 0, 8]}, 6.0), ({"areas": [None, 0]}, 0.0), ({"areas": []}, 0.0), ({"areas": None}, 0.0),
        ({}, 3.0),
    ],
)  # fmt: skip
def test_the_area_of_a_video_is_the_mean_of_what_is_written(annotation: Any, area: float) -> None:
    assert instance_truth._area_of_video(annotation, 3.0) == area


@needs_shared
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("case", "evaluator"), cases())
def test_each_number_of_the_official_evaluators(
    case: str, evaluator: str, compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        use_numpy(monkeypatch)
    score = scored(*files(case, tmp_path), ROWS[evaluator])
    agree(score, golden()[case][evaluator])
    assert list(score.values) == list(INSTANCE_PROTOCOLS[ROWS[evaluator]].metrics)


@needs_shared
@pytest.mark.parametrize("case", NOT_EQUALLED)
@pytest.mark.parametrize("protocol", ROWS.values())
def test_what_the_official_code_flatters_or_hides_is_refused(case: str, protocol: str) -> None:
    with pytest.raises(SubmissionError, match=NOT_EQUALLED[case]):
        scored(DATA / f"{case}.json", DATA / "truth.json", protocol)


@needs_shared
def test_ovis_goes_on_where_the_official_code_ends(tmp_path: Path) -> None:
    assert scored(DATA / "empty.json", DATA / "truth.json", "ovis").values["AP"] == 0
    unlabelled = scored(*files("ordinary-without-occlusion", tmp_path), "ovis")
    assert unlabelled.values["AP"] == golden()["ordinary"]["ovis"]["stats"]["AP"]
    assert unlabelled.values["AP-light"] is unlabelled.values["AR-heavy"] is None
    never = scored(*files("never-visible", tmp_path), "ovis")
    stats = golden()["never-visible"]["ytvis"]["stats"]
    assert {name: never.values[name] for name in stats} == pytest.approx(stats, abs=1e-9)
    (known,) = instance_truth.read(str(DATA / "never-visible.truth.json")).values()
    assert "1 annotation without area in any frame, which no prediction can match" in known.notes


@needs_shared
@toolkit
def test_a_packed_truth_and_parts_score_alike(tmp_path: Path, capsys: Any) -> None:
    from segjudge.cli import main

    out = str(tmp_path / "truth.zip")
    instance_truth.write(out, {"val": (DATA / "truth.json").read_bytes()})
    common = ["score", str(DATA / "ordinary.json"), "--protocol", "ovis", "--truth"]
    answers = []
    for more in ([out], [str(DATA / "truth.json"), "--jobs", "2"]):
        assert main([*common, *more, "--json", "-", "--csv", str(tmp_path / "csv")]) == 0
        answers.append(json.loads(capsys.readouterr().out)["result"])
    parts = [str(tmp_path / f"{number}.part") for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        assert main([*common, out, "--part", f"{number}/2", "--out", part]) == 0
    capsys.readouterr()
    assert main(["merge", *parts, "--json", "-"]) == 0
    assert [*answers, json.loads(capsys.readouterr().out)["result"]] == [answers[0]] * 3
    assert list(answers[0][0]["val"])[:5] == ["AP", "AP50", "AP75", "AR@1", "AR@10"]
    for given in (["--truth", str(DATA / "truth.json"), "--protocol", "coco"], ["--truth", out, "--protocol", "lvis"]):
        assert main(["score", str(DATA / "ordinary.json"), *given]) != 0
        assert "holds videos, which the protocol" in capsys.readouterr().err
    assert main(["show", "--truth", out, "--out", str(tmp_path / "page")]) != 0
    assert "holds videos, but only images can be drawn" in capsys.readouterr().err


# ── random tubes against pixels ─────────────────────────────────────────────

HEIGHT, WIDTH, FRAMES = 6, 5, 4
SIZE = [HEIGHT, WIDTH]


# ── hostile submissions ─────────────────────────────────────────────────────


def truth(masks: list[Any], size: tuple[int, int] = (HEIGHT, WIDTH), frames: int = FRAMES) -> dict[str, Any]:
    item = {"id": 1, "video_id": 1, "category_id": 1, "iscrowd": 0, "areas": [9] * frames, "segmentations": masks}
    video = {"id": 1, "height": size[0], "width": size[1], "length": frames}
    return {"videos": [video], "categories": [{"id": 1, "name": "fish"}], "annotations": [item]}


def found(masks: Any, **others: Any) -> dict[str, Any]:
    return {"video_id": 1, "category_id": 1, "score": 0.5, "segmentations": masks, **others}


MASK = {"size": SIZE, "counts": rle.compress([3, 7, 20])}
NONE = [None] * FRAMES


def with_mask(mask: Any) -> dict[str, Any]:
    return found([MASK, mask, None, None])


def text(*records: Any) -> bytes:
    return json.dumps(records).encode()


HOSTILE: dict[str, tuple[Any, str]] = {
    "not a list": (b"{}", 'not a list of records. Write .."video_id"'),
    "not JSON": (b"[{]", "is not valid JSON"),
    "cut off": (text(found(NONE))[:-9], "closing (bracket|quote) is missing"),
    "empty file": (b"", "is empty"),
    "binary": (b"\xff\xfe\x00[", "is UTF-16 text"),
    "a number": (text(5), "record 0 .video .* is not an object"),
    "null": (text(None), "is not an object"),
    "image instead of video": (text({**found(NONE), "video_id": 1, "image_id": 1}), "scored"),
    "no video": (text({"image_id": 1, "category_id": 1, "score": 1, "segmentations": NONE}), "lacks video_id"),
    "no segmentations": (text({"video_id": 1, "category_id": 1, "score": 1}), "lacks segmentations"),
    "no score": (text({"video_id": 1, "category_id": 1, "segmentations": NONE}), "lacks score"),
    "no category": (text({"video_id": 1, "score": 1, "segmentations": NONE}), "lacks category_id"),
    "video as text": (text(found(NONE, video_id="1")), "which is not a whole number"),
    "video as float": (text(found(NONE, video_id=1.0)), "which is not a whole number"),
    "video as truth": (text(found(NONE, video_id=True)), "which is not a whole number"),
    "huge video": (text(found(NONE, video_id=1 << 70)), "too large for an id"),
    "unknown video": (text(found(NONE, video_id=9)), "has a video_id that the truth lacks"),
    "category as text": (text(found(NONE, category_id="fish")), "which is not a whole number"),
    "unknown category": (text(found(NONE, category_id=9)), "scored"),
    "score NaN": (b'[{"video_id":1,"category_id":1,"score":NaN,"segmentations":[]}]', "not a finite number"),
    "score as text": (text(found(NONE, score="high")), "not a finite number"),
    "score huge": (text(found(NONE, score=10**400)), "not a finite number"),
    "masks as null": (text(found(None)), "segmentations that are not a list"),
    "masks as text": (text(found("0000")), "segmentations that are not a list"),
    "masks by frame": (text(found({"0": MASK})), "segmentations that are not a list"),
    "no masks": (text(found([])), "has 0 segmentations but the video has 4 frames"),
    "too few masks": (text(found([MASK])), "has 1 segmentation but the video has 4 frames"),
    "too many masks": (text(found([None] * 5)), "has 5 segmentations but the video has 4 frames"),
    "a million masks": (text(found([None] * 1_000_000)), "has 1,000,000 segmentations"),
    "mask as number": (text(with_mask(5)), "neither run lengths nor polygons .frame 1 of 4"),
    "mask as text": (text(with_mask("abc")), "neither run lengths nor polygons"),
    "polygon": (text(with_mask([[0, 0, 3, 0, 3, 3]])), "has a segmentation that is not run lengths .frame 1"),
    "empty list": (text(with_mask([])), "has a segmentation that is not run lengths"),
    "no size": (text(with_mask({"counts": "0"})), "neither run lengths nor polygons"),
    "size as text": (text(with_mask({**MASK, "size": "6x5"})), "which is not .height, width"),
    "size as floats": (text(with_mask({**MASK, "size": [6.0, 5.0]})), "which is not .height, width"),
    "size turned": (text(with_mask({**MASK, "size": [5, 6]})), r"but the image is \[6, 5\]"),
    "huge size": (text(with_mask({**MASK, "size": [1 << 40, 1 << 40]})), r"but the image is \[6, 5\]"),
    "counts as null": (text(with_mask({**MASK, "counts": None})), "neither text nor a list"),
    "counts empty": (text(with_mask({**MASK, "counts": ""})), "add up"),
    "counts endless": (text(with_mask({**MASK, "counts": "oooo"})), "end too early or do not end"),
    "counts too long": (text(with_mask({**MASK, "counts": "0" * 10_000})), "counts of length 10,000"),
    "counts below zero": (text(with_mask({**MASK, "counts": "O0"})), "below zero"),
    "counts not ASCII": (text(with_mask({**MASK, "counts": "\u00e9"})), "invalid characters"),
    "counts short": (text(with_mask({**MASK, "counts": rle.compress([3, 7, 19])})), "add up to 29"),
    "list negative": (text(with_mask({**MASK, "counts": [-1, 31]})), "below zero"),
    "list of floats": (text(with_mask({**MASK, "counts": [3.0, 27.0]})), "not all whole numbers"),
    "list short": (text(with_mask({**MASK, "counts": [3, 7]})), "add up to 10"),
    "list of huge numbers": (text(with_mask({**MASK, "counts": [1 << 80]})), "beyond the frame"),
    "deep": (b"[" * 100_000, "nested too deeply|valid JSON|is missing"),
    "a key twice": (b'[{"video_id":1,"video_id":1,"category_id":1,"score":1,"segmentations":[]}]', "twice"),
    "borders in texts": (text(*[found(NONE, note='}, {"video_id": 1}, {' * 300)] * 300), "scored"),
    "many braces": (b"[" + b"}" * 2_000_000, "is not valid JSON"),
    "two files": (zipped({"a.json": b"[]", "b.json": b"[]"}), "holds 2 JSON files.*video_id"),
    "bad masks": (text(*[with_mask({**MASK, "counts": "oooo"})] * 20_000), "and at least 997 more: each has"),
    "good": (text(*[found([MASK] * FRAMES)] * 20_000), "scored"),
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name in ("bad masks", "a million masks"))) for name in HOSTILE],
)
def test_a_hostile_submission_is_a_sentence(name: str, tmp_path: Path) -> None:
    data, expected = HOSTILE[name]
    known = instance_truth.read_document(json.dumps(truth([MASK] * FRAMES)).encode(), "truth")

    def score(path: Path) -> Any:
        return score_instances(str(path), known, INSTANCE_PROTOCOLS["ovis"], INSTANCE_LIMITS)

    sentence = sentence_of(data, tmp_path, score)
    assert re.search(expected, sentence), sentence


CHANGES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no annotations": (lambda t: t.update(annotations=None), "holds no annotations .null."),
    "no length": (lambda t: t["videos"][0].pop("length"), "'length' is missing"),
    "a video twice": (lambda t: t["videos"].append(t["videos"][0]), "videos with the same id"),
    "no pixels": (lambda t: t["videos"][0].update(height=0), "videos without pixels"),
    "not listed": (lambda t: t["annotations"][0].update(video_id=7), "names the video 7, which is not listed"),
    "a short list": (lambda t: t["annotations"][0]["segmentations"].pop(), "annotation 1 has 3 segmentations"),
    "a bad mask": (lambda t: t["annotations"][0]["segmentations"].__setitem__(0, {**MASK, "size": [1, 1]}), "size"),
    "an odd label": (lambda t: t["annotations"][0].update(occlusion=["dark"]), "'dark' is missing"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_wrong_with_a_truth_is_said_to_the_host(name: str) -> None:
    change, expected = CHANGES[name]
    document = truth([MASK] * FRAMES)
    change(document)
    with pytest.raises(HostError, match=expected):
        instance_truth.read_document(json.dumps(document).encode(), "truth")
