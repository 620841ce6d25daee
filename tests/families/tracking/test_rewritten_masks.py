"""Tracks whose masks match badly: the rearrangement that explains them is named, from few of their masks."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.families.tracking import counting
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.backend import NumpyBackend, backend

SIZE, FRAMES, SEQUENCES = (60, 100), 9, 3
MIRRORED = "masks look mirrored, with left and right exchanged: corrected, HOTA would be 1.00"

Change = Callable[[Any], Any]


def pad(pixels: Any, *, centered: bool) -> Any:
    """Return pixels padded to a square, then shrunk to their own size."""
    longest = max(SIZE)
    offsets = [(longest - side) // 2 * centered for side in SIZE]
    square = np.pad(pixels, [(start, longest - side - start) for start, side in zip(offsets, SIZE, strict=True)])
    return square[np.ix_(*(np.arange(side) * longest // side for side in SIZE))]


CENTERED = partial(pad, centered=True)
CHANGES: dict[str, Change] = {
    "run lengths look as if written row by row": lambda pixels: pixels.reshape(-1).reshape(SIZE[::-1]).T,
    "masks look mirrored, with left and right exchanged": lambda pixels: pixels[:, ::-1],
    "masks look upside down": lambda pixels: pixels[::-1],
    "masks look rotated by 180 degrees": lambda pixels: pixels[::-1, ::-1],
    "masks look reshaped from (width, height)": lambda pixels: pixels.T.reshape(SIZE),
    "had been padded to squares: corrected": CENTERED,
    "had been padded to squares at one side: corrected": partial(pad, centered=False),
}


def draw(sequence: int, frame: int, track: int) -> str:
    """Return the run lengths of a square that moves to the right."""
    pixels = np.zeros(SIZE, np.uint8)
    top, left = 5 + 8 * track + 6 * sequence, 3 + 20 * track + frame
    pixels[top : top + 9, left : left + 13] = 1
    down = pixels.T.reshape(-1)
    borders = np.flatnonzero(np.diff(down, prepend=0))
    return rle.compress(np.diff([0, *borders.tolist(), down.size]).tolist())


def rewrite(change: Change) -> Callable[[str], str]:
    return lambda text: rle.rearrange(text, SIZE, change)


def write_burst(path: Path, rewritten: Callable[[str], str], tracks: int = 3, sequences: int = SEQUENCES) -> Path:
    """Write sequences whose tracks have classes of their own."""
    rows = [
        {
            "id": number, "height": SIZE[0], "width": SIZE[1], "seq_name": f"s{number}", "dataset": "D",
            "annotated_image_paths": [f"{frame:05d}.jpg" for frame in range(FRAMES)],
            "neg_category_ids": [], "not_exhaustive_category_ids": [],
            "track_category_ids": {str(track + 1): 200 + 10 * number + track for track in range(tracks)},
            "segmentations": [
                {str(track + 1): {"rle": rewritten(draw(number, frame, track)), "score": 0.9} for track in range(tracks)}
                for frame in range(FRAMES)
            ],
        }
        for number in range(sequences)
    ]  # fmt: skip
    path.write_text(json.dumps({"sequences": rows, "categories": []}))
    return path


@pytest.fixture
def rewritten_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the masks that a count rewrites."""
    texts: list[str] = []
    rearrange = type(backend()).rearrange_mask

    def note(scorer: NumpyBackend, text: str, size: tuple[int, int], change: Change) -> str:
        texts.append(text)
        return rearrange(scorer, text, size, change)

    monkeypatch.setattr(type(backend()), "rearrange_mask", note)
    return texts


