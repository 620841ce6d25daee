"""What scoring costs as sets grow, on two cores, and in parts: the figures of `docs/scale.md`.

    python -m benchmarks.scale [--sequences 10000] [--parts 64] [--repeat 3]

Every set repeats the same few synthetic videos (30 frames of 480×854 pixels, 3 objects) under other names.
CPU is user and system time of a process and its children, from bytecode as installed packages have it. Starting is
what the command takes for a set of one sequence; opening is to read the lists of what truth and results hold, which
grows with the set, and is measured by scoring a single sequence of it. The start-up of a part is what an empty part
takes.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from segjudge.datasets.demo import scene
from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.files.packed import add_member

VIDEOS, FRAMES = 10, 30


def write_videos(folder: Path) -> None:
    """Write the few videos: a packed truth, and results as a zip."""
    with zipfile.ZipFile(folder / "plain.zip", "w") as truth, zipfile.ZipFile(folder / "sent.zip", "w") as sent:
        for number in range(VIDEOS):
            video = scene(str(number), number, objects=3, frames=FRAMES)
            for frame in range(FRAMES):
                for archive, grow in ((truth, 0.0), (sent, -1.5)):
                    out = io.BytesIO()
                    Image.fromarray(np.kron(video.labels(frame, grow), np.ones((4, 5), np.uint8))).save(out, "PNG")
                    archive.writestr(f"{number}/{frame:05d}.png", out.getvalue())
    sequence_truth.write(str(folder / "packed.zip"), dataset_reader.read(str(folder / "plain.zip")).splits)


def write_set(folder: Path, count: int) -> tuple[str, str]:
    """Write so many sequences; return the paths of the results and of the truth."""
    paths = str(folder / f"sent-{count}.zip"), str(folder / f"truth-{count}.zip")
    with zipfile.ZipFile(folder / "sent.zip") as source, zipfile.ZipFile(paths[0], "w") as archive:
        masks = {name: source.read(name) for name in source.namelist()}
        for number in range(count):
            for frame in range(FRAMES):
                archive.writestr(f"v{number:06d}/{frame:05d}.png", masks[f"{number % VIDEOS}/{frame:05d}.png"])
    with zipfile.ZipFile(folder / "packed.zip") as source, zipfile.ZipFile(paths[1], "w") as archive:
        manifest = json.loads(source.read("manifest.json"))
        entries = {entry["name"]: entry for entry in manifest["splits"]["val"]["sequences"]}
        blocks = {name: source.read(name) for name in source.namelist()}
        named = []
        for number in range(count):
            entry = entries[str(number % VIDEOS)]
            named.append({**entry, "name": f"v{number:06d}"})
            for index in range(len(entry["blocks"])):
                member = f"masks/val/v{number:06d}/{index:05d}"
                add_member(archive, member, blocks[f"masks/val/{entry['name']}/{index:05d}"])
        manifest["splits"]["val"]["sequences"] = named
        add_member(archive, "manifest.json", json.dumps(manifest).encode())
    return paths


def run(*words: str) -> tuple[float, float, float]:
    """Run `segjudge`; return CPU seconds, wall seconds, and megabytes of its largest process."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "segjudge", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"segjudge {' '.join(words)} failed")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - started, usage.ru_maxrss / 1024


def scoring(paths: tuple[str, str], *options: str) -> list[str]:
    return ["score", paths[0], "--truth", paths[1], "--protocol", "davis2017", *options]


def best(repeat: int, *words: str) -> tuple[float, float, float]:
    """Return the least of several runs."""
    return min(run(*words) for _ in range(repeat))


def show_growth(folder: Path, most: int, repeat: int) -> tuple[str, str]:
    """Print what a sequence costs in sets of any size; return the paths of the largest."""
    start = best(repeat, *scoring(write_set(folder, 1)))[0]
    print(f"starting: {start:.2f} CPU-s")
    count = 10
    while True:
        paths = write_set(folder, count)
        cpu, wall, megabytes = best(repeat if count < 1000 else 1, *scoring(paths))
        opening = run(*scoring(paths, "--sequences", "v000000"))[0] - start
        print(
            f"{count:6d} sequences: {cpu:7.2f} CPU-s, {wall:7.2f} s, {megabytes:.0f} MB; of it {opening:.2f} opening; "
            f"{1000 * (cpu - start) / count:.2f} ms for each sequence"
        )
        if count >= most:
            return paths
        count = min(most, count * 10)


def show_cores(paths: tuple[str, str], repeat: int) -> None:
    """Print how much sooner two cores are done."""
    runs = [[run(*scoring(paths, "--jobs", str(jobs))) for jobs in (1, 2)] for _ in range(repeat)]
    one, two = (min(each[index][1] for each in runs) for index in (0, 1))
    print(f"two cores: {one:.1f} s against {two:.1f} s: {one / two:.2f} times")


def in_parts(folder: Path, paths: tuple[str, str], parts: int) -> tuple[float, float, float, float]:
    """Return the CPU seconds of all parts, of as many empty ones, and of merging, and the megabytes of merging."""
    files, scored, empty = [str(folder / f"part-{number}") for number in range(parts)], 0.0, 0.0
    for number, file in enumerate(files, 1):  # in turns, since the machine may be busy now and then
        empty += run(*scoring(paths, "--part", "100000/100000", "--out", str(folder / "empty")))[0]
        scored += run(*scoring(paths, "--part", f"{number}/{parts}", "--out", file))[0]
    merging, _, megabytes = run("merge", *files)
    return scored, empty, merging, megabytes


def show_parts(folder: Path, paths: tuple[str, str], parts: int) -> None:
    """Print what parts cost beside one run, which is measured before and after them."""
    first = run(*scoring(paths))[0]
    scored, empty, merging, megabytes = in_parts(folder, paths, parts)
    whole = (first + run(*scoring(paths))[0]) / 2
    start = in_parts(folder, write_set(folder, 1), 1)[2]
    more = (scored + merging - empty - start) / (whole - empty / parts) - 1
    print(
        f"{parts} parts: {scored:.1f} CPU-s, of it {empty:.1f} starting and opening ({empty / parts:.2f} each); "
        f"merging {merging:.2f} CPU-s and {megabytes:.0f} MB; one run {whole:.1f}: {more:+.1%}, start-ups apart"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=10_000)
    parser.add_argument("--parts", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_videos(folder)
        paths = show_growth(folder, args.sequences, args.repeat)
        show_cores(paths, args.repeat)
        show_parts(folder, paths, args.parts)


if __name__ == "__main__":
    main()
