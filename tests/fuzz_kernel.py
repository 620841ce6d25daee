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
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from segjudge.evaluation_script import kernel, kernel_runs
from segjudge.evaluation_script.kernel_frames import LABELS, PackedFrames, compare
from segjudge.evaluation_script.masks import Stack, words_across
from segjudge.kernel.compiling import SOURCES

SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]
#: The setting by which the process under the sanitizers knows its library.
LIBRARY = "SEGJUDGE_FUZZED"


def sanitized(folder: Path, sources: Path = SOURCES) -> dict[str, str]:
    """Compile the kernel with sanitizers; return the environment of a Python that loads it."""
    compiler = shutil.which("gcc") or "gcc"
    library = folder / "kernel.so"
    files = sorted(map(str, sources.glob("*.c")))
    subprocess.run([compiler, "-std=c99", "-fPIC", "-shared", *SANITIZERS, *files, "-o", library], check=True)
    asan = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    options = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
    options["PYTHONMALLOC"] = "malloc"  # so that the sanitizer watches the bytes of each small object too
    return {**os.environ, **options, "LD_PRELOAD": asan.stdout.strip(), LIBRARY: str(library)}


def rows(generator: random.Random, loaded: ctypes.CDLL) -> None:
    """Filtered rows of every depth, of masks and of noise, a length that may be wrong, slots that may run out."""
    depth = generator.choice([0, 1, 2, 4, 8, 8, 8, 3, 16])
    size = (generator.randrange(1, 20), generator.choice([1, 7, 8, 63, 64, 65, 127, 128, 200]))
    step = 1 + (size[1] * depth + 7) // 8 if depth else size[1]
    length = max(0, size[0] * step + generator.choice([0, 0, 0, 0, -1, -9, 1, 40]))
    noise = generator.choice([0, 0.02, 1])
    data = bytearray(generator.randrange(256) if generator.random() < noise else 0 for _ in range(length))
    for y in range(size[0]):
        if depth and y * step < length:
            data[y * step] = generator.choice([0, 1, 2, 3, 4, 4, 9])
    frames = PackedFrames(size, generator.randrange(1, 3), loaded)
    most = generator.choice([0, 1, 3, LABELS])
    for frame in range(frames.most_frames):
        exactly = np.array(data, np.uint8)  # bytes would end with one more, which nobody may read
        frames.add(frame, memoryview(exactly), depth, most, merged=generator.random() < 0.3)
    frames.take(frames.most_frames)


def boundaries(generator: random.Random, loaded: ctypes.CDLL) -> None:
    """Two stacks anywhere in a frame, or beyond it, and disks that are none."""
    size = (generator.randrange(1, 40), generator.choice([1, 63, 64, 65, 130, 300]))
    frames = generator.randrange(3)
    stacks = []
    for _ in range(2):
        top, left = generator.randrange(size[0] + 1), generator.randrange(words_across(size[1]) + 1)
        shape = (frames, generator.randrange(size[0] - top + 2), generator.randrange(words_across(size[1]) - left + 2))
        words = np.frombuffer(generator.randbytes(8 * int(np.prod(shape))), np.uint64).reshape(shape).copy()
        words[np.frombuffer(generator.randbytes(words.size), np.uint8).reshape(shape) > generator.randrange(256)] = 0
        last = size[1] % 64
        if last and shape[2] and left + shape[2] == words_across(size[1]):
            words[:, :, -1] &= np.uint64((1 << last) - 1)
        stacks.append(Stack(words, top, left, size))
    radius = generator.choice([0, 1, 3, 8, 70])
    disk = tuple(
        (dx, -generator.randrange(radius + 1), generator.randrange(radius + 1)) for dx in range(-radius, radius + 1)
    )
    compare(stacks[0], stacks[1], disk, loaded)


def text_of(generator: random.Random) -> str:
    """Characters of run lengths, and sometimes others."""
    characters = range(48, 112) if generator.random() < 0.8 else range(1, 128)
    return "".join(chr(generator.choice(characters)) for _ in range(generator.randrange(40)))


def sound(generator: random.Random, pixels: int) -> str:
    """The text of a mask that fills its image."""
    from segjudge.evaluation_script.rle import compressed

    cuts = sorted(generator.randrange(pixels + 1) for _ in range(generator.randrange(12)))
    return compressed([int(run) for run in np.diff([0, *cuts, pixels])])


def runs(generator: random.Random, loaded: ctypes.CDLL) -> None:
    """Texts that may be anything, checked and compared in groups."""
    texts = [generator.choice([text_of(generator), sound(generator, 99)]) for _ in range(generator.randrange(9))]
    kernel_runs.check_runs(texts, np.array([generator.choice([0, 99, 1 << 40]) for _ in texts], np.int64), loaded)
    groups = [
        [
            [generator.choice([text_of(generator), sound(generator, 99)]) for _ in range(generator.randrange(4))]
            for _ in range(3)
        ]
        for _ in range(2)
    ]
    crowds = [[generator.randrange(2) for _ in group] for group in groups[1]]
    try:
        kernel_runs.overlaps(kernel_runs.Groups(groups[0], groups[1], crowds), loaded)
    except ValueError:
        pass


def records(generator: random.Random, loaded: ctypes.CDLL) -> None:
    """Records of the usual form, with a few characters changed, left out or cut off."""
    one = {"image_id": generator.randrange(-9, 99), "category_id": 1, "score": generator.random()}
    some = [
        {**one, "segmentation": {"size": [9, 11], "counts": sound(generator, 99)}}
        for _ in range(generator.randrange(1, 4))
    ]
    text = list(json.dumps(some)[1:-1])
    for _ in range(generator.choice([0, 1, 1, 3, 20])):
        at = generator.randrange(len(text))
        text[at : at + generator.randrange(2)] = generator.choice(
            ['"', "\\", "{", "}", "[", ",", "9" * 30, "e", "", "\0", "-", "."]
        )
    kernel_runs.records("".join(text)[: generator.choice([None, generator.randrange(1, 300)])], loaded)


TARGETS: tuple[Callable[[random.Random, ctypes.CDLL], None], ...] = (rows, boundaries, runs, records)


def fuzz(seed: int, inputs: int, seconds: float) -> int:
    """Try so many inputs for each target, or as many as fit into some seconds; return how many."""
    loaded = kernel._load(os.environ[LIBRARY])
    until, done = time.monotonic() + seconds, 0
    while done < inputs or time.monotonic() < until:
        for number, target in enumerate(TARGETS):
            target(random.Random(seed * 1_000_003 + done * len(TARGETS) + number), loaded)
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
