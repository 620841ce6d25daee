"""Compare the scoring of grey maps, as large as DUTS's and in 4K, with PySODMetrics.

    python -m benchmarks.saliency [--images 150] [--large 2] [--repeat N] [--peers FOLDER] [--peer-python PYTHON]

The sets are made by a seeded generator: an object of a few lobes, and a map with soft edges, in one of them with noise, so
that it is nowhere quite black, which takes longest.  Everything runs on one core; metrics are compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np

from benchmarks.instances import CLOSE
from benchmarks.measuring import Table, Task, add_peers, check_peer, cost_rows, options, segjudge, show, take_turns
from segjudge.evaluation_script.masks.stack import Array
from segjudge.masks.compression import grey_png

#: The sizes of images, of most and of large ones.
_USUAL, _LARGE = (300, 400), (2160, 3840)
_NOISE, _SHARPNESS, _LOBES = 5, 12, 4
_EFFORT = 3
_PROTOCOL, _PEER = "sod-official", "PySODMetrics"
#: The peer's program: it calls its own classes on each pair of PNGs and writes the metrics.
_CODE = """
import json, sys, warnings
from pathlib import Path
import numpy as np
from PIL import Image
import py_sod_metrics as peer
warnings.simplefilter("ignore")
truth, results, out = map(Path, sys.argv[1:])
metrics = [peer.Smeasure(), peer.Emeasure(), peer.Fmeasure(), peer.WeightedFmeasure(), peer.MAE()]
for path in sorted(truth.glob("*.png")):
    mask, values = (np.array(Image.open(side).convert("L")) for side in (path, results / path.name))
    for metric in metrics:
        metric.step(pred=values, gt=mask)
found = {}
for metric in metrics:
    found.update(metric.get_results())
values = {"S": found["sm"], "wF": found["wfm"], "MAE": found["mae"]}
for name, numbers in (("E", found["em"]), ("F", found["fm"])):
    curve = numbers["curve"]
    values.update({f"{name}_adp": numbers["adp"], f"{name}_max": curve.max(), f"{name}_mean": curve.mean()})
out.write_text(json.dumps({name: float(value) for name, value in values.items()}))
"""


def draw_image(generator: np.random.Generator, size: tuple[int, int], noise: int) -> tuple[Array, Array]:
    """Return a mask and a grey map of it."""
    y, x = (axis / side for axis, side in zip(np.ogrid[: size[0], : size[1]], size, strict=True))
    sides = []
    for _ in range(2):
        lobes = generator.uniform(0.3, 0.7, (_LOBES, 2)), generator.uniform(0.08, 0.25, _LOBES)
        sides.append(min((np.hypot(y - at[0], x - at[1]) / radius for at, radius in zip(*lobes)), key=np.mean))
    mask = sides[0] < 1
    soft = 255 / (1 + np.exp(_SHARPNESS * (0.9 * sides[0] + 0.1 * sides[1] - 1)))
    noisy = soft + generator.integers(0, noise, size)
    return mask * np.uint8(255), np.clip(noisy, 0, 255).astype(np.uint8)


def write_set(folder: Path, images: int, size: tuple[int, int], noise: int) -> None:
    """Write masks and maps."""
    generator = np.random.default_rng(8)
    for number in range(images):
        for side, values in zip(("masks", "maps"), draw_image(generator, size, noise), strict=True):
            (folder / side).mkdir(parents=True, exist_ok=True)
            (folder / side / f"{number:04d}.png").write_bytes(grey_png(values, _EFFORT))


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--images", type=int, default=150)
    parser.add_argument("--large", type=int, default=2)
    add_peers(parser)
    args = parser.parse_args(arguments)
    rows, sets = [], ((args.images, _USUAL, 1), (args.images, _USUAL, _NOISE), (args.large, _LARGE, 1))
    with tempfile.TemporaryDirectory() as temporary:
        for number, (images, size, noise) in enumerate(filter(itemgetter(0), sets)):
            folder = Path(temporary).resolve() / str(number)
            about = f"{images} images of {size[1]}×{size[0]}" + (", without black" if noise > 1 else "")
            write_set(folder, images, size, noise)
            truth, maps, scores = folder / "masks", folder / "maps", folder / "scores.json"
            ours, peer = f"segjudge: {about}", f"{_PEER}: the same"
            score = segjudge("score", maps, "--truth", truth, "--protocol", _PROTOCOL, "--json", scores)
            code = [args.peer_python, "-c", _CODE, str(truth), str(maps), str(folder / "peer.json")]
            tasks = {ours: Task(score), peer: Task(code, args.peers / _PEER, is_peer=True)}
            runs = take_turns(tasks, args.repeat)
            rows += cost_rows(runs, ours)
            if peer in runs:
                check_peer(_PEER, scores, folder / "peer.json", CLOSE)
    return show(Table(["scored by", "CPU seconds", "MB", "times ours"], rows))


if __name__ == "__main__":
    main()
