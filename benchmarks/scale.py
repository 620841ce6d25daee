"""Measure the cost of scoring by the size of a set, and in parts.

    python -m benchmarks.scale [--sequences 10000] [--parts 64] [--repeat 3]

Every set repeats the same few synthetic videos (30 frames of 480×854 pixels, 3 objects) under other names.
Starting is what the command takes for a set of one sequence; opening is to read the lists of what truth and results hold,
which grows with the set, and is measured by scoring a single sequence of it. The start-up of a part is what an empty part
takes.
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.measuring import Run, Table, least, options, run, segjudge, show
from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.files.packed import add_member
from segjudge.masks.demo import make_scene

VIDEOS, FRAMES = 10, 30


def write_videos(folder: Path) -> None:
    """Write a few videos: a packed truth, and results as a zip."""
    with zipfile.ZipFile(folder / "plain.zip", "w") as truth, zipfile.ZipFile(folder / "sent.zip", "w") as sent:
        for number in range(VIDEOS):
            video = make_scene(str(number), number, objects=3, frames=FRAMES)
            for frame in range(FRAMES):
                for archive, grow in ((truth, 0.0), (sent, -1.5)):
                    out = io.BytesIO()
                    Image.fromarray(np.kron(video.labels(frame, grow), np.ones((4, 5), np.uint8))).save(out, "PNG")
                    archive.writestr(f"{number}/{frame:05d}.png", out.getvalue())
    sequence_truth.write(str(folder / "packed.zip"), dataset_reader.read(str(folder / "plain.zip")).splits)


def write_set(folder: Path, count: int) -> tuple[str, str]:
    """Write a number of sequences; return the paths of the results and of the truth."""
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


def scored(paths: tuple[str, str], *arguments: str, repeat: int = 1) -> Run:
    """Score a set several times; return the cheapest run."""
    command = segjudge("score", paths[0], "--truth", paths[1], "--protocol", "davis2017", *arguments)
    return least([run(command) for _ in range(repeat)])


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--sequences", type=int, default=10_000)
    parser.add_argument("--parts", type=int, default=64)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_videos(folder)
        alone = write_set(folder, 1)
        scored(alone)
        start = scored(alone, repeat=args.repeat).cpu
        rows, counts = [["starting", f"{start:.2f} CPU-s"]], [10]
        while counts[-1] < args.sequences:
            counts.append(min(args.sequences, 10 * counts[-1]))
        for count in counts:
            paths = write_set(folder, count)
            whole = scored(paths, repeat=args.repeat if count < 1000 else 1)
            opening = 1000 * (scored(paths, "--sequences", "v000000").cpu - start) / count / FRAMES
            each = 1000 * (whole.cpu - start) / count
            cost = f"{whole.cpu:.2f} CPU-s, {whole.megabytes:.0f} MB: {each:.2f} ms per video"
            rows.append([f"{count:,} videos", f"{cost}, {opening:.3f} ms per mask for opening"])
        rows += rows_of_parts(folder, paths, args.parts)
    return show(Table(["", "measured"], rows))


def rows_of_parts(folder: Path, paths: tuple[str, str], count: int) -> list[list[str]]:
    """Return the costs of parts and of one run, measured in turns."""
    first = scored(paths).cpu
    files = [str(folder / f"part-{number}") for number in range(1, count + 1)]
    counting = empty = 0.0
    for number, file in enumerate(files, 1):
        empty += scored(paths, "--part", "100000/100000", "--out", str(folder / "empty")).cpu
        counting += scored(paths, "--part", f"{number}/{count}", "--out", file).cpu
    merging = run(segjudge("merge", *files))
    whole = (first + scored(paths).cpu) / 2
    more = (counting + merging.cpu - empty) / (whole - empty / count) - 1
    return [
        ["a part, before counting", f"{empty / count:.2f} CPU-s, starting and opening"],
        [
            f"{count} parts",
            f"{counting:.1f} CPU-s, {counting - empty:.1f} without starting and opening; one run {whole:.1f}",
        ],
        [
            "merging",
            f"{merging.cpu:.2f} CPU-s, {merging.megabytes:.0f} MB; parts and merging {more:+.1%} without start-ups",
        ],
    ]


if __name__ == "__main__":
    main()