@pytest.mark.parametrize("slip", CHANGES)
def test_the_rearrangement_is_named_though_a_sequence_lacks_most_classes(slip: str, tmp_path: Path) -> None:
    truth = write_burst(tmp_path / "truth.json", str, sequences=4)
    sent = write_burst(tmp_path / "sent.json", rewrite(CHANGES[slip]), sequences=4)
    if CHANGES[slip] is CENTERED:  # of the two that are tried, one lies where such padding changes little
        assert not [line for line in score(sent, truth, "burst").warnings if slip in line]
        return
    (named,) = [line for line in score(sent, truth, "burst").warnings if slip in line]
    corrected = float(named.partition("HOTA would be ")[2][:4])
    assert corrected > (0.75 if "padded" in slip else 0.99)
    assert "(tried on 2 of 4 sequences)" in named


def test_few_frames_are_rewritten_and_only_as_samples_suggest(tmp_path: Path, rewritten_texts: list[str]) -> None:
    truth = write_burst(tmp_path / "truth.json", str)
    sent = write_burst(tmp_path / "sent.json", rewrite(CHANGES["masks look mirrored, with left and right exchanged"]))
    rewritten_texts.clear()
    assert any(MIRRORED in line for line in score(sent, truth, "burst").warnings)
    assert len(rewritten_texts) == 2 * 4 * 3


@pytest.mark.parametrize(
    "change",
    [lambda pixels: pixels, lambda pixels: np.roll(pixels, (21, 45), (0, 1)), np.zeros_like, np.ones_like],
    ids=["as sent", "moved", "empty", "full"],
)
def test_masks_that_no_rearrangement_explains_are_not_rewritten(
    change: Change, tmp_path: Path, rewritten_texts: list[str]
) -> None:
    truth = write_burst(tmp_path / "truth.json", str)
    sent = write_burst(tmp_path / "sent.json", rewrite(change))
    rewritten_texts.clear()
    assert not any("look" in line for line in score(sent, truth, "burst").warnings)
    assert rewritten_texts == []


def test_tracks_of_wrong_classes_are_not_rewritten(tmp_path: Path, rewritten_texts: list[str]) -> None:
    truth = write_burst(tmp_path / "truth.json", str)
    document = json.loads(truth.read_text())
    for sequence in document["sequences"]:
        sequence["track_category_ids"] = dict.fromkeys(sequence["track_category_ids"], 7)
    (tmp_path / "sent.json").write_text(json.dumps(document))
    warnings = score(tmp_path / "sent.json", truth, "burst").warnings
    assert any("check the numbers of the classes" in line for line in warnings)
    assert rewritten_texts == []


@pytest.mark.parametrize(
    ("order", "named"),
    [
        ([4, 5, 13], ""),
        ([5, 13, 4], "classes look exchanged, such as 13 for 5, 4 for 13"),
        ([3, 4, 12], "classes look exchanged, such as 4 for 5, 12 for 13"),
        ([7, 7, 7], ""),
    ],
)
def test_exchanged_classes_of_tracks_are_named(order: list[int], named: str, tmp_path: Path) -> None:
    document = json.loads(write_burst(tmp_path / "truth.json", str).read_text())
    for classes, name in (([4, 5, 13], "truth.json"), (order, "sent.json")):
        for sequence in document["sequences"]:
            sequence["track_category_ids"] = {str(track): kind for track, kind in enumerate(classes, 1)}
        (tmp_path / name).write_text(json.dumps(document))
    lines = score(tmp_path / "sent.json", tmp_path / "truth.json", "burst").warnings
    assert score(tmp_path / "sent.json", tmp_path / "truth.json", "burst", jobs=2).warnings == lines
    looks = [line for line in lines if "classes look" in line]
    assert len(looks) == bool(named)
    gain = "corrected, 100 % of the masks tried outside the most frequent class would have their class, not 0 %. Write"
    assert [line for line in looks if f"{named}: {gain}" not in line] == []


