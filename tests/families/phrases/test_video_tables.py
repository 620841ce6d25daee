"""Tracks of phrases in videos: the kernel reads their JSON as Python does, and faults get the same sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from segjudge import SubmissionError, score
from segjudge.evaluation_script.families.phrases import videos
from segjudge.evaluation_script.masks.run_lengths import compress
from tests.backends import needs_kernel, use_numpy

pytestmark = needs_kernel
SIZE = [6, 8]
MASK = [9, 5, 34]


def mask(counts: Any, size: Any = SIZE) -> dict[str, Any]:
    return {"size": size, "counts": counts}


def track(video: int, category: int, confidence: Any, *masks: Any) -> dict[str, Any]:
    return {"video_id": video, "category_id": category, "score": confidence, "segmentations": [*masks], "note": [1]}


TEXT, EMPTY = compress(MASK), compress([48])
TRUTH = {
    "videos": [
        {"id": number, "height": 6, "width": 8, "file_names": [f"v{number}/{frame}.jpg" for frame in range(3)]}
        for number in (1, 2)
    ],
    "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
    "video_np_pairs": [{"video_id": number, "category_id": kind, "noun_phrase": "x"} for number in (1, 2) for kind in (1, 2)],
    "annotations": [{"id": 1, "video_id": 1, "category_id": 1, "segmentations": [mask(TEXT), mask(TEXT), None]}],
}  # fmt: skip
GOOD = [
    track(1, 1, 0.9, mask(TEXT), mask(TEXT), None),
    track(1, 1, 0.8, mask(MASK), None, mask(EMPTY)),
    track(2, 2, 1, None, None, mask(TEXT)),
    track(2, 1, 0.4, mask(EMPTY), None, None),
]
ODD: dict[str, Any] = {
    "good": GOOD[0],
    "frames": track(1, 1, 0.5, mask(TEXT)),
    "no frame": track(1, 1, 0.5),
    "size": track(1, 2, 0.5, None, mask(TEXT, [8, 6]), None),
    "text": track(1, 2, 0.5, None, mask(TEXT[:-1]), None),
    "long text": track(1, 2, 0.5, None, mask("0" * 200), None),
    "letters": track(1, 2, 0.5, None, mask("é"), None),
    "list": track(1, 2, 0.5, None, mask([9, 5, 33]), None),
    "pair": track(2, 7, 0.5, None, None, None),
    "video": track(9, 1, 0.5, None, None, None),
    "score": track(1, 1, "0.5", None, None, None),
    "infinite": track(1, 1, float("inf"), None, None, None),
    "mask": track(1, 1, 0.5, 3, None, None),
    "none": 7,
}


#: Areas and boxes, some of them unusual or missing, and whether the script could read them.
SHOWN: dict[str, tuple[dict[str, Any], bool]] = {
    "usual": ({"areas": [5, 0.5, None], "bboxes": [[0, 1, 2, 3], None, [0.0, -0.0, 0, 0]]}, True),
    "first": ({"areas": [0, 0.0, 7], "bboxes": [[], [0, 1e-3, 0], [1]]}, True),
    "exponent": ({"areas": [1e-30, 5e-324, -0.0], "bboxes": [[1e30], [1], [1]]}, True),
    "long": ({"areas": [1 << 90, 0, 1], "bboxes": [[1 << 90], [1], [1]]}, True),
    "few areas": ({"areas": [5, 1], "bboxes": [None] * 3}, False),
    "many boxes": ({"areas": [5, 1, 1], "bboxes": [None] * 4}, False),
    "no boxes": ({"areas": [5, 1, 1]}, False),
    "truth value": ({"areas": [True, 1, 1], "bboxes": [None] * 3}, False),
    "text": ({"areas": [5, 1, 1], "bboxes": [["1"], None, None]}, False),
    "number": ({"areas": [5, 1, 1], "bboxes": [1, None, None]}, False),
    "infinite": ({"areas": [float("inf"), 1, 1], "bboxes": [None] * 3}, False),
}


def answer(folder: Path, records: list[Any], protocol: str) -> Any:
    (folder / "truth.json").write_text(json.dumps(TRUTH))
    (folder / "sent.json").write_text(json.dumps(records))
    try:
        result = score(folder / "sent.json", folder / "truth.json", protocol)
    except SubmissionError as error:
        return str(error)
    return result.metrics, result.tables, list(result.warnings)


@pytest.mark.parametrize("odd", ODD)
def test_tracks_are_read_and_refused_as_python_does(odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [*GOOD, ODD[odd], *GOOD[::-1]]
    by_kernel = answer(tmp_path, records, "sa-co-veval")
    use_numpy(monkeypatch)
    assert by_kernel == answer(tmp_path, records, "sa-co-veval")
    assert isinstance(by_kernel, str) == (odd != "good")


@pytest.mark.parametrize("case", SHOWN)
@pytest.mark.parametrize("in_front", [True, False])
def test_areas_and_boxes_are_read_as_python_does(
    case: str, in_front: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lists, is_read), usual = SHOWN[case], SHOWN["usual"][0]
    stray = track(1, 7, 0.7, mask(TEXT), None, None)
    records = [{**usual, **record} for record in (*GOOD, stray)]
    records += [{**lists, **GOOD[0]} if in_front else {**GOOD[0], **lists}, *records, *records]
    by_kernel = answer(tmp_path, records, "sa-co-veval-official")
    use_numpy(monkeypatch)
    assert by_kernel == answer(tmp_path, records, "sa-co-veval-official")
    assert isinstance(by_kernel, str) != is_read


@pytest.mark.parametrize("length", [900, 40_000, 90_000])
def test_long_tracks_are_read_as_python_does(length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [{**record, "letters": "x" * (length * (3 + place))} for place, record in enumerate(GOOD * 6)]
    by_kernel = answer(tmp_path, records, "sa-co-veval")
    use_numpy(monkeypatch)
    assert by_kernel == answer(tmp_path, records, "sa-co-veval")


@pytest.mark.parametrize("protocol", ["sa-co-veval", "sa-co-veval-official"])
@pytest.mark.parametrize("letters", [0, 1_500_000])
def test_usual_tracks_need_no_parser(
    protocol: str, letters: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []
    read_part = videos._Reader._read_part

    def note(reader: Any, records: list[Any], member: str, problems: Any) -> None:
        parsed.append(len(records))
        read_part(reader, records, member, problems)

    monkeypatch.setattr(videos._Reader, "_read_part", note)
    shown = {"areas": [1, 0, 2.5], "bboxes": [None, [], [0, 0, 1, 2]], "letters": "x" * letters}
    answer(tmp_path, [{**record, **shown} for record in GOOD * 9], protocol)
    assert sum(parsed) <= 1  # the last one has no comma behind it
