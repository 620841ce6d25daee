"""The verdict names exchanged sequences, sides and frames, and only if that is certain."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.families.sequences import suspicions
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.masks.similarity import count_shared
from segjudge.evaluation_script.masks.stack import empty_stack
from segjudge.families.base.mirrored import CERTAIN
from segjudge.families.sequences import misplaced
from segjudge.masks.compression import label_png
from segjudge.masks.demo import make_scene
from tests import published
from tests.builders import ROOT, label_truth, stack_of, written, zipped
from tests.commands.test_cli import davis
from tests.commands.test_participants import folder_of
from tests.families.codings import TRUTH, list_warnings
from tests.report.test_known_faults import read_verdict

Videos = dict[str, list[np.ndarray[Any, Any]]]
FRAMES = 16


@pytest.fixture(scope="module")
def videos() -> Videos:
    """Return videos whose objects move, at different places in each."""
    made = (make_scene(name, seed, objects=2, frames=FRAMES) for seed, name in enumerate(("bird", "dog", "goat"), 112))
    return {video.name: [np.roll(video.labels(k), (k, 2 * k), (0, 1)) for k in range(FRAMES)] for video in made}


def score(truth: Videos, prediction: Videos, folder: Path, protocol: str = "davis2017") -> segjudge.Scores:
    sides = [
        {f"{name}/{k:05d}.png": label_png(frame) for name, frames in side.items() for k, frame in enumerate(frames)}
        for side in (truth, prediction)
    ]
    root = written(folder / "root", {f"Annotations/480p/{name}": data for name, data in sides[0].items()})
    (folder / "results.zip").write_bytes(zipped(sides[1]))
    return segjudge.score(folder / "results.zip", root, protocol)


def describe(truth: Videos, prediction: Videos, folder: Path, protocol: str = "davis2017") -> str:
    """Return the first sentence of the verdict that names a cause."""
    return read_verdict(score(truth, prediction, folder, protocol))[1]


def roughen(videos: Videos, draw: np.random.Generator, share: float = 0.1) -> Videos:
    """Return masks like a method's: without some of their pixels."""
    return {
        name: [np.where(draw.random(frame.shape) < share, 0, frame).astype(np.uint8) for frame in frames]
        for name, frames in videos.items()
    }


def exchange(videos: Videos) -> Videos:
    return {**videos, "bird": videos["dog"], "dog": videos["bird"]}


def rotate(videos: Videos) -> Videos:
    return {"bird": videos["dog"], "dog": videos["goat"], "goat": videos["bird"]}


def mirror(videos: Videos) -> Videos:
    return {name: [frame[:, ::-1] for frame in frames] for name, frames in videos.items()}


def advance(videos: Videos) -> Videos:
    return {name: [*frames[1:], frames[-1]] for name, frames in videos.items()}


def delay(videos: Videos) -> Videos:
    return {name: [*frames[:1] * 3, *frames[:-3]] for name, frames in videos.items()}


SLIPS = {
    exchange: r"The predictions of (bird and dog|dog and bird) are exchanged\.",
    rotate: r"All 3 sequences have .* of another sequence \((bird that of dog|dog that of goat|goat that of bird)\)\.",
    mirror: r"Left and right are exchanged in all 3 sequences\.",
    advance: r"The masks of all 3 sequences are 1 frame early\.",
    delay: r"The masks of all 3 sequences are 3 frames late\.",
}


@pytest.mark.parametrize("slip", SLIPS)
@pytest.mark.parametrize(
    "protocol",
    [
        "davis2017",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("davis2017-unsupervised", "davis2016", "vost")),
    ],
)
def test_a_slip_of_whole_sequences_is_named(
    slip: Callable[[Videos], Videos], protocol: str, videos: Videos, tmp_path: Path
) -> None:
    assert re.fullmatch(SLIPS[slip], describe(videos, slip(videos), tmp_path, protocol))


