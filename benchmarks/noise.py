"""Compare the scoring of smooth predictions with predictions that have speckle and ragged edges.

    python -m benchmarks.noise [FAMILY …] [--scale 1] [--repeat N]

Every set is made by a seeded generator and is no benchmark's data.  Truths are regions of many sizes with straight and
curved edges.  The clean prediction is the truth, moved by some pixels.  The other one has labels drawn again at five
in a hundred pixels, as networks leave them that look at each pixel by itself, and edges that are off by up to three pixels;
of LiDAR scans every seventh point is wrong.  Everything runs on one core.  Beside `ade20k` runs a loop over the same PNGs
by Pillow and `np.bincount`, and its mIoU is compared.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.instances import CLOSE
from benchmarks.measuring import Table, Task, least, options, segjudge, show, take_turns
from benchmarks.scans import draw_scan
from segjudge.evaluation_script.masks.stack import Array
from segjudge.masks.compression import grey_png

#: The kinds of predictions; the clean one is first.
KINDS = ("clean", "speckled")
#: The share of pixels that have any label, how far edges are off, and how far the clean prediction is moved.
_SPECKLE, _RAGGED, _SHIFT = 0.05, 3, 5
_EFFORT = 3
#: A plain program's handling of label maps.
_LOOP = """
import json, sys
from pathlib import Path
import numpy as np
from PIL import Image
truth, results, out = map(Path, sys.argv[1:])
table = np.zeros((151, 151), np.int64)
for path in sorted(truth.glob("*.png")):
    true, sent = (np.array(Image.open(side / path.name)).astype(np.int64) for side in (truth, results))
    table += np.bincount((true * 151 + sent).ravel(), minlength=151 * 151).reshape(151, 151)
