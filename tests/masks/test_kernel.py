"""The kernel and numpy give the same bits; what is damaged is refused; the library is used only where it is sound."""

from __future__ import annotations

import ctypes
import json
import os
import random
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segjudge.evaluation_script.families.instances import json_parts
from segjudge.evaluation_script.families.instances.keypoints import similarities
from segjudge.evaluation_script.families.instances.matching import (
    DETECTION,
    IMAGE,
    TRUTH,
    Detections,
    InstanceCounts,
    Instances,
    match,
)
from segjudge.evaluation_script.families.instances.metrics import MatchedDetections
from segjudge.evaluation_script.families.instances.records import (
    UNUSUAL,
    KnownImages,
    join_frames,
    rank_in_group,
    read_columns,
)
from segjudge.evaluation_script.families.sequences import losses
from segjudge.evaluation_script.files.problems import Flaw, Problems
from segjudge.evaluation_script.masks import kernel, library
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.backend import NumpyBackend, backend
from segjudge.evaluation_script.masks.detections import BOX, FRAMES, MASK, POINTS, TrueSets
from segjudge.evaluation_script.masks.files import LabelImages, ObjectFolders, SalientImages
from segjudge.evaluation_script.masks.overlaps import LabelMap, PairGroups, Pairs, reach_of
from segjudge.evaluation_script.masks.polygons import outlines
from segjudge.evaluation_script.masks.run_lengths import Masks, compress, pack_texts
from segjudge.evaluation_script.masks.similarity import Region, disk, fractional_disk
from tests.backends import COMPILED, compiled, skip_file_without_kernel, use
from tests.builders import chunk, png, raw_png, stack_of
from tests.data import ROOT
from tests.drawing import QUICK, examples

skip_file_without_kernel()
BACKENDS = (compiled(), NumpyBackend())
KERNEL = library.load(str(COMPILED))
LOADED: Any = KERNEL.library


def by_both(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> Tuple[Any, Any]:
    """Return the kernel's result, and numpy's."""
    results = []
    for chosen in BACKENDS:
        use(monkeypatch, chosen)
        results.append(work())
    return results[0], results[1]


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Tuple[Any, Any]]:
    return lambda work: by_both(monkeypatch, work)


# ── one table: each row draws an input, and returns the work to do by both ──────


class Memory:
    """Files in memory, as an archive returns them."""

    def __init__(self, files: Dict[str, bytes]) -> None:
        self.files = files
        self.sizes = {name: len(data) for name, data in files.items()}

    def read(self, name: str) -> bytes:
        return self.files[name]


def residual(kind: int, pixel: int, left: int, up: int, corner: int) -> int:
    """Return the byte that PNG writes for a pixel under a filter."""
    if kind == 4:
        guess = left + up - corner
        distances = [abs(guess - left), abs(guess - up), abs(guess - corner)]
        return (pixel - (left, up, corner)[distances.index(min(distances))]) % 256
    return (pixel - (0, left, up, (left + up) // 2)[kind]) % 256


def encoded(labels: Any, depth: int, generator: random.Random) -> bytes:
    """Return a grey PNG of these labels, each row under any of the five filters."""
    height, width = labels.shape
    above: List[int] = []
    rows = bytearray()
    for row in labels:
        bits = np.unpackbits(row.astype(np.uint8)[:, None], axis=1)[:, 8 - depth :].reshape(-1)
        pixels = np.packbits(bits).tolist()
        above = above or [0] * len(pixels)
        kind = generator.randrange(5)
        rows.append(kind)
        for x, pixel in enumerate(pixels):
            left, corner = (pixels[x - 1], above[x - 1]) if x else (0, 0)
            rows.append(residual(kind, pixel, left, above[x], corner))
        above = pixels
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([depth, 0, 0, 0, 0])
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows), 1)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def blobs(generator: random.Random, size: Tuple[int, int], most: int) -> Any:
    """Return labels of overlapping rectangles and single pixels, as masks have them."""
    labels = np.zeros(size, np.uint8)
    for _ in range(generator.randrange(6)):
        top, left = generator.randrange(size[0]), generator.randrange(size[1])
        label = generator.randrange(most + 1)
        labels[top : top + generator.randrange(1, 20), left : left + generator.randrange(1, 90)] = label
    for _ in range(generator.randrange(4)):
        labels[generator.randrange(size[0]), generator.randrange(size[1])] = generator.randrange(most + 1)
    return labels


def plain(stacks: Any) -> Any:
    """Return stacks as lists, which can be compared."""
    if stacks is None:
        return None
    return {
        label: (stack.words.tolist(), stack.top, stack.column, stack.size) if stack.words.size else None
        for label, stack in stacks.items()
    }


def read(images: Any, frames: List[str], size: Tuple[int, int]) -> Any:
    problems = Problems()
    return plain(images.read_stacks(frames, size, problems)), problems.text()


def frames(lot: random.Random) -> Any:
    size = (lot.randrange(1, 40), lot.choice([1, 2, 7, 8, 63, 64, 65, 100, 127, 128, 129, 200]))
    depth = lot.choice([1, 2, 4, 8, 8, 8])
    names = [f"{k:05d}" for k in range(lot.randrange(1, 5))]
    files: Any = Memory({name: encoded(blobs(lot, size, 2**depth - 1), depth, lot) for name in names})
    labels, most = blobs(lot, size, 255).astype(np.uint16) + lot.choice([0, 0, 1]), lot.choice([1, 3, 255, 255])

    def work() -> Any:
        images = LabelImages(files, {name: name for name in names}, most)
        # The memory of the first frames is used again.
        return read(images, names, size), read(images, names[:1], size), plain(backend().pack_labels(labels))

    return work