@pytest.mark.parametrize("slip", [exchange, rotate, mirror])
def test_it_is_named_of_inexact_masks_too(slip: Callable[[Videos], Videos], videos: Videos, tmp_path: Path) -> None:
    assert re.fullmatch(SLIPS[slip], describe(videos, slip(roughen(videos, np.random.default_rng(1))), tmp_path))


def fade(videos: Videos) -> Videos:
    """Return the probability of any object as grey levels, that of a method which is unsure near borders."""
    y, x = np.mgrid[-1:1:120j, -1:1:160j]
    return {
        name: [np.uint8(np.clip(255 * np.exp(-((x - k / 99) ** 2 + y**2)), 0, 255)) for k in range(len(frames))]
        for name, frames in videos.items()
    }


def test_grey_maps_are_named_instead_of_object_numbers(videos: Videos, tmp_path: Path) -> None:
    (line,) = [line for line in score(videos, fade(videos), tmp_path).warnings if "grey" in line]
    assert line.startswith("val: masks look like grey maps, such as probabilities, in 3 of 3 sequences")
    assert line.endswith("Apply a threshold, and write each object's number into its pixels, 0 elsewhere")


def test_many_object_numbers_are_no_grey_levels(videos: Videos, tmp_path: Path) -> None:
    """A method that numbers all regions of a frame begins with 1."""
    regions = np.add.outer(16 * (np.arange(120) // 8), np.arange(160) // 10 + 1).astype(np.uint8)
    warnings = score(videos, {name: [regions] * len(frames) for name, frames in videos.items()}, tmp_path).warnings
    assert not any("grey" in line for line in warnings)


def delay_by_one(videos: Videos) -> Videos:
    return {name: [frames[0], *frames[:-1]] for name, frames in videos.items()}


def reverse(videos: Videos) -> Videos:
    return {name: frames[::-1] for name, frames in videos.items()}


READINGS = {
    mirror: "masks look mirrored, with left and right exchanged",
    advance: "each mask looks as if it belonged to the frame after its own",
    delay_by_one: "each mask looks as if it belonged to the frame before its own",
    reverse: "the order of frames looks reversed",
}


@pytest.mark.parametrize("protocol", ["davis2017", "davis2016", "davis2017-unsupervised"])
@pytest.mark.parametrize("slip", READINGS)
def test_mirrored_masks_and_another_order_of_frames_are_named_next_to_the_score(
    slip: Callable[[Videos], Videos], protocol: str, videos: Videos, tmp_path: Path
) -> None:
    rough = roughen(videos, np.random.default_rng(3))
    for masks, corrected in ((videos, "would be 1.00 instead of 0."), (rough, "would be 0.90 instead of 0.")):
        (line,) = score(videos, slip(masks), tmp_path, protocol).warnings
        assert line.startswith(f"val: {READINGS[slip]}: corrected, the IoU over all pixels {corrected}")
        assert "(tried on 2 of 3 sequences)" in line


def shift(videos: Videos) -> Videos:
    return {name: [np.roll(frame, (3, 5), (0, 1)) for frame in frames] for name, frames in videos.items()}


def freeze(videos: Videos) -> Videos:
    return {name: [frames[0]] * len(frames) for name, frames in videos.items()}


def repeat_bird(videos: Videos) -> Videos:
    return dict.fromkeys(videos, videos["bird"])


def mirror_bird(videos: Videos) -> Videos:
    return {**videos, "dog": rotate(videos)["bird"], "bird": [frame[::-1] for frame in videos["bird"]]}


def empty(videos: Videos) -> Videos:
    return {name: [np.zeros_like(frame) for frame in frames] for name, frames in videos.items()}


@pytest.mark.parametrize("fault", [shift, freeze, repeat_bird, mirror_bird, empty, lambda videos: videos])
def test_nothing_is_named_that_is_not_certain(
    fault: Callable[[Videos], Videos], videos: Videos, tmp_path: Path
) -> None:
    for number, prediction in enumerate((fault(videos), fault(roughen(videos, np.random.default_rng(2), 0.3)))):
        (tmp_path / str(number)).mkdir()
        folder = tmp_path / str(number)
        lines = score(videos, prediction, folder).warnings
        assert not any(reading in line for line in lines for reading in READINGS.values())
        cause = describe(videos, prediction, folder)
        assert not any(word in cause for word in ("another sequence", "predictions of", r"Left and", "early", "late"))


def test_objects_of_which_none_is_where_it_should_be_are_named() -> None:
    truth = np.where(TRUTH == 255, 0, TRUTH)
    line = "video: no mask overlaps the object with its number: check the object numbers"
    assert list_warnings(np.where(truth > 1, truth - 1, 0), truth, "davis2017") == [line]
    assert list_warnings(np.where(truth > 0, truth % 5 + 1, 0), truth, "davis2017") == [line]
    assert list_warnings(np.where(truth > 0, truth % 5 + 1, 0), truth, "davis2016") == []
    assert list_warnings(truth * 0, truth, "davis2017") == ["all object masks are empty: check the submission"]
    gone = truth * (np.arange(len(truth)) == 0)[:, None, None]
    assert list_warnings(gone * 0, gone, "davis2017") == [], "no counted frame has an object"


@pytest.mark.parametrize(("protocol", "message"), [("mosev2", "(scored as 0)"), ("sav", "(excluded from the means)")])
def test_a_missing_sequence_is_counted_in_plain_english(
    protocol: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, results = davis(tmp_path / "DAVIS"), folder_of(tmp_path / "one", ("dog",))
    main(["score", str(results), "--truth", str(root), "--protocol", protocol])
    assert f"1 of 2 sequences is missing: cat {message}" in capsys.readouterr().err
    assert main(["score", str(results), "--truth", str(root), "--protocol", "davis2017"]) == 1
    assert "1 of 2 sequences is missing: cat. Send a folder" in capsys.readouterr().err


def test_where_a_number_is_no_mean_over_frames_the_page_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, page = str(ROOT / "examples/sequences-dev/lagging.zip"), tmp_path / "out.html"
    on = ["--truth", str(ROOT / "annotations/sequences-dev.zip"), "--protocol", "mosev2"]
    assert main(["report", results, *on, "--out", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "the kinds sum to 1 − J&amp;F as a plain mean over frames" in text
    assert len(re.findall(r"<b>([\d.]+)</b></dt>", text)) == 9
    assert main(["compare", f"a={results}", f"b={results}", *on, "--kinds"]) == 2
    assert "failures of mosev2 have no kinds" in capsys.readouterr().err


# ── labels that were resized or compressed ──────────────────────────────────


def blend(labels: Any) -> Any:
    """Return labels that were shrunk and enlarged with interpolation."""
    height, width = labels.shape
    small = Image.fromarray(labels.astype(np.float32)).resize((width // 2, height // 2), Image.Resampling.BILINEAR)
    return np.rint(np.array(small.resize((width, height), Image.Resampling.BILINEAR))).astype(np.uint8)


def compress(labels: Any) -> Any:
    stream = io.BytesIO()
    Image.fromarray(labels).save(stream, "JPEG", quality=75)
    return np.array(Image.open(stream))


RESTORED = {
    "blend": (blend, "labels of masks blend along borders, as if resized with interpolation: corrected, the IoU"),
    "JPEG": (compress, "labels of masks waver along borders, as after JPEG compression: corrected, the IoU"),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", RESTORED)
@pytest.mark.parametrize("protocol", ["davis2017", "davis2016"])
def test_resized_and_compressed_labels_are_named(kind: str, protocol: str, tmp_path: Path) -> None:
    shades = np.array([0, 90, 200] if protocol == "davis2017" else [0, 255, 255], np.uint8)
    disks = [np.kron(published.labels("swan", frame), np.ones((2, 2), np.uint8)) for frame in range(3)]
    truth = {"swan": [shades[labels] for labels in disks]}
    change, slip = RESTORED[kind]
    for prediction, is_named in (({"swan": [change(frame) for frame in truth["swan"]]}, True), (truth, False)):
        lines = score(truth, prediction, tmp_path / str(is_named), protocol).warnings
        assert [slip in line for line in lines].count(True) == is_named


@pytest.mark.parametrize(
    ("moved", "scores"),
    [(0, {}), (1, {"before": (0.0, 1.0)}), (-1, {"after": (0.0, 1.0)}), (2, {})],
)
def test_masks_of_the_frames_before_and_after_are_counted(
    moved: int, scores: dict[str, tuple[float, float]], tmp_path: Path
) -> None:
    frames = [np.eye(8, dtype=np.uint8)[[k] * 8] for k in range(8)]  # a column that moves on
    (sequence,) = label_truth(tmp_path, {"bird": frames}).sequences
    true, predicted = (stack_of(*(np.roll(frame, -by, 1) for frame in frames)) for by in (0, moved))
    pixels = [true.area, predicted.area, count_shared(true, predicted)]
    steps = suspicions.FrameSteps(sequence, None, SEQUENCE_PROTOCOLS["davis2017"])
    steps.add(np.array([[pixels]]), {"1": true}, {"1": predicted}, empty_stack(8, (8, 8)))
    assert steps.score() == scores


@pytest.mark.parametrize(("righted_fit", "found"), [(CERTAIN, ["bird"]), (np.nextafter(CERTAIN, 0), [])])
def test_one_mirrored_sequence_of_many_is_certain_from_a_fit_on(
    righted_fit: float, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names, way = ["bird", "dog", "goat"], misplaced.WAYS[0]

    def sample(sequence: Any, _protocol: object, *, together: bool) -> Any:
        fits = {way: righted_fit} if sequence.truth.name == "bird" else {}
        return SimpleNamespace(measure_fit=lambda _truth, mirrored="": fits.get(mirrored, 0.1), find_offset=lambda: 0)

    monkeypatch.setattr(misplaced, "_sample_sequence", sample)
    poor = SimpleNamespace(score=SimpleNamespace(j=np.array([0.1])), pixels=(9, 9, 1))
    losses: Any = [SimpleNamespace(name=name, loss=0.9, objects=[poor]) for name in names]
    scored: Any = [SimpleNamespace(truth=SimpleNamespace(name=name), masks=True) for name in names]
    placements = misplaced.find_placements(scored, losses, SEQUENCE_PROTOCOLS["davis2017"])
    assert placements == {name: misplaced.Placement(mirrored=way) for name in found}


@pytest.mark.parametrize("protocol", ["davis2017", "davis2017-unsupervised"])
def test_masks_that_no_rearrangement_explains_are_redrawn_in_few_frames(
    protocol: str, videos: Videos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    redrawn: list[int] = []

    def observe(reading: Any) -> Any:
        def change(stacks: Any) -> Any:
            redrawn.append(max(len(stack.words) for stack in stacks.values()))
            return reading.open(None)(stacks)

        return replace(reading, open=lambda _masks: change)

    monkeypatch.setattr(suspicions, "_REARRANGED", list(map(observe, suspicions._REARRANGED)))
    moved = {name: [np.roll(frame, 150, 1) for frame in frames] for name, frames in videos.items()}
    for sent, is_mirrored in ((moved, False), (mirror(videos), True)):
        redrawn.clear()
        folder = tmp_path / str(is_mirrored)
        folder.mkdir()
        warnings = score(videos, sent, folder, protocol).warnings
        assert any("left and right exchanged" in line for line in warnings) is is_mirrored
        assert redrawn.count(suspicions._FEW_FRAMES) == 2 * len(suspicions._REARRANGED)
        assert is_mirrored <= len([frames for frames in redrawn if frames > suspicions._FEW_FRAMES]) <= 4
