"""Faults in results for expressions, and in rounds of results, are reported quickly and in little memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import segjudge
from tests.builders import png, zipped
from tests.families.sequences.test_referring import DOCUMENT, LEFT, RIGHT, runs, small_truth, upload
from tests.hostile_units import Make, hostile, sentence_of


def document(**changes: Any) -> bytes:
    return json.dumps({"a": {**DOCUMENT["a"], **changes}}).encode()


def mask(**changes: Any) -> bytes:
    return document(**{"0": [{**runs(LEFT), **changes}, None]})


IMAGE = png(LEFT * 255)
HOSTILE: dict[str, tuple[Make, str]] = {
    "other-video": (lambda: zipped({"b/0/00000.png": IMAGE}), "3 of 3 expressions lack masks"),
    "at-the-top": (lambda: zipped({"00000.png": IMAGE, "00001.png": IMAGE}), "3 of 3 expressions lack masks"),
    "no-expressions": (lambda: zipped({"a/00000.png": IMAGE, "a/00001.png": IMAGE}), "3 of 3 expressions lack masks"),
    "both": (lambda: upload(**{"a/00000.png": IMAGE}), "holds both masks and folders of masks"),
    "one-expression": (lambda: upload(**{"a/2/00000.png": b"absent", "a/2/00001.png": b"absent"}), "lacks masks: 2"),
    "one-frame": (lambda: upload(**{"a/1/00001.png": b"absent"}), "a/1/00001.png: is missing"),
    "other-frames": (lambda: upload(**{"a/1/00001.png": b"absent", "a/1/1.png": IMAGE}), "a/1/00001.png: is missing"),
    "twice": (lambda: upload(**{"x/a/0/00000.png": IMAGE}), "occurs more than once"),
    "many-expressions": (
        lambda: upload(**{f"a/{k}/0.png": IMAGE for k in range(60_000)}),
        "this phase allows 255 in a sequence",
    ),
    "three-values": (lambda: upload(png(LEFT * 7 + RIGHT)), "holds more than two values"),
    "json-other": (lambda: b'{"b": {}}', "names no sequence of this phase"),
    "json-no-object": (lambda: b'{"a": [1]}', "is not an object of objects"),
    "json-no-expressions": (lambda: b'{"a": {}}', "3 of 3 expressions lack masks: 0, 1, 2"),
    "json-short": (lambda: document(**{"0": [None]}), "has 1 mask"),
    "json-text": (lambda: document(**{"0": "aa"}), "is not a list of masks"),
    "json-size": (lambda: mask(size=[6, 4]), "has the size"),
    "json-nan": (lambda: document(**{"0": [float("nan"), None]}), "a"),
}


@hostile(HOSTILE)
def test_hostile_submissions_get_a_sentence_soon_and_in_little_memory(
    make: Make, sentence: str, tmp_path: Path
) -> None:
    truth = small_truth(tmp_path / "t")
    assert sentence in sentence_of(make(), tmp_path, lambda path: segjudge.score(path, truth, "mevis"))


ROUNDS = [f"anno_{k}" for k in range(4)]
LABELS = png(LEFT + RIGHT * 2)


def results(folders: Any = ROUNDS, **files: bytes) -> dict[str, bytes]:
    members = {f"{folder}/{video}/{k}.png": LABELS for folder in folders for video in "ab" for k in range(2)}
    return {**members, **files}


def of_rounds(videos: Any) -> str:
    return json.dumps(dict(zip(ROUNDS, [videos] * len(ROUNDS))))


HOSTILE_ROUNDS: dict[str, tuple[Make, str]] = {
    "good": (lambda: zipped(results()), "scored"),
    "wrapped": (lambda: zipped(results([f"my/{name}/Annotations/480p" for name in ROUNDS])), "scored"),
    "one-result": (lambda: zipped(results(["."])), "no folder has the name of a sequence"),
    "three": (lambda: zipped(results(ROUNDS[:3])), "2 of 8 sequences are missing: anno_3/a, anno_3/b"),
    "other-names": (lambda: zipped(results([*ROUNDS[:3], "anno_4"])), "2 of 8 sequences are missing: anno_3/a"),
    "video-missing": (
        lambda: zipped({name: data for name, data in results().items() if not name.startswith("anno_1/b")}),
        "1 of 8 sequences is missing: anno_1/b",
    ),
    "frame-missing": (lambda: zipped({name: data for name, data in results().items() if name != "anno_2/a/1.png"}), "anno_2/a/1.png: is missing"),
    "twice": (lambda: zipped(results([*ROUNDS, "x/anno_0"])), "anno_0/a: occurs more than once"),
    "round-in-round": (lambda: zipped(results(["anno_0/anno_1"])), "sequences are missing: anno_1/a"),
    "videos-outside": (lambda: zipped({f"a/{k}/0.png": LABELS for k in ROUNDS}), "no folder has the name of a sequence"),
    "too-many": (lambda: zipped(results(**{"anno_0/a/0.png": png(LEFT * 21)})), "has proposals beyond 20: 21"),
    "other-size": (lambda: zipped(results(**{"anno_3/b/1.png": png(LEFT.T)})), "anno_3/b/1.png: is 4x6 pixels"),
    "json-one-result": (lambda: json.dumps({"a": {}, "b": {}}).encode(), "8 of 8 sequences are missing"),
    "json-lists": (lambda: of_rounds([1]).encode(), "8 of 8 sequences are missing"),
    "json-objects": (lambda: of_rounds({"a": [], "b": {}}).encode(), "anno_0/a: is not an object of objects"),
    "json-empty": (lambda: of_rounds({"a": {}, "b": {}}).encode(), "scored"),
}  # fmt: skip


@hostile(HOSTILE_ROUNDS)
def test_hostile_rounds_get_a_sentence_soon_and_in_little_memory(make: Make, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "t.zip").write_bytes(zipped({f"{video}/{k}.png": LABELS for video in "ab" for k in range(2)}))

    def score(path: Path) -> segjudge.Scores:
        return segjudge.score(path, tmp_path / "t.zip", "ref-davis17", layout="generic")

    assert sentence in sentence_of(make(), tmp_path, score)
