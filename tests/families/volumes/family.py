"""The data of volumes for the tests of all families; `tests/families/contract.py` defines each name."""

from __future__ import annotations

import io
import zipfile
from functools import partial
from pathlib import Path
from typing import Any, Callable

import numpy as np

from segjudge.evaluation_script.families.volumes.geometry import Geometry
from segjudge.evaluation_script.families.volumes.protocols import VOLUME_PROTOCOLS
from segjudge.evaluation_script.families.volumes.voxels import VolumeFile
from segjudge.families.volumes.challenges import encode_nifti, make_demo
from tests.builders import written, zipped
from tests.families.slips import Slip


def volumes(folder: Path, protocol: str) -> Path:
    return written(folder, dict(make_demo(VOLUME_PROTOCOLS[protocol]))) / "labelsTr"


def encode_volume(labels: Any) -> bytes:
    """Return labels (z, y, x) as a NIfTI file with voxels of one millimetre."""
    z, y, x = labels.shape
    return encode_nifti(labels, Geometry((x, y, z), (1.0, 1.0, 1.0), np.eye(3, 4)))


def send_truth(truth: Path) -> bytes:
    return zipped({path.name: path.read_bytes() for path in sorted(truth.rglob("*.nii.gz"))})


def perfect(protocol: str) -> dict[str, float]:
    """Return the metrics of a perfect submission."""
    row = VOLUME_PROTOCOLS[protocol]
    return {metric: 0.0 if metric.partition("_")[0] in {"HD95", "LesionHD95"} else 1.0 for metric in row.metrics[:2]}


PUBLISHED = {protocol: partial(volumes, protocol=protocol) for protocol in VOLUME_PROTOCOLS}
UPLOADS: dict[str, tuple[Callable[[Path], bytes], dict[str, float]]] = {
    protocol: (send_truth, perfect(protocol)) for protocol in ("volumes", "brats-2023", "kits23")
}
UPLOAD_OF_OTHERS = ""
REFUSALS = dict.fromkeys(UPLOADS, "Send one zip with a label volume for each case, such as CASE.nii.gz")


def relabel(change: Callable[[Any], Any]) -> Slip:
    """Return a slip that changes the labels of all volumes."""

    def spoil(data: bytes) -> bytes:
        archive, files = zipfile.ZipFile(io.BytesIO(data)), {}
        for name in archive.namelist():
            content = archive.read(name)
            volume = VolumeFile(name, len(content), [content]).read_labels()
            files[name] = encode_nifti(change(volume.labels).astype(np.uint8), volume.geometry)
        return zipped(files)

    return spoil


SLIPS: dict[str, tuple[str, Slip, str]] = {
    "nothing predicted": ("kits23", relabel(lambda labels: labels * 0), "all volumes are empty: check the labels"),
    "mirrored": (
        "kits23",
        relabel(lambda labels: labels[:, ::-1, ::-1]),
        "volumes look mirrored along x and y: corrected, the IoU over all voxels would be 1.00",
    ),
    "labels from 2": ("volumes", relabel(lambda labels: labels + 1), "labels look 1 too high: corrected, the IoU over all voxels would be 1.00"),
}  # fmt: skip
BOARD_LABELS: dict[str, tuple[str, ...]] = {
    "kits23": ("Dice", "NSD", "Dice_kidney", "Dice_mass", "Dice_tumor"),
    "flare22": ("Dice", "NSD"),
}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "pages": ("volumes", "brats-2023"), "pages of reports": ("brats-2023",),
    "mounts": ("volumes",), "surplus": ("volumes",),
}  # fmt: skip


def spoil_pages(results: str) -> None:
    """Move, erase, join and exchange labels, differently in each case."""

    def spoil(labels: Any) -> Any:
        label = int(labels.max())
        changed = np.where(labels == label, label - int(labels[10, 20, 24] > 0), labels)
        changed = np.roll(changed, 1 + int(labels.sum()) % 3, 2)
        changed[:3, :4, :5] = 1
        return changed

    path = Path(results)
    path.write_bytes(relabel(spoil)(path.read_bytes()))


SAMPLE_SCORES = {
    "volumes": (0.8930249002088414, 0.7799828559245525),
    "brats-2023": (0.892793930143486, 0.7787660727692639),
    "brats-2023-men": (0.892601949640056, 0.7784215611609918),
    "brats-2023-met": (0.892601949640056, 0.7784215611609918),
    "brats-2024-ssa": (0.892793930143486, 0.7787660727692639),
    "brats-2024-gli": (0.8953804118524386, 0.7733063631370776),
    "brats-2024-met": (0.8554226930317509, 0.7569693364319237),
    "brats-2024-ped": (0.8967559614546192, 0.7903600829959773),
    "brats-2024-men": (0.892601949640056, 0.7784215611609918),
    "brats-2024-men-rt": (0.883120313348542, 0.7569933816849755),
    "kits23": (0.8936306047350256, 0.7809817995273151),
    "autopet": (0.883120313348542, 0.7569933816849755),
    "autopet-2": (0.883120313348542, 0.7569933816849755),
    "totalsegmentator": (0.8930248996969672, 0.7799828554773119),
    "flare22": (0.8184589743589744, 0.6459589743589743),
    "isles22": (0.883120313348542, 0.7569933816849755),
    "hecktor": (0.8870743529480747, 0.7669127365520207),
    "chaos": (0.883120313348542, 0.7569933816849755),
    "toothfairy": (0.5543874783014963, 0.3177005203030999),
    "topcow": (0.8178475292187316, 0.6449102653304273),
    "msd": (0.8930249002088414, 0.7799828559245525),
    "components": (0.8070226359390889, 0.6404511851762412),
}
