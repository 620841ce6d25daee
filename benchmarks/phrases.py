"""Score predictions for SA-Co Gold at its real size, and for as many expressions as in gRefCOCO's `val`.

    python -m benchmarks.phrases [--pairs 170000] [--expressions 15000] [--repeat N] [--peer-python PYTHON]

The sets are made by a seeded generator: ellipses of 480p, and answers that lie off them, withdrawn or too many now and
then.  SA-Co's script has terms of its own, and is not run; gRefCOCO's rules stand beside ours as one writes them by
pycocotools and NumPy.  Everything runs on one core; gIoU is compared.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.instances import CLOSE
from benchmarks.measuring import Table, Task, add_peers, check_peer, cost_rows, options, segjudge, show, take_turns
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.masks.run_lengths import runs_of_mask

_SIZE = (480, 640)
#: Ellipses, each drawn with so many that lie a little off it.
_SHAPES, _NEAR = 400, 4
_SUBSETS, _ANNOTATORS = ("attributes", "crowded", "food", "metaclip", "sa1b", "sports", "wiki"), "abc"
#: The shares of pairs that show what they name, of expressions without a target, and of answers that switch the object.
_POSITIVE, _NO_TARGET, _WRONG = 0.2, 0.2, 0.1
_OBJECTS = 4.0
_PEER = "pycocotools and NumPy"
_CODE = """
import json, sys
import numpy as np
from pycocotools import mask
folder, out = sys.argv[1:]
target = {a["id"]: a["segmentation"] for a in json.load(open(folder + "/truth/instances.json"))["annotations"]}
answers = {line["sent_id"]: line for line in map(json.loads, open(folder + "/answers.jsonl"))}
values, shared, either = [], 0, 0
for record in json.load(open(folder + "/truth/grefs.json")):
    answer = answers[record["sentences"][0]["sent_id"]]
    said = mask.decode(answer["segmentation"]) * (not answer["no_target"])
    meant = np.zeros_like(said)
    for name in record["ann_id"]:
        if name >= 0:
            meant |= mask.decode(target[name])
    both, any_ = np.logical_and(said, meant).sum(), np.logical_or(said, meant).sum()
    shared, either = shared + both, either + any_
    values.append(both / any_ if record["ann_id"] != [-1] else float(answer["no_target"]))