def object_folders(lot: random.Random) -> Any:
    size, names = (lot.randrange(1, 30), lot.randrange(1, 150)), [f"{k:05d}" for k in range(3)]
    files, members = {}, {}  # type: Dict[str, bytes], Dict[str, Dict[str, str]]
    for label in ("1", "2"):
        for frame in names[lot.randrange(2) :]:
            value, second = lot.choice([(255, 255), (1, 1), (255, 255), (7, 9)])
            labels = blobs(lot, size, 1) * value
            if lot.random() < 0.2:
                labels[-1, -1] = second
            files[f"{label}/{frame}"] = encoded(labels, 8, lot)
            members.setdefault(label, {})[frame] = f"{label}/{frame}"
    folders: Any = Memory(files)
    return lambda: read(ObjectFolders(folders, members, Problems()), names, size)


def salient_masks(lot: random.Random) -> Any:
    size, names = (20, 70), ["0", "1", "2"]
    files = {name: encoded(blobs(lot, size, 1) * 255, 8, lot) for name in names}
    values = lot.choice([(0, 255), (0, 1), (0, 0), (255, 255), (1, 255), (0, 7), (0, 90, 127), (0, 1, 255)])
    odd = np.resize(np.repeat(np.array(values, np.uint8), 33), size)
    files["1"] = encoded(odd, 8, lot) if lot.random() < 0.5 else png(odd.astype(np.uint16))
    memory: Any = Memory(files)
    return lambda: read(SalientImages(memory, {name: name for name in names}), names, size)


def damaged_files(lot: random.Random) -> Any:
    size = (20, 70)
    good = encoded(blobs(lot, size, 255), 8, lot)
    start = good.index(b"IDAT") + 4
    stream = zlib.compress(zlib.decompress(good[start:]), 6)
    damages = (
        stream[:9] + bytes([stream[9] ^ 255]) + stream[10:],
        stream[: lot.randrange(len(stream))],
        zlib.compress(zlib.decompress(stream) + b"\0" * lot.randrange(1, 99)),
        zlib.compress(zlib.decompress(stream)[: -lot.randrange(1, 99)]),
        stream + b"rest",
        stream[:-1] + bytes([stream[-1] ^ 1]),
        zlib.compress(bytes([lot.randrange(5, 256)]) + zlib.decompress(stream)[1:]),
        b"",
    )
    files = [good[: start - 8] + chunk(b"IDAT", pixels) + chunk(b"IEND", b"") for pixels in damages]
    memories: List[Any] = [Memory({"a.png": data}) for data in files]
    return lambda: [read(LabelImages(memory, {"a": "a.png"}), ["a"], size) for memory in memories]


def colours(lot: random.Random) -> Any:
    """Rows have any filter, sometimes an invalid one; some pictures have too few; two bytes are a grey of 16 bits."""
    height, width, channels = lot.randrange(1, 12), lot.randrange(1, 40), lot.randrange(1, 5)
    noise, filters = lot.choice([0.03, 0.3, 1]), lot.choice([5, 5, 5, 6])
    rows = b"".join(
        bytes([lot.randrange(filters), *(lot.randrange(256) * (lot.random() < noise) for _ in range(width * channels))])
        for _ in range(height)
    )
    depth, kind = (16 if channels == 2 else 8), {1: 0, 2: 0, 3: 2, 4: 6}[channels]
    data = raw_png(width, height, depth, kind, rows[: lot.choice([None, None, None, -1])])

    def work() -> Any:
        try:
            numbers = (backend().read_labels if channels < 3 else backend().read_codes)(data, (height, width))
            return numbers.dtype.str, numbers.tolist()
        except Flaw as flaw:
            return str(flaw.as_problem("x"))

    return work


def boundaries(lot: random.Random) -> Any:
    size = (lot.randrange(1, 90), lot.choice([1, 5, 63, 64, 65, 128, 130, 300]))
    truth, prediction = (np.stack([blobs(lot, size, 1) > 0 for _ in range(3)]) for _ in range(2))
    if lot.random() < 0.2:
        prediction[:] = True
    radius = lot.choice([0, 1, 2, 3, 8, 9, 40, 66, 130])
    gap = ((-2, 0, 0), (2, 0, 0))
    match = lot.choice([disk(radius), disk(radius), fractional_disk(radius + lot.random()), gap])

    def work() -> Any:
        regions = [Region(stack_of(*side)) for side in (truth, prediction, truth.copy())]
        pairs = [(regions[0], region) for region in (*regions, regions[1])]
        return [field.tolist() for result in backend().compare(pairs, match) for field in result]

    return work


def grown_masks(lot: random.Random) -> Any:
    draw = np.random.default_rng(lot.randrange(1 << 30))
    shape = lot.randrange(3), lot.choice([0, 1, 5, 40]), lot.randrange(1, 4)
    bits = draw.integers(0, 1 << 63, shape, np.uint64, endpoint=True)
    for _ in range(lot.randrange(1, 6)):
        bits &= draw.integers(0, 1 << 63, shape, np.uint64, endpoint=True)
    radius = lot.choice([0, 1, 3, 17, 70, 200])
    return lambda: losses._grow(bits, radius).tolist()


CHARACTERS = "".join(map(chr, range(48, 112)))


