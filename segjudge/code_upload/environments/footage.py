"""Truth with the pictures of its frames, and the phase that scores an episode."""

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage

from segjudge.datasets.opening import TruthSource
from segjudge.evaluation_script import main
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.families.sequences.truth import Sequence
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.families.sequences.published import frame_images_of, open_sequences
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle

from .tasks import Picture

#: Pixels of a frame, (height, width, 3), or ids of a mask, (height, width).
Image = NDArray[np.uint8]


@dataclass(frozen=True)
class Footage:
    """The sequences of a truth with the pictures of their frames."""

    sequences: list[Sequence]
    pictures: Mapping[str, list[str]]
    splits: Mapping[str, sequence_truth.Split]

    @property
    def largest(self) -> tuple[int, int]:
        """The height and width that hold every frame."""
        sizes = [block.size for one in self.sequences for block in one.blocks]
        return max(size[0] for size in sizes), max(size[1] for size in sizes)


def footage(path: str, frames: str | None = None, sequence: str | None = None, layout: str = "generic") -> Footage:
    """Return the truth of a packed file or a dataset with its pictures, from `frames` or beside the masks."""
    if not os.path.exists(path):
        raise HostError(f"{path}: this truth is not there")
    splits = open_sequences(TruthSource(path, layout)).splits
    found = [one for split in splits.values() for one in split.sequences if sequence in (None, one.name)]
    if not found:
        raise HostError(f"{path}: has no sequence" + (f" {sequence!r}" if sequence else ""))
    pictures = {one.name: frame_images_of(frames or path, one.name, one.frames) for one in found}
    for one in found:
        if not pictures[one.name]:
            raise HostError(
                f"{frames or path}: has no picture for every frame of {one.name} (e.g. {one.frames[0]}.jpg)"
            )
    return Footage(found, pictures, splits)


def phase_of(footage: Footage, protocol: str, phase: str | None = None, bundle: str = "") -> Phase:
    """Return the phase that scores the masks: one of a bundle, by default this one, or a protocol over all splits."""
    if phase is not None:
        return find_bundle(bundle).phase(phase) if bundle else main.phase_named(phase)
    if protocol not in SEQUENCE_PROTOCOLS:
        raise HostError(f"there is no protocol {protocol!r}, only {', '.join(SEQUENCE_PROTOCOLS)}")
    metrics = SEQUENCE_PROTOCOLS[protocol].metrics
    return Phase("environment", "", tuple(PhaseSplit(name, protocol, metrics) for name in footage.splits))


def decoded_picture(picture: Picture) -> Image:
    """Return the pixels of a picture, (height, width, 3)."""
    with PillowImage.open(io.BytesIO(picture.data)) as opened:
        return np.asarray(opened.convert("RGB"))
