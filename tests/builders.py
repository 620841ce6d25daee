"""Submissions for tests, good and bad, made in memory."""

from __future__ import annotations

import io
import json
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.truth import SplitTruth
from segjudge.evaluation_script.families.instances.metrics import InstanceScore
from segjudge.evaluation_script.families.instances.protocols import InstanceProtocol
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore, score_objects
from segjudge.evaluation_script.families.sequences.protocols import SequenceProtocol
from segjudge.evaluation_script.files.limits import ArchiveLimits
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.evaluation_script.masks.stack import Stack, crop, empty_labels, pack
from segjudge.evaluation_script.scoring.scorer import Scorer

ROOT = Path(__file__).resolve().parent.parent
DEV = "sequences-dev"
ANNOTATIONS = ROOT / "annotations" / f"{DEV}.zip"
STRONG = ROOT / "examples" / DEV / "strong.zip"


def files_of(path: Path = STRONG) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(folder: Path, files: Any) -> Path:
    """Write files into a folder; values other than texts and bytes become JSON."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, (bytes, str)) else json.dumps(content)
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def zipped(files: Any, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in dict(files).items():
            archive.writestr(name, data)
    return out.getvalue()


def tarred(files: dict[str, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def png(labels: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.asarray(labels)).save(out, "PNG", **options)
    return out.getvalue()


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def raw_png(
    width: int, height: int, depth: int, colour: int, pixels: bytes, *extra: bytes, interlaced: int = 0
) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))
    body = b"".join(extra) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + header + body


def drawn(*rows: str) -> Any:
    """Return the mask that a text draws; `#` belongs to the object."""
    return np.array([[cell == "#" for cell in row] for row in rows])


def run_length_text(mask: Any) -> str:
    """Return the run lengths of a mask, down its columns."""
    flat = np.append(False, mask.ravel(order="F"))
    return compress(np.diff(np.append(np.append(0, np.flatnonzero(flat[1:] != flat[:-1])), mask.size)).tolist())


def stack_of(*masks: Any) -> Stack:
    height, width = masks[0].shape
    block = empty_labels(len(masks), (height, width), bool)
    for place, mask in enumerate(masks):
        block[place, :, :width] = mask
    return crop(pack(block), (height, width))


def label_truth(tmp_path: Path, videos: dict[str, list[Any]]) -> sequence_truth.Split:
    """Write and read a truth of label images in a published layout."""
    from segjudge.evaluation_script.families.sequences import dataset as dataset_reader

    path = tmp_path / "truth.zip"
    path.write_bytes(label_zip(videos))
    return dataset_reader.read(str(path)).splits["val"]


def label_zip(videos: dict[str, list[Any]]) -> bytes:
    return zipped(
        {
            f"{name}/{k:05d}.png": png(np.asarray(frame, np.uint8))
            for name, frames in videos.items()
            for k, frame in enumerate(frames)
        }
    )


def count_results(path: str, truth: SplitTruth, rules: ScoringRules, **options: Any) -> Any:
    """Count a submission, or a share of it."""
    return Scorer("val", truth, rules).count(path, **options)


def score_sequences(
    path: str, split: sequence_truth.Split, protocol: SequenceProtocol, limits: ArchiveLimits, **options: Any
) -> tuple[list[ObjectScore], list[str]]:
    """Score a submission against one split; return the score of every object, and warnings."""
    rules = ScoringRules(protocol, limits, strict=options.pop("strict", False))
    return score_objects(count_results(path, split, rules, **options))


def score_instances(
    path: str, truth: InstanceTruth, protocol: InstanceProtocol, limits: ArchiveLimits, **options: Any
) -> InstanceScore:
    """Score detections on one split."""
    score: InstanceScore = count_results(path, truth, ScoringRules(protocol, limits, **options)).compute()
    return score
