"""The kernel and numpy agree: on frames, on boundaries, on run lengths, on records, and on faults."""

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
from fractions import Fraction
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
from segjudge.evaluation_script.masks import kernel, library, stream
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.backend import NumpyBackend, backend
from segjudge.evaluation_script.masks.detections import BOX, MASK, NO_CATEGORY, PAIR, POINTS, TrueSets
from segjudge.evaluation_script.masks.files import LabelImages, ObjectFolders, SalientImages
from segjudge.evaluation_script.masks.overlaps import LabelMap, PairGroups, Pairs, reach_of
from segjudge.evaluation_script.masks.polygons import outlines
from segjudge.evaluation_script.masks.run_lengths import Masks, compress, pack_texts
from segjudge.evaluation_script.masks.similarity import Region, disk, fractional_disk
from tests.backends import COMPILED, compiled, skip_file_without_kernel, use
from tests.builders import chunk, png, raw_png, run_length_text, stack_of
from tests.data import ROOT
from tests.drawing import examples

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


# ── frames ──────────────────────────────────────────────────────────────────


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


@pytest.mark.parametrize("seed", range(60))
def test_frames_are_packed_as_numpy_packs_them(seed: int, switch: Any) -> None:
    generator = random.Random(seed)
    size = (generator.randrange(1, 40), generator.choice([1, 2, 7, 8, 63, 64, 65, 100, 127, 128, 129, 200]))
    depth = generator.choice([1, 2, 4, 8, 8, 8])
    frames = [f"{k:05d}" for k in range(generator.randrange(1, 5))]
    files = {name: encoded(blobs(generator, size, 2**depth - 1), depth, generator) for name in frames}
    labels = blobs(generator, size, 255).astype(np.uint16) + generator.choice([0, 0, 1])

    def stacks() -> Any:
        problems = Problems()
        images = LabelImages(Memory(files), {name: name for name in frames})  # type: ignore[arg-type]
        first = plain(images.read_stacks(frames, size, problems))
        again = plain(images.read_stacks(frames[:1], size, problems))  # its memory is used again
        return first, again, plain(backend().pack_labels(labels)), problems.count

    by_kernel, by_numpy = switch(stacks)
    assert by_kernel == by_numpy


@pytest.mark.parametrize("seed", range(30))
def test_objects_are_packed_as_numpy_packs_them(seed: int, switch: Any) -> None:
    generator = random.Random(seed)
    size = (generator.randrange(1, 30), generator.randrange(1, 150))
    frames = [f"{k:05d}" for k in range(3)]
    files, members = {}, {}  # type: Dict[str, bytes], Dict[str, Dict[str, str]]
    for label in ("1", "2"):
        for frame in frames[generator.randrange(2) :]:
            name = f"{label}/{frame}"
            value, second = generator.choice([(255, 255), (1, 1), (255, 255), (7, 9)])
            labels = blobs(generator, size, 1) * value
            if generator.random() < 0.2:
                labels[-1, -1] = second
            files[name] = encoded(labels, 8, generator)
            members.setdefault(label, {})[frame] = name

    def stacks() -> Any:
        problems = Problems()
        folders = ObjectFolders(Memory(files), members, problems)  # type: ignore[arg-type]
        return plain(folders.read_stacks(frames, size, problems)), problems.text()

    by_kernel, by_numpy = switch(stacks)
    assert by_kernel == by_numpy


@pytest.mark.parametrize("level", [0, 1, 6, 9])
@pytest.mark.parametrize(
    "strategy", [zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED]
)
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


@pytest.mark.parametrize("values", [(0, 255), (0, 1), (0, 0), (255, 255), (1, 255), (0, 7), (0, 90, 127), (0, 1, 255)])
@pytest.mark.parametrize("depth", [8, 16])
def test_salient_masks_are_packed_as_numpy_packs_them(values: Tuple[int, ...], depth: int, switch: Any) -> None:
    generator, size, frames = random.Random(1), (20, 70), ["0", "1", "2"]
    plain_masks = {frame: encoded(blobs(generator, size, 1) * 255, 8, generator) for frame in frames}
    odd = np.resize(np.repeat(np.array(values, np.uint8), 33), size)
    files = {**plain_masks, "1": encoded(odd, 8, generator) if depth == 8 else png(odd.astype(np.uint16))}

    def stacks() -> Any:
        problems = Problems()
        images = SalientImages(Memory(files), {name: name for name in frames})  # type: ignore[arg-type]
        return plain(images.read_stacks(frames, size, problems)), problems.text()

    by_kernel, by_numpy = switch(stacks)
    assert by_kernel == by_numpy
    assert (by_numpy[0] is None) == (values in ((1, 255), (0, 7)))


def test_salient_masks_of_two_values_are_left_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, BACKENDS[0])
    monkeypatch.setattr(NumpyBackend, "read_object", None)
    files = {
        name: encoded(np.eye(9, dtype=np.uint8) * value, 8, random.Random(1)) for name, value in (("0", 1), ("1", 255))
    }
    images = SalientImages(Memory(files), {name: name for name in files})  # type: ignore[arg-type]
    stacks = images.read_stacks(list(files), (9, 9), Problems())
    assert stacks is not None
    assert stacks[SalientImages.NAME].area.tolist() == [9, 9]


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_is_refused_in_the_same_words(seed: int, switch: Any) -> None:
    generator = random.Random(seed)
    size = (20, 70)
    good = encoded(blobs(generator, size, 255), 8, generator)
    start = good.index(b"IDAT") + 4
    stream = zlib.compress(zlib.decompress(good[start:]), 6)
    damage = {
        "flipped": stream[:9] + bytes([stream[9] ^ 255]) + stream[10:],
        "cut": stream[: generator.randrange(len(stream))],
        "longer": zlib.compress(zlib.decompress(stream) + b"\0" * generator.randrange(1, 99)),
        "shorter": zlib.compress(zlib.decompress(stream)[: -generator.randrange(1, 99)]),
        "trailed": stream + b"rest",
        "sum": stream[:-1] + bytes([stream[-1] ^ 1]),
        "filter": zlib.compress(bytes([generator.randrange(5, 256)]) + zlib.decompress(stream)[1:]),
        "empty": b"",
    }
    for pixels in damage.values():
        data = good[: start - 8] + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")

        def stacks(data: bytes = data) -> Any:
            problems = Problems()
            images = LabelImages(Memory({"a.png": data}), {"a": "a.png"})  # type: ignore[arg-type]
            return plain(images.read_stacks(["a"], size, problems)), problems.text()

        by_kernel, by_numpy = switch(stacks)
        assert by_kernel == by_numpy