def test_few_frames_are_spread_and_hold_few_masks() -> None:
    def choose(masks: list[int]) -> list[int]:
        frames: list[Any] = [type("Frame", (), {"number": number, "rows": [0]}) for number in range(len(masks))]
        chosen, rows = counting.choose_frames(frames, [[None] * count for count in masks])  # type: ignore[list-item]
        assert [masks[frame.number] for frame in chosen] == list(map(len, rows))  # type: ignore[attr-defined]
        return [frame.number for frame in chosen]  # type: ignore[attr-defined]

    assert choose([1] * 16) == [2, 6, 10, 14]
    assert choose([0, 5, 0, 5]) == [1, 3]
    assert choose([50] * 8) == [1]
    assert choose([100]) == [0]
    assert choose([0, 0]) == []


def write_mots(folder: Path, order: list[int], names: str) -> Path:
    """Write the files of sequences that show squares in places of their own, in another order."""
    for name, sequence in zip("abcd", order, strict=True):
        rows = [f"{frame} 1 2 {SIZE[0]} {SIZE[1]} {draw(2 * sequence, frame, 0)}\n" for frame in range(1, FRAMES + 1)]
        path = folder / names.format(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(rows))
        size = f"seqLength={FRAMES}\nimWidth={SIZE[1]}\nimHeight={SIZE[0]}\n"
        (path.parents[1] / "seqinfo.ini").write_text(f"[Sequence]\n{size}")
    return folder


@pytest.mark.parametrize("order", [[3, 0, 1, 2], [1, 2, 3, 0], [1, 0, 3, 2], [3, 2, 1, 0]])
def test_files_of_other_sequences_are_named(order: list[int], tmp_path: Path) -> None:
    truth = write_mots(tmp_path / "truth", [0, 1, 2, 3], "{}/gt/gt.txt")
    lines = score(write_mots(tmp_path / "sent", order, "{}.txt"), truth, "mots").warnings
    pairs = [f"those of {'abcd'[number]} fit {'abcd'[source]}" for number, source in enumerate(order[:3])]
    named = (
        f"val: masks look exchanged among sequences, {', '.join(pairs)} and 1 more: corrected, the IoU over all pixels "
    )
    (line,) = (line for line in lines if "exchanged" in line)
    assert line == f"{named}would be 1.00 instead of 0.00. Check the names of the files"
    assert score(tmp_path / "sent", truth, "mots", jobs=2).warnings == lines


def test_two_files_of_many_sequences_are_named(tmp_path: Path) -> None:
    truth = write_mots(tmp_path / "truth", [0, 1, 2, 3], "{}/gt/gt.txt")
    lines = score(write_mots(tmp_path / "sent", [0, 2, 1, 3], "{}.txt"), truth, "mots").warnings
    (line,) = (line for line in lines if "exchanged" in line)
    assert "among sequences, those of b fit c, those of c fit b: corrected" in line


@pytest.mark.parametrize("step", [0, 1])
def test_exchanged_sequences_of_burst_are_named(step: int, tmp_path: Path) -> None:
    truth = write_burst(tmp_path / "truth.json", str)
    document = json.loads(truth.read_text())
    fields = [(sequence["segmentations"], sequence["track_category_ids"]) for sequence in document["sequences"]]
    for sequence, (masks, classes) in zip(document["sequences"], fields[step:] + fields[:step], strict=True):
        sequence.update(segmentations=masks, track_category_ids=classes)
    (tmp_path / "sent.json").write_text(json.dumps(document))
    lines = score(tmp_path / "sent.json", truth, "burst").warnings
    assert len([line for line in lines if "masks look exchanged" in line and "Check seq_name" in line]) == step


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [0, 0, 0, 0], [1, 1, 1, 3]])
def test_files_that_no_exchange_explains_are_not_named(order: list[int], tmp_path: Path) -> None:
    truth = write_mots(tmp_path / "truth", [0, 1, 2, 3], "{}/gt/gt.txt")
    lines = score(write_mots(tmp_path / "sent", order, "{}.txt"), truth, "mots").warnings
    assert not [line for line in lines if "exchanged" in line]
