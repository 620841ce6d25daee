"""Random and damaged inputs for every function of the kernel, under the sanitizers of the C compiler.

    python -m tests.fuzz_kernel [--inputs N] [--seconds S] [--seed K]

The kernel is compiled anew with the address and undefined-behaviour sanitizers, and loaded into a Python that starts
with their library; a finding ends that process with a report.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from segjudge.evaluation_script.masks import backend as backends
from segjudge.evaluation_script.masks.backend import CompiledBackend
from segjudge.evaluation_script.masks.kernel import _RECORD_COLUMNS, LABELS, Kernel, PackedFrames
from segjudge.evaluation_script.masks.library import load
from segjudge.evaluation_script.masks.run_lengths import Spans, pack_texts
from segjudge.kernel.compiling import SOURCES
from tests.builders import chunk
from tests.masks import test_kernel

SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]
#: The setting by which the process under the sanitizers knows its library.
LIBRARY = "SEGJUDGE_FUZZED"


def sanitized(folder: Path, sources: Path = Path(SOURCES), watched: str = "*.c") -> dict[str, str]:
    """Compile the kernel with sanitizers in the watched files; return the environment of a Python that loads it."""
    command = [shutil.which("gcc") or "gcc", "-std=c99", "-fPIC"]
    library = folder / "kernel.so"
    files = sorted(map(str, sources.glob(watched)))
    plain = sorted({*map(str, sources.glob("*.c"))} - {*files})
    if plain:
        subprocess.run([*command, "-c", *plain], cwd=folder, check=True)
    objects = [folder / f"{Path(path).stem}.o" for path in plain]
    subprocess.run([*command, "-shared", *SANITIZERS, *files, *objects, "-o", library], check=True)
    asan = subprocess.run([command[0], "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    options = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
    options["PYTHONMALLOC"] = "malloc"  # so that the sanitizer watches the bytes of each small object too
    return {**os.environ, **options, "LD_PRELOAD": asan.stdout.strip(), LIBRARY: str(library)}


def some_bytes(generator: random.Random, count: int) -> bytes:
    """Return random bytes, or bytes of which most or all are zero."""
    kept = generator.choice([0, 5, 256])  # of 256
    values, chosen = (np.frombuffer(generator.randbytes(count), np.uint8) for _ in range(2))
    return np.where(chosen < kept, values, np.uint8(0)).tobytes()


def picture(generator: random.Random, height: int, width: int, depth: int, colour: int) -> bytes:
    """Return a PNG of masks or noise with any filter, possibly damaged despite correct checksums."""
    channels = {2: 3, 6: 4}.get(colour, 1)
    step = 1 + (width * depth * channels + 7) // 8
    length = max(0, height * step + generator.choice([0] * 9 + [-1, -9, 1, 400]))
    part = some_bytes(generator, min(length, generator.choice([9, 300, 3000])) + 1)
    data = bytearray((part * (length // len(part) + 1))[:length])  # what repeats is written as copies
    for y in range(height):
        if y * step < len(data):
            data[y * step] = generator.choice([0, 1, 2, 3, 4, 4, generator.randrange(6)])
    packer = zlib.compressobj(
        generator.randrange(10), zlib.DEFLATED, generator.choice([15, 15, 9]), 9, generator.randrange(5)
    )
    stream = bytearray()
    for start in range(0, len(data), generator.choice([7, 999, 1 << 30])):  # in blocks of any length
        stream += packer.compress(bytes(data[start : start + 7])) + packer.flush(zlib.Z_FULL_FLUSH)
        if generator.random() < 0.9:
            stream += packer.compress(bytes(data[start + 7 :]))
            break
    stream += packer.flush()
    for _ in range(generator.choice([0, 0, 1, 3])):
        position = generator.randrange(len(stream))
        stream[position : position + generator.randrange(3)] = generator.randbytes(generator.randrange(3))
    size = max(generator.choice([3, 99, 1 << 20]), len(stream) // 200)  # more chunks would only take longer
    pixels = [bytes(stream[start : start + size]) for start in range(0, len(stream), size)]
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    file = bytearray(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunk(b"IDAT", part) for part in pixels))
    file += chunk(b"IEND", b"")
    if generator.random() < 0.1:
        position = generator.randrange(len(file))
        file[position : position + generator.randrange(9)] = generator.randbytes(generator.randrange(9))
    return bytes(file[: generator.choice([len(file)] * 9 + [generator.randrange(len(file))])])


def exactly(data: bytes) -> np.ndarray:
    """Return the same bytes, whose end the sanitizer watches: a `bytes` object has one more, which nobody may read."""
    return np.frombuffer(data, np.uint8).copy()


def frames(generator: random.Random, kernel: Kernel) -> None:
    """Pack pictures of every depth, and plain labels, into slots that may run out; some have another size."""
    depth, colour = generator.choice([(1, 0), (2, 3), (4, 3), (8, 0), (8, 3), (8, 3), (16, 0), (8, 2)])
    size = (generator.randrange(1, 20), generator.choice([1, 7, 8, 63, 64, 65, 127, 128, 200, 5000]))
    packed = PackedFrames(size, generator.randrange(1, 3), kernel)
    most = generator.choice([0, 1, 3, LABELS])
    for frame in range(packed.frames):
        data = exactly(picture(generator, *generator.choice([size, size, size, (3, 9)]), depth, colour))
        packed._add(
            kernel.library.sj_pack_png, frame, data.ctypes.data, len(data), most, merge=generator.random() < 0.3
        )
    packed.take(packed.frames)
    labels = exactly(some_bytes(generator, size[0] * size[1]))
    packed.add_labels(0, labels[: generator.choice([len(labels), len(labels), 1])], most)
    packed.take(1)
    for field in generator.sample(["room", "slots", "frames", "height", "width", "used", "words"], 2):
        value = generator.choice([0, -1, 1, 2, 255, 1 << 24, 1 << 62])
        if field not in ("room", "words") or value < 1:  # the caller must not ask for more words than there are
            setattr(packed._block, field, 0 if field == "words" else value)
    kernel.library.sj_pack_labels(ctypes.byref(packed._block), 0, labels.ctypes.data, len(labels))
    kernel.library.sj_pack_png(ctypes.byref(packed._block), generator.choice([0, 9, -1]), data.ctypes.data, len(data))


def colours(generator: random.Random, kernel: Kernel) -> None:
    """Read pictures with or without colours, whose stated size may be wrong."""
    size = generator.choice([(1, 20_000), (20, 300), (generator.randrange(1, 9), generator.randrange(1, 70))])
    colour = generator.choice([0, 2, 2, 6, 3, 4])
    data = exactly(picture(generator, *size, generator.choice([8, 8, 8, 4, 16]), colour))
    wide = generator.choice([1, 2, 4])
    out = np.empty(size, f"<u{wide}")
    kernel.library.sj_read_png(
        data.ctypes.data, len(data), *generator.choice([size, size, (1, 1)]), wide, out.ctypes.data
    )


def voxel_runs(generator: random.Random, kernel: Kernel) -> None:
    """Find and join the runs of volumes, some of which are empty, in disorder or outside."""
    shape = generator.choice([(1, 1, 1), (3, 40, 2), (2, 3, 90), tuple(generator.randrange(1, 12) for _ in range(3))])
    size = shape[0] * shape[1] * shape[2]
    mask, lengths = (np.frombuffer(some_bytes(generator, count), np.uint8) for count in (size, 2 * size))
    kernel.find_runs(
        mask.reshape(shape) > 0, generator.choice([0, 7, -1, 1 << 31]), generator.choice([np.int32, np.int64])
    )
    kernel.library.sj_find_runs(
        mask, *shape, 0, np.zeros(9, np.int64), 8, generator.choice([0, 3, 9]), ctypes.byref(ctypes.c_int64())
    )
    edges = np.cumsum(lengths % 3 + generator.choice([0, 1, 1])).astype(generator.choice(["<i4", "<i8"]))
    edges -= edges.dtype.type(generator.choice([0, 0, 0, 2]))
    rows = np.array(
        [
            [generator.choice([1, 2, 9, 40, 0, -1]), generator.choice([0, 1, 1, 2])]
            for _ in range(generator.choice([1, 4, 5, 9, 10]))
        ]
    )
    kernel.find_components(edges[::2], edges[1::2], rows)
    width, plane = shape[2] + 1, (shape[1] + 1) * (shape[2] + 1)
    grid = np.array([[width, 1], [plane - width, 1], [plane, 1], [plane + width, 1]])
    runs = kernel.find_runs(mask.reshape(shape) > 127, 0, generator.choice([np.int32, np.int64]))
    for each in (edges, edges[2 * generator.randrange(size) :], runs):
        if each is not None:
            kernel.find_components(each[::2], each[1::2], grid)


def volumes(generator: random.Random, kernel: Kernel) -> None:
    """Measure volumes of few or many places, with any spacing and some wrong sides."""
    shape = generator.choice([(1, 1, 1), (3, 40, 2), (2, 3, 90), tuple(generator.randrange(1, 12) for _ in range(3))])
    size = shape[0] * shape[1] * shape[2]
    one, two = (np.frombuffer(some_bytes(generator, size), np.uint8).reshape(shape) for _ in range(2))
    spacing = tuple(generator.choice([1, 0.3, 5, 1e-9, 1e9, 0, -1, float("nan"), float("inf")]) for _ in range(3))
    queries, places = (np.flatnonzero(side).astype(np.int32) for side in (one, two))
    kernel.find_squares(queries, places, shape, tuple(generator.choice([1, 0.7, 3]) for _ in range(3)), float("inf"))
    kernel.find_squares(queries, places, shape, spacing, generator.choice([0.1, 9, 1e300, -1, float("nan")]))
    wide = (2, generator.randrange(1, 30), generator.randrange(1, 30), generator.randrange(1, 90))
    counts = generator.choice([3, 100]), generator.choice([0, 1, 2, 9])
    voxels = wide[1] * wide[2] * wide[3]
    scattered = [np.unique(np.array([generator.randrange(voxels) for _ in range(count)], np.int32)) for count in counts]
    kernel.find_squares(
        *scattered, wide[1:], tuple(generator.choice([1, 0.7, 3, 1e-9]) for _ in range(3)), float("inf")
    )
    kernel.find_surface(one > 0, generator.choice([0, 9, 1 << 40]))
    kernel.find_boxes(one.astype(generator.choice(["<u1", "<u2", "<u4"])), generator.choice([1, 2, 255, 256, 70_000]))
    sides = [*shape]
    sides[generator.randrange(3)] = generator.choice([0, -1, 1, 1 << 15, 1 << 40])
    if min(sides) > 0 and sides[0] * sides[1] * sides[2] > size:
        sides = [1 << 40, 1 << 40, 1 << 40]
    lists = [np.array([generator.randrange(-1, size + 1) for _ in range(4)], np.int32) for _ in range(2)]
    counts = [generator.choice([0, 1, 4, -1]) for _ in range(2)]
    kernel.library.sj_squares(lists[0], counts[0], lists[1], counts[1], *sides, np.ones(4), np.zeros(4))
    count, room = ctypes.c_int64(0), generator.choice([0, 5, 40, 40, -1])
    kernel.library.sj_surface(one, *sides, np.zeros(40, np.int32), np.zeros(40, np.uint8), room, ctypes.byref(count))
    kernel.find_border(one > 0, **{str(generator.choice(["open_ends", "corners"])): generator.random() < 0.5})
    kind = generator.choice([0, 1, 2, 3])
    kernel.library.sj_border(one, *sides, kind, np.zeros(40, np.int32), room, ctypes.byref(count))
    kernel.library.sj_boxes(one, generator.choice([1, 0, 3]), *sides, 256, np.zeros(256), np.zeros(6 * 256))


def text_of(generator: random.Random) -> str:
    """Return characters of run lengths, and sometimes others."""
    characters = range(48, 112) if generator.random() < 0.8 else range(1, 128)
    return "".join(chr(generator.choice(characters)) for _ in range(generator.randrange(40)))


def sound(generator: random.Random, pixels: int) -> str:
    """Return the text of a mask that fills its image."""
    from segjudge.evaluation_script.masks.run_lengths import compress

    cuts = sorted(generator.randrange(pixels + 1) for _ in range(generator.randrange(12)))
    return compress([int(run) for run in np.diff([0, *cuts, pixels])])


def runs(generator: random.Random, kernel: Kernel) -> None:
    """Check texts with any content, and compare them in pairs that may not exist."""
    texts = [generator.choice([text_of(generator), sound(generator, 99)]) for _ in range(generator.randrange(9))]
    kernel.check_runs(texts, np.array([generator.choice([0, 99, 1 << 40]) for _ in texts], np.int64))
    few = texts[: generator.choice([1, 2, 9])]
    kernel.paint(few, np.arange(1, len(few) + 1, dtype=np.uint8), 99)
    height, width = generator.randrange(1, 80), generator.randrange(1, 200)
    kernel.encode(np.frombuffer(generator.randbytes(height * width), np.uint8).reshape(height, width) % 3 // 2)
    pixels = np.frombuffer(generator.randbytes(height * width), np.uint8).reshape(height, width) % 3 // 2
    parts = np.array([sorted(generator.choices(range(height * width + 1), k=2)) for _ in range(6)], np.int64)
    groups_of_parts = np.array([0, 1, 5, 6], np.int64)
    damaged(generator, parts.reshape(-1))
    damaged(generator, groups_of_parts)
    kernel.count_inside(pixels, Spans(parts, groups_of_parts))
    sides, counts = [], []
    for _ in range(2):
        some = [sound(generator, 99) if generator.random() < 0.9 else text_of(generator) for _ in range(6)]
        if not sides and generator.random() < 0.3:  # a mask of many parts, as noise has them
            some[0] = "".join(generator.choices("01234O" + generator.choice(["", "P1", "~h", "0N"]), k=4000))
        text = np.frombuffer("".join(some).encode(), np.uint8).copy()  # bytes would end with one more
        stops = np.cumsum([len(item) for item in some])
        starts = np.append(0, stops[:-1])
        damaged(generator, starts)
        damaged(generator, stops)
        sides.append((text, starts, stops))
        counts.append(len(some))
    groups, pairs = generator.randrange(1, 4), generator.randrange(12)
    columns = [np.array([generator.randrange(count) for _ in range(pairs)], np.int64) for count in counts]
    bounds = np.array([0, *sorted(generator.randrange(pairs + 1) for _ in range(groups - 1)), pairs], np.int64)
    damaged(generator, columns[generator.randrange(2)])
    if generator.random() < 0.1:
        bounds = np.array([generator.randrange(-1, pairs + 2) for _ in bounds], np.int64)
    damaged(generator, bounds)
    shared = np.zeros(pairs, np.int64)
    given = [
        (text.ctypes.data, len(text), starts.ctypes.data, stops.ctypes.data, len(starts))
        for text, starts, stops in sides
    ]
    pointers = [column.ctypes.data for column in columns]
    kernel.library.sj_overlaps(*given[0], *given[1], *pointers, pairs, bounds.ctypes.data, groups, shared.ctypes.data)


def videos(generator: random.Random, kernel: Kernel) -> None:
    """Join valid and invalid masks of frames in more or less space than they need."""
    shown = np.array([generator.random() < 0.7 for _ in range(generator.randrange(9))], np.uint8)
    texts = [sound(generator, 99) if generator.random() < 0.9 else text_of(generator) for _ in range(int(shown.sum()))]
    cuts = sorted(generator.randrange(len(shown) + 1) for _ in range(generator.randrange(3)))
    pixels = np.array([generator.choice([99, 99, 99, 0, 1 << 40]) for _ in shown], np.int64)
    kernel.join_frames(pack_texts(texts), shown, pixels, np.array([0, *cuts, len(shown)], np.int64))
    text = np.frombuffer("".join(texts).encode(), np.uint8).copy()  # bytes would end with one more
    bounds, frames = np.cumsum([0, *map(len, texts)]), np.array([0, len(shown)], np.int64)
    out, stops, area = (
        np.zeros(generator.randrange(60), np.uint8),
        np.zeros(2, np.int64),
        np.zeros(len(shown), np.int64),
    )
    for column in (bounds, frames, pixels):
        damaged(generator, column)
    kernel.library.sj_join_frames(
        text.ctypes.data, len(text), bounds.ctypes.data, len(texts), shown.ctypes.data, pixels.ctypes.data, len(shown),
        frames.ctypes.data, 1, out.ctypes.data, len(out), stops.ctypes.data, area.ctypes.data,
    )  # fmt: skip
    fault, areas = np.zeros(len(texts), np.int8), np.zeros(len(texts), np.int64)
    kernel.library.sj_check_runs(
        text.ctypes.data, len(text), bounds.ctypes.data, len(texts), areas.ctypes.data, fault.ctypes.data,
        areas.ctypes.data,
    )  # fmt: skip
    groups = np.array([0, *sorted(generator.randrange(len(texts) + 1) for _ in range(2)), len(texts)], np.int64)
    sides = np.array([generator.choice([99, 99, 99, 0, 64]) for _ in texts], np.int64)
    for column in (groups, sides):
        damaged(generator, column)
    kernel.library.sj_first_overlap(
        text.ctypes.data, len(text), bounds.ctypes.data, len(texts), sides.ctypes.data, groups.ctypes.data, 3,
        np.zeros(1, np.int64).ctypes.data,
    )  # fmt: skip
    heights = np.array([generator.choice([(9, 11), (1, 99), (99, 1), (0, 5), (8, 8)]) for _ in texts], np.int64)
    damaged(generator, heights.reshape(-1))
    kernel.library.sj_mask_boxes(
        text.ctypes.data, len(text), bounds.ctypes.data, len(texts), heights.ctypes.data,
        np.zeros((len(texts), 4), np.int64).ctypes.data,
    )  # fmt: skip
    numbers, image = np.array([generator.choice([1, 9, 9, 0]) for _ in texts], np.uint8), np.zeros(99, np.uint8)
    ends = ctypes.c_int64(0), ctypes.c_int64(0)
    words = np.array([generator.getrandbits(64), generator.getrandbits(64)], np.uint64)
    kernel.library.sj_cover(
        text.ctypes.data, len(text), bounds.ctypes.data, len(texts), generator.choice([99, 99, 64, 0, -1]),
        words.ctypes.data,
    )  # fmt: skip
    kernel.library.sj_write_bits(
        words.ctypes.data, generator.choice([99, 128, 0]), out.ctypes.data, len(out), *map(ctypes.byref, ends)
    )
    kernel.library.sj_paint_runs(
        text.ctypes.data, len(text), bounds.ctypes.data, len(texts), numbers, generator.choice([99, 99, 98, 0, -1]),
        image,
    )  # fmt: skip


def damaged(generator: random.Random, numbers: np.ndarray) -> None:
    """Change one of some numbers, sometimes."""
    if len(numbers) and generator.random() < 0.1:
        numbers[generator.randrange(len(numbers))] = generator.choice([-1, 0, 5, 1 << 40, -(1 << 62)])


def records(generator: random.Random, kernel: Kernel) -> None:
    """Read records of every usual shape, with a few characters changed or removed, or a truncated end."""
    shape = generator.randrange(5)
    item, video = {"category_id": 1, "score": generator.random()}, shape == 1

    def number() -> float:
        return generator.choice(
            [0, generator.random(), generator.uniform(-9, 99), 1e-30, 123456789012345678901234, 7, 5e-324]
        )

    def mask() -> object:
        if generator.random() < 0.3 and not video:
            rings = [[number() for _ in range(generator.randrange(9))] for _ in range(generator.randrange(1, 4))]
            return rings if generator.random() < 0.8 else rings[0]
        cut = generator.randrange(100)
        return {"size": [9, 11], "counts": generator.choice([sound(generator, 99), [cut, 99 - cut], [0, 0, 0, 99]])}

    def others() -> dict[str, object]:
        box = generator.choice(
            [None, [], [number() for _ in range(generator.choice([4, 4, 4, 3, 5]))], "é", {"a": [{}]}]
        )
        some = {
            "bbox": box,
            "area": number(),
            "id": generator.choice([1, -7, 1 << 40, 0.5, 2.0, "1", "x"]),
            "iscrowd": generator.choice([0, 1, 1, True, 1.0, 1 << 62]),
            "num_keypoints": generator.choice([0, 17, -1, 2.0, None]),
            "note": generator.choice(["\n\u1234é", [[], {}, [1, {"b": None}]], True]),
            "areas": [generator.choice([None, 0, number()]) for _ in range(generator.randrange(5))],
            "bboxes": [generator.choice([None, [], [0.0, number()]]) for _ in range(generator.randrange(5))],
        }
        many = {f"{generator.choice('ké')} {index}": index for index in range(generator.choice([9, 40, 300]))}
        return some if generator.random() < 0.7 else many

    def frames() -> list[object]:
        return [generator.choice([None, mask()]) for _ in range(generator.randrange(4))]

    is_bare = generator.random() < 0.5
    some = [
        {"video_id": 1, **item, "segmentations": frames(), **others()}
        if video
        else {
            "image_id": generator.randrange(-9, 99),
            **item,
            "segmentation": mask(),
            **(
                {}
                if shape == 4 and is_bare
                else {"keypoints": [number() for _ in range(generator.choice([6, 6, 6, 3]))]}
            ),
            **others(),
        }
        for _ in range(generator.randrange(1, 4))
    ]
    text = list(json.dumps(some, ensure_ascii=generator.random() < 0.5)[1:-1])
    for _ in range(generator.choice([0, 1, 1, 3, 20])):
        position = generator.randrange(len(text))
        text[position : position + generator.randrange(2)] = generator.choice(
            ['"', "\\", "{", "}", "[", ",", "9" * 30, "e", "", "\0", "-", ".", "\\u003c", "\\/", "\\u00e9", "é"]
        )
    changed = "".join(text)[: generator.choice([None, generator.randrange(1, 300)])]
    changed += generator.choice(["", ",", ", ", "]", " ], 7"])
    table = kernel.records(changed.encode(), shape)
    if table is not None and table.rings is not None:
        kernel.draw(table.rings, np.array([(9, 11)] * len(table.rings)))
    data = np.frombuffer(changed.encode(), np.uint8).copy()  # bytes would end with one more
    most, rooms = generator.randrange(5), np.array([generator.choice([0, 1, 3, 9, 90]) for _ in range(4)])
    letters, frame_room, number_room, ring_room = rooms.tolist()
    kernel.library.sj_records(
        data.ctypes.data, len(data), shape, most, np.zeros((most, _RECORD_COLUMNS), np.int64),
        np.zeros(letters, np.uint8), np.zeros((frame_room, 4 if shape == 4 else 3), np.int64), np.zeros(number_room),
        np.zeros(ring_room, np.int64), rooms, np.zeros(6, np.int64),
    )  # fmt: skip


def polygons(generator: random.Random, kernel: Kernel) -> None:
    """Draw rings of any corners in images of any size, whose text may not fit."""
    lengths = [generator.randrange(14) for _ in range(generator.randrange(1, 6))]
    reach = generator.choice([1, 30, 400, 1e9, 1e300])
    numbers = np.array([generator.uniform(-reach, reach) for _ in range(sum(lengths))])
    for index in generator.sample(range(len(numbers)), len(numbers) // 5):
        numbers[index] = generator.choice([generator.randrange(40), generator.randrange(40), float("nan")])
    rings = np.cumsum([0, *lengths])
    cuts = sorted(generator.randrange(len(lengths) + 1) for _ in range(generator.randrange(3)))
    masks = np.array([0, *cuts, len(lengths)], np.int64)
    sizes = np.array([[generator.choice([1, 9, 70, 70, 0, 1 << 20]) for _ in range(2)] for _ in masks[1:]], np.int64)
    damaged(generator, rings)
    damaged(generator, masks)
    count, room = len(masks) - 1, generator.choice([0, 5, 100, 5000])
    kernel.library.sj_draw(
        numbers, len(numbers), rings, len(lengths), masks, count, sizes, np.zeros(room, np.uint8), room,
        np.zeros(count, np.int64), np.zeros(count, np.int64),
    )  # fmt: skip


def rows(generator: random.Random, kernel: Kernel) -> None:
    """Do the work of a row of the table in which the kernel and numpy agree."""
    backends._choose_backend = lambda: CompiledBackend(kernel)  # type: ignore[assignment]
    row, draw, _ = generator.choice(test_kernel.TABLE)
    row(draw(generator.randrange(1 << 30)))()


TARGETS: tuple[Callable[[random.Random, Kernel], None], ...] = (
    frames, colours, volumes, voxel_runs, runs, videos, records, polygons, rows,
)  # fmt: skip


def fuzz(seed: int, inputs: int, seconds: float) -> int:
    """Try this many inputs for each target, or as many as fit into some seconds; return their number."""
    kernel = load(os.environ[LIBRARY])
    until, done = time.monotonic() + seconds, 0
    while done < inputs or time.monotonic() < until:
        for number, target in enumerate(TARGETS):
            target(random.Random(seed * 1_000_003 + done * len(TARGETS) + number), kernel)
        done += 1
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=2000, help="for each function")
    parser.add_argument("--seconds", type=float, default=0.0, help="go on for so long")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if LIBRARY in os.environ:
        print(f"{fuzz(args.seed, args.inputs, args.seconds)} inputs for each of {len(TARGETS)} functions: no finding")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.fuzz_kernel", *sys.argv[1:]]
        return subprocess.run(command, env=sanitized(Path(folder)), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
