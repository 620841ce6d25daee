"""The sentence on why units lose, on scenes that each have known faults and are perfect otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from segjudge.evaluation_script.masks.overlaps import sum_by_key
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.causes import CauseCounts
from segjudge.families.base.painted import PaintedUnit
from segjudge.families.base.pictures import SeenFrame, Side
from segjudge.families.base.segments import judge_classes, judge_segments

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
    "missed": (miss, "are missed"), "surplus": (add, "predicted segments match nothing"),
    "shifted": (shift, "are inexact"), "eroded": (erode, "are too small"), "dilated": (dilate, "are too large"),
    "half": (halve, "are too small"), "renamed": (rename, "is called sky"),
    "split": (split, "are split into several predictions"), "merged": (merge, "are merged with another one"),
}  # fmt: skip


def spoil(scene: tuple[Array, dict[int, int]], faults: Sequence[tuple[Fault, Sequence[int]]]) -> SeenFrame:
    labels, classes = scene[0].copy(), dict(scene[1])
    for fault, numbers in faults:
        for number in numbers:
            fault(labels, classes, number)
    return see(scene, (labels, classes))


@pytest.mark.parametrize("count", [2, 12])
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("seed", range(2))
def test_the_sentence_names_the_fault(name: str, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    fault, expected = FAULTS[name]
    # Objects of one class, two columns apart, so that faults of neighbours do not meet.
    numbers = list(range(1, GRID * GRID + 1, 2))[: max(2, count // 2)]
    units = [[spoil(make_scene(random), [(fault, numbers)])] for _ in range(3)]
    sentence = describe(units)
    assert expected in sentence
    assert ";" not in sentence, "one fault has one cause"


def test_perfect_results_have_no_cause() -> None:
    scene = make_scene(np.random.default_rng(0))
    assert not describe([[see(scene, scene)]])
    assert not describe([])


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
    counts = CauseCounts("region", "image", element, averages_shares=True)
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
    sentence = "Every region is found, but 1 of 6 regions"
    assert count_map(partly, right) == f"{sentence} is too small (car): 25 % of its pixels are called sky."
    grown = np.array([[450, 0, 50], [0, 200, 0], [0, 0, 100]])
    assert count_map(grown, right, element="points") == (
        f"{sentence} is too large (dog): 33 % of the predicted points are sky."
    )
    shifted = np.array([[460, 20, 20], [20, 180, 0], [20, 0, 80]])
    assert count_map(shifted).startswith(
        "Every region is found, but all 3 regions are inexact: on average, 13 % of their"
    )
    assert count_map(right) == ""


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


# ── costs of one frame ──


def count_row(truth: str, prediction: str, *, one_to_one: bool) -> CauseCounts:
    """Return the counts of a frame of one row; a digit is the number of a segment, its class is even or odd."""
    classes = {number: number % 2 for number in range(10)}
    sides = [(np.array([list(map(int, side))]), classes) for side in (truth, prediction)]
    seen = see(sides[0], sides[1])
    areas, kinds = (seen.truth.areas, seen.prediction.areas), (seen.truth.classes, seen.prediction.classes)
    counts = CauseCounts("segment", "image", one_to_one=one_to_one)
    counts.add("a", seen, judge_segments(seen.shared, areas, kinds), ("even", "odd"))
    return counts


@pytest.mark.parametrize(
    ("truth", "prediction", "costs", "one_to_one"),
    [
        ("1111110000", "1111110000", {"right": 0}, {"right": 0}),
        ("1111110000", "1111000000", {"too small": 1 / 3}, {"too small": 1 / 3}),
        ("1111000000", "1111110000", {"too large": 1 / 3}, {"too large": 1 / 3}),
        ("1111110000", "0000000000", {"missed": 1}, {"missed": 1}),
        ("0000000000", "1111110000", {"surplus": 1}, {"surplus": 1}),
        ("1111110000", "2222220000", {"wrong class": 1}, {"wrong class": 2}),
        ("1111333300", "1111111100", {"merged": 2}, {"merged": 3}),
        ("1133335555", "1111111111", {"merged": 3}, {"merged": 4}),
        ("1111111111", "1113335557", {"split": 1}, {"split": 4}),
        ("1111111111", "1111033330", {"split": 1, "too small": 0.2}, {"split": 2, "too small": 0.2}),
        ("1111100000", "0001111100", {"inexact": 0.75}, {"inexact": 2}),
        ("2222111111", "2222444111", {"right": 0, "too small": 0.5, "surplus": 1}, {"right": 0, "too small": 2, "surplus": 1}),
        ("1111110022", "2222221100", {"wrong class": 1, "missed": 1, "surplus": 1}, {"wrong class": 2, "missed": 1, "surplus": 1}),
    ],
)  # fmt: skip
def test_each_cause_has_its_cost(
    truth: str, prediction: str, costs: dict[str, float], one_to_one: dict[str, float]
) -> None:
    for expected in (costs, one_to_one):
        counts = count_row(truth, prediction, one_to_one=expected is one_to_one)
        assert counts.costs == pytest.approx(expected, abs=1e-12)
        assert (counts.segments, counts.predicted) == tuple(len(set(side) - {"0"}) for side in (truth, prediction))


# ── sentences from counts ──


def confuse(*confusions: tuple[str, str, str], true: dict[str, str]) -> str:
    """Describe segments of a class that are taken for another in a unit; `true` has each class's units."""
    counts = CauseCounts("segment", "image")
    for name, units in true.items():
        for unit in units:
            counts.add_true(name, unit)
    for name, called, units in confusions:
        for unit in units:
            counts.note("wrong class", 1.0, name)
            counts.confused_in.setdefault((name, called), Counter())[unit] += 1
    return counts.describe()


