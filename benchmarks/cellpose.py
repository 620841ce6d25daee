"""Compare the scoring of cells' label maps in single images with Cellpose's `average_precision`.

    python -m benchmarks.cellpose [--images 68] [--repeat N] [--peers FOLDER] [--peer-python PYTHON]

As many images as Cellpose's test set has, of 512×512 pixels with some 100 cells, by a seeded generator: cells are the
pixels nearest to a centre, within a radius; of the answer some are shifted, some missing, and some merged with another.
Everything runs on one core; AP is compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.measuring import Table, Task, add_peers, check_peer, cost_rows, options, segjudge, show, take_turns
from segjudge.evaluation_script.masks.stack import Array
from segjudge.masks.compression import grey_png

_SIZE, _CELLS, _RADIUS = (512, 512), 100, 18
#: The shift of cells in pixels, and the shares of cells that are missing and merged.
_SHIFT, _MISSING, _MERGED = 3, 0.1, 0.1
_EFFORT = 3
_PROTOCOL, _PEER = "cellpose-ap-official", "cellpose"
#: The peer's program: it calls its own function on all pairs of PNGs and writes the means. Its package needs only
#: torch's version; torch is not loaded, because that would take longer than the rest.
_CODE = """
import json, sys, types
from pathlib import Path
sys.modules["torch"] = types.ModuleType("torch")
sys.modules["torch"].__version__ = "none"
import numpy as np
from PIL import Image
from cellpose.metrics import average_precision
truth, results, out = map(Path, sys.argv[1:])
names = sorted(path.name for path in truth.glob("*.png"))
masks, sent = ([np.array(Image.open(side / name)).astype(int) for name in names] for side in (truth, results))
means = average_precision(masks, sent)[0].mean(axis=0)
out.write_text(json.dumps(dict(zip(("AP50", "AP75", "AP90"), map(float, means)))))
"""


def draw_image(generator: np.random.Generator) -> tuple[Array, Array]:
    """Return a label map and a prediction of it."""
    count = int(generator.poisson(_CELLS))
    centres = generator.uniform(0, _SIZE, (count, 2))
    answer = centres + generator.normal(0, _SHIFT, centres.shape)
    labels = np.arange(1, count + 1)
    changed = labels.copy()
    lot = generator.random(count)
    changed[lot < _MERGED] = generator.permutation(labels)[lot < _MERGED]
    changed[lot > 1 - _MISSING] = 0
    return _draw_cells(centres, labels), _draw_cells(answer, changed)


def _draw_cells(centres: Array, labels: Array) -> Array:
    image, nearest = np.zeros(_SIZE, np.uint16), np.full(_SIZE, float(_RADIUS) ** 2)
    for (y, x), label in zip(centres, labels, strict=True):
        rows, columns = (slice(max(0, int(at) - _RADIUS), int(at) + _RADIUS + 2) for at in (y, x))
        squares = ((np.ogrid[: _SIZE[0], :1][0] - y) ** 2)[rows] + ((np.ogrid[:1, : _SIZE[1]][1] - x) ** 2)[:, columns]
        closer = squares < nearest[rows, columns]
        nearest[rows, columns][closer], image[rows, columns][closer] = squares[closer], label
    return image


def write_set(folder: Path, images: int) -> None:
    """Write masks, and predictions under Cellpose's file names."""
    generator = np.random.default_rng(5)
    for number in range(images):
        for side, labels in zip(("truth", "answers"), draw_image(generator), strict=True):
            (folder / side).mkdir(exist_ok=True)
            (folder / side / f"{number:03d}_masks.png").write_bytes(grey_png(labels, _EFFORT))


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--images", type=int, default=68)
    add_peers(parser)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        write_set(folder, args.images)
        truth, answers, scores, theirs = (folder / name for name in ("truth", "answers", "scores.json", "peer.json"))
        ours = f"segjudge: {args.images} images"
        peer = f"{_PEER}: the same"
        score = segjudge("score", answers, "--truth", truth, "--protocol", _PROTOCOL, "--json", scores)
        code = [args.peer_python, "-c", _CODE, str(truth), str(answers), str(theirs)]
        runs = take_turns({ours: Task(score), peer: Task(code, args.peers / _PEER, is_peer=True)}, args.repeat)
        if peer in runs:
            check_peer(_PEER, scores, theirs)
    return show(Table(["scored by", "CPU seconds", "MB", "times ours"], cost_rows(runs, ours)))


if __name__ == "__main__":
    main()