def some_texts(generator: random.Random) -> Iterator[Tuple[str, int]]:
    """Yield masks of which most are valid, and the number of pixels that each should have."""
    for _ in range(60):
        runs = [generator.choice([0, 1, 5, 40, 3000]) for _ in range(generator.randrange(1, 12))]
        pixels = sum(runs)
        text = rle.compress(runs)
        kind = generator.randrange(8)
        position = generator.randrange(len(text) + 1)
        if kind == 0:
            text = text[:position]
        elif kind == 1:
            text = text[:position] + generator.choice([*CHARACTERS, "\x00", "~", "Ā", "ÿ", "\ud800"]) + text[position:]
        elif kind == 2:
            pixels += generator.choice([-1, 1])
        elif kind == 3:
            text = "".join(generator.choice(CHARACTERS) for _ in range(generator.randrange(30)))
        yield text, max(0, pixels)


def run_lengths(lot: random.Random) -> Any:
    texts, pixels = map(list, zip(*some_texts(lot)))
    if lot.random() < 0.1:  # longer than what is decoded at once
        runs = np.random.default_rng(3).integers(1, 5, 120_000).tolist()
        text = compress(runs)
        texts, pixels = [text, text[:-1], text + "0", text], [sum(runs)] * 3 + [sum(runs) - 1]

    def work() -> Any:
        result = backend().check_masks(texts, np.array(pixels))
        return result.fault.tolist(), np.where(result.fault == 0, result.area, 0).tolist()

    return work


def noisy(lot: np.random.Generator, size: Any) -> Any:
    """Return pixels that are noise, or one half and some noise."""
    flags = lot.random(size) < lot.choice([0, 0.01, 0.3, 0.99, 1])
    return (
        flags | (np.arange(flags.size) < lot.integers(flags.size + 1)).reshape(flags.shape)
        if lot.random() < 0.3
        else flags
    )


def overlaps(lot: np.random.Generator) -> Any:
    size = lot.integers(1, 40, 2)
    flags = [np.stack([noisy(lot, size.prod()) for _ in range(count)]) for count in (9, 5)]
    sent, real = (
        Masks(pack_texts(list(map(rle.encode_flags, side))), side.sum(axis=1), np.tile(size, (len(side), 1)))
        for side in flags
    )
    prediction, truth = np.divmod(np.arange(45), 5)
    kept = lot.random(45) < 0.8
    pairs = Pairs(prediction[kept], truth[kept], np.searchsorted(prediction[kept], np.arange(10)))
    crowd, (first, second) = lot.random(5) < 0.3, (side[0] | side[-1] for side in flags)
    first[0] = second[-1] = True
    texts = [rle.encode_flags(side) for side in (first, second)]
    shared = np.count_nonzero(first & second)

    def work() -> Any:
        assert backend().count_shared_pixels(*texts) == shared
        return backend().mask_overlaps(pairs, sent, real, crowd).tolist()

    return work


def box_overlaps(lot: np.random.Generator) -> Any:
    """The boxes meet, touch, lie apart or have no extent, and rounding changes some sides."""
    sent, real = (np.round(lot.random((9, 4)) * 5, int(lot.choice([1, 16]))) for _ in range(2))
    sent[:2, 2:], real[3] = 0, sent[3]
    pairs, crowd = Pairs(*np.indices((9, 9)).reshape(2, -1), np.array([0, 81])), lot.random(9) < 0.3
    return lambda: backend().box_overlaps(pairs, sent, real, crowd).tolist()


def matches(lot: np.random.Generator) -> Any:
    """The images have few or many instances, ties, crowds, sizes at the limits, and instances that never match."""
    real, sent = int(lot.integers(0, 40)), int(lot.integers(0, 120))
    areas, images = np.array([0, 1, 900, 1024, 1025, 5000, 9216, 9217, 20000]), int(lot.integers(1, 5))

    def places(count: int) -> Any:
        table = lot.integers(0, (images, 3), (count, 2))
        return table[np.lexsort((table[:, 1], table[:, 0]))]

    instances, detections = places(real), places(sent)
    truth = Instances(
        instances[:, 0], instances[:, 1], lot.choice(areas, real).astype(float), lot.choice(areas, real),
        lot.random(real) < lot.choice([0, 0.2]), lot.random(real) < 0.1,
    )  # fmt: skip
    rank = rank_in_group(detections[:, 0] * 1000 + detections[:, 1])
    area = lot.choice(areas, sent)
    excused = lot.random(sent) < lot.choice([0, 0.1, 0.2])
    results = Detections(detections[:, 0], detections[:, 1], rank, area, area, excused)
    drawn = np.round(lot.random(20_000), 2) * (lot.random(20_000) < lot.random())
    return lambda: [words.tolist() for words in match(truth, results, lambda pairs: drawn[: len(pairs.prediction)])]


def similar_pairs(lot: np.random.Generator) -> Any:
    sent, real = int(lot.choice([0, 1, 300])), int(lot.choice([0, 1, 200]))
    starts = np.append(np.unique(np.append(0, lot.integers(0, max(sent, 1), 40)))[: 40 if sent else 0], sent)
    low = lot.integers(0, real + 1, len(starts) - 1)
    groups = PairGroups(starts, low, np.minimum(low + lot.integers(0, 9, len(low)), real))
    extents = [np.round(lot.exponential(50, count), int(lot.integers(0, 3))) for count in (sent, real)]
    crowd = lot.random(real) < 0.1
    return lambda: [column.tolist() for column in backend().similar_pairs(groups, *extents, crowd, 0.5)]


def orders(lot: np.random.Generator) -> Any:
    count, few = int(lot.choice([0, 1, 2, 50, 5000])), [0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 0.5]
    score = lot.choice(few, count) if lot.random() < 0.5 else np.round(lot.normal(size=count), 3)
    group = lot.integers(*[(0, 1), (0, 9), (-5, 1 << 40), (1 << 20, 1 << 21)][lot.integers(4)], count)
    return lambda: backend().order_by_score(score, group).tolist()


