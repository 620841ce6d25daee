"""The sentence on why units lose, on scenes that each have known faults and are perfect otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest

from segjudge.evaluation_script.families.base.unit_truth import TruthFrame, Unit, UnitTruth, no_pixels
from segjudge.evaluation_script.masks.overlaps import sum_by_key
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base import drawing
from segjudge.families.base.causes import CauseCounts
from segjudge.families.base.painted import PaintedUnit
from segjudge.families.base.pictures import SeenFrame, Side
from segjudge.families.base.segments import MISSED, RIGHT, SURPLUS, WRONG_CLASS, JudgedSegments, judge_classes

CLASSES = ("sky", "car", "dog")
#: Rows and columns of a scene, whose cells have an object each; an object leaves a border of its cell free.
GRID, CELL, BORDER = 4, 24, 4
SIZE = (GRID * CELL, GRID * CELL)


def make_scene(random: np.random.Generator) -> tuple[Array, dict[int, int]]:
    """Make a map of objects, numbered from 1, and the class of each."""
    labels = np.zeros(SIZE, int)
    for number in range(1, GRID * GRID + 1):
        row, column = divmod(number - 1, GRID)
        top, left = (place * CELL + BORDER + int(random.integers(0, 3)) for place in (row, column))
        labels[top : top + CELL - 2 * BORDER - 2, left : left + CELL - 2 * BORDER - 2] = number
    return labels, {number: 1 + number % 2 for number in range(1, GRID * GRID + 1)}


def make_side(labels: Array, classes: dict[int, int], noun: str) -> Side:
    numbers, areas = sum_by_key(labels.ravel(), np.ones(labels.size, int))
    keys = numbers[numbers > 0].tolist()
    kinds = np.array([classes[key] for key in keys], int)
    names = [f"{noun}{CLASSES[kind]} {key}" for key, kind in zip(keys, kinds.tolist(), strict=True)]
    return Side(keys, names, areas[numbers > 0], kinds, np.ones(len(keys), bool))


def see(truth: tuple[Array, dict[int, int]], prediction: tuple[Array, dict[int, int]]) -> SeenFrame:
    sides = make_side(*truth, ""), make_side(*prediction, "track ")
    shared = np.array(
        [
            [np.count_nonzero((truth[0] == row) & (prediction[0] == column)) for column in sides[1].keys]
            for row in sides[0].keys
        ],
        float,
    ).reshape(len(sides[0].keys), len(sides[1].keys))
    return SeenFrame(*sides, shared, np.zeros(len(sides[1].keys), bool), None)


def describe(units: Sequence[Sequence[SeenFrame]], *, follows: bool = False) -> str:
    counts = CauseCounts("segment", "image")
    for number, frames in enumerate(units):
        unit = PaintedUnit(f"unit {number}", [f"{index:02}" for index in range(len(frames))], SIZE)
        for frame in frames:
            unit.add(frame, truth_alone=False)
        if follows:
            unit.note_swaps()
        unit.count_causes(counts, CLASSES)
    return counts.describe()


Fault = Callable[[Array, dict[int, int], int], None]


def miss(labels: Array, classes: dict[int, int], number: int) -> None:
    labels[labels == number] = 0


def add(labels: Array, classes: dict[int, int], number: int) -> None:
    row, column = divmod(number - 1, GRID)
    labels[row * CELL : row * CELL + 2, column * CELL : (column + 1) * CELL] = 100 + number
    classes[100 + number] = 1


def shift(labels: Array, classes: dict[int, int], number: int) -> None:
    mask = labels == number
    labels[mask] = 0
    labels[np.roll(mask, (2, 2), (0, 1))] = number


def erode(labels: Array, classes: dict[int, int], number: int) -> None:
    rows, columns = np.nonzero(labels == number)
    labels[rows[(rows == rows.min()) | (rows == rows.max())], columns[(rows == rows.min()) | (rows == rows.max())]] = 0


def dilate(labels: Array, classes: dict[int, int], number: int) -> None:
    rows, columns = np.nonzero(labels == number)
    labels[rows.min() - 2 : rows.max() + 2, columns.min() - 2 : columns.max() + 2] = number


def halve(labels: Array, classes: dict[int, int], number: int) -> None:
    rows, columns = np.nonzero(labels == number)
    labels[rows[columns < columns.min() + 6], columns[columns < columns.min() + 6]] = 0


def rename(labels: Array, classes: dict[int, int], number: int) -> None:
    classes[number] = 0


def split(labels: Array, classes: dict[int, int], number: int) -> None:
    rows, columns = np.nonzero(labels == number)
    right = columns >= columns.min() + (columns.max() - columns.min() + 1) // 2
    labels[rows[right], columns[right]] = 200 + number
    classes[200 + number] = classes[number]


def merge(labels: Array, classes: dict[int, int], number: int) -> None:
    labels[labels == number] = (number + 1) % (GRID * GRID) + 1


#: The change that a fault makes to one object, and the sentence about it.
FAULTS: dict[str, tuple[Fault, str]] = {
    "missed": (miss, "are missed"),
    "surplus": (add, "predicted segments match nothing"),
    "shifted": (shift, "are inexact"),
    "eroded": (erode, "are too small"),
    "dilated": (dilate, "are too large"),
    "half": (halve, "are too small"),
    "renamed": (rename, "is called sky"),
    "split": (split, "are split into several predictions"),
    "merged": (merge, "are merged with another one"),
}


def spoil(scene: tuple[Array, dict[int, int]], faults: Sequence[tuple[Fault, Sequence[int]]]) -> SeenFrame:
    labels, classes = scene[0].copy(), dict(scene[1])
    for fault, numbers in faults:
        for number in numbers:
            fault(labels, classes, number)
    return see(scene, (labels, classes))


@pytest.mark.parametrize("count", [2, 12])
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("seed", range(3))
def test_the_sentence_names_the_fault(name: str, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    fault, expected = FAULTS[name]
    # Objects of one class, two columns apart, so that faults of neighbours do not meet.
    numbers = list(range(1, GRID * GRID + 1, 2))[: max(2, count // 2)]
    units = [[spoil(make_scene(random), [(fault, numbers)])] for _ in range(3)]
    sentence = describe(units)
    assert expected in sentence
    assert ";" not in sentence, "one fault has one cause"


@pytest.mark.parametrize(
    ("first", "second"), [("missed", "renamed"), ("surplus", "split"), ("merged", "missed"), ("half", "missed")]
)
def test_two_faults_of_the_same_cost_are_both_named(first: str, second: str) -> None:
    random = np.random.default_rng(7)
    faults = [(FAULTS[first][0], [1, 3, 5]), (FAULTS[second][0], [9, 11, 13])]
    sentence = describe([[spoil(make_scene(random), faults)] for _ in range(3)])
    assert FAULTS[first][1] in sentence
    assert FAULTS[second][1] in sentence


def test_perfect_results_have_no_cause() -> None:
    scene = make_scene(np.random.default_rng(0))
    assert not describe([[see(scene, scene)]])
    assert not describe([])


def test_exchanged_classes_are_named_with_the_images_in_which_they_are() -> None:
    random = np.random.default_rng(1)
    units = []
    for number in range(4):
        labels, classes = make_scene(random)
        exchanged = {key: 3 - kind if number < 3 else kind for key, kind in classes.items()}
        units.append([see((labels, classes), (labels, exchanged))])
    sentence = describe(units)
    assert sentence in {f"{a} and {b} are exchanged in 3 of 4 images." for a, b in (("Dog", "car"), ("Car", "dog"))}


def test_identities_are_exchanged_from_a_frame_on() -> None:
    labels, classes = make_scene(np.random.default_rng(2))
    exchanged = np.where(labels == 2, 4, np.where(labels == 4, 2, labels))
    frames = [see((labels, classes), (labels if index < 6 else exchanged, classes)) for index in range(10)]
    sentence = describe([frames], follows=True)
    assert sentence.startswith("Car 4 and car 2 exchange their tracks from frame 06 of unit 0 (8 of 160 segments are")
    renumbered = np.where(labels == 2, 99, labels)
    frames = [
        see((labels, classes), (labels, classes) if index < 6 else (renumbered, {**classes, 99: classes[2]}))
        for index in range(10)
    ]
    assert describe([frames], follows=True) == "4 of 160 segments are on a different track than in most frames."


def count_map(table: Array, *others: Array, element: str = "pixels") -> str:
    """Describe images of classes from their shared pixels: true classes (rows), predicted ones (columns)."""
    counts = CauseCounts("region", "image", element)
    for number, cells in enumerate((table, *others)):
        areas = cells.sum(axis=1), cells.sum(axis=0)
        kinds = np.arange(len(CLASSES))
        truth, prediction = (Side(kinds.tolist(), CLASSES, area, kinds, np.zeros(len(kinds), bool)) for area in areas)
        seen = SeenFrame(truth, prediction, cells, np.zeros(len(kinds), bool), None)
        counts.add(f"unit {number}", seen, judge_classes(cells, areas, (kinds, kinds)), CLASSES)
    return counts.describe()


def test_classes_of_maps_are_called_by_others_as_a_whole_or_in_part() -> None:
    right = np.diag([500, 200, 100])
    renamed = np.array([[500, 0, 0], [0, 0, 200], [0, 0, 100]])
    # The dog does not count as too large in addition: the pixels of cars are not a second cause.
    assert count_map(renamed, right) == "Car is called dog in 1 of 2 images."
    assert count_map(renamed) == "Car is called dog."
    exchanged = np.array([[500, 0, 0], [0, 0, 200], [0, 100, 0]])
    assert count_map(exchanged, right, right, element="points") == "Car and dog are exchanged in 1 of 3 images."
    partly = np.array([[500, 0, 0], [50, 150, 0], [0, 0, 100]])
    found = "Every region is found, but 1 of 6 regions"
    assert count_map(partly, right) == f"{found} is too small (car): 25 % of its pixels are called sky."
    grown = np.array([[450, 0, 50], [0, 200, 0], [0, 0, 100]])
    assert count_map(grown, right, element="points") == (
        f"{found} is too large (dog): 33 % of the predicted points are sky."
    )
    shifted = np.array([[460, 20, 20], [20, 180, 0], [20, 0, 80]])
    assert count_map(shifted).startswith(
        "Every region is found, but all 3 regions are inexact: on average, 13 % of their"
    )
    assert count_map(right) == ""


def test_images_in_which_classes_are_exchanged_and_renamed_are_counted_apart() -> None:
    right, renamed = np.diag([500, 200, 100]), np.array([[500, 0, 0], [0, 0, 200], [0, 0, 100]])
    exchanged = np.array([[500, 0, 0], [0, 0, 200], [0, 100, 0]])
    assert count_map(exchanged, exchanged, renamed, right) == (
        "Car and dog are exchanged in 2 of 4 images, and car is called dog in 1 more."
    )
    assert count_map(renamed, renamed, renamed, exchanged) == (
        "Car is called dog in 4 of 4 images, and the two are exchanged in 1 of these."
    )
    other_way = np.array([[500, 0, 0], [0, 200, 0], [0, 100, 0]])
    assert count_map(renamed, other_way) == "Car is called dog in 1 of 2 images and dog is called car in 1 of 2 images."


def test_classes_that_are_called_the_same_are_named_together_beside_another_confusion() -> None:
    right, exchanged = np.diag([500, 200, 100]), np.array([[500, 0, 0], [0, 0, 200], [0, 100, 0]])
    covered = np.array([[500, 0, 0], [200, 0, 0], [100, 0, 0]])
    assert count_map(covered, right) == "Car and dog are called sky in 1 of 2 images."
    assert count_map(covered, exchanged) == (
        "Car and dog are exchanged in 1 of 2 images and car and dog are called sky in 1 of 2 images."
    )


def test_segments_of_one_class_may_be_too_small_and_too_large() -> None:
    scene = make_scene(np.random.default_rng(4))
    counts = CauseCounts("segment", "image")
    for fault in (erode, dilate):
        unit = PaintedUnit(fault.__name__, ["00"], SIZE)
        unit.add(spoil((scene[0], dict.fromkeys(scene[1], 1)), [(fault, range(1, 17))]), truth_alone=False)
        unit.count_causes(counts, ())
    sentence = counts.describe()
    assert "are too small" in sentence
    assert "are too large" in sentence


def test_the_causes_of_each_unit_cost_its_loss() -> None:
    scene = make_scene(np.random.default_rng(5))
    counts = CauseCounts("segment", "image")
    for number, (fault, loss) in enumerate(((miss, 0.1), (rename, 0.3))):
        before, unit = dict(counts.costs), PaintedUnit(f"unit {number}", ["00"], SIZE)
        unit.add(spoil(scene, [(fault, [1, 3, 5, 7] if fault is miss else [1])]), truth_alone=False)
        unit.count_causes(counts, CLASSES)
        counts.scale_costs(before, loss)
    assert counts.costs == pytest.approx({"missed": 0.1, "wrong class": 0.3, "right": 0.0})
    assert counts.describe().startswith("Dog is called sky in 1 of 2 images; 4 of 32 segments are missed")


def test_a_class_is_named_only_if_it_has_a_cause_more_often_than_others() -> None:
    random = np.random.default_rng(3)
    scene = make_scene(random)
    kinds = {number: 1 if number <= 12 else 2 for number in scene[1]}
    every = [[spoil((scene[0], kinds), [(erode, range(1, 17))])]]
    assert "are too small: " in describe(every), "12 of 16 are cars, as of all objects"
    cars = [[spoil((scene[0], kinds), [(erode, range(1, 12))])]]
    assert "are too small (all car): " in describe(cars)
    most = [[spoil((scene[0], kinds), [(erode, range(1, 14))])]]
    assert "are too small (mostly car): " in describe(most)
    assert "1 of 16 segments is missed (car)" in describe([[spoil((scene[0], kinds), [(miss, [2])])]])


def test_an_object_in_parts_is_split_by_a_rule_that_matches_none_of_them() -> None:
    """As for cells, whose predictions match if they cover more than half of them."""
    areas = np.array([90, 90]), np.array([30, 30, 30, 90])
    sides = [
        Side(list(range(len(area))), [f"{number}" for number in range(len(area))], area, area * 0, area > 0)
        for area in areas
    ]
    shared = np.array([[30.0, 30, 30, 0], [0, 0, 0, 90]])
    own = JudgedSegments(
        np.array([MISSED, RIGHT]), np.array([SURPLUS] * 3 + [RIGHT]), np.array([-1, -1, -1, 1]), np.array([-1, 3])
    )
    seen = SeenFrame(*sides, shared, np.zeros(4, bool), None, own)
    counts = CauseCounts("cell", "video")
    counts.add("unit 0", seen, own, ())
    assert counts.describe() == "1 of 2 cells is split into several predictions."


def test_a_region_that_shares_no_pixel_with_any_other_is_not_called_by_its_own_name() -> None:
    truth = Side([1], ["car"], np.array([9]), np.array([1]), np.zeros(1, bool))
    prediction = Side([0, 1], ["sky", "car"], np.array([9, 9]), np.array([0, 1]), np.zeros(2, bool))
    judged = JudgedSegments(
        np.array([WRONG_CLASS]), np.array([SURPLUS, WRONG_CLASS]), np.array([-1, 0]), np.array([-1])
    )
    counts = CauseCounts("region", "image")
    counts.add("unit 0", SeenFrame(truth, prediction, np.zeros((1, 2)), np.zeros(2, bool), None), judged, CLASSES)
    assert "is called car" not in counts.describe()
    assert "The only region is of the wrong class" in counts.describe()


def test_causes_are_sought_in_as_many_units_as_there_is_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "_MOST_PIXELS", 150)
    monkeypatch.setattr(drawing, "_see_unit", lambda *_: None)
    monkeypatch.setattr(drawing, "_describe_causes", lambda *given: [" ".join(entry.unit.name for entry in given[-1])])
    frames = {"small": [TruthFrame("0", (10, 10), [], no_pixels)], "empty": []}
    names = ["first", "empty", "second", "third"]
    units = [Unit(name, 1, partial(frames.get, name, frames["small"])) for name in names]
    order = [(index, [1.0]) for index in range(len(units))]
    ranked = drawing.RankedUnits("val", UnitTruth("f", "l", {}, units), order, "images")
    assert drawing.describe_units(None, ranked) == "first second"  # type: ignore[arg-type]