table[0] = 0
hits, union = np.diagonal(table)[1:], (table.sum(0) + table.sum(1) - np.diagonal(table))[1:]
present = table.sum(1)[1:] > 0
out.write_text(json.dumps({"mIoU": float((hits[present] / union[present]).mean())}))
"""


def draw_regions(generator: np.random.Generator, size: tuple[int, int], labels: Array, count: int) -> Array:
    """Return a map of regions: each pixel has the label of its nearest point, by warped distances."""
    points = generator.uniform(0, 1, (count, 2)) * size
    stretch = generator.uniform(0.5, 2, (count, 2))
    rows, columns = np.ogrid[: size[0] : 2, : size[1] : 2]
    nearest, image = np.full((len(rows), columns.shape[1]), np.inf), np.zeros((len(rows), columns.shape[1]), np.int64)
    for (y, x), (tall, wide), label in zip(points, stretch, generator.choice(labels, count), strict=True):
        distance = (tall * (rows - y)) ** 2 + (wide * (columns - x)) ** 2
        closer = distance < nearest
        nearest[closer], image[closer] = distance[closer], label
    return image.repeat(2, 0).repeat(2, 1)[: size[0], : size[1]]


def predict(generator: np.random.Generator, truth: Array, labels: Array, kind: str) -> Array:
    """Return a prediction of one of the kinds."""
    if kind == KINDS[0]:
        return np.roll(truth, _SHIFT, (0, 1))
    rows, columns = np.indices(truth.shape)
    off = generator.integers(-_RAGGED, _RAGGED + 1, (2, *truth.shape))
    rows, columns = (
        np.clip(at + by, 0, side - 1) for at, by, side in zip((rows, columns), off, truth.shape, strict=True)
    )
    answer = truth[rows, columns]
    noisy = generator.random(truth.shape) < _SPECKLE
    answer[noisy] = generator.choice(labels, np.count_nonzero(noisy))
    return answer


def _write_labels(folder: Path, images: int, size: tuple[int, int], labels: Array, regions: int, ending: str) -> None:
    generator = np.random.default_rng(4)
    kind = np.uint8 if labels.max() < 256 else np.uint16
    for number in range(images):
        chosen = labels if labels.max() < 256 else np.append(0, generator.permutation(labels)[:regions])
        truth = draw_regions(generator, size, chosen, regions)
        sides = {"truth": truth, **{name: predict(generator, truth, chosen, name) for name in KINDS}}
        for side, image in sides.items():
            (folder / side).mkdir(exist_ok=True)
            (folder / side / f"{number:04d}{ending}").write_bytes(grey_png(image.astype(kind), _EFFORT))


def _write_greys(folder: Path, images: int) -> None:
    generator = np.random.default_rng(4)
    for number in range(images):
        truth = draw_regions(generator, (300, 400), np.array([0, 0, 0, 255]), 12)
        levels = np.array([20, 90, 160, 255])
        clean = np.where(truth > 0, 230, 0)
        sides = {"truth": truth, "clean": clean, "speckled": predict(generator, clean, levels, "speckled")}
        for side, image in sides.items():
            (folder / side).mkdir(exist_ok=True)
            (folder / side / f"{number:04d}.png").write_bytes(grey_png(image.astype(np.uint8), _EFFORT))


def _write_scans(folder: Path, scans: int) -> None:
    generator = np.random.default_rng(8)
    for number in range(scans):
        truth, clean = draw_scan(generator, "stretches")
        speckled = truth.copy()
        speckled[::7] = generator.choice(np.unique(truth), len(speckled[::7]))
        for side, points in {"truth": truth, "clean": clean, "speckled": speckled}.items():
            kind = "labels" if side == "truth" else "predictions"
            path = folder / side / f"sequences/08/{kind}/{number:06d}.label"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(points.tobytes())


#: Protocol → how its set is written, for a scale; how many units a scale of 1 has.
FAMILIES: dict[str, tuple[Callable[[Path, int], None], int]] = {
    "ade20k": (lambda folder, count: _write_labels(folder, count, (512, 683), np.arange(151), 40, ".png"), 100),
    "cellpose-ap": (
        lambda folder, count: _write_labels(folder, count, (512, 512), np.arange(1, 1 << 12), 150, "_masks.png"), 60
    ),
    "sod": (_write_greys, 100),
    "semantic-kitti": (_write_scans, 140),
    "semantic-kitti-panoptic": (_write_scans, 140),
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="protocols; by default all")
    parser.add_argument("--scale", type=float, default=1, help="how many times as many images")
    args = parser.parse_args(arguments)
    rows = []
    for protocol in args.families or FAMILIES:
        write, units = FAMILIES[protocol]
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary).resolve()
            write(folder, max(2, round(args.scale * units)))
            tasks = {
                kind: Task(segjudge("score", folder / kind, "--truth", folder / "truth", "--protocol", protocol,
                                    "--json", folder / f"{kind}.json"))
                for kind in KINDS
            }  # fmt: skip
            if protocol == "ade20k":
                for kind in KINDS:
                    command = [sys.executable, "-c", _LOOP, str(folder / "truth"), str(folder / kind)]
                    tasks[f"loop {kind}"] = Task([*command, str(folder / f"loop {kind}.json")])
            runs = take_turns(tasks, args.repeat)
            costs = {name: least(known).cpu for name, known in runs.items()}
            for kind in KINDS if protocol == "ade20k" else ():
                own, value = (json.loads((folder / f"{name}{kind}.json").read_text()) for name in ("", "loop "))
                if abs(own["result"][0]["val"]["mIoU"] - value["mIoU"]) > CLOSE:
                    print(f"ade20k, {kind}: the loop has mIoU {value['mIoU']}, here {own['result'][0]['val']['mIoU']}")
            clean, speckled = (costs[kind] for kind in KINDS)
            rows.append([f"`{protocol}`", f"{clean:.2f}", f"{speckled:.2f}", f"{speckled / clean:.2g}"])
            if protocol == "ade20k":
                loop = [costs[f"loop {kind}"] for kind in KINDS]
                rows.append(["Pillow and np.bincount", *(f"{cost:.2f}" for cost in loop), f"{loop[1] / loop[0]:.2g}"])
    return show(Table(["scored by", "clean", "with noise", "ratio"], rows))


if __name__ == "__main__":
    main()