def curves(lot: np.random.Generator) -> Any:
    count, categories = int(lot.choice([400, 5, 1, 0])), 3
    counts = InstanceCounts(np.zeros(9, IMAGE), np.zeros(categories, TRUTH), np.zeros(count, DETECTION))
    counts.truth["category"] = np.arange(categories)
    counts.truth["counted"] = lot.integers(0, 1 + count, (categories, 4))
    detections = counts.detections
    detections["image"] = np.sort(lot.integers(0, 9, count))
    detections["category"], detections["rank"] = lot.integers(0, categories, count), lot.integers(0, 12, count)
    detections["score"] = np.round(lot.random(count), 1)
    words = lot.integers(0, 1 << 40, (3, count), dtype=np.uint64)
    detections["matched"], detections["ignored"] = words[0], words[1] & words[lot.choice([0, 2])]
    pairs = [(area, cap) for area in range(4) for cap in range(3)]
    matching = MatchedDetections(counts, categories, (0, 5, 10), scored=bool(lot.integers(2)))
    group = lot.integers(0, 4, 9)

    def work() -> Any:
        both = matching.curves(pairs), *matching.without_each(pairs, group, 4)
        return [[table.tolist() for table in drawn] for drawn in both]

    return work


def keypoints(lot: np.random.Generator) -> Any:
    points, sets, sent = int(lot.choice([1, 7, 8, 17, 128, 129, 300])), int(lot.integers(1, 9)), int(lot.integers(1, 9))
    truth = TrueSets(
        lot.uniform(-50, 400, (sets, points, 2)),
        lot.random((sets, points)) < lot.choice([0, 0.3, 1], (sets, 1)),
        lot.uniform(0.001, 0.3, (sets, points)),
        lot.choice([0, 1e-9, 1, 5000, 1e5, 1e6, 1e7], sets),
        lot.uniform(0, 300, (sets, 4)),
    )
    near = truth.points[lot.integers(0, sets, sent)] + lot.normal(0, lot.choice([0, 0.01, 1, 20]), (sent, points, 2))
    pairs = Pairs(*np.divmod(np.arange(sent * sets), sets), np.array([0, sent * sets]))
    return lambda: similarities(pairs, near.reshape(sent, -1), truth).tolist()