json.dump({"gIoU": float(np.mean(values)), "cIoU": float(shared / either)}, open(out, "w"))
"""

Mask = dict[str, Any]


def draw_shapes(generator: np.random.Generator) -> list[list[Mask]]:
    """Return ellipses as run lengths, each with slightly moved copies."""
    y, x = np.ogrid[: _SIZE[0], : _SIZE[1]]
    shapes = []
    for _ in range(_SHAPES):
        at, radii = generator.uniform(0.1, 0.9, 2) * _SIZE, generator.lognormal(3.3, 0.6, 2).clip(4, 200)
        near = []
        for off in [0.0, *generator.uniform(0.02, 0.5, _NEAR)]:
            row, column = at + off * radii
            mask = ((y - row) / radii[0]) ** 2 + ((x - column) / radii[1]) ** 2 < 1
            near.append({"size": list(_SIZE), "counts": compress(runs_of_mask(mask))})
        shapes.append(near)
    return shapes


def write_phrases(folder: Path, pairs: int) -> None:
    """Write SA-Co's JSON of all subsets and annotators, and results."""
    generator = np.random.default_rng(3)
    shapes = draw_shapes(generator)
    (folder / "truth").mkdir()
    with zipfile.ZipFile(folder / "results.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for subset in _SUBSETS:
            images: list[Mask] = []
            annotations: dict[str, list[Mask]] = {letter: [] for letter in _ANNOTATORS}
            records: list[Mask] = []
            for pair in range(max(2, pairs // len(_SUBSETS))):
                image = {"id": pair, "file_name": f"{pair}.jpg", "text_input": f"phrase {pair}"}
                images.append(
                    image | dict(zip(("height", "width"), _SIZE, strict=True)) | {"is_instance_exhaustive": 1}
                )
                number = int(generator.geometric(1 / _OBJECTS)) if generator.random() < _POSITIVE else 0
                for shape in generator.integers(_SHAPES, size=number).tolist():
                    for letter, share in zip(_ANNOTATORS, generator.random(len(_ANNOTATORS)), strict=True):
                        if share > _WRONG:
                            mask = shapes[shape][int(generator.integers(2))]
                            entry = {"id": len(annotations[letter]) + 1, "image_id": pair, "category_id": 1}
                            annotations[letter].append({**entry, "iscrowd": 0, "segmentation": mask})
                    mask = shapes[shape][int(generator.integers(_NEAR + 1))]
                    score = round(generator.uniform(0.3, 1), 3)
                    records.append({"image_id": pair, "category_id": 1, "segmentation": mask, "score": score})
                if generator.random() < _WRONG:
                    mask = shapes[int(generator.integers(_SHAPES))][0]
                    records.append({"image_id": pair, "category_id": 1, "segmentation": mask, "score": 0.7})
            for letter, entries in annotations.items():
                document = {"images": images, "annotations": entries, "categories": [{"id": 1, "name": "object"}]}
                name = f"gold_{subset}_merged_{letter}_release_test"
                (folder / "truth" / f"{name}.json").write_text(json.dumps(document))
            archive.writestr(f"gold_{subset}_merged_release_test.json", json.dumps(records))


def write_expressions(folder: Path, expressions: int) -> None:
    """Write gRefCOCO's JSON, and predictions."""
    generator = np.random.default_rng(4)
    shapes = draw_shapes(generator)
    (folder / "truth").mkdir()
    annotations = [
        {"id": number + 1, "image_id": 1, "iscrowd": 0, "segmentation": near[0]} for number, near in enumerate(shapes)
    ]
    image = {"id": 1, "file_name": "1.jpg"} | dict(zip(("height", "width"), _SIZE, strict=True))
    (folder / "truth/instances.json").write_text(json.dumps({"images": [image], "annotations": annotations}))
    records, lines = [], []
    for number in range(expressions):
        shape, near = int(generator.integers(_SHAPES)), int(generator.integers(_NEAR + 1))
        without, wrong = generator.random(2) < (_NO_TARGET, _WRONG)
        sentence = {"sent_id": number, "sent": f"expression {number}"}
        target = [-1 if without else shape + 1]
        records.append({"image_id": 1, "split": "val", "ann_id": target, "sentences": [sentence]})
        said = {"segmentation": shapes[shape][near], "no_target": bool(without != wrong)}
        lines.append(json.dumps({"sent_id": number, **said}))
    (folder / "truth/grefs.json").write_text(json.dumps(records))
    (folder / "answers.jsonl").write_text("\n".join(lines))


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--pairs", type=int, default=170_000)
    parser.add_argument("--expressions", type=int, default=15_000)
    add_peers(parser)
    args = parser.parse_args(arguments)
    rows = []
    for protocol, layout, write, number, noun, results in (
        ("sa-co-gold", "sa-co", write_phrases, args.pairs, "pairs × 3 annotators", "results.zip"),
        ("grefcoco", "grefcoco", write_expressions, args.expressions, "expressions", "answers.jsonl"),
    ):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary).resolve()
            write(folder, number)
            packed, scores, theirs = folder / "val.zip", folder / "scores.json", folder / "peer.json"
            take_turns(
                {"pack": Task(segjudge("pack", "--layout", layout, "--root", folder / "truth", "--out", packed))}, 0
            )
            ours = f"`{protocol}`: {number:,} {noun}"
            score = segjudge("score", folder / results, "--truth", packed, "--protocol", protocol, "--json", scores)
            tasks = {ours: Task(score)}
            if protocol == "grefcoco":
                tasks[_PEER] = Task([args.peer_python, "-c", _CODE, str(folder), str(theirs)], is_peer=True)
            runs = take_turns(tasks, args.repeat)
            rows += cost_rows(runs, ours)
            if _PEER in runs:
                check_peer(_PEER, scores, theirs, CLOSE)
    return show(Table(["scored by", "CPU seconds", "MB", "times ours"], rows))


if __name__ == "__main__":
    main()