@pytest.mark.parametrize(
    ("confusions", "true", "sentence"),
    [
        ([("car", "bus", "ab")], {"car": "abc", "bus": "d"}, "Car is called bus in 2 of 3 images."),
        ([("car", "bus", "a")], {"car": "a", "bus": "b"}, "Car is called bus in the only image that has it."),
        ([("car", "bus", "a")], {"car": "a"}, "Car is called bus."),
        ([("car", "bus", "ab"), ("bus", "car", "ab")], {"car": "ab", "bus": "ab"}, "Car and bus are exchanged in 2 of 2 images."),
        ([("car", "bus", "abcd"), ("bus", "car", "a")], {"car": "abcde", "bus": "abcde"}, "Car is called bus in 4 of 5 images, and the two are exchanged in 1 of these."),
        ([("car", "bus", "abc"), ("bus", "car", "abcd")], {"car": "abcd", "bus": "abcd"}, "Bus and car are exchanged in 3 of 4 images, and bus is called car in 1 more."),
        ([("car", "bus", "ab"), ("van", "bus", "ab")], {"car": "ab", "van": "ab", "bus": "c"}, "Car and van are called bus in 2 of 2 images."),
        ([("car", "bus", "ab"), ("sky", "sea", "ab")], {"car": "ab", "sky": "ab"}, "Car is called bus in 2 of 2 images and sky is called sea in 2 of 2 images."),
        ([("a", "b", "xy"), ("c", "d", "x"), ("e", "f", "x"), ("g", "h", "x")], {"a": "xy", "c": "x", "e": "x", "g": "xy"}, "5 of 6 segments are of the wrong class: a is called b in 2 of 2 images and c is called d in the only image that has it."),
        ([("a", "b", "x"), ("c", "d", "x"), ("e", "f", "x"), ("g", "h", "x"), ("i", "j", "x")], {"a": "xy", "c": "x", "e": "x", "g": "x", "i": "x"}, "5 of 6 segments are of the wrong class; most often, a is called b in 1 of 2 images."),
    ],
)  # fmt: skip
def test_confused_classes_are_described(
    confusions: list[tuple[str, str, str]], true: dict[str, str], sentence: str
) -> None:
    assert confuse(*confusions, true=true) == sentence
