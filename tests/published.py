"""Two short drawn videos, and every family's truths, as benchmarks publish theirs, and uploads from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import numpy as np
from pycocotools import mask as coco

from segjudge.evaluation_script.families import PROTOCOLS, engine_of
from segjudge.families import tools_of
from segjudge.starting.new_challenge import write_demo_truth

from .builders import zipped
from .families.contract import value_of

SIZE = (96, 128)
#: How fast the objects of each video move.
VIDEOS = {"swan": 1, "goat": 2}
FRAMES = 8
#: Frames of two labels in stripes, as masks in memory.
LABEL_FRAMES = np.arange(6 * 8 * 9).reshape(6, 8, 9) % 3


def disk(radius: int, x: int) -> Any:
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    return (rows - 48) ** 2 + (columns - x) ** 2 < radius**2


def labels(name: str, frame: int) -> Any:
    """Return two disks that move towards each other."""
    return (disk(14, 30 + VIDEOS[name] * frame) * 1 + disk(10, 90 - frame) * 2).astype(np.uint8)


def frames() -> list[tuple[str, int]]:
    return [(name, frame) for name in VIDEOS for frame in range(FRAMES)]


def rle(mask: Any) -> Any:
    encoded = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"size": list(mask.shape), "counts": encoded["counts"].decode()}


def streets(name: str, frame: int) -> Any:
    """Return the labels of a frame as ids of Cityscapes: a road with a car and a person."""
    return np.array([7, 26, 24])[np.clip(labels(name, frame), 0, 2)]


def published(protocol: str, folder: Path) -> Path:
    """Write the truth of a benchmark; return the path that a host names."""
    write: Callable[[Path], Path] | None = value_of(protocol, "PUBLISHED").get(protocol)
    assert write, f"{protocol} has no truth: add it to PUBLISHED in the family.py of its family's tests"
    return write(folder)


def write_demo(protocol: str, folder: Path) -> Path:
    """Write the synthetic truth that the family has for new challenges."""
    (folder / "demo").mkdir()
    return Path(write_demo_truth(PROTOCOLS[protocol], str(folder / "demo")))


def replaced(path: Path, old: str, new: str) -> None:
    """Damage a text of a truth."""
    path.write_text(path.read_text().replace(old, new))


def upload(protocol: str, truth: Path, share: float = 0.05) -> bytes:
    """Return an upload that equals the truth, or a sample of the family's demo, moved by a share of the width."""
    rules = PROTOCOLS[protocol]
    senders: dict[str, Callable[[Path], bytes]] = {name: row[0] for name, row in value_of(protocol, "UPLOADS").items()}
    senders |= value_of(protocol, "FURTHER_UPLOADS", {})
    sender = protocol if protocol in senders else value_of(protocol, "UPLOAD_OF_OTHERS")
    if sender:
        return senders[sender](truth)
    (split,) = engine_of(rules.family).read_published(str(truth), "", protocol).splits.values()
    members = dict(tools_of(rules.family).make_sample([split], rules, share))
    return zipped(members) if len(members) > 1 else next(iter(members.values()))