def test_more_labels_than_a_phase_allows_are_counted_alike(switch: Any) -> None:
    size = (16, 16)
    labels = np.arange(256, dtype=np.uint8).reshape(size)
    data = encoded(labels, 8, random.Random(1))
    few = encoded(labels // 128 * 20, 8, random.Random(1))

    def stacks() -> Any:
        results = []
        for most, content in ((255, data), (254, data), (3, data), (3, few)):
            problems = Problems()
            images = LabelImages(Memory({"a.png": content}), {"a": "a.png"}, most)  # type: ignore[arg-type]
            results.append((plain(images.read_stacks(["a"], size, problems)), problems.text()))
        return results

    by_kernel, by_numpy = switch(stacks)
    assert by_kernel == by_numpy
    assert "has 255 objects; this phase allows 254" in by_numpy[1][1]
    assert by_numpy[3][0] is not None, "one object, whatever its number"


# ── boundaries ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(80))
def test_masks_are_compared_as_numpy_compares_them(seed: int, switch: Any) -> None:
    generator = random.Random(seed)
    size = (generator.randrange(1, 90), generator.choice([1, 5, 63, 64, 65, 128, 130, 300]))
    truth, prediction = (np.stack([blobs(generator, size, 1) > 0 for _ in range(3)]) for _ in range(2))
    if generator.random() < 0.2:
        prediction[:] = True
    radius = generator.choice([0, 1, 2, 3, 8, 9, 40, 66, 130])
    match = generator.choice([disk(radius), fractional_disk(radius + generator.random())])

    def counts() -> Any:
        regions = [Region(stack_of(*frames)) for frames in (truth, prediction, truth.copy())]
        pairs = [(regions[0], region) for region in (*regions, regions[1])]
        return [field.tolist() for result in backend().compare(pairs, match) for field in result]

    by_kernel, by_numpy = switch(counts)
    assert by_kernel == by_numpy


def test_a_disk_with_a_gap_is_left_to_numpy(switch: Any) -> None:
    mask = np.zeros((9, 9), bool)
    mask[4, 4] = True
    gap = ((-2, 0, 0), (2, 0, 0))

    def counts() -> Any:
        (result,) = backend().compare([(Region(stack_of(mask)), Region(stack_of(mask)))], gap)
        return result.truth_matched.tolist()

    by_kernel, by_numpy = switch(counts)
    assert by_kernel == by_numpy


# ── run lengths ─────────────────────────────────────────────────────────────

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


@pytest.mark.parametrize("seed", range(40))
def test_run_lengths_are_checked_as_numpy_checks_them(seed: int, switch: Any) -> None:
    texts, pixels = map(list, zip(*some_texts(random.Random(seed))))

    def checked() -> Any:
        result = backend().check_masks(texts, np.array(pixels))
        return result.fault.tolist(), np.where(result.fault == 0, result.area, 0).tolist()

    by_kernel, by_numpy = switch(checked)
    assert by_kernel == by_numpy


@pytest.mark.parametrize("form", ["text", "list"])
def test_long_masks_are_read_in_tables_and_checked(form: str, switch: Any) -> None:
    rng = np.random.default_rng(3)
    runs = rng.integers(1, 5, 120_000).tolist()
    size, text = [sum(runs), 1], compress(runs)
    assert len(text) > 1 << 16
    record = {"image_id": 3, "category_id": 2, "score": 0.5}
    counts = text if form == "text" else runs
    table = KERNEL.records(json.dumps({**record, "segmentation": {"size": size, "counts": counts}}) + ",")
    assert (table.masks.decode(), table.fault.tolist(), table.area.tolist()) == (text, [0], [sum(runs[1::2])])
    texts, pixels = [text, text[:-1], text + "0", text], np.array([size[0]] * 3 + [size[0] - 1])

    def checked() -> Any:
        result = backend().check_masks(texts, pixels)
        return result.fault.tolist(), np.where(result.fault == 0, result.area, 0).tolist()

    by_kernel, by_numpy = switch(checked)
    assert by_kernel == by_numpy
    assert by_kernel[0][0] == 0 < min(by_kernel[0][1], by_kernel[0][3])


@pytest.mark.parametrize("seed", range(20))
def test_overlaps_are_those_of_pycocotools(seed: int, switch: Any) -> None:
    generator = random.Random(seed)

    def masks(count: int) -> Masks:
        texts = []
        for _ in range(count):
            runs, left = [generator.randrange(9)], 13 * 17
            left -= runs[0]
            while left:
                runs.append(generator.randrange(1, left + 1) if generator.random() < 0.9 else left)
                left -= runs[-1]
            texts.append(rle.compress(runs))
        area = backend().check_masks(texts, np.full(count, 13 * 17)).area
        return Masks(pack_texts(texts), area, np.full((count, 2), [13, 17]))

    sent, real = masks(20), masks(15)
    groups = [
        sorted({(generator.randrange(20), first + generator.randrange(3)) for _ in range(generator.randrange(9))})
        for first in range(0, 15, 3)
    ]
    bounds = np.cumsum([0, *map(len, groups)])
    table = np.array([pair for group in groups for pair in group], np.int64).reshape(-1, 2)
    crowd = np.array([generator.random() < 0.3 for _ in range(15)])
    pairs = Pairs(table[:, 0], table[:, 1], bounds)

    by_kernel, by_numpy = switch(lambda: backend().mask_overlaps(pairs, sent, real, crowd).tolist())
    assert by_kernel == by_numpy
    assert len(by_kernel) == bounds[-1]
    among = Pairs(pairs.prediction % 15, pairs.truth, bounds)
    by_kernel, by_numpy = switch(lambda: backend().mask_overlaps(among, real, real, crowd).tolist())
    assert by_kernel == by_numpy


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_noisy_masks_overlap_smooth_ones_as_pixels_do(share: float, switch: Any) -> None:
    generator = np.random.default_rng(8)
    size, truth = (90, 120), np.zeros((5, 90, 120), bool)
    for mask, (top, left, tall, wide) in zip(truth, generator.integers(1, (60, 80, 30, 40), (5, 4))):
        mask[top : top + tall, left : left + wide] = True
    truth[3], truth[4] = False, True
    noisy = (generator.random((4, *size)) < share) ^ truth[:4]
    sides = [[rle.encode_flags(mask.T.reshape(-1)) for mask in masks] for masks in (noisy, truth)]
    sent, real = (
        Masks(pack_texts(texts), masks.sum(axis=(1, 2)), np.full((len(masks), 2), size))
        for texts, masks in zip(sides, (noisy, truth))
    )
    prediction, true = np.repeat(np.arange(4), 5), np.tile(np.arange(5), 4)
    shared = (noisy[prediction] & truth[true]).sum(axis=(1, 2))
    ious = shared / (noisy[prediction] | truth[true]).sum(axis=(1, 2))
    pairs = Pairs(prediction, true, np.array([0, 20]))
    for counted in switch(lambda: backend().mask_overlaps(pairs, sent, real, np.zeros(5, bool)).tolist()):
        assert counted == ious.tolist()


@pytest.mark.parametrize("seed", range(20))
def test_boxes_overlap_as_by_numpy(seed: int, switch: Any) -> None:
    """The boxes meet, touch, lie apart or have no extent, and rounding changes some sides."""
    lot = np.random.default_rng(seed)
    sent, real = (np.round(lot.random((9, 4)) * 5, 1 + 15 * (seed % 2)) for _ in range(2))
    sent[:2, 2:], real[3] = 0, sent[3]
    columns = np.indices((9, 9)).reshape(2, -1)
    pairs, crowd = Pairs(*columns, np.array([0, 81])), lot.random(9) < 0.3

    by_kernel, by_numpy = switch(lambda: backend().box_overlaps(pairs, sent, real, crowd).tobytes())

    assert by_kernel == by_numpy


@pytest.mark.parametrize("seed", range(60))
def test_detections_are_matched_as_numpy_matches_them(seed: int, switch: Any) -> None:
    """The images have few or many instances, ties, crowds, sizes at the limits, and instances that never match."""
    lot = np.random.default_rng(seed)
    real, sent = int(lot.integers(0, 40)), int(lot.integers(0, 120))
    areas = np.array([0, 1, 900, 1024, 1025, 5000, 9216, 9217, 20000])

    def places(count: int) -> Any:
        table = lot.integers(0, (1 + seed % 4, 3), (count, 2))
        return table[np.lexsort((table[:, 1], table[:, 0]))]

    instances, detections = places(real), places(sent)
    truth = Instances(
        instances[:, 0], instances[:, 1], lot.choice(areas, real).astype(float), lot.choice(areas, real),
        lot.random(real) < 0.2 * (seed % 2), lot.random(real) < 0.1,
    )  # fmt: skip
    rank = rank_in_group(detections[:, 0] * 1000 + detections[:, 1])
    area = lot.choice(areas, sent)
    results = Detections(detections[:, 0], detections[:, 1], rank, area, area, lot.random(sent) < 0.1 * (seed % 3))
    drawn = np.round(lot.random(20_000), 2) * (lot.random(20_000) < lot.random())

    by_kernel, by_numpy = switch(lambda: match(truth, results, lambda pairs: drawn[: len(pairs.prediction)]))

    for first, second in zip(by_kernel, by_numpy):
        assert first.tolist() == second.tolist()
    assert sent == 0 or by_kernel[0].dtype == by_numpy[0].dtype == np.uint64


@pytest.mark.parametrize("seed", range(20))
def test_similar_pairs_are_those_of_numpy(seed: int, switch: Any) -> None:
    lot = np.random.default_rng(seed)
    sent, real = int(lot.choice([0, 1, 300])), int(lot.choice([0, 1, 200]))
    starts = np.append(np.unique(np.append(0, lot.integers(0, max(sent, 1), 40)))[: 40 if sent else 0], sent)
    low = lot.integers(0, real + 1, len(starts) - 1)
    groups = PairGroups(starts, low, np.minimum(low + lot.integers(0, 9, len(low)), real))
    extents = [np.round(lot.exponential(50, count), int(lot.integers(0, 3))) for count in (sent, real)]
    crowd = lot.random(real) < 0.1

    by_kernel, by_numpy = switch(lambda: backend().similar_pairs(groups, *extents, crowd, 0.5))

    for first, second in zip(by_kernel, by_numpy):
        assert first.tolist() == second.tolist()
    assert sent < 2 or real < 2 or 0 < len(by_kernel.prediction) < groups.count_pairs()


@pytest.mark.parametrize("seed", range(20))
def test_scores_are_ordered_as_numpy_orders_them(seed: int, switch: Any) -> None:
    lot = np.random.default_rng(seed)
    count, few = int(lot.choice([0, 1, 2, 50, 5000])), [0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 0.5]
    score = lot.choice(few, count) if seed % 2 else np.round(lot.normal(size=count), 3)
    group = lot.integers(*[(0, 1), (0, 9), (-5, 1 << 40), (1 << 20, 1 << 21)][seed % 4], count)

    by_kernel, by_numpy = switch(lambda: backend().order_by_score(score, group))

    assert by_kernel.tolist() == by_numpy.tolist() == np.lexsort((-score, group)).tolist()


@pytest.mark.parametrize("seed", range(40))
def test_curves_are_drawn_as_numpy_draws_them(seed: int, switch: Any) -> None:
    lot = np.random.default_rng(seed)
    count, categories = (400, 5, 1, 0)[seed % 4], 3
    counts = InstanceCounts(np.zeros(9, IMAGE), np.zeros(categories, TRUTH), np.zeros(count, DETECTION))
    counts.truth["category"] = np.arange(categories)
    counts.truth["counted"] = lot.integers(0, 1 + count, (categories, 4))
    detections = counts.detections
    detections["image"] = np.sort(lot.integers(0, 9, count))
    detections["category"], detections["rank"] = lot.integers(0, categories, count), lot.integers(0, 12, count)
    detections["score"] = np.round(lot.random(count), 1)
    integers = lot.integers(0, 1 << 40, (3, count), dtype=np.uint64)
    detections["matched"], detections["ignored"] = integers[0], integers[1] & integers[2 if seed % 3 else 0]
    pairs = [(area, cap) for area in range(4) for cap in range(3)]

    matching = MatchedDetections(counts, categories, (0, 5, 10), scored=bool(seed % 2))
    group = lot.integers(0, 4, 9)
    by_kernel, by_numpy = switch(lambda: [matching.curves(pairs), *matching.without_each(pairs, group, 4)])

    for first, second in zip(by_kernel, by_numpy):
        assert np.array_equal(first.precision, second.precision)
        assert np.array_equal(first.recall, second.recall)
        assert np.array_equal(first.scores, second.scores)
    assert by_kernel[0].scores.shape == by_kernel[0].precision.shape or not seed % 2


@pytest.mark.parametrize("seed", range(30))
def test_keypoints_are_compared_as_numpy_compares_them(seed: int, switch: Any) -> None:
    lot = np.random.default_rng(seed)
    points, sets, sent = [1, 7, 8, 17, 128, 129, 300][seed % 7], int(lot.integers(1, 9)), int(lot.integers(1, 9))
    truth = TrueSets(
        lot.uniform(-50, 400, (sets, points, 2)),
        lot.random((sets, points)) < lot.choice([0, 0.3, 1], (sets, 1)),
        lot.uniform(0.001, 0.3, (sets, points)),
        lot.choice([0, 1e-9, 1, 5000, 1e5, 1e6, 1e7], sets),
        lot.uniform(0, 300, (sets, 4)),
    )
    near = truth.points[lot.integers(0, sets, sent)] + lot.normal(0, lot.choice([0, 0.01, 1, 20]), (sent, points, 2))
    prediction, index = np.divmod(np.arange(sent * sets), sets)
    pairs = Pairs(prediction, index, np.array([0, sent * sets]))

    by_kernel, by_numpy = switch(lambda: similarities(pairs, near.reshape(sent, -1), truth))

    assert by_kernel.tolist() == by_numpy.tolist()


def test_exponentials_have_the_bits_of_numpys_twin(switch: Any) -> None:
    exponents = -np.concatenate([np.linspace(0, 40, 8001), np.linspace(700, 760, 601), [0.0, 5e-324, 1e-300, 1e9]])
    # A second point is exact, so that no similarity is below one half.
    truth = TrueSets(np.zeros((1, 2, 2)), np.ones((1, 2), bool), np.full((1, 2), 0.5), np.ones(1), np.zeros((1, 4)))
    places = np.stack([np.sqrt(-2 * exponents), *np.zeros((3, len(exponents)))], axis=1)
    pairs = Pairs(np.arange(len(places)), np.zeros(len(places), np.int64), np.array([0, len(places)]))

    by_kernel, by_numpy = switch(lambda: similarities(pairs, places, truth))

    assert by_kernel.tolist() == by_numpy.tolist()
    assert ((by_kernel > 0.5) & (by_kernel < 0.5 + 1e-15)).any()
    assert (by_kernel.min(), by_kernel.max()) == (0.5, 1)


def test_similarities_beyond_doubles_are_left_to_numpy() -> None:
    points, marked, boxes = np.zeros((1, 1, 2)), np.ones((1, 1), bool), np.zeros((1, 4))
    truth = TrueSets(points, marked, np.full((1, 1), 0.5), np.array([-1e-9]), boxes)
    pairs = Pairs(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([0, 1]))

    assert compiled().compare_points(pairs, np.array([[3.0, 4.0]]), truth) is None


# ── records ─────────────────────────────────────────────────────────────────

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


#: How a text of records is changed by hand.
CHANGES: List[Callable[[str], str]] = [
    lambda text: text,
    lambda text: text.replace(" ", ""),
    lambda text: text.replace(":", " \n:\t "),
    lambda text: text.replace('"score"', '"\\u0073core"', 1),
    lambda text: text.replace("[", "[ ", 1).replace("]", "\r\n]", 1),
    lambda text: text.replace('"score": ', '"score": 0', 1),
    lambda text: text.replace('"score": ', '"score": -', 1),
    lambda text: text.replace('"score": ', '"bbox": [1, 2, 3, 4], "score": ', 1),
    lambda text: text.replace('"score": ', '"score": 2, "score": ', 1),
    lambda text: text.replace('"counts": "', '"counts": "\\\\', 1),
    lambda text: text.replace('"counts": "', '"counts": "\\"', 1),
    lambda text: text.replace('"counts": "', '"counts": "é', 1),
    lambda text: text.replace('"image_id": ', '"image_id": 1', 1),
    lambda text: text.replace('"image_id": ', '"image_id": 9999999999999999999', 1),
    lambda text: text.replace('"size": [', '"size": [-', 1),
    lambda text: text.replace('"size": [', '"size": [0', 1),
    lambda text: text.replace('"category_id": ', '"category_id": 1.0e0, "x": ', 1),
    lambda text: text[:-1],
    lambda text: text + ",",
    lambda text: text + " ",
    lambda text: text + "]",
    lambda text: text.replace("}", "},", 1),
    lambda text: text.replace('"score": ', '"score": 1e400, "x": ', 1),
    lambda text: text.replace('"score": ', '"score": 1.', 1),
    lambda text: text.replace('"score": ', '"score": 0.1234567890123456789012345', 1),
    lambda text: text.replace('"score": ', '"score": 1e-5, "y": ', 1),
    lambda text: text.replace('"counts": "', '"counts": "' + "0" * 70000, 1),
    lambda text: text.replace("[{", "[null, {", 1),
    lambda text: text.replace("[", "[ null ,", 1),
    lambda text: text.replace("null", "nul", 1),
    lambda text: text.replace("null", "[]", 1),
    lambda text: text.replace('"segmentations": [', '"segmentations": [], "x": [', 1),
    lambda text: text.replace("segmentations", "segmentation"),
    *[
        lambda text, value=value: text.replace('"score": ', f'"x": {value}, "score": ', 1)
        for value in (
            *(
                '"é €"',
                '"\\u00e9\\n"',
                '"\\x"',
                '"\t"',
                '{"a": [], "b": {"a": [1e5, -0.5, NaN]}}',
                '{"a": 1, "a": 2}',
                "[1,]",
            ),
            *(
                "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]",
                "true",
                "-Infinity",
                "nul",
                "01",
                "-",
                "9" * 1500,
                "[ ]",
                "{ }",
                '"',
            ),
        )
    ],
    *[
        lambda text, value=value: text.replace('"score": ', f'"bbox": {value}, "score": ', 1)
        for value in (
            "null",
            "[]",
            "[ ]",
            "[1, 2.5, 3e0, 4]",
            "[1., 2, 3, 4]",
            "[null, 1, 2, 3, 4]",
            "[1, 2, 3]",
            "7",
            "[1,2,3,4,5]",
        )
    ],
    *[
        lambda text, value=value: text.replace('"score": ', f'"score": {value}, "y": ', 1)
        for value in (
            "12345e-8",
            "0.00000000000000000000000000012345",
            "9007199254740993",
            "17.12345678901234567",
            "1e23",
            "-0",
            "00",
        )
    ],
    lambda text: re.sub(r'"counts": "[^"]*"', '"counts": [3, 0, 0, 21]', text),
    lambda text: re.sub(r'"counts": "[^"]*"', '"counts": [0, 900000, 0, 0, 0]', text),
    lambda text: re.sub(r'"counts": "[^"]*"', '"counts": [25]', text),
    lambda text: re.sub(r'"counts": "[^"]*"', '"counts": []', text),
    lambda text: re.sub(r'"counts": "[^"]*"', '"counts": [26, -1]', text),
    lambda text: re.sub(r'"counts": "[^"]*"', '"z": {}, "counts": [12.0, 12]', text),
    lambda text: re.sub(r'\{"size"[^}]*\}', "[[0, 1, 2.5, 1, 2, 3e0], [1,1,2,1,1,2]]", text, count=1),
    lambda text: re.sub(r'\{"size"[^}]*\}', "[0, 1, 2.5, 1, 2, 3]", text),
    lambda text: re.sub(r'\{"size"[^}]*\}', "[]", text),
    lambda text: re.sub(r'\{"size"[^}]*\}', "[[1, 2], 3]", text),
]


@pytest.mark.parametrize("change", range(len(CHANGES)))
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("video", [False, True])
def test_records_are_read_as_python_reads_them(change: int, seed: int, video: bool) -> None:
    compare_readings(change, seed, video=video)


@pytest.mark.parametrize("video", [False, True])
def test_records_of_the_usual_form_are_read_by_the_kernel(video: bool) -> None:
    for seed in range(6):
        compare_readings(0, seed, video=video)


def compare_readings(change: int, seed: int, *, video: bool) -> None:
    """Read records as a table and parsed; unchanged ones are read as a table."""
    generator, images = random.Random(seed), VIDEOS if video else IMAGES
    some = [(video_record if video else record)(generator) for _ in range(generator.randrange(1, 9))]
    text = CHANGES[change](json.dumps(some)[1:-1])
    text = text.replace("image_id", "video_id") if video else text
    table = KERNEL.records(f"{text},")
    if table is None:
        assert change, "the usual form is read by the kernel"
        return
    assert change or table.end == len(text) + 1
    loaded = json_parts.parse_records(f"{text},"[: table.end].rstrip(", "))  # it is JSON, whatever was changed
    assert len(loaded) == len(table)
    try:
        read = read_columns(table, images, boxes=False)
    except (ValueError, Flaw):
        assert change, "the usual form is read by the kernel"
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
        table = KERNEL.records(f"{usual} , {usual},{unusual}, {usual},")
        assert table is not None
        assert (len(table), table.end) == (2, 2 * len(usual) + 4)
    for few in (usual, "", f",{usual}"):
        assert KERNEL.records(few) is None


def test_keys_in_any_writing_are_read_unless_two_may_be_the_same() -> None:
    item = json.dumps(record(random.Random(1)))[:-1]
    many = [f"key {number}" for number in range(240)]
    usual = [['"é": 1', '"ü": [2]'], ['"\\u00e9": 1', '"\\n\\"": 2', '"\\u0001": 3'], [f'"{key}": 0' for key in many]]
    for pairs in usual:
        text = f"{item}, {', '.join(pairs)}}},{item}, {', '.join(pairs[::-1])}}},"
        table = KERNEL.records(2 * text)
        assert table is not None
        assert len(table) == 4
        for twice in (f"{pairs[0]}, {pairs[0]}", f'"x": {{{pairs[0]}, {pairs[0]}}}', f"{', '.join(pairs)}, {pairs[0]}"):
            again = KERNEL.records(f"{text}{item}, {twice}}},{text}")
            assert again is not None
            assert (len(again), again.end) == (2, len(text))
    for unusual in (
        '"é": 1, "\\u00e9": 2',
        '"\\u00E9": 1',
        '"a\\/": 1',
        '"\\u0061": 1',
        '"\\u000a": 1',
        '"\\ud83d\\uDE00": 1',
    ):
        assert KERNEL.records(f"{item}, {unusual}}},") is None, unusual


@pytest.mark.parametrize("counts", [r"\u003c", r"\u005C\\\/", r"\u0020a\u007e"])
def test_runs_with_escapes_are_those_that_python_reads(counts: str) -> None:
    item = {**record(random.Random(1)), "segmentation": {"size": [5, 5], "counts": "X"}}
    text = json.dumps(item).replace('"X"', f'"{counts}"')
    table = KERNEL.records(f"{text},")
    assert table is not None
    assert table.masks.decode() == json.loads(text)["segmentation"]["counts"]


@pytest.mark.parametrize("counts", [r"\u003", r"\u00e9", r"\n", r"\"", r"\u001f", r"\u007f", r"\u013c", r"\x", "é"])
def test_runs_with_unusual_escapes_are_left_to_python(counts: str) -> None:
    item = {**record(random.Random(1)), "segmentation": {"size": [5, 5], "counts": "X"}}
    text = json.dumps(item).replace('"X"', f'"{counts}"')
    assert KERNEL.records(f"{text},") is None


def test_long_numbers_are_those_that_python_reads() -> None:
    generator, numbers = random.Random(6), []  # type: random.Random, List[str]
    for _ in range(4000):
        digits = str(generator.randrange(1, 10)) + "".join(
            generator.choices("0123456789", k=generator.randrange(15, 40))
        )
        point = generator.randrange(1, len(digits))
        numbers.append(f"{digits[:point]}.{digits[point:]}{generator.choice(['', '', 'e-7', 'e5'])}")
    numbers += [f"{(2 * k + 1) / 1024:.70f}"[: generator.randrange(22, 70)] for k in range(1, 300)]
    listed = [f'"image_id":1,"category_id":1,"score":1,"keypoints":[{number},1,1]' for number in numbers]
    table = KERNEL.records("".join(f"{{{record}}}," for record in listed), POINTS)
    assert table is not None
    assert table.points is not None
    assert table.points[:, 0].tolist() == list(map(float, numbers))


def test_a_pair_may_lack_its_category() -> None:
    item = record(random.Random(1))
    del item["category_id"]
    text = json.dumps(item) + ","
    assert KERNEL.records(text, MASK) is None
    table = KERNEL.records(text + json.dumps({**item, "category_id": -3}) + ",", PAIR)
    assert table is not None
    assert table.category.tolist() == [NO_CATEGORY, -3]


def test_records_of_another_kind_than_the_truth_are_left_to_python() -> None:
    for video, images in ((True, IMAGES), (False, VIDEOS)):
        text = json.dumps((video_record if video else record)(random.Random(1)))
        text = text.replace("image_id", "video_id") if video else text
        table = KERNEL.records(f"{text},")
        assert table is not None
        assert (table.frames is not None) == video
        with pytest.raises(ValueError):
            read_columns(table, images, boxes=False)


@given(st.lists(st.lists(st.floats(-9, 40) | st.integers(-9, 40), min_size=6, max_size=24), min_size=1, max_size=20))
@examples(200)
def test_polygons_are_drawn_as_pycocotools_draws_them(rings: List[List[float]]) -> None:
    sizes = np.array([[9, 30], [40, 7], [1, 1]])
    joined = outlines([[ring[: len(ring) // 2 * 2] for ring in rings]] * 3, np.full(3, 40)).rings
    drawn, area = KERNEL.draw(joined, sizes) or pytest.fail("drawn by the kernel")
    expected, pixels = NumpyBackend().draw_polygons(joined, sizes)
    assert (list(drawn), area.tolist()) == (list(expected), pixels.tolist())


def test_many_crossings_of_one_column_are_drawn_too() -> None:
    ring = [coordinate for k in range(700) for coordinate in (k % 2 * 5, k * 37 % 400)]
    joined, sizes = outlines([[ring], [ring, ring[::-1]]], np.full(2, 400)).rings, np.array([[400, 9]] * 2)
    drawn, _ = KERNEL.draw(joined, sizes) or pytest.fail("drawn by the kernel")
    assert list(drawn) == list(NumpyBackend().draw_polygons(joined, sizes)[0])


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
    table = KERNEL.records(json.dumps(records)[1:-1] + ",", shape)
    assert table is not None
    assert len(table) == len(records)
    points = 2 if shape == POINTS else 0
    rules = {"boxes": shape == BOX, "points": points, "boxes_give_areas": shape == POINTS}
    read, usual = (read_columns(one, IMAGES, **rules) for one in (table, records))
    for name in ("boxes", "points", "own_area"):
        np.testing.assert_array_equal(getattr(read, name), getattr(usual, name))
    np.testing.assert_array_equal(read.checked.area, usual.checked.area)


#: The pixels of an image whose run lengths may have ten digits.
PIXELS = 40_000 * 50_000


@pytest.mark.parametrize("key", ["unread", "counts"])
def test_lists_of_numbers_are_those_that_python_reads(key: str) -> None:
    generator, texts = random.Random(11), []
    ends = (", ", ",", " ,", ",\n ", ",  ", ",,", "")
    for _ in range(1500):
        numbers = generator.choices(("0", "7", "25", "123456789", "1234567890", "00", "07", "-1", "2.50", "1.", ".5", "1e2", "-"),
                                    (60, 60, 60, 30, 20, 1, 1, 4, 4, 1, 1, 1, 1), k=generator.randrange(1, 9))  # fmt: skip
        parts = [number + generator.choices(ends, (60, 60, 9, 9, 9, 1, 1))[0] for number in numbers[:-1]]
        rest = PIXELS - sum(map(int, re.findall(r"\d+", "".join(parts))))
        last = numbers[-1] if key == "unread" else str(rest)
        texts.append(f"[{''.join(parts)}{last}{generator.choices(['', ' ', ', '], (8, 8, 1))[0]}]")
    read = 0
    for text in texts:
        mask = {"size": [40_000, 50_000], "counts": key}
        item = {"image_id": 3, "category_id": 1, "score": 1, "unread": key, "segmentation": mask}
        record_text = json.dumps(item).replace(f'"{key}": "{key}"', f'"{key}": {text}')
        table = KERNEL.records(f"{record_text},")
        try:
            listed = json.loads(text)
        except ValueError:
            assert table is None, text
            continue
        is_usual = key == "unread" or (min(listed) >= 0 and sum(listed) == PIXELS and {*map(type, listed)} == {int})
        assert (table is not None) == is_usual, text
        if table is not None and key == "counts":
            assert table.masks.decode() == compress(listed)
        read += table is not None
    assert read > 500


@given(st.floats(allow_nan=False, allow_infinity=False))
@examples(400)
def test_a_score_is_the_number_that_python_reads(score: float) -> None:
    item = {"image_id": 3, "category_id": 1, "score": score, "segmentation": {"size": [5, 5], "counts": "i0"}}
    text = json.dumps(item)
    table = KERNEL.records(f"{text},")
    assert table is not None
    read = read_columns(table, IMAGES, boxes=False)
    assert read.score[0].hex() == float(score).hex()


def test_numbers_halfway_between_two_doubles_are_those_that_python_reads() -> None:
    generator, numbers = random.Random(5), []  # type: random.Random, List[str]
    while len(numbers) < 4000:
        decimals, power = generator.randrange(28), generator.randrange(-30, 11)
        middle = Fraction(2 * generator.randrange(1 << 52, 1 << 53) + 1) * Fraction(2) ** power
        for whole in (int(middle * 10**decimals) + off for off in (-1, 0, 1)):
            digits = str(whole).rjust(decimals + 1, "0")
            if len(str(whole)) <= 19:
                numbers.append(f"{digits[:-decimals]}.{digits[-decimals:]}" if decimals else digits)
    listed = [f'"image_id":1,"category_id":1,"score":1,"keypoints":[{number},1,1]' for number in numbers]
    table = KERNEL.records("".join(f"{{{record}}}," for record in listed), POINTS)
    assert table is not None
    assert table.points is not None
    assert table.points[:, 0].tolist() == list(map(float, numbers))


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


@pytest.mark.long
def test_no_file_of_any_kind_raises(copied: Path) -> None:
    built, checksum = copied / library.NAME, copied / f"{library.NAME}{library.CHECKSUM}"
    checksum.write_bytes(b"\xff\xfe")
    assert state_in(copied).startswith("numpy (no kernel")
    checksum.write_text("")
    assert state_in(copied).startswith("numpy (no kernel")
    checksum.unlink()
    assert "cannot be read" in state_in(copied)
    built.unlink()
    built.mkdir()
    assert "cannot be read" in state_in(copied)
    assert state_in(copied, **{library.SETTING: "off"}) == "numpy (no kernel: SEGJUDGE_KERNEL is off)"


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
        "sj_pack_png", "sj_pack_labels", "sj_read_png", "sj_compare", "sj_check_runs", "sj_mask_boxes", "sj_paint_runs", "sj_cover", "sj_encode", "sj_write_bits", "sj_count_inside", "sj_first_overlap", "sj_overlaps", "sj_records", "sj_draw",
        "sj_join_frames", "sj_order", "sj_similar_pairs", "sj_box_overlaps", "sj_match", "sj_curves", "sj_label_pairs", "sj_label_table", "sj_points", "sj_segments", "sj_boundaries", "sj_survey",
        "sj_boxes", "sj_surface", "sj_border", "sj_components", "sj_find_runs", "sj_squares", "sj_similarities", "sj_small_runs", "sj_groups", "sj_grow",
    ):  # fmt: skip
        for result in (0, -1, 1):
            with pytest.raises(library.KernelError, match="self-test"):
                monkeypatch.setattr(ctypes, "CDLL", lambda _, name=name, result=result: Wrong(name, result))
                library.load("anywhere")


def test_a_call_that_makes_no_sense_is_refused() -> None:
    assert LOADED.sj_compare(None, None, 1, None, 1, 1, 1, 1, None, 1, None) == -1
    assert LOADED.sj_pack_png(None, 0, None, 0) == LOADED.sj_pack_labels(None, 0, None, 0) == -1
    assert LOADED.sj_pack_png(ctypes.byref(kernel._Block()), 0, b"", 0) == -1
    assert LOADED.sj_read_png(None, 1, 1, 1, 1, None) == -1
    assert LOADED.sj_label_pairs(None, 1, None, 1, 1, None, None, 1, None) == -1
    assert LOADED.sj_label_table(None, 1, None, 1, 1, 1, 1, None) == -1
    assert LOADED.sj_points(None, 4, None, 1, None, 1, 1, 1, None, None) == -1
    assert LOADED.sj_segments(None, 4, None, 0, None, 1, None, 1, 1, 1, 0, 1, None, None, None, None, None) == -1
    assert LOADED.sj_boundaries(None, 1, 1, 1, 1, None) == -1
    assert LOADED.sj_boxes(None, 1, 1, 1, 1, 1, None, None) == -1
    assert LOADED.sj_surface(None, 1, 1, 1, None, None, 1, None) == -1
    assert LOADED.sj_border(None, 1, 1, 1, 0, None, 1, None) == -1
    assert LOADED.sj_small_runs(None, 1, 1, 1, None, 1, None, 65, 0, 1, 1, None, None, 1, None) == -1
    assert LOADED.sj_groups(None, 1, 4, None, 4, None) == LOADED.sj_grow(None, 1, 1, 1, None, 1, None) == -1
    assert LOADED.sj_find_runs(None, 1, 1, 1, 0, None, 4, 1, None) == -1
    assert LOADED.sj_components(None, None, 4, 1, None, 1, None) == -1
    assert LOADED.sj_squares(None, 1, None, 1, 1, 1, 1, None, None) == -1
    assert LOADED.sj_check_runs(None, 1, None, 1, None, None, None) == -1
    assert LOADED.sj_mask_boxes(None, 1, None, 1, None, None) == -1
    assert LOADED.sj_paint_runs(None, 1, None, 1, None, 1, None) == -1
    assert LOADED.sj_cover(None, 1, None, 1, 1, None) == -1
    assert LOADED.sj_write_bits(None, 1, None, 1, None, None) == -1
    assert LOADED.sj_encode(None, 1, 1, None, 0, None, None) == -1
    assert LOADED.sj_count_inside(None, 1, 1, None, None, 1, 1, None, None) == -1
    assert LOADED.sj_first_overlap(None, 1, None, 1, None, None, 1, None) == -1
    assert LOADED.sj_overlaps(None, 1, None, None, 1, None, 1, None, None, 1, None, None, 1, None, 1, None) == -1
    assert LOADED.sj_match(None, None, None, 1, None, 1, None, 1, 1, 1, None, None) == -1
    assert LOADED.sj_order(None, None, 1, None) == -1
    assert LOADED.sj_box_overlaps(None, None, 1, None, 1, None, 1, None, None) == -1
    assert LOADED.sj_similar_pairs(*[None] * 3, 1, None, 1, None, None, 1, None, 1, None, None, None) == -1
    sizes = 1, None, 1, 0, 1, None, 1, 1, 1, 1, 1
    assert LOADED.sj_curves(None, None, None, None, *sizes, None, None, None, 1, 1, 0, None, None, None, None) == -1
    assert LOADED.sj_similarities(None, None, 1, None, 1, None, None, None, None, None, 1, 1, None) == -1
    assert LOADED.sj_records(None, 1, 0, 1, None, None, None, None, None, None, None) == -1
    assert LOADED.sj_draw(None, 1, None, 1, None, 1, None, None, 1, None, None) == -1
    assert LOADED.sj_join_frames(None, 1, None, 1, None, None, 1, None, 1, None, 1, None, None) == -1


def test_arrays_of_other_kinds_and_sizes_than_the_kernel_takes_are_left_to_numpy(switch: Any) -> None:
    bytes_, labels, flags = (np.array([[0, 3], [3, 3]], kind) for kind in (np.uint8, np.uint32, bool))
    assert KERNEL.boundaries(labels, 1, 9) is not None
    assert KERNEL.boundaries(bytes_, 1, 9) is None
    assert KERNEL.boundaries(labels.astype(np.int64), 1, 9) is None
    assert KERNEL.label_pairs(bytes_, labels) is not None
    assert KERNEL.label_pairs(bytes_, labels[:1]) is KERNEL.label_pairs(bytes_[:, :1], labels) is None
    assert (
        KERNEL.label_pairs(bytes_.astype(np.int64), labels) is KERNEL.label_pairs(labels, bytes_.astype(">u2")) is None
    )
    assert KERNEL.measure_surroundings(flags, bytes_, 0, 4) is not None
    for truth, values in ((bytes_, bytes_), (flags, labels), (flags, bytes_[:1]), (flags[:1], bytes_)):
        assert KERNEL.measure_surroundings(truth, values, 0, 4) is None
    volume = flags[None]
    assert KERNEL.find_boxes(volume, 2) is KERNEL.find_boxes(labels[None], 3) is None
    assert KERNEL.find_surface(volume, 9) is not None
    for array in (labels[None], volume[:, :0]):
        assert KERNEL.find_surface(array, 9) is KERNEL.find_border(array) is KERNEL.find_runs(array, 0, int) is None
    assert KERNEL.find_border(volume, open_ends=True, corners=True) is None
    edges = np.array([[0, 3], [1, 4]])
    for starts, ends in ((edges[0], edges[1].astype(np.int32)), (edges[0].astype(float),) * 2, edges[::-1]):
        assert KERNEL.find_components(starts, ends, np.array([[2, 0]])) is None
    places, shape = np.array([0, 3], np.int32), (1, 2, 2)
    assert KERNEL.find_squares(places, places, shape, (1, 1, 1), 9) is not None
    for changed, spacing in (
        (places + np.int32(1), 1),
        (places[::-1], 1),
        (places - np.int32(1), 1),
        (places.astype(int), 1),
        (places, 0),
        (places, float("nan")),
    ):
        assert KERNEL.find_squares(places, changed, shape, (1, 1, spacing), 9) is None
        assert spacing != 1 or KERNEL.find_squares(changed, places, shape, (1, 1, 1), 9) is None
    mask, stack = stack_of(bytes_ > 0), stack_of(np.ones((2, 3), bool))
    assert KERNEL.compare([(mask, mask)], ((0, 0, 0),)) is not None
    for pairs in ([(mask, stack)], [(mask, mask), (stack, stack)], [(mask, stack_of(bytes_ > 0, bytes_ > 0))], []):
        assert KERNEL.compare(pairs, ((0, 0, 0),)) is None
    assert switch(lambda: backend().compare([], ())) == ([], [])
    with pytest.raises(ValueError, match="^the kernel returned -1$"):
        KERNEL.overlaps(pack_texts(["1"]), pack_texts(["1"]), Pairs(np.array([0]), np.array([0]), np.array([0, 2])))


def test_labels_stay_apart_in_a_frame_unless_they_are_merged() -> None:
    labels = np.array([[0, 2, 3]], np.uint8)
    data = png(labels)
    frame = kernel.PackedFrames((1, 3), 1, KERNEL)
    for add in (lambda **how: frame.add_png(0, data, **how), lambda **how: frame.add_labels(0, labels, **how)):
        assert add()
        assert {label: stack.words.tolist() for label, stack in frame.take(1).items()} == {"2": [[[2]]], "3": [[[4]]]}
        assert np.flatnonzero(frame.seen).tolist() == [0, 2, 3]
        assert add(merge=True)
        assert {label: stack.words.tolist() for label, stack in frame.take(1).items()} == {"1": [[[6]]]}
        assert not add(limit=1)
        frame.take(1)
        assert add(limit=2)
        frame.take(1)


HUGE = 1 << 62


@pytest.mark.parametrize("height", [2, 1, 3, 1 << 20])
@pytest.mark.parametrize("frames", [1, 2, 1 << 24])
@pytest.mark.parametrize(("slots", "room"), [(1, 2), (1, 1), (1, 3), (2, 2), (0, 0), (255, 2), (1, HUGE), (1, -2)])
def test_a_frame_is_packed_into_as_many_words_as_its_sides_make(
    height: int, frames: int, slots: int, room: int
) -> None:
    message, labels = np.zeros(512, np.uint64), np.zeros((height, 8), np.uint8)
    frame = kernel.PackedFrames((height, 8), 1, KERNEL)
    frame._block.words, frame._block.room = message.ctypes.data, room
    frame._block.frames, frame._block.slots = frames, slots
    status = LOADED.sj_pack_labels(ctypes.byref(frame._block), 0, labels.ctypes.data, labels.size)
    assert status == (0 if room > 0 and slots * frames * height == room else -1)


def overlaps_with(bounds: list[int], count: int) -> int:
    texts = [np.frombuffer(b"2332", np.uint8), 4, np.array([0]), np.array([4]), 1]
    texts[0] = texts[0].ctypes.data
    pairs = np.zeros(2, np.int64)
    return int(
        LOADED.sj_overlaps(
            *texts, *texts, pairs, pairs, count, np.array(bounds), len(bounds) - 1, np.zeros(2, np.int64)
        )
    )


def test_bounds_of_pairs_lie_within_the_pairs() -> None:
    assert overlaps_with([0, 2], 2) == overlaps_with([0, 1], 2) == 0
    for bounds, count in (([0, 3], 2), ([0, 2], 1), ([0, HUGE], 2), ([0, HUGE, 2], 2), ([1, 2], 2), ([0, 2], -1)):
        assert overlaps_with(bounds, count) == -1


def test_bounds_of_texts_lie_within_the_text() -> None:
    text, none = np.frombuffer(b"2332", np.uint8), np.zeros(2, np.int64)
    for bounds, status in (([0, 4], 0), ([0, 5], -1), ([0, HUGE], -1), ([0, -1], -1), ([-1, 4], -1)):
        given = (text.ctypes.data, 4, np.array(bounds), 1, none, np.zeros(2, np.int8), none)
        assert LOADED.sj_check_runs(*given) == status


def joined_with(**changes: Any) -> int:
    """Return the kernel's answer for two frames of 8 pixels, the second not shown, with these changes."""
    text = np.frombuffer(b"233", np.uint8)
    given = {
        "length": 3, "bounds": [0, 3], "texts": 1, "shown": [1, 0], "pixels": [8, 8], "count": 2, "frames": [0, 2],
        **changes,
    }  # fmt: skip
    columns = {name: np.array(given[name]) for name in ("bounds", "pixels", "frames")}
    return int(
        LOADED.sj_join_frames(
            text.ctypes.data, given["length"], columns["bounds"], given["texts"], np.array(given["shown"], np.uint8),
            columns["pixels"], given["count"], columns["frames"], len(columns["frames"]) - 1, np.zeros(99, np.uint8), 99,
            np.zeros(9, np.int64), np.zeros(9, np.int64),
        )
    )  # fmt: skip


def test_bounds_of_frames_and_their_texts_lie_within_both() -> None:
    assert joined_with() == 0
    for changes in (
        {"frames": [0, 3]}, {"frames": [0, HUGE]}, {"frames": [0, HUGE, 2]}, {"frames": [1, 2]}, {"count": 1},
        {"bounds": [0, 4]}, {"bounds": [0, HUGE]}, {"bounds": [1, 3]}, {"length": 2}, {"length": -1}, {"texts": 0},
        {"texts": -1}, {"shown": [1, 1]}, {"pixels": [-8, 8]}, {"pixels": [8, HUGE]},
    ):  # fmt: skip
        assert joined_with(**changes) == -1


def test_sums_of_runs_that_no_number_holds_are_no_image() -> None:
    longer = compress([0, *np.repeat(np.arange(300_000) << 28, 2).tolist()])  # together more than 2 to the 63rd
    bounds, pixels = np.array([0, len(longer)]), np.array([8])
    text, fault, area = np.frombuffer(longer.encode(), np.uint8), np.zeros(1, np.int8), np.zeros(1, np.int64)
    assert LOADED.sj_check_runs(text.ctypes.data, len(text), bounds, 1, pixels, fault, area) == 0
    assert (fault[0], area[0]) == (4, 0)


@pytest.mark.parametrize("seed", range(20))
def test_masks_with_speckle_are_encoded_as_numpy_encodes_them(seed: int, switch: Any) -> None:
    lot = np.random.default_rng(seed)
    height, width = lot.integers(1, 150, 2).tolist()
    image = (lot.random((height, width)) < (0.01, 0.3, 0.99, 0, 1)[seed % 5]) * np.uint8(200)
    image = image.astype(np.uint16) if seed % 7 == 3 else image
    texts = list(switch(lambda: backend().encode_mask(image)))
    assert texts[0] == texts[1] == KERNEL.encode(image)
    assert texts[0][1] == np.count_nonzero(image)


@pytest.mark.parametrize("seed", range(20))
def test_pixels_with_speckle_are_counted_inside_masks_as_numpy_counts_them(seed: int, switch: Any) -> None:
    lot = np.random.default_rng(seed)
    height, width = lot.integers(1, 200, 2).tolist()
    image = (lot.random((height, width)) < (0.01, 0.3, 0.99, 0, 1)[seed % 5]) * np.uint8(200)
    image[:, : width * (seed % 3) // 4] = 0  # nothing at the edges
    image = image.astype(np.uint16) if seed % 7 == 3 else image
    masks = [lot.random((height, width)) < share for share in (0, 1, 0.5, 0.001)]
    spans = rle.spans_of([backend().encode_mask(mask)[0] for mask in masks])
    for inside, area in [*switch(lambda: backend().count_inside(image, spans)), KERNEL.count_inside(image, spans)]:
        assert inside.tolist() == [np.count_nonzero(image[mask]) for mask in masks]
        assert area == np.count_nonzero(image)


def test_runs_outside_of_an_image_are_refused() -> None:
    image, bounds = np.ones((2, 3), np.uint8), np.array([0, 1])
    for run in ([-1, 2], [2, 1], [0, 7]):
        assert KERNEL.count_inside(image, rle.Spans(np.array([run]), bounds)) is None
    assert KERNEL.count_inside(image, rle.Spans(np.array([[0, 6]]), np.array([0, 2]))) is None
    assert KERNEL.count_inside(image, rle.Spans(np.zeros((0, 2), np.int64), np.array([0])))[1] == 6


@pytest.mark.parametrize("seed", range(20))
def test_masks_with_speckle_are_painted_as_numpy_paints_them(seed: int, switch: Any) -> None:
    lot = np.random.default_rng(seed)
    pixels = int(lot.integers(1, 4000))
    labels = np.append(0, lot.choice(255, int(lot.integers(1, 9)), replace=False) + 1)
    image = np.repeat(labels[lot.integers(0, len(labels), pixels)], lot.integers(1, 40, pixels))[:pixels]
    noisy = lot.random(pixels) < 0.3
    image[noisy] = lot.choice(labels, np.count_nonzero(noisy))
    texts = []
    for label in labels[1:].tolist():
        borders = np.flatnonzero(np.diff(image == label, prepend=False))
        texts.append(rle.compress(np.diff(borders, prepend=0, append=pixels).tolist()))
    kinds = labels[1:].astype(np.uint8)
    assert KERNEL.paint(texts, kinds, pixels) is not None
    for painted in switch(lambda: backend().paint_masks(texts, kinds, pixels)):
        assert painted.dtype == np.uint8
        assert painted.tolist() == image.tolist()
    everything = rle.compress([0, pixels])
    for faulty in (everything, texts[0] + "1", "2P", "\x7f", "é" * 3, "0" * 10_000, ""):
        others = [*texts, faulty] if image.any() else [*texts, faulty, everything]
        assert (
            switch(lambda texts=others: backend().paint_masks(texts, np.arange(1, len(texts) + 1), pixels))
            == (None,) * 2
        )


@pytest.mark.parametrize("seed", range(30))
def test_masks_of_an_image_are_united_and_looked_at_as_by_numpy(seed: int, switch: Any) -> None:
    lot = np.random.default_rng(seed)
    size = int(lot.integers(1, 90)), int(lot.integers(1, 90))
    pixels, texts, united = size[0] * size[1], [], np.zeros(size[0] * size[1], bool)
    for _ in range(int(lot.integers(1, 4))):
        flags = (lot.random(pixels) < lot.choice([0, 0.01, 0.3])) | (np.arange(pixels) < lot.integers(pixels))
        texts.append(rle.encode_flags(flags))
        united |= flags
    places = lot.integers(0, pixels, (3, 20))
    for covered in switch(lambda: backend().cover_places(texts, places, pixels)):
        assert covered.tolist() == united[places].tolist()
    assert switch(lambda: backend().unite_masks(texts, pixels)) == (
        ((rle.encode_flags(united), int(united.sum())),) * 2
    )
    faulty = ["1", "2P", "\x7f", "é" * 3, "", rle.compress([pixels + 1])]
    for covered in switch(lambda: backend().cover_places([*texts, *faulty], places, pixels)):
        assert covered.tolist() == united[places].tolist()
    for rows in switch(lambda: backend().draw_masks(texts, [places[0], places[1]], pixels)):
        assert np.stack(rows).any(axis=1).tolist() == united[places[:2]].tolist()
    for change in (np.fliplr, np.flipud, np.logical_not, lambda image: image.reshape(image.shape[::-1]).T):
        expected = rle.encode_flags(np.asarray(change(united.reshape(size[::-1]).T) != 0).T.reshape(-1))
        text = rle.encode_flags(united)
        assert switch(lambda text=text, change=change: backend().rearrange_mask(text, size, change)) == (expected,) * 2


def test_pixels_are_covered_and_written_within_bounds() -> None:
    text, bits, out, number = np.frombuffer(b"233", np.uint8), np.zeros(2, np.uint64), np.zeros(99, np.uint8), HUGE
    for bounds, pixels, status in (
        ([0, 3], 8, 0), ([0, 3], 7, 1), ([0, 3], 9, 1), ([0, 2], 8, 1), ([0, 4], 8, -1), ([0, 3], 0, -1),
        ([0, 3], HUGE, -1), ([1, 3], 8, -1),
    ):  # fmt: skip
        assert LOADED.sj_cover(text.ctypes.data, 3, np.array(bounds), 1, pixels, bits) == status
    assert bits.tolist() == [0b11100, 0]
    length, area = ctypes.c_int64(0), ctypes.c_int64(0)
    for pixels, room, status in ((8, 99, 0), (8, 2, 2), (0, 99, -1), (number, 99, -1), (8, -1, -1)):
        assert LOADED.sj_write_bits(bits, pixels, out, room, ctypes.byref(length), ctypes.byref(area)) == status, pixels


def test_labels_and_bounds_of_painted_masks_make_sense() -> None:
    text, image = np.frombuffer(b"233", np.uint8), np.zeros(8, np.uint8)
    for bounds, label, pixels, status in (
        ([0, 3], 7, 8, 0), ([0, 3], 7, 8, 1), ([0, 3], 7, 7, 1), ([0, 2], 7, 8, 1), ([0, 3], 0, 8, -1),
        ([0, 4], 7, 8, -1), ([0, HUGE], 7, 8, -1), ([0, -1], 7, 8, -1), ([0, 3], 7, 0, -1), ([0, 3], 7, HUGE, -1),
    ):  # fmt: skip
        given = (text.ctypes.data, 3, np.array(bounds), 1, np.array([label], np.uint8), pixels, image)
        assert LOADED.sj_paint_runs(*given) == status
    assert image.tolist() == [0, 0, 7, 7, 7, 0, 0, 0]


@pytest.mark.parametrize("seed", range(40))
def test_the_first_group_of_masks_that_share_pixels_is_that_of_numpy(seed: int, switch: Any) -> None:
    lot = np.random.default_rng(seed)
    texts, sizes, bounds, areas, shared = [], [], [0], [], []
    for _ in range(int(lot.integers(1, 6))):
        size = lot.integers(1, 40, 2)
        labels = lot.integers(0, 6, int(size.prod())).repeat(lot.integers(1, 90, size.prod()))[: size.prod()]
        masks = [labels == label for label in range(1, int(lot.integers(1, 7)))]
        if masks and lot.random() < 0.3:
            masks[-1][lot.integers(0, labels.size)] ^= True
        for mask in masks:
            borders = np.flatnonzero(np.diff(mask, prepend=False))
            texts.append(rle.compress(np.diff(borders, prepend=0, append=labels.size).tolist()))
            sizes.append(size)
            areas.append(np.count_nonzero(mask))
        bounds.append(len(texts))
        shared.append(bool((np.sum(masks, axis=0) > 1).any()))
    first = [*shared, True].index(True)
    sides = np.array(sizes, np.int64).reshape(-1, 2)
    checked = Masks(pack_texts(texts), np.array(areas, np.int64), sides)
    assert KERNEL.first_overlap(checked.texts, sides.prod(axis=1), np.array(bounds)) == first
    assert switch(lambda: backend().first_overlap(checked, np.array(bounds))) == (first, first)


def test_masks_that_may_share_pixels_are_valid_and_of_one_image() -> None:
    text, first = np.frombuffer(b"233521", np.uint8), np.zeros(1, np.int64)
    for bounds, groups, pixels, status in (
        ([0, 3, 6], [0, 2], [8, 8], 0), ([0, 3, 6], [0, 1, 2], [8, 9], 0), ([0, 3, 6], [0, 2], [8, 9], -1),
        ([0, 3, 6], [0, 2], [4, 4], 1), ([0, 2, 6], [0, 2], [8, 8], 1), ([0, 3, 7], [0, 2], [8, 8], -1),
        ([0, 3, 6], [0, 3], [8, 8], -1), ([0, 3, 6], [1, 2], [8, 8], -1), ([0, 3, 6], [0, 2], [-1, 8], -1),
        ([0, 3, 6], [0, 2], [HUGE, HUGE], -1), ([0, HUGE, 6], [0, 2], [8, 8], -1),
    ):  # fmt: skip
        given = (text.ctypes.data, 6, np.array(bounds), 2, np.array(pixels), np.array(groups), len(groups) - 1, first)
        assert LOADED.sj_first_overlap(*given) == status, (bounds, groups, pixels)
    for texts in (["233", "2P"], ["233", "_"], ["9", "9"]):
        assert KERNEL.first_overlap(pack_texts(texts), np.full(2, 8), np.array([0, 2])) is None


@pytest.mark.parametrize("seed", range(30))
def test_runs_of_small_images_are_those_of_numpy(seed: int, switch: Any) -> None:
    generator, draw = random.Random(seed), np.random.default_rng(seed)
    size = (generator.randrange(1, 60), generator.choice([1, 63, 64, 65, 130, 300]))
    density = generator.choice([0, 0.001, 0.05, 0.5, 1])
    frames = [np.zeros(size, bool) for _ in range(generator.randrange(1, 4))]
    for frame in frames:
        top, left = generator.randrange(size[0]), generator.randrange(size[1])
        frame[top : top + 30, left : left + 100] = draw.random(size)[top : top + 30, left : left + 100] < density
    small = (generator.randrange(1, size[0] + 1), generator.randrange(1, size[1] + 1))
    by_kernel, by_numpy = switch(lambda: stream._runs_of(stack_of(*frames), small))
    assert [side.tolist() for side in by_kernel] == [side.tolist() for side in by_numpy]


def test_numbers_are_written_in_groups_as_by_numpy(switch: Any) -> None:
    edges = [value + step for power in (0, 7, 14, 21, 27) for value in [1 << power] for step in (-1, 0, 1)]
    for numbers in (edges, [], [0], [1 << 28, 1 << 40]):
        by_kernel, by_numpy = switch(lambda numbers=numbers: stream._in_groups(np.array(numbers, np.int64)))
        assert by_kernel == by_numpy, numbers


@pytest.mark.parametrize("seed", range(30))
def test_masks_grow_as_by_numpy(seed: int, switch: Any) -> None:
    generator, draw = random.Random(seed), np.random.default_rng(seed)
    shape = generator.randrange(3), generator.choice([0, 1, 5, 40]), generator.randrange(1, 4)
    bits = draw.integers(0, 1 << 63, shape, np.uint64, endpoint=True)
    for _ in range(generator.randrange(1, 6)):
        bits &= draw.integers(0, 1 << 63, shape, np.uint64, endpoint=True)
    radius = generator.choice([0, 1, 3, 17, 70, 200])
    by_kernel, by_numpy = switch(lambda: losses._grow(bits, radius))
    assert by_kernel.tolist() == by_numpy.tolist()


@pytest.mark.parametrize("seed", range(30))
def test_frames_are_joined_as_numpy_joins_them(seed: int, switch: Any) -> None:
    lot = np.random.default_rng(seed)
    frames = lot.integers(1, 9, int(lot.integers(1, 6)))
    tube = np.repeat(np.arange(len(frames)), frames)
    pixels = (lot.integers(1, 200, len(frames)) * 7)[tube]
    shown = lot.random(len(tube)) < 0.8
    texts = []
    for count in pixels[shown].tolist():
        inner = int(lot.integers(0, min(count, 60)))
        borders = np.sort(lot.choice(count + 1, inner, replace=bool(seed % 2)))
        texts.append(rle.compress(np.diff(borders, prepend=0, append=count).tolist()))
    joined, second = switch(lambda: join_frames(pack_texts(texts), shown, tube, pixels, len(frames)))
    assert list(joined.masks) == list(second.masks)
    assert joined.pixels.tolist() == second.pixels.tolist()
    assert joined.mean_area.tolist() == second.mean_area.tolist()
    for broken in ("", "2P", "\x7f", "2N"):
        if texts:
            with pytest.raises(ValueError):
                join_frames(pack_texts([*texts[:-1], broken]), shown, tube, pixels, len(frames))


def test_frames_whose_text_grows_a_lot_are_joined_too() -> None:
    """Each frame begins with runs that its own mask states plainly, and the wide mask as large differences."""
    texts, pixels = [rle.compress([0, 1, 29_999_999]), rle.compress([29_999_999, 1])] * 400, 30_000_000
    shown = np.ones(len(texts), bool)
    joined = join_frames(pack_texts(texts), shown, np.zeros(len(texts), int), np.full(len(texts), pixels), 1)
    assert joined.pixels.tolist() == [len(texts)]


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(20))
def test_colours_are_read_as_pillow_reads_them(seed: int, channels: int, switch: Any) -> None:
    """Rows have any filter, sometimes an invalid one, and some pictures have too few rows; two bytes are a grey of 16 bits."""
    lot = random.Random(seed)
    height, width = lot.randrange(1, 12), lot.randrange(1, 40)
    filters = 6 if seed % 5 == 4 else 5
    noise = lot.choice([0.03, 0.3, 1])  # what repeats the pixels around it takes a short cut
    rows = [
        bytes([lot.randrange(filters), *(lot.randrange(256) * (lot.random() < noise) for _ in range(width * channels))])
        for _ in range(height)
    ]
    data = raw_png(
        width,
        height,
        8 if channels != 2 else 16,
        {1: 0, 2: 0, 3: 2, 4: 6}[channels],
        b"".join(rows)[: None if seed % 7 else -1],
    )

    def codes() -> Any:
        try:
            read = backend().read_labels if channels < 3 else backend().read_codes
            numbers = read(data, (height, width))
            return numbers.dtype.str, numbers.tolist()
        except Flaw as flaw:
            return str(flaw.as_problem("x"))

    by_kernel, by_pillow = switch(codes)
    assert by_kernel == by_pillow
    if filters == 5 and seed % 7:
        assert isinstance(by_kernel, tuple)
        assert KERNEL.read_png(data, (height, width), {1: np.uint8, 2: np.uint16}.get(channels, np.uint32)) is not None


def coarse_map(lot: np.random.Generator, size: Tuple[int, int], kind: Any) -> Any:
    """Return a map of squares of a few labels, and some single pixels of others."""
    side, labels = int(lot.integers(1, 40)), lot.integers(0, 200, 5)
    squares = lot.choice(labels, (-(-size[0] // side), -(-size[1] // side)))
    numbers = np.kron(squares, np.ones((side, side), int))[: size[0], : size[1]]
    for _ in range(int(lot.integers(3))):
        numbers[lot.integers(size[0]), lot.integers(size[1])] = lot.integers(200)
    return numbers.astype(kind)


@pytest.mark.parametrize("seed", range(60))
def test_label_maps_are_compared_as_numpy_compares_them(seed: int, switch: Any) -> None:
    lot = np.random.default_rng(seed)
    size = int(lot.integers(1, 150)), int(lot.integers(1, 150))
    kinds = [np.uint8, np.uint16, np.uint32]
    labels = np.sort(lot.choice(1 << 24, 200, replace=False))
    truth = LabelMap(coarse_map(lot, size, kinds[seed % 3]), labels if seed % 2 else None)
    prediction = LabelMap(coarse_map(lot, size, kinds[seed // 3 % 3]))
    assert KERNEL.label_pairs(truth.numbers, prediction.numbers) is not None

    def compared() -> Any:
        alike = backend().count_label_pairs(truth, prediction)
        reach, inner = reach_of(*size, 0.02), 1 << 24
        edges = backend().count_label_pairs(
            *(
                LabelMap(backend().keep_boundaries(map_.image.astype(np.uint32), reach, inner))
                for map_ in (truth, prediction)
            )
        )
        return [column.tolist() for item in (alike, edges) for column in (item.truth, item.prediction, item.pixels)]

    by_kernel, by_numpy = switch(compared)
    assert by_kernel == by_numpy
    assert sum(by_kernel[2]) == size[0] * size[1]


def test_more_pairs_than_there_is_room_for_at_first_are_counted(switch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_FIRST_PAIRS", 4096)
    numbers = np.arange(5 * kernel._FIRST_PAIRS, dtype=np.uint32).reshape(1, -1)
    for pairs in switch(lambda: backend().count_label_pairs(LabelMap(numbers), LabelMap(numbers))):
        assert pairs.truth.tolist() == pairs.prediction.tolist() == numbers[0].tolist()
        assert pairs.pixels.tolist() == [1] * numbers.size


def test_pairs_of_labels_beyond_all_room_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_FIRST_PAIRS", 4096)
    monkeypatch.setattr(kernel, "_MOST_PAIRS", kernel._FIRST_PAIRS)
    numbers = np.arange(kernel._FIRST_PAIRS + 1, dtype=np.uint32).reshape(1, -1)
    assert KERNEL.label_pairs(numbers, numbers) is None
    assert BACKENDS[0].count_label_pairs(LabelMap(numbers), LabelMap(numbers)).pixels.tolist() == [1] * numbers.size


@pytest.mark.parametrize("seed", range(40))
def test_noise_is_counted_as_numpy_counts_it(seed: int, switch: Any) -> None:
    lot = np.random.default_rng(seed)
    size = int(lot.integers(1, 90)), int(lot.integers(1, 90))
    kinds = [np.uint8, np.uint16, np.uint32]
    sides = []
    for kind in (kinds[seed % 3], kinds[seed // 3 % 3]):
        labels = coarse_map(lot, size, np.int64)
        noisy = lot.random(size) < lot.choice([0.02, 0.3, 1])
        labels[noisy] = lot.integers(0, [256, 1 << 16, 1 << 24][kinds.index(kind)], size)[noisy]
        sides.append(labels.astype(kind))

    def compared() -> Any:
        counts = backend().count_label_pairs(*map(LabelMap, sides))
        values = sorted(zip(*(column.tolist() for column in backend().pair_values(*sides))))
        return [column.tolist() for column in counts], values

    by_kernel, by_numpy = switch(compared)
    assert by_kernel == by_numpy
    pairs, counts = np.unique(np.stack([side.reshape(-1) for side in sides], 1), axis=0, return_counts=True)
    assert by_kernel[1] == [(*pair, count) for pair, count in zip(pairs.tolist(), counts.tolist())]


@pytest.mark.parametrize("labels", [3, 90, 700, 3000])
@pytest.mark.parametrize("room", [1, 5000, 1 << 18])
def test_noise_of_few_and_many_labels_is_counted_in_any_room(
    labels: int, room: int, switch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "_FIRST_PAIRS", room)
    lot = np.random.default_rng(labels)
    names = lot.choice(1 << 24, labels, replace=False).astype(np.uint32)
    sides = [names[coarse_map(lot, (120, 150), np.int64) % labels] for _ in range(2)]
    for side in sides:
        side[40:90, 20:] = lot.choice(names, (50, 130))
    for pairs in switch(lambda: backend().count_label_pairs(*map(LabelMap, sides))):
        unique, counts = np.unique(np.stack([side.reshape(-1) for side in sides], 1), axis=0, return_counts=True)
        assert np.array_equal(np.stack([pairs.truth, pairs.prediction], 1), unique)
        assert pairs.pixels.tolist() == counts.tolist()


@pytest.mark.parametrize("seed", range(20))
def test_points_are_counted_by_the_classes_of_their_labels(seed: int, switch: Any) -> None:
    lot = np.random.default_rng(seed)
    count, labels = int(lot.integers(1, 3000)), int(lot.integers(1, 60))
    classes = lot.integers(0, 9, labels).astype(np.uint16)
    truth, values = (
        np.repeat(lot.integers(0, labels, count), lot.integers(1, 20, count))[:count].astype(np.uint32)
        | (lot.integers(0, 9, count) << 16).astype(np.uint32)
        for _ in range(2)
    )
    table = np.zeros((9, labels), np.int64)
    np.add.at(table, (classes[truth & 0xFFFF], values & 0xFFFF), 1)
    expected = [[row << 16 | label, table[row, label]] for row, label in np.argwhere(table[:8]).tolist()]
    for side in (truth, (truth & 0xFFFF).astype(np.uint16), truth.astype(np.uint8)):
        for cells in switch(lambda side=side: backend().count_points(side, values, classes, (8, labels))):
            assert cells.T.tolist() == expected
    for odd in (truth, values):
        odd[lot.integers(count)] = labels
        assert set(switch(lambda: backend().count_points(truth, values, classes, (8, labels)))) == {None}
        odd[:] = 0


# ── grey maps ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(60))
def test_grey_maps_are_surveyed_as_numpy_surveys_them(seed: int, switch: Any) -> None:
    generator = np.random.default_rng(seed)
    size = [(20, 30), (1, 1), (2, 700), (700, 3), (130, 140)][seed % 5]
    truth = generator.random(size) < generator.choice([0, 0.002, 0.05, 0.5, 1])
    values = generator.integers(0, 256, size).astype(np.uint8) * (generator.random(size) < (0.02, 1)[seed % 2])
    least, near = [0, 0, 3, 255][seed % 4], [18, 18, 0, 4, 63][seed % 5]
    ours, numpys = switch(lambda: backend().measure_surroundings(truth, values.astype(np.uint8), least, near))
    assert (ours.excess == numpys.excess).all()
    assert (ours.spread == numpys.spread).all()
    assert KERNEL.measure_surroundings(truth, values.astype(np.uint8), least, near) is not None


def test_of_pixels_as_near_that_in_the_leftmost_column_is_copied_and_of_it_the_upper(switch: Any) -> None:
    truth = np.zeros((5, 5), bool)
    truth[[0, 2, 2, 4], [2, 0, 4, 2]] = True
    values = np.arange(1, 26, dtype=np.uint8).reshape(5, 5)
    for surroundings in switch(lambda: backend().measure_surroundings(truth, values, 0, 18)):
        assert surroundings.spread[:, 2].tolist() == [3, 3, 11, 23, 23]
        assert surroundings.spread[2].tolist() == [11, 11, 11, 15, 15]
        assert surroundings.spread[1].tolist() == [11, 11, 3, 3, 15]


def test_whatever_is_further_than_the_reach_is_as_far_as_that(switch: Any) -> None:
    truth = np.zeros((2, 700), bool)
    truth[0, 0] = True
    for surroundings in switch(
        lambda: backend().measure_surroundings(truth, np.where(truth, 9, 1).astype(np.uint8), 0, 0)
    ):
        assert surroundings.excess[[1, 2, 4, 255**2]].tolist() == [2, 1, 1, 700 + 700 - 2 * 255]
        assert surroundings.excess.sum() == 1399


@pytest.mark.parametrize("counting", BACKENDS, ids=["kernel", "numpy"])
def test_what_two_masks_share_is_what_their_pixels_share(counting: NumpyBackend) -> None:
    generator = np.random.default_rng(5)
    for _ in range(300):
        size, shares = generator.integers(2, 40, 2), generator.random(2)[:, None, None]
        first, second = generator.random((2, *size)) < shares
        first[0, 0] = second[-1, -1] = True
        shared = counting.count_shared_pixels(run_length_text(first), run_length_text(second))
        assert shared == (first & second).sum()


@pytest.mark.parametrize("block", [1, 3, 40], ids=["long texts", "texts", "short texts"])
def test_masks_are_drawn_and_rearranged_as_their_pixels(block: int, switch: Any) -> None:
    generator, size = np.random.default_rng(8), (90, 130)
    coarse = generator.random((5, 1 + size[0] // block, 1 + size[1] // block)) < 0.4
    pixels = np.kron(coarse, np.ones((1, block, block), bool))[:, : size[0], : size[1]]
    pixels[3], pixels[4] = False, True
    texts = [run_length_text(mask) for mask in pixels]
    places = [generator.integers(0, pixels[0].size, length) for length in (50, 7)]
    changes = [np.logical_not, rle.turn_pixels, lambda mask: mask[::-1], lambda mask: mask[:, ::-1]]

    for drawn in switch(lambda: backend().draw_masks(texts, places, pixels[0].size)):
        for covers, listed in zip(drawn, places):
            assert (covers == [mask.T.reshape(-1)[listed] for mask in pixels]).all()
    for rearranged in switch(
        lambda: [[backend().rearrange_mask(text, size, change) for change in changes] for text in texts]
    ):
        assert rearranged == [[run_length_text(change(mask)) for change in changes] for mask in pixels]


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
def test_labels_of_all_unsigned_types_are_counted_as_numpy_counts_them(kind: Any, switch: Any) -> None:
    generator = np.random.default_rng(6)
    truth, prediction = (np.kron(generator.integers(0, 4, (4, 5)), np.ones((5, 6), int)).astype(kind) for _ in range(2))

    def count() -> Any:
        pairs = backend().count_label_pairs(LabelMap(truth), LabelMap(prediction))
        values = backend().pair_values(truth, prediction)
        boundaries = backend().keep_boundaries(truth, 2, 9)
        return [part.tolist() for part in (*pairs[:3], *values, boundaries)]

    by_kernel, by_numpy = switch(count)
    assert by_kernel == by_numpy
    assert 9 in np.array(by_numpy[-1])


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_surroundings_in_maps_of_8_and_16_bits_are_measured_alike(kind: Any, switch: Any) -> None:
    truth = np.zeros((9, 12), bool)
    truth[2:5, 3:7] = 1
    values = np.random.default_rng(7).integers(0, 200, truth.shape).astype(kind)
    by_kernel, by_numpy = switch(lambda: backend().measure_surroundings(truth, values, 60, 8))
    assert (by_kernel.excess == by_numpy.excess).all()
    assert (by_kernel.spread == by_numpy.spread).all()