def encodings(lot: np.random.Generator) -> Any:
    image = noisy(lot, lot.integers(1, 150, 2)) * np.uint8(200)
    image[:, : image.shape[1] * int(lot.integers(3)) // 4] = 0  # nothing at the edges
    image = image.astype(np.uint16) if lot.random() < 0.2 else image
    masks = [lot.random(image.shape) < share for share in (0, 1, 0.5, 0.001)]

    def work() -> Any:
        encoding = backend().encode_mask(image)
        spans = rle.spans_of([backend().encode_mask(mask)[0] for mask in masks])
        inside, area = backend().count_inside(image, spans)
        assert inside.tolist() == [np.count_nonzero(image[mask]) for mask in masks]
        assert area == encoding[1] == np.count_nonzero(image)
        return encoding

    return work


def united_masks(lot: np.random.Generator) -> Any:
    """Masks of one image, with and without shared pixels, and faulty ones: united, painted, looked at, boxed."""
    size = lot.integers(1, 60, 2)
    pixels = int(size.prod())
    flags = [noisy(lot, pixels) for _ in range(int(lot.integers(1, 4)))]
    texts, labels = list(map(rle.encode_flags, flags)), np.arange(1, len(flags) + 1, dtype=np.uint8)
    apart = [mask & ~np.any([np.zeros(pixels, bool), *flags[:index]], axis=0) for index, mask in enumerate(flags)]
    apart_texts = list(map(rle.encode_flags, apart))
    faulty = ["1", "2P", "\x7f", "é" * 3, "", "0" * 10_000, rle.compress([pixels + 1])]
    sides = np.tile(size, (len(texts), 1))

    def work() -> Any:
        drawn = np.unpackbits(backend().draw_mask(texts[0], pixels), count=pixels, bitorder="little")
        assert drawn.tolist() == flags[0].tolist()
        for broken in faulty:
            assert backend().paint_masks([*apart_texts, broken], np.append(labels, labels[-1:]), pixels) is None
        painted, together = (backend().paint_masks(listed, labels, pixels) for listed in (apart_texts, texts))
        assert painted is not None
        boxes = backend().mask_boxes(pack_texts(texts), sides).tolist()
        return painted.tolist(), together is None, backend().unite_masks(texts, pixels), boxes

    return work


def first_overlaps(lot: np.random.Generator) -> Any:
    texts, sizes, bounds, areas, shared = [], [], [0], [], []
    for _ in range(int(lot.integers(1, 6))):
        size = lot.integers(1, 40, 2)
        labels = lot.integers(0, 6, int(size.prod())).repeat(lot.integers(1, 90, size.prod()))[: size.prod()]
        masks = [labels == label for label in range(1, int(lot.integers(1, 7)))]
        if masks and lot.random() < 0.3:
            masks[-1][lot.integers(0, labels.size)] ^= True
        texts += list(map(rle.encode_flags, masks))
        sizes += [size] * len(masks)
        areas += list(map(np.count_nonzero, masks))
        bounds.append(len(texts))
        shared.append(bool((np.sum(masks, axis=0) > 1).any()))
    checked = Masks(pack_texts(texts), np.array(areas, np.int64), np.array(sizes, np.int64).reshape(-1, 2))

    def work() -> Any:
        first = backend().first_overlap(checked, np.array(bounds))
        assert first == [*shared, True].index(True)
        return first

    return work


def joined_frames(lot: np.random.Generator) -> Any:
    counts = lot.integers(1, 9, int(lot.integers(1, 6)))
    tube = np.repeat(np.arange(len(counts)), counts)
    pixels = (lot.integers(1, 200, len(counts)) * 7)[tube]
    shown, texts = lot.random(len(tube)) < 0.8, []
    for count in pixels[shown].tolist():
        borders = np.sort(lot.choice(count + 1, int(lot.integers(0, min(count, 60))), replace=bool(lot.integers(2))))
        texts.append(rle.compress(np.diff(borders, prepend=0, append=count).tolist()))

    def work() -> Any:
        for broken in ("", "2P", "\x7f", "2N") if texts else ():
            with pytest.raises(ValueError):
                join_frames(pack_texts([*texts[:-1], broken]), shown, tube, pixels, len(counts))
        joined = join_frames(pack_texts(texts), shown, tube, pixels, len(counts))
        return list(joined.masks), joined.pixels.tolist(), joined.mean_area.tolist()

    return work


def label_maps(lot: np.random.Generator) -> Any:
    """Maps of squares of a few labels, of noise, or of both, in any unsigned type."""
    size, sides = lot.integers(1, 90, 2), []
    for _ in range(2):
        kind, (high, wide) = lot.choice([np.uint8, np.uint16, np.uint32]), size.tolist()
        side, labels = int(lot.integers(1, 40)), lot.integers(0, 200, 5)
        numbers = np.kron(lot.choice(labels, (-(-high // side), -(-wide // side))), np.ones((side, side), int))
        numbers, noise = numbers[:high, :wide], lot.random(size) < lot.choice([0, 0, 0.02, 0.3, 1])
        numbers[noise] = lot.integers(0, min(np.iinfo(kind).max + 1, 1 << 24), size)[noise]
        sides.append(numbers.astype(kind))
    names = np.sort(lot.choice(1 << 24, 200, replace=False)) if sides[0].max() < 200 else None
    reach = reach_of(*size.tolist(), 0.02)
    pairs, counts = np.unique(np.stack([side.reshape(-1) for side in sides], 1), axis=0, return_counts=True)

    def work() -> Any:
        truth, prediction = LabelMap(sides[0], names), LabelMap(sides[1])
        edges = [LabelMap(backend().keep_boundaries(side.astype(np.uint32), reach, 1 << 24)) for side in sides]
        compared = backend().count_label_pairs(truth, prediction), backend().count_label_pairs(*edges)
        values = sorted(zip(*(column.tolist() for column in backend().pair_values(*sides))))
        assert values == [(*pair, count) for pair, count in zip(pairs.tolist(), counts.tolist())]
        return [column.tolist() for table in compared for column in table]

    return work


def points(lot: np.random.Generator) -> Any:
    count, labels = int(lot.integers(1, 3000)), int(lot.integers(1, 60))
    classes = lot.integers(0, 9, labels).astype(np.uint16)
    truth, values = (
        np.repeat(lot.integers(0, labels, count), lot.integers(1, 20, count))[:count].astype(np.uint32)
        | (lot.integers(0, 9, count) << 16).astype(np.uint32)
        for _ in range(2)
    )
    beyond = truth.copy()
    beyond[lot.integers(count)] = labels
    table = np.zeros((9, labels), np.int64)
    np.add.at(table, (classes[truth & 0xFFFF], values & 0xFFFF), 1)
    expected = [[row << 16 | label, table[row, label]] for row, label in np.argwhere(table[:8]).tolist()]

    def work() -> Any:
        assert backend().count_points(beyond, values, classes, (8, labels)) is None
        assert backend().count_points(truth, beyond, classes, (8, labels)) is None
        for side in (truth, (truth & 0xFFFF).astype(np.uint16), truth.astype(np.uint8)):
            assert backend().count_points(side, values, classes, (8, labels)).T.tolist() == expected

    return work


def grey_maps(lot: np.random.Generator) -> Any:
    size = [(20, 30), (1, 1), (2, 700), (700, 3), (130, 140)][lot.integers(5)]
    truth = lot.random(size) < lot.choice([0, 0.002, 0.05, 0.5, 1])
    values = (lot.integers(0, 256, size) * (lot.random(size) < lot.choice([0.02, 1]))).astype(
        lot.choice([np.uint8, np.uint16])
    )
    least, near = int(lot.choice([0, 3, 255])), int(lot.choice([18, 18, 0, 4, 63]))
    return lambda: [table.tolist() for table in backend().measure_surroundings(truth, values, least, near)]


#: The rows that draw from `random`, those that draw from numpy, and the number of inputs of each.
TABLE = [
    *((row, random.Random, 12) for row in (frames, object_folders, salient_masks, damaged_files, boundaries, grown_masks)),
    *((row, random.Random, 24) for row in (colours, run_lengths)),
    *(
        (row, np.random.default_rng, 12)
        for row in (
            overlaps, box_overlaps, similar_pairs, orders, keypoints, encodings, united_masks, first_overlaps,
            joined_frames, points,
        )
    ),
    *((row, np.random.default_rng, 24) for row in (matches, curves, label_maps, grey_maps)),
]  # fmt: skip


@pytest.mark.parametrize(("row", "draw", "count"), TABLE, ids=[row.__name__ for row, *_ in TABLE])
def test_both_give_the_same(row: Any, draw: Any, count: int, switch: Any) -> None:
    for seed in range(-(-count // 4) if QUICK else count):
        by_kernel, by_numpy = switch(row(draw(seed)))
        assert by_kernel == by_numpy, seed


@pytest.mark.parametrize("level", [0, 9])
@pytest.mark.parametrize("strategy", [zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED])
def test_whatever_zlib_writes_is_read(level: int, strategy: int) -> None:
    """The pictures exceed a block of inflated bytes; their rows repeat near and far, or are noise."""
    lot, size = np.random.default_rng(level), (600, 900)
    blocks = np.kron(lot.integers(0, 9, (20, 30)), np.ones((30, 30), int))
    for labels in (blocks, blocks[lot.permutation(600)], lot.integers(0, 200, size) * (lot.random(size) < 0.3)):
        rows = np.concatenate((np.zeros((600, 1), int), labels), axis=1).astype(np.uint8)
        rows[1::3, 1:] = np.diff(labels, axis=1, prepend=0)[1::3]
        rows[2::3, 1:] = np.diff(labels, axis=0)[1::3]
        rows[1::3, 0], rows[2::3, 0] = 1, 2
        packer = zlib.compressobj(level, zlib.DEFLATED, 15, 8, strategy)
        stream = packer.compress(rows[:300].tobytes()) + packer.flush(zlib.Z_SYNC_FLUSH)
        stream += packer.compress(rows[300:].tobytes()) + packer.flush()
        header = chunk(b"IHDR", bytes([0, 0, 3, 132, 0, 0, 2, 88, 8, 0, 0, 0, 0]))
        ends = header, chunk(b"IEND", b"")
        parts = [b"\x89PNG\r\n\x1a\n" + ends[0]]
        parts += [chunk(b"IDAT", stream[start : start + 8192]) for start in range(0, len(stream), 8192)]
        read = KERNEL.read_png(b"".join([*parts, ends[1]]), size)
        assert read is not None
        assert (read == labels).all()


# ── records ─────────────────────────────────────────────────────────────────


def read_table(text: str, shape: int = MASK) -> Any:
    return KERNEL.records(text.encode(), shape)


IMAGES = KnownImages(np.array([-5, 3, 70]), np.array([[4, 6], [5, 5], [1000, 900]]), np.array([1, 4]))


def record(generator: random.Random) -> Dict[str, Any]:
    index = generator.randrange(3)
    height, width = IMAGES.sizes[index].tolist()
    first = generator.randrange(height * width + 1)
    return {
        "image_id": IMAGES.ids[index].item(),
        "category_id": generator.choice([1, 4, 9]),
        "segmentation": {"size": [height, width], "counts": rle.compress([first, height * width - first])},
        "score": generator.choice([0, 1, 0.5, generator.random(), 1e-7, 1.5e300, 0.1 + 0.2, -0.0, -3.25, 12345678901]),
    }


#: Of 1, 3 and 2 frames.
VIDEOS = KnownImages(IMAGES.ids, IMAGES.sizes * [[1, 1], [1, 3], [1, 2]], IMAGES.categories, np.array([1, 3, 2]))


def video_record(generator: random.Random) -> Dict[str, Any]:
    """Return a record of a video, under the key of images."""
    item = record(generator)
    mask, index = item.pop("segmentation"), IMAGES.ids.tolist().index(item["image_id"])
    count = int(VIDEOS.frames[index]) if VIDEOS.frames is not None else 0
    return {**item, "segmentations": [mask if generator.random() < 0.7 else None for _ in range(count)]}


#: How a text of records is changed by hand: what is replaced once, and by what; of the scores, what stands before one.
CHANGES: List[Tuple[Any, str]] = [
    ("", ""), (" ", ""), (":", " \n:\t "), ('"score"', '"\\u0073core"'), ("[", "[ "), ("]", "\r\n]"), ("}", "},"),
    ('"counts": "', '"counts": "\\\\'), ('"counts": "', '"counts": "\\"'), ('"counts": "', '"counts": "é'),
    ('"counts": "', '"counts": "' + "0" * 70000), ('"image_id": ', '"image_id": 1'),
    ('"image_id": ', '"image_id": 9999999999999999999'), ('"size": [', '"size": [-'), ('"size": [', '"size": [0'),
    ('"category_id": ', '"category_id": 1.0e0, "x": '), ("[{", "[null, {"), ("[", "[ null ,"), ("null", "nul"),
    ("null", "[]"), ('"segmentations": [', '"segmentations": [], "x": ['), ("segmentations", "segmentation"),
    *(('"score": ', f'"score": {before}') for before in ("0", "-", '2, "score": ')),
    *(
        ('"score": ', f'"score": {value}, "y": ')
        for value in (
            "1e400", "1.", "0.1234567890123456789012345", "1e-5", "12345e-8", "0.00000000000000000000000000012345",
            "9007199254740993", "17.12345678901234567", "1e23", "-0", "00",
        )
    ),
    *(
        ('"score": ', f'"x": {value}, "score": ')
        for value in (
            '"é €"', '"\\u00e9\\n"', '"\\x"', '"\t"', '{"a": [], "b": {"a": [1e5, -0.5, NaN]}}', '{"a": 1, "a": 2}',
            "[1,]", f"{'[' * 20}1{']' * 20}", "true", "-Infinity", "nul", "01", "-", "9" * 1500, "[ ]", "{ }", '"',
        )
    ),
    *(
        ('"score": ', f'"bbox": {value}, "score": ')
        for value in (
            "[1, 2, 3, 4]", "null", "[]", "[ ]", "[1, 2.5, 3e0, 4]", "[1., 2, 3, 4]", "[null, 1, 2, 3, 4]", "[1, 2, 3]", "7",
            "[1,2,3,4,5]",
        )
    ),
    *(
        (re.compile(r'"counts": "[^"]*"'), f'"counts": {counts}')
        for counts in ("[3, 0, 0, 21]", "[0, 900000, 0, 0, 0]", "[25]", "[]", "[26, -1]", '[12.0, 12], "z": {}')
    ),
    *(
        (re.compile(r'\{"size"[^}]*\}'), rings)
        for rings in ("[[0, 1, 2.5, 1, 2, 3e0], [1,1,2,1,1,2]]", "[0, 1, 2.5, 1, 2, 3]", "[]", "[[1, 2], 3]")
    ),
]  # fmt: skip
#: What follows or replaces the end.
ENDS = ("", ",", " ", "]")


@pytest.mark.parametrize("video", [False, True])
@pytest.mark.parametrize("change", range(len(CHANGES)))
def test_records_are_read_as_python_reads_them(change: int, video: bool) -> None:
    before, after = CHANGES[change]
    pattern, times = re.escape(before) if isinstance(before, str) else before, 0 if before in (" ", ":") else 1
    for seed in range(4):
        compare_readings(lambda text: re.sub(pattern, lambda _: after, text, count=times), seed, video=video)
    for end in ENDS if not change else ():
        compare_readings(lambda text, end=end: text[:-1] + end, 1, video=video)
        compare_readings(lambda text, end=end: text + end, 1, video=video)


def compare_readings(change: Callable[[str], str], seed: int, *, video: bool) -> None:
    """Read records as a table and parsed; unchanged ones are read as a table."""
    generator, images = random.Random(seed), VIDEOS if video else IMAGES
    some = [(video_record if video else record)(generator) for _ in range(generator.randrange(1, 9))]
    sent = json.dumps(some)[1:-1]
    text = change(sent)
    is_changed = text != sent
    text = text.replace("image_id", "video_id") if video else text
    table = read_table(f"{text},", FRAMES if video else MASK)
    if table is None:
        assert is_changed, "the usual form is read by the kernel"
        return
    assert is_changed or table.end == len(text) + 1
    loaded = json_parts.parse_records(
        f"{text},".encode()[: table.end].decode().rstrip(", ")
    )  # it is JSON, whatever was changed
    assert len(loaded) == len(table)
    try:
        read = read_columns(table, images, boxes=False)
    except (ValueError, Flaw):
        assert is_changed, "the usual form is read by the kernel"
        with pytest.raises(UNUSUAL):
            read_columns(loaded, images, boxes=False)
        return
    usual = read_columns(loaded, images, boxes=False)
    assert read.outlined.tolist() == usual.outlined.tolist()
    if read.rings is not None and usual.rings is not None:
        assert [side.tolist() for side in vars(read.rings).values()] == [
            side.tolist() for side in vars(usual.rings).values()
        ]
        assert read.cost == usual.cost
    assert table.boxed.tolist() == [
        0 if "bbox" not in one else 1 if one["bbox"] in (None, []) else 2 if np.shape(one["bbox"]) == (4,) else 3
        for one in loaded
    ]
    for name in ("image", "category", "score"):
        assert getattr(read, name).tolist() == getattr(usual, name).tolist()
    assert list(read.masks) == list(usual.masks)
    if video:
        np.testing.assert_array_equal(read.own_area, usual.own_area)
    assert read.checked.fault.tolist() == usual.checked.fault.tolist()
    sound = usual.checked.fault == 0
    assert read.checked.area[sound].tolist() == usual.checked.area[sound].tolist()


def test_records_are_read_up_to_the_first_that_is_unusual() -> None:
    usual = json.dumps(record(random.Random(1)))
    for unusual in ("null", '{"image_id": 3}', usual[:-1], usual.replace("score", "sc\\u006fre"), "", "é"):
        table = read_table(f"{usual} , {usual},{unusual}, {usual},")
        assert table is not None
        assert (len(table), table.end) == (2, 2 * len(usual) + 4)
    for few in (usual, "", f",{usual}"):
        assert read_table(few) is None


@pytest.mark.parametrize("counts", [r"\u003c", r"\u005C\\\/", r"\u0020a\u007e"])
def test_runs_with_escapes_are_those_that_python_reads(counts: str) -> None:
    item = {**record(random.Random(1)), "segmentation": {"size": [5, 5], "counts": "X"}}
    text = json.dumps(item).replace('"X"', f'"{counts}"')
    table = read_table(f"{text},")
    assert table is not None
    assert table.masks.decode() == json.loads(text)["segmentation"]["counts"]


@pytest.mark.parametrize("counts", [r"\u003", r"\u00e9", r"\n", r"\"", r"\u001f", r"\u007f", r"\u013c", r"\x", "é"])
def test_runs_with_unusual_escapes_are_left_to_python(counts: str) -> None:
    item = {**record(random.Random(1)), "segmentation": {"size": [5, 5], "counts": "X"}}
    text = json.dumps(item).replace('"X"', f'"{counts}"')
    assert read_table(f"{text},") is None


def test_long_numbers_are_those_that_python_reads() -> None:
    generator, numbers = random.Random(6), []  # type: random.Random, List[str]
    for _ in range(1000):
        digits = str(generator.randrange(1, 10)) + "".join(
            generator.choices("0123456789", k=generator.randrange(15, 40))
        )
        point = generator.randrange(1, len(digits))
        numbers.append(f"{digits[:point]}.{digits[point:]}{generator.choice(['', '', 'e-7', 'e5'])}")
    numbers += [f"{(2 * k + 1) / 1024:.70f}"[: generator.randrange(22, 70)] for k in range(1, 300)]
    listed = [f'"image_id":1,"category_id":1,"score":1,"keypoints":[{number},1,1]' for number in numbers]
    table = read_table("".join(f"{{{record}}}," for record in listed), POINTS)
    assert table is not None
    assert table.points is not None
    assert table.points[:, 0].tolist() == list(map(float, numbers))


@given(st.lists(st.lists(st.floats(-9, 40) | st.integers(-9, 40), min_size=6, max_size=24), min_size=1, max_size=20))
@examples(80)
def test_polygons_are_drawn_as_pycocotools_draws_them(rings: List[List[float]]) -> None:
    sizes = np.array([[9, 30], [40, 7], [1, 1]])
    joined = outlines([[ring[: len(ring) // 2 * 2] for ring in rings]] * 3, np.full(3, 40)).rings
    drawn, area = KERNEL.draw(joined, sizes) or pytest.fail("drawn by the kernel")
    expected, pixels = NumpyBackend().draw_polygons(joined, sizes)
    assert (list(drawn), area.tolist()) == (list(expected), pixels.tolist())


@pytest.mark.parametrize("shape", [BOX, POINTS])
def test_boxes_and_keypoints_are_read_as_python_reads_them(shape: int) -> None:
    generator = random.Random(shape)
    numbers = [1, 2.5, -3e-7, 4e2, 0.1 + 0.2, 1234.567123456789012, 5e-324]
    some = [
        {
            "bbox": [generator.choice(numbers) ** 2 for _ in range(4)],
            "area": None,
            "keypoints": generator.choices(numbers, k=6),
        }
        for _ in range(20)
    ]
    records = [{"image_id": 3, "category_id": 1, "score": 0.5, **one} for one in some]
    table = read_table(json.dumps(records)[1:-1] + ",", shape)
    assert table is not None
    assert len(table) == len(records)
    points = 2 if shape == POINTS else 0
    rules = {"boxes": shape == BOX, "points": points, "boxes_give_areas": shape == POINTS}
    read, usual = (read_columns(one, IMAGES, **rules) for one in (table, records))
    for name in ("boxes", "points", "own_area"):
        np.testing.assert_array_equal(getattr(read, name), getattr(usual, name))
    np.testing.assert_array_equal(read.checked.area, usual.checked.area)


@given(st.floats(allow_nan=False, allow_infinity=False))
@examples(200)
def test_a_score_is_the_number_that_python_reads(score: float) -> None:
    item = {"image_id": 3, "category_id": 1, "score": score, "segmentation": {"size": [5, 5], "counts": "i0"}}
    text = json.dumps(item)
    table = read_table(f"{text},")
    assert table is not None
    read = read_columns(table, IMAGES, boxes=False)
    assert read.score[0].hex() == float(score).hex()


# ── the library ─────────────────────────────────────────────────────────────


def state_in(folder: Path, **environment: str) -> str:
    """Return the output of a process whose kernel is elsewhere."""
    code = "from segjudge.evaluation_script.masks.backend import backend; print(backend().about)"
    variables = {**os.environ, library.SETTING: str(folder / library.NAME), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=variables, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for path in (COMPILED, Path(f"{COMPILED}{library.CHECKSUM}")):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_the_library_is_used_where_all_is_well(copied: Path) -> None:
    assert state_in(copied) == f"kernel for {library.SYSTEM} (numpy: SEGJUDGE_KERNEL=off)"


def test_one_changed_byte_is_enough_to_leave_it_alone(copied: Path) -> None:
    built = copied / library.NAME
    data = bytearray(built.read_bytes())
    data[len(data) // 2] ^= 1
    built.write_bytes(data)
    assert "is not the file that the build wrote" in state_in(copied)


def test_what_is_no_library_is_left_alone(copied: Path) -> None:
    import zlib

    built, checksum = copied / library.NAME, copied / f"{library.NAME}{library.CHECKSUM}"
    built.write_bytes(b"\x7fELF" + bytes(100))
    checksum.write_text(f"SHA-256 sources {zlib.crc32(built.read_bytes()):08x}")
    assert "it cannot be loaded" in state_in(copied)


def test_a_library_that_answers_wrongly_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong:
        """The kernel, except one function."""

        def __init__(self, name: str, result: int) -> None:
            self._name, self._result = name, result

        def __getattr__(self, name: str) -> Any:
            return (lambda *_: self._result) if name == self._name else getattr(LOADED, name)

    for name in (
        "sj_pack_png", "sj_read_png", "sj_compare", "sj_squares", "sj_records", "sj_draw", "sj_order",
        "sj_similar_pairs", "sj_box_overlaps", "sj_match", "sj_curves", "sj_similarities",
    ):  # fmt: skip
        for result in (0, -1, 1):
            with pytest.raises(library.KernelError, match="self-test"):
                monkeypatch.setattr(ctypes, "CDLL", lambda _, name=name, result=result: Wrong(name, result))
                library.load("anywhere")


def test_a_call_that_makes_no_sense_is_refused() -> None:
    """Every function refuses missing arrays, whatever the numbers."""
    for name, arguments in library._SIGNATURES.items():
        given = [None if kind == "*" or kind.endswith("[]") else 1 for kind in arguments.split()]
        assert name == "sj_abi" or LOADED[name](*given) == -1, name
    assert LOADED.sj_pack_png(ctypes.byref(kernel._Block()), 0, b"", 0) == -1
