"""The robot, scribbles and masks."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from PIL import Image

from segjudge.interactive import (
    evaluation,
    masks,
    robot,
    scribbles,
    wire_format,
)

from . import Tale, answer, draw_truth, drawn, settle, show, show_beside

SHAPES = {
    "ring": drawn("..............", "..##########..", "..##########..", "..###....###..", "..###....###..", "..##########..",
                  "..##########..", ".............."),
    "comb": drawn("#..#..#..#....", "#..#..#..#....", "#..#..#..#...#", "##############", "..............", "..##.....###..",
                  "..##.....###..", "...........#.."),
    "slab": drawn("..............", ".############.", ".############.", ".############.", ".############.", ".############.",
                  ".############.", ".........#####"),
    "dots": drawn("#.............", "..............", "....##........", "..............", "..........#...", "...........#..",
                  "............#.", ".............#"),
    "grid": drawn("##############", "#...#....#...#", "#...#....#...#", "######.#######", "#....#..#....#", "#....####....#", ".#..#....#..#.",
                  "..##......##.."),
    "wide": drawn("##############", "##############", "##...####...##", "##...####...##", "##############", "####..##..####", "####..##..####",
                  "##############"),
    "none": drawn(*["." * 14] * 8),
}  # fmt: skip


def the_robot_draws(tale: Tale) -> None:
    for name, region in SHAPES.items():
        pictures = []
        for kernel, least in ((0.0, 4), (0.3, 2), (0.9, 1)):
            player = robot.InteractiveScribblesRobot(kernel, 3.0, least, 5, clock=lambda: 7.0)
            image, paths = region.astype(int), player.paths(region)
            for path in paths:
                image[path[:, 1], path[:, 0]] = 2
                image[path[0, 1], path[0, 0]], image[path[-1, 1], path[-1, 0]] = 3, 4
            tale.say(f"{name}, kernel {kernel}, at least {least}: {[len(path) for path in paths]}")
            pictures += [show(image, ".#oAB")] if paths else []
        tale.lines += show_beside(pictures)
    tale.say("nothing is left of a skeleton:", robot._find_longest_paths(SHAPES["none"], 1))
    y, x = np.mgrid[:90, :120]
    large = ((y - 45) / 40.0) ** 2 + ((x - 60) / 55.0) ** 2 < 1
    large[40:50, 30:34] = False
    for kernel, most in ((0.2, 16.0), (0.99, 9.5), (0.5, 1.0)):
        paths = robot.InteractiveScribblesRobot(kernel, most).paths(large)
        ends = [(len(path), path[0].tolist(), path[len(path) // 3].tolist(), path[-1].tolist()) for path in paths]
        tale.say(f"large, kernel {kernel} up to {most}: {ends}")
        with mock.patch.object(robot, "_loop", None):
            same = robot.InteractiveScribblesRobot(kernel, most).paths(large)
        tale.say("  without the inner loop:", [np.array_equal(*pair) for pair in zip(paths, same, strict=True)])
    truth = np.stack([draw_truth("duo", frame) for frame in range(3)])
    times = itertools.count(1)
    player = robot.InteractiveScribblesRobot(0.2, nb_points=3, clock=lambda: float(next(times)))
    guess = np.zeros_like(truth)
    guess[0], guess[2, 36:, :10] = truth[0], 7
    for frame, count in ((None, None), (2, 2), (2, 1), (0, None)):
        tale.say(f"frame {frame}, objects {count}:", player.interact("duo", guess, truth, count, frame))
    tale.try_out("a kernel of 1", lambda: robot.InteractiveScribblesRobot(1.0))
    tale.try_out("a kernel below 0", lambda: robot.InteractiveScribblesRobot(-0.1))


def lines_become_pixels(tale: Tale) -> None:
    line = {"path": [[0.0, 0.0], [0.5, 0.9], [1.0, 0.2]], "object_id": 2, "start_time": 0, "end_time": 1}
    later = {"path": [[0.2, 1.0], [0.2, 0.0]], "object_id": 1, "start_time": 0, "end_time": 1}
    lines: Any = {"scribbles": [[line, later], [], [later]], "sequence": "s"}
    for options in ({}, {"bezier_curve_sampling": True, "nb_points": 6}, {"bresenham": False, "default_value": 0},
                    {"bezier_curve_sampling": True, "bresenham": False}):  # fmt: skip
        tale.say(options)
        frames = scribbles.scribbles2mask(lines, (6, 11), **options)[::2]
        tale.lines += [*show_beside([show(frame + 1, "·.12") for frame in frames]), ""]
    tale.try_out("no room", lambda: scribbles.scribbles2mask(lines, (0, 5)))
    tale.try_out("three sides", lambda: scribbles.scribbles2mask(lines, (1, 5, 3)))  # type: ignore[arg-type]
    tale.try_out("one pixel", lambda: scribbles.scribbles2mask(lines, (1, 1)))
    tale.say("points:", *scribbles.scribbles2points(lines))
    tale.say("points in 6 × 11:", *scribbles.scribbles2points(lines, (6, 11)))
    tale.say(
        "frames:", scribbles.annotated_frames(lines), [scribbles.annotated_frames_object(lines, n) for n in range(3)]
    )
    empty: Any = {"scribbles": [[], [], []], "sequence": "s"}
    tale.say("empty:", scribbles.is_empty(empty), scribbles.is_empty(lines))
    tale.say(
        "fused:",
        [len(frame) for frame in scribbles.fuse_scribbles(empty, lines)["scribbles"]],
        len(empty["scribbles"][0]),
    )
    tale.try_out("of another sequence", lambda: scribbles.fuse_scribbles(empty, {**lines, "sequence": "t"}))
    tale.try_out("of other frames", lambda: scribbles.fuse_scribbles(empty, {**lines, "scribbles": []}))
    for count in (1, 2, 5, 2000):
        tale.say(f"curve of {count}:", scribbles.bezier_curve([[0, 0], [2, 4], [6, 0]], count)[:6])
    tale.say(
        "long curve:", np.shape(scribbles.bezier_curve(np.zeros((1001, 2)))), np.shape(scribbles.bezier_curve([[1, 2]]))
    )
    tale.try_out("flat", lambda: scribbles.bezier_curve([1, 2]))
    tale.try_out("three columns", lambda: scribbles.bezier_curve([[1, 2, 3]]))
    tale.say("joined:", scribbles.bresenham([[0.9, 0], [3, 1], [3, 3]]), scribbles.bresenham([[4, 5]]))
    picture = np.asarray(scribbles.draw_scribble(Image.new("RGB", (12, 7)), lines, 0, width=2))
    tale.lines += show(picture[..., 1] // 128 * 2 + picture[..., 0] // 128, ".rgy")
    tale.say(
        "scaled:",
        np.argwhere(np.asarray(scribbles.draw_scribble(Image.new("RGB", (5, 5)), lines, 2, (9, 3), 1))[..., 0]),
    )
    plotted: list[Any] = []
    axes: Any = SimpleNamespace(plot=lambda *words, **options: plotted.append((*words, options)))
    scribbles.plot_scribble(axes, lines, 0, linewidth=3)
    scribbles.plot_scribble(axes, lines, 2, (11, 6), color="red")
    tale.say(
        "plotted:",
        settle([[*message[:2], {key: settle(value) for key, value in message[2].items()}] for message in plotted]),
    )
    for frame in (-1, 3):
        tale.try_out(f"frame {frame}", lambda frame=frame: scribbles.plot_scribble(axes, lines, frame))  # type: ignore[misc]
    ann = np.array([[0, 1, 1, 0, 0], [0, 2, 1, 0, 0]])
    photo = np.full((2, 5, 3), 100.0)
    tale.say(
        "overlaid:",
        scribbles.overlay_mask(photo, ann),
        scribbles.overlay_mask(photo, ann, 0.25, [[0] * 3, [9] * 3, [200] * 3], 1),
    )
    tale.try_out("another size", lambda: scribbles.overlay_mask(photo, ann[:1]))
    tale.try_out("grey", lambda: scribbles.overlay_mask(photo[..., 0], ann))
    tale.try_out("four channels", lambda: scribbles.overlay_mask(np.zeros((2, 5, 4)), ann))


def masks_are_compared_and_packed(tale: Tale) -> None:
    truth = np.stack([draw_truth("duo", frame) for frame in range(4)])
    guess = answer("duo", 4, 2)
    for name, measure in (("J", masks.batched_jaccard), ("F", masks.batched_f_measure)):
        tale.say(f"{name}:", measure(truth, guess), measure(truth, guess, False), measure(truth, guess, nb_objects=1))
    tale.say(
        "F within 3 pixels:",
        masks.batched_f_measure(truth, guess, bound_th=3),
        masks.f_measure(truth[0] == 1, guess[0] == 1),
    )
    for values in ([True, False], [0.9, 1.7, -0.5, 254.0, 300.0], [-1, 0, 254, 255, 256]):
        tale.say(f"ids of {values}:", masks.as_ids(values))
    for about, pair in (("flat", (truth[0], guess[0])), ("flat answer", (truth, guess[0])), ("fewer", (truth, guess[1:])),
                        ("void alone", (np.full((1, 2, 2), 255), np.zeros((1, 2, 2))))):  # fmt: skip
        tale.try_out(about, lambda pair=pair: masks.object_ids(*map(np.asarray, pair)))  # type: ignore[misc]
    tale.say("objects:", masks.object_ids(truth, guess), masks.object_ids(truth, guess, 4))
    tale.say(
        "likeliest:",
        masks.combine_masks([[[[0.5, 0.2, 0.6]]], [[[0.4, 0.51, 0.7]]]]),
        masks.combine_masks([[[0.3]]], 0.2),
    )
    small = truth[:2, 18:22, 34:40]
    tale.say("frame:", masks.encode_mask(small[0]), masks.encode_mask(small[0], 1))
    tale.say("frames:", masks.encode_batch_masks(small), masks.encode_batch_masks(small, 1), masks.encode_frames(small))
    tale.say("back:", [np.array_equal(masks.decode_batch_masks(masks.encode_batch_masks(truth[:, :36])), truth[:, :36]),
                       np.array_equal(masks.decode_mask(masks.encode_mask(small[0])), small[0])])  # fmt: skip
    tale.try_out("a frame less", lambda: masks.decode_batch_masks({"size": [2, 4, 6], "frames": []}))
    for side in (1, True):
        sent = wire_format.MaskSubmission([], {"size": [side, 1, 2], "frames": [[]]})
        tale.try_out(f"a side of {side}", lambda sent=sent: sent.decode((1, 1, 2), 9))  # type: ignore[misc]
    for values in (None, [[1.0, float("nan")]], [[1.0, 2.5]]):
        tale.try_out(f"masks of {values}", lambda values=values: evaluation.as_masks(values))  # type: ignore[misc]
    tale.say("worst:", [evaluation._find_worst_frame(np.array([0.5, 0.2, 0.2, 0.9]), used, {0, 1, 3})
                        for used in (set(), {1}, {0, 1}, {0, 1, 3}, {0, 1, 2, 3})])  # fmt: skip
