"""Compare the scoring of a CT case with ten organs and of a BraTS 2023 case with surface-distance and MONAI.

    python -m benchmarks.volumes [--scale S] [--repeat N] [--peer-python PYTHON]

The volumes are made by a seeded generator: organs and lesions are ellipsoids with wavy surfaces, and predictions are moved
by a voxel or two.  Everything runs on one core; a peer's Dice, NSD and HD95 are compared with ours.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.measuring import Table, Task, add_peers, check_peer, cost_rows, options, segjudge, show, take_turns
from segjudge.evaluation_script.families.volumes.geometry import Geometry
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.volumes.challenges import encode_nifti

PROTOCOL = "volumes"
#: Voxels along x, y and z, and millimetres between them.
CT, CT_SPACING = (512, 512, 300), (0.8, 0.8, 1.5)
_BRATS, _BRATS_SPACING = (240, 240, 155), (1.0, 1.0, 1.0)
_ORGANS, _LESIONS, _FALSE = 10, 4, 8
_WAVES, _WAVE = 7, 0.06
#: The peers sum 32-bit numbers, or in another order.
_CLOSE = {"surface-distance": 1e-9, "MONAI": 1e-4}
_READ = """
import json, sys
import nibabel, numpy as np
images = [nibabel.load(path) for path in sys.argv[1:3]]
truth, prediction = (np.asanyarray(image.dataobj) for image in images)
spacing = [float(np.float32(step)) for step in images[0].header.get_zooms()]
labels = [int(label) for label in np.unique(truth) if label]
"""
_WRITE = """
open(sys.argv[3], "w").write(json.dumps({name: float(np.mean(numbers)) for name, numbers in rows.items()}))
"""
#: The peers' own functions on each organ, after nibabel read the volumes as they are stored.
_PEERS = {
    "surface-distance": """
import surface_distance as peer
rows = {"Dice": [], "NSD": [], "HD95": []}
for label in labels:
    masks = truth == label, prediction == label
    rows["Dice"].append(peer.compute_dice_coefficient(*masks))
    sides = peer.compute_surface_distances(*masks, spacing)
    rows["NSD"].append(peer.compute_surface_dice_at_tolerance(sides, 1.0))
    rows["HD95"].append(peer.compute_robust_hausdorff(sides, 95))
""",
    "MONAI": """
import torch
from monai.metrics import compute_dice, compute_hausdorff_distance, compute_surface_dice
torch.set_num_threads(1)
rows = {"Dice": []}
for label in labels:
    masks = [torch.from_numpy((side == label)[None, None]) for side in (prediction, truth)]
    rows["Dice"].append(float(compute_dice(*masks)))
    compute_hausdorff_distance(*masks, percentile=95, spacing=spacing)
    compute_surface_dice(*masks, [1.0], spacing=spacing, use_subvoxels=True)
""",
}


def draw_blob(volume: Array, label: int, middle: Array, radii: Array, phase: float) -> None:
    """Draw an ellipsoid with a wavy surface into a volume (z, y, x)."""
    first, last = np.floor(middle - 1.2 * radii).astype(int), np.ceil(middle + 1.2 * radii).astype(int) + 1
    first, last = np.maximum(first, 0), np.minimum(last, volume.shape)
    z, y, x = (
        (np.arange(start, stop, dtype=np.float32) - at) / radius
        for start, stop, at, radius in zip(first, last, middle, radii, strict=True)
    )
    z, y = z[:, None, None], y[:, None]
    far = np.sqrt(z * z + y * y + x * x) + _WAVE * np.sin(_WAVES * (x + y) + phase) * np.sin(_WAVES * z + phase)
    box = volume[first[0] : last[0], first[1] : last[1], first[2] : last[2]]
    box[far < 1] = label


def draw_ct(shape: tuple[int, ...], seed: int = 3) -> tuple[Array, Array]:
    """Return ten organs of several sizes on a ring, and predictions moved by a voxel or two."""
    draw, sides = np.random.default_rng(seed), (np.zeros(shape, np.uint8), np.zeros(shape, np.uint8))
    for organ in range(_ORGANS):
        angle = 2 * np.pi * organ / _ORGANS
        place = np.array([0.5 + 0.1 * np.sin(3 * angle), 0.5 + 0.32 * np.sin(angle), 0.5 + 0.32 * np.cos(angle)])
        radii = np.array([0.225, 0.0725, 0.0725]) * draw.uniform(0.6, 1.5) * shape
        for side, moved in zip(sides, (np.zeros(3), draw.uniform(-2, 2, 3)), strict=True):
            draw_blob(side, organ + 1, place * shape + moved, radii, organ + 0.2 * moved[0])
    return sides


def draw_brats(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return lesions of three tissues in a brain, their predictions, and small false lesions."""
    draw, sides = np.random.default_rng(4), (np.zeros(shape, np.uint8), np.zeros(shape, np.uint8))
    for lesion in range(_LESIONS + _FALSE):
        place, radius = draw.uniform(0.25, 0.75, 3) * shape, shape[0] * draw.uniform(0.08, 0.16)
        for index, side in enumerate(sides):
            if lesion < _LESIONS:
                for label, share in ((2, 1.0), (1, 0.6), (3, 0.4)):
                    draw_blob(side, label, place + 1.5 * index, np.full(3, radius * share), lesion)
            elif index:
                draw_blob(side, 1 + lesion % 3, place, np.full(3, 0.02 * shape[0]), lesion)
    return sides


def write_case(folder: Path, sides: tuple[Array, Array], spacing: tuple[float, float, float]) -> None:
    """Write a truth and a prediction."""
    affine = np.column_stack([np.diag(spacing), [0.0, 0.0, 0.0]])
    for name, labels in zip(("truth", "results"), sides, strict=True):
        (folder / name).mkdir(parents=True)
        z, y, x = labels.shape
        (folder / name / "case.nii.gz").write_bytes(encode_nifti(labels, Geometry((x, y, z), spacing, affine)))


def main(words: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of each side of a volume")
    add_peers(parser)
    args = parser.parse_args(words)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for protocol, about, shape, spacing, draw, peers in (
            (PROTOCOL, "CT, ten organs", CT, CT_SPACING, draw_ct, _PEERS),
            ("brats-2023", "BraTS 2023, three regions", _BRATS, _BRATS_SPACING, draw_brats, {}),
        ):
            folder = Path(temporary).resolve() / protocol
            write_case(folder, draw(tuple(max(8, round(side * args.scale)) for side in shape[::-1])), spacing)
            truth, results, scores = folder / "truth", folder / "results", folder / "scores.json"
            ours = f"segjudge: {about}"
            score = segjudge("score", results, "--truth", truth, "--protocol", protocol, "--json", scores)
            tasks = {ours: Task(score), f"{ours}, without its kernel": Task(score, env={"SEGJUDGE_KERNEL": "off"})}
            files = [str(side / "case.nii.gz") for side in (truth, results)]
            for peer, code in peers.items():
                command = [args.peer_python, "-c", _READ + code + _WRITE, *files, str(folder / peer)]
                tasks[f"{peer}: the same"] = Task(command, is_peer=True)
            runs = take_turns(tasks, args.repeat)
            rows += cost_rows(runs, ours)
            for peer in peers:
                if f"{peer}: the same" in runs:
                    check_peer(peer, scores, folder / peer, _CLOSE[peer])
    return show(Table(["scored by", "CPU seconds", "MB", "times ours"], rows))


if __name__ == "__main__":
    main()
