"""Compare the scoring of sequences as large as the Cell Tracking Challenge's with py-ctcmetrics.

    python -m benchmarks.cells [--frames 92] [--repeat N] [--peers FOLDER] [--peer-python PYTHON] [--folder FOLDER]

The set is made by a seeded generator: a sequence of the size of Fluo-N2DL-HeLa's, whose cells are discs that move and
divide, and an answer that misses some, shifts all and swaps labels.  Everything runs on one core; metrics are compared.
"""

from __future__ import annotations

import ast
import json
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.instances import CLOSE
from benchmarks.measuring import Table, Task, add_peers, cost_rows, least, options, segjudge, show, take_turns
from segjudge.evaluation_script.families.cells.files import LABEL, PARENT
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.cells.challenges import encode_tiff, follow_labels, write_tracks

_SIZE, _RADIUS, _STEP = (700, 1100), 11, 3
#: Cells at the beginning, the share that divides in a frame, and that of cells that are missed or swapped.
_CELLS, _DIVIDES, _WRONG = 60, 0.012, 0.02
_COMPARED = ("SEG", "DET", "TRA", "LNK", "CT", "TF", "BC(1)", "CHOTA")


def draw_sequence(frames: int) -> tuple[list[Array], dict[int, int]]:
    """Return label maps, and the parents of labels."""
    generator = np.random.default_rng(3)
    cells = {label: generator.uniform(20, _SIZE) for label in range(1, _CELLS + 1)}
    parents: dict[int, int] = {}
    rows, columns = np.mgrid[-_RADIUS : _RADIUS + 1, -_RADIUS : _RADIUS + 1]
    disc = rows**2 + columns**2 <= _RADIUS**2
    maps, label = [], _CELLS
    for _ in range(frames):
        image = np.zeros(np.add(_SIZE, 2 * _RADIUS), np.uint16)
        for number, place in cells.items():
            row, column = np.clip(place, 0, np.subtract(_SIZE, 1)).astype(int)
            image[row : row + 2 * _RADIUS + 1, column : column + 2 * _RADIUS + 1][disc] = number
        maps.append(image[_RADIUS:-_RADIUS, _RADIUS:-_RADIUS].copy())
        for number in [key for key in cells if generator.random() < _DIVIDES]:
            place = cells.pop(number)
            for side in (-_RADIUS, _RADIUS):
                label += 1
                parents[label], cells[label] = number, np.add(place, (0, side))
        cells = {number: place + generator.normal(0, _STEP, 2) for number, place in cells.items()}
    return maps, parents


def spoil(maps: Sequence[Array]) -> list[Array]:
    """Return a prediction: cells moved by two pixels, some missed, some with another cell's label."""
    generator = np.random.default_rng(4)
    answers = []
    for labels in maps:
        codes = np.arange(int(labels.max()) + 1)
        wrong = np.flatnonzero(generator.random(len(codes)) < _WRONG)
        codes[wrong[::2]] = 0
        codes[wrong[1::2]] = generator.permutation(codes[wrong[1::2]])
        codes[0] = 0
        answers.append(np.roll(codes[labels].astype(np.uint16), 2, axis=1))
    return answers


def write_set(folder: Path, frames: int) -> None:
    """Write the truth and the predictions, also as a zip."""
    maps, parents = draw_sequence(frames)
    tracks = follow_labels(maps, parents)
    answers = spoil(maps)
    sent = follow_labels(answers, {row[LABEL]: row[PARENT] for row in tracks})
    files = {"truth/01_GT/TRA/man_track.txt": write_tracks(tracks).encode()}
    files["answers/01_RES/res_track.txt"] = write_tracks(sent).encode()
    for index, (labels, answer) in enumerate(zip(maps, answers, strict=True)):
        files[f"truth/01_GT/TRA/man_track{index:03d}.tif"] = files[f"truth/01_GT/SEG/man_seg{index:03d}.tif"] = (
            encode_tiff(labels[None])
        )
        files[f"answers/01_RES/mask{index:03d}.tif"] = encode_tiff(answer[None])
    with zipfile.ZipFile(folder / "answers.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
            if name.startswith("answers/"):
                archive.writestr(name.removeprefix("answers/"), data)


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--frames", type=int, default=92)
    parser.add_argument("--folder", help="keep the set here and use it again")
    add_peers(parser)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.folder or temporary).resolve()
        if not (folder / "answers.zip").exists():
            write_set(folder, args.frames)
        truth, packed, scores = folder / "truth", folder / "val.zip", folder / "scores.json"
        pack = segjudge("pack", "--layout", "ctc", "--root", truth, "--out", packed)
        take_turns({"pack": Task(pack)}, 0)
        score = ["--protocol", "ctc-official", "--json", scores]
        ours, script = "segjudge: zip, packed truth", "py-ctcmetrics, one thread"
        code = [args.peer_python, "-m", "ctc_metrics.scripts.evaluate", "-n", "1"]
        code += ["--res", str(folder / "answers/01_RES"), "--gt", str(truth / "01_GT")]
        tasks = {
            ours: Task(segjudge("score", folder / "answers.zip", "--truth", packed, *score)),
            "folders as they are published": Task(segjudge("score", folder / "answers", "--truth", truth, *score)),
            script: Task(code, args.peers / "py-ctcmetrics", is_peer=True),
        }
        runs = take_turns(tasks, args.repeat)
        print(f"{1000 * least(runs[ours]).cpu / args.frames:.1f} ms for each frame, start-up included")
        own = json.loads(scores.read_text())["result"][0]["val"]
        if script in runs:
            printed = runs[script][0].printed.partition("with results: ")[2].partition(" done!")[0]
            values = ast.literal_eval(printed.strip())
            for metric in _COMPARED:
                if abs(values[metric] - own[metric]) > CLOSE:
                    print(f"{script}: {metric} {values[metric]}, here {own[metric]}")
    return show(Table(["scored by", "CPU seconds", "MB", "times ours"], cost_rows(runs, ours)))


if __name__ == "__main__":
    main()
