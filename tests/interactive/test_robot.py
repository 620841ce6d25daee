"""The robot of interactive sessions: the lines that it draws in masks, and where it begins."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from segjudge.interactive import mask_datasets, robot
from tests.outcomes import outcome_of

from .scene import draw_truth

#: Kernel size and the minimum number of points, for each column of drawings.
KERNELS = ((0.0, 4), (0.3, 2), (0.9, 1))
#: Name → the lengths of the lines by each kernel; the mask (`#`), and beside it the lines (`o` from `A` to `B`) of each.
DRAWINGS = {
    "ring": (
        [[20], [2, 19], [6, 6]],
        """
        ..............    ..............    .B............    ..............
        ..##########..    ..B##A##o###..    .A##########..    ..B######B##..
        ..##########..    ..#o##oo#oo#..    ..#####ooB##A.    ..#o######o#..
        ..###....###..    ..#o#....#o#..    ..###oo..##o..    ..#o#....#o#..
        ..###....###..    ..#o#....#o#..    ..##o....##o..    ..#o#....#o#..
        ..##########..    ..#oo####oo#..    ..##o######o..    ..#o######o#..
        ..##########..    ..###oooo###..    ..##oo####oo..    ..A######A##..
        ..............    ..............    ......oooo....    ..............
        """,
    ),
    "comb": (
        [[16, 4], [16, 2, 4], [3]],
        """
        #..#..#..#....    B..#..#..#....    B..#..#..#....    B.A#..#..#....
        #..#..#..#....    o..#..#..#....    o..#..#..#....    #o.#..#..#....
        #..#..#..#...#    o..o..o..o...A    o..o..o..o...A    #..#..#..#...#
        ##############    #oo#oo#oo#ooo#    #oo#oo#oo#ooo#    ##############
        ..............    ..............    ..............    ..............
        ..##.....###..    ..##.....Bo#..    ..B#.....Bo#..    ..##.....###..
        ..##.....###..    ..##.....##o..    ..A#.....##o..    ..##.....###..
        ...........#..    ...........A..    ...........A..    ...........#..
        """,
    ),
    "wide": (
        [[25], [26], [7, 7]],
        """
        ##############    B########o#o##    ##############    ##############
        ##############    #o######A#o#o#    #oooooo##oooo#    ##############
        ##...####...##    o#...####...#o    #o...##oo...#o    ##...####...##
        ##...####...##    o#...####...#o    #o...####...#o    B#...####...#B
        ##############    #o##########o#    #o###########o    o############o
        ####..##..####    ##o#..##..#o##    #o##B.##..#A#o    #o##..##..##o#
        ####..##..####    ##o#..#o..#o##    #ooo..##..##o#    #oo#..##..#oo#
        ##############    ###oooo#ooo###    ##############    ###oA####Ao###
        """,
    ),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_robot_draws_along_the_skeleton(name: str) -> None:
    lengths, drawing = DRAWINGS[name]
    mask, *drawn = (
        np.array([[*row] for row in rows]) for rows in zip(*map(str.split, drawing.split("\n")[1:-1]), strict=True)
    )
    for (kernel, least), counts, column in zip(KERNELS, lengths, drawn, strict=True):
        paths = robot.InteractiveScribblesRobot(kernel, 3.0, least, 5, clock=lambda: 7.0).paths(mask == "#")
        assert [len(path) for path in paths] == counts
        image = mask.copy()
        for path in paths:
            image[path[:, 1], path[:, 0]] = "o"
            image[path[0, 1], path[0, 0]], image[path[-1, 1], path[-1, 0]] = "A", "B"
        assert image.tolist() == column.tolist()


def test_an_empty_mask_has_no_line() -> None:
    empty = np.zeros((8, 14), bool)
    for kernel, least in KERNELS:
        assert robot.InteractiveScribblesRobot(kernel, 3.0, least, 5).paths(empty) == []
    assert robot._find_longest_paths(empty, 1) == []


@pytest.mark.parametrize(
    ("kernel", "most", "points", "path"),
    [
        (0.2, 16.0, 126, ([39, 27], [23, 59], [40, 26])),
        (0.99, 9.5, 126, ([45, 27], [59, 59], [44, 26])),
        (0.5, 1.0, 127, ([44, 26], [58, 58], [43, 25])),
    ],
)
def test_in_a_large_mask_the_kernel_has_a_limit(kernel: float, most: float, points: int, path: Any) -> None:
    y, x = np.mgrid[:90, :120]
    large = ((y - 45) / 40.0) ** 2 + ((x - 60) / 55.0) ** 2 < 1
    large[40:50, 30:34] = False
    (line,) = robot.InteractiveScribblesRobot(kernel, most).paths(large)
    assert (len(line), line[0].tolist(), line[points // 3].tolist(), line[-1].tolist()) == (points, *path)


#: The number of points of lines in `duo`, and their first and last as (column, row): around the ring, and in the cross.
RING, CROSS = (58, (24, 11), (23, 10)), (31, (44, 34), (49, 5))


@pytest.mark.parametrize(
    ("frame", "count", "drawn_in", "moved"),
    [(None, None, 1, 0), (2, 2, 2, 1), (2, 1, 2, 1), (0, None, None, 0)],
    ids=["the worst frame", "two objects of a frame", "one object of a frame", "a frame without a mistake"],
)
def test_the_robot_draws_where_a_mask_is_worst(
    frame: int | None, count: int | None, drawn_in: int | None, moved: int
) -> None:
    truth = np.stack([draw_truth("duo", number) for number in range(3)])
    guess = np.zeros_like(truth)
    guess[0], guess[2, 36:, :10] = truth[0], 7
    times = itertools.count(1)
    player = robot.InteractiveScribblesRobot(0.2, nb_points=3, clock=lambda: float(next(times)))
    drawn = player.interact("duo", guess, truth, count, frame)
    assert (drawn["sequence"], [bool(lines) for lines in drawn["scribbles"]]) == (
        "duo",
        [number == drawn_in for number in range(3)],
    )
    lines = [line for lines in drawn["scribbles"] for line in lines]
    (points, (first, top), (last, end)) = RING
    ring = (points, (first + moved, top), (last + moved, end))
    paths = [ring, CROSS][: count or 2] if lines else []
    assert [(line["object_id"], line["end_time"] - line["start_time"]) for line in lines] == [
        (number, 1.0) for number in range(1, 1 + len(paths))
    ]
    ends = [[(round(x * 60), round(y * 40)) for x, y in (line["path"][0], line["path"][-1])] for line in lines]
    assert [(len(line["path"]), *two) for line, two in zip(lines, ends, strict=True)] == paths


@pytest.mark.parametrize("kernel", [1.0, -0.1])
def test_a_kernel_size_is_a_share(kernel: float) -> None:
    sentence = "ValueError: kernel_size must be a value between [0, 1)."
    assert outcome_of(lambda: robot.InteractiveScribblesRobot(kernel)) == sentence


#: The sizes of two objects in each frame → where each of so many sets of lines begins, and the objects that it has.
BEGINNINGS: dict[str, Any] = {
    "one grows": (((4, 0), (3, 2), (9, 3), (9, 1), (3, 3)), [
        [(2, [1, 2]), (2, [1, 2])],
        [(2, [1, 2]), (4, [1, 2]), (2, [1, 2])],
        [(1, [1, 2]), (2, [1, 2]), (4, [1, 2]), (1, [1, 2])],
    ]),
    "none": (((0, 0), (0, 0)), [[(0, []), (0, [])], [(0, []), (1, []), (0, [])], [(0, []), (1, []), (0, []), (1, [])]]),
    "late": (((0, 0), (1, 0), (2, 0)), [
        [(2, [1]), (2, [1])], [(1, [1]), (2, [1]), (1, [1])], [(0, []), (1, [1]), (2, [1]), (0, [])],
    ]),
    "fewer but larger": (((9, 0), (1, 1), (0, 9)), [
        [(1, [1, 2]), (1, [1, 2])], [(1, [1, 2]), (2, [2]), (1, [1, 2])], [(0, [1]), (1, [1, 2]), (2, [2]), (0, [1])],
    ]),
}  # fmt: skip


@pytest.mark.parametrize("about", BEGINNINGS)
def test_the_robot_begins_with_most_objects_and_then_with_the_largest(about: str) -> None:
    """On a tie of numbers, it begins where the smallest object is largest."""
    sizes, beginnings = BEGINNINGS[about]
    labels = np.zeros((len(sizes), 12, 20), np.uint8)
    for frame, (one, two) in zip(labels, sizes, strict=True):
        frame[:one, :9], frame[:two, 10:], frame[11] = 1, 2, 255
    record = {"s": {"name": "s", "num_frames": len(sizes), "num_objects": 2, "image_size": [20, 12]}}
    dataset: Any = SimpleNamespace(
        image_paths=None, sequences=None, load_annotations=lambda _name, dtype: labels.astype(dtype), dataset=record
    )
    for sets, expected in enumerate(beginnings, 1):
        drawing = mask_datasets.DrawnScribbles(dataset, sets)
        shown = [drawing.load_scribble("s", number) for number in range(1, sets + 2)]
        objects = [[line["object_id"] for lines in item["scribbles"] for line in lines] for item in shown]
        assert [(item["annotated_frame"], each) for item, each in zip(shown, objects, strict=True)] == expected
