"""Scores, packs, reports, compares and ranks: `python -m tests.system.daily_commands FOLDER` writes all into a folder.

What is printed is written there too.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

import segjudge
from segjudge.cli import main
from segjudge.commands import UNIX
from segjudge.evaluation_script import evaluate
from segjudge.testing.running import run_in_child
from tests.builders import ROOT, files_of

VIDEOS = ("--truth", str(ROOT / "annotations/sequences-dev.zip"), "--protocol", "davis2017")
IMAGES = ("--truth", str(ROOT / "annotations/instances-dev.zip"), "--protocol", "places2017")
STRONG, LAGGING = (str(ROOT / f"examples/sequences-dev/{name}.zip") for name in ("strong", "lagging"))
SHARP, COARSE = (str(ROOT / f"examples/instances-dev/{name}.json") for name in ("sharp", "coarse"))
#: The commands of every day, by what is printed where.
COMMANDS = {
    "zip": ["score", STRONG, *VIDEOS, "--json", "zip.json", "--csv", "tables", "--save", "strong.scores"],
    "folder": ["score", "results", *VIDEOS, "--json", "folder.json"],
    "tar": ["score", "results.tar", *VIDEOS, "--json", "tar.json", "--jobs", "3"],
    "coco": ["score", SHARP, *IMAGES, "--json", "coco.json", "--save", "sharp.scores"],
    "second": ["score", LAGGING, *VIDEOS, "--save", "lagging.scores"],
    "pack": ["pack", "--layout", "davis2017", "--root", "dataset", "--out", "truth.zip"],
    "packed": ["score", "results", "--truth", "truth.zip", "--protocol", "davis2017", "--json", "packed.json"],
    "page": ["report", STRONG, *VIDEOS, "--out", "page.html"],
    "images": ["report", COARSE, *IMAGES, "--out", "images.html"],
    "compare": ["compare", "strong.scores", "lagging.scores", "--out", "methods.html", "--json", "methods.json"],
    "rank": ["rank", "strong.scores", "lagging.scores", "--out", "ranking.html"],
    "compress": ["compress", STRONG, "--out", "small.zip"],
    "demo": ["demo", "--out", "demo"],
    "part": ["score", STRONG, *VIDEOS, "--part", "1/2", "--out", "half.part"],
}


def lay_out(folder: Path) -> None:
    """Write the results as a folder and a tar, and a dataset with their masks as its truth."""
    with zipfile.ZipFile(STRONG) as archive:
        archive.extractall(folder / "results")
    with tarfile.open(folder / "results.tar", "w") as archive:
        for name, data in files_of(Path(STRONG)).items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    masks = sorted((folder / "results").rglob("*.png"))
    for mask in masks:
        copy = folder / "dataset/Annotations/480p" / mask.parent.name / mask.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(mask.read_bytes())
    lists = folder / "dataset/ImageSets/2017"
    lists.mkdir(parents=True)
    (lists / "val.txt").write_text("".join(f"{name}\n" for name in sorted({mask.parent.name for mask in masks})))


def score_in_python() -> dict[str, object]:
    scores = segjudge.score(STRONG, VIDEOS[1], VIDEOS[3])
    truth = np.zeros((5, 40, 60), np.uint8)
    truth[:, 10:30, 10:30] = 1
    arrays = segjudge.score_arrays({"box": truth}, {"box": np.roll(truth, 3, 2)}, "davis2017")
    answer = evaluate(VIDEOS[1], STRONG, "sequences-dev")
    return {"score": scores.flat(), "score_arrays": arrays.flat(), "evaluate": answer["result"]}


def run_forking(folder: Path) -> None:
    """Run the conformance kit, and where there is no fork the commands that need it."""
    os.chdir(folder)
    _run({} if hasattr(os, "fork") else {name: [name] for name in sorted(UNIX)})
    Path("kit.json").write_text(json.dumps(work_apart()), encoding="utf-8")


def run_all(folder: Path) -> None:
    run_forking(folder)
    lay_out(folder)
    _run(COMMANDS)
    with redirect_stdout(io.StringIO()) as printed:
        answers = score_in_python()
    Path("python.json").write_text(json.dumps(answers), encoding="utf-8")
    Path("python.err").write_text(printed.getvalue(), encoding="utf-8")


def _run(commands: dict[str, list[str]]) -> None:
    """Run commands; write what each prints to files."""
    for name, message in commands.items():
        stdout, stderr = io.StringIO(), io.StringIO()
        with redirect_stdout(stdout), redirect_stderr(stderr):
            try:
                code: object = main(message)
            except SystemExit as error:
                code = error.code
        Path(f"{name}.out").write_text(f"{stdout.getvalue()}exit code {code}\n", encoding="utf-8")
        Path(f"{name}.err").write_text(stderr.getvalue(), encoding="utf-8")


def work_apart() -> object:
    """Run the conformance kit in a separate process; return its output, or the reason why it cannot run."""
    try:
        ((name, outcome),) = run_in_child([("kit", lambda: 1 + 2)], 60.0, 1 << 30)
    except segjudge.UsageError as error:
        return str(error)
    return [name, outcome.kind, outcome.text]


if __name__ == "__main__":
    (run_forking if sys.argv[2:] == ["forking"] else run_all)(Path(sys.argv[1]))
