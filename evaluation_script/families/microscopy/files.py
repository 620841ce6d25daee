"""Label maps of images as PNG or TIFF, named as Cellpose names them.

The mask of `007_img.png` is `007_masks.png` in Cellpose's test set, and `007_img_cp_masks.png` or `.tif` as Cellpose
saves it. All three names mean the image 007, and so do those of OME-TIFFs, such as `007_masks.ome.tif`. If any name has
such an ending, files without one are ignored.
"""

from __future__ import annotations

import os
import re
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from ...files.limits import Files
from ...files.problems import Problems
from ...masks import png, tiff
from ...masks.backend import backend
from ...masks.files import note_channels
from ...masks.overlaps import LabelMap
from ...masks.stack import Array, Size
from ..base.units import (
    FilesOfUnits,
    TruthFrame,
    Unit,
    UnitNouns,
    UnitTruth,
    choose_members,
    guard_reading,
    open_dataset,
)
from .protocols import LAYOUT, MicroscopyProtocol

_SEND = "Send one zip with a PNG or TIFF of labels for each image, such as 007_masks.png or 007_img_cp_masks.tif"
_NOUNS = UnitNouns("masks", "007_masks.png", "image")
_LABELS = "Write the number of its cell in each pixel, in grey of 8 or 16 bits, and 0 for background"
_ENDINGS = (".png", ".tif", ".tiff")
_OME = re.compile(r"\.ome$", re.IGNORECASE)
_MASK = re.compile(r"(?:_img)?(?:_cp)?_masks?$", re.IGNORECASE)


def _list_masks(members: Iterable[str]) -> Dict[str, List[str]]:
    """Return the files of masks by the image that their names denote."""
    paths = [(member, os.path.splitext(member.rpartition("/")[2])) for member in sorted(members)]
    stems = {member: _OME.sub("", stem) or stem for member, (stem, ending) in paths if ending.lower() in _ENDINGS}
    masks = {member: stem for member, stem in stems.items() if _MASK.search(stem)} or stems
    by_image: Dict[str, List[str]] = {}
    for member, stem in masks.items():
        by_image.setdefault(_MASK.sub("", stem) or stem, []).append(member)
    return by_image


def _is_tiff(data: bytes) -> bool:
    return data.startswith((b"II", b"MM"))


def _has_channels(files: Files, member: str) -> bool:
    """Return whether a map is a picture with several channels, which must be equal."""
    data = files.read(member)
    return tiff.has_channels(data) if _is_tiff(data) else png.is_coloured(data)


def _read_map(data: bytes, size: Size) -> Array:
    """Return the labels of a file of this (height, width); TIFFs may have up to 32 bits."""
    if _is_tiff(data):
        return tiff.read_labels(data, size, wide=True)
    return backend().read_channel(data, size, _LABELS)


# ── truths ──────────────────────────────────────────────────────────────────


def read_truth(path: str, subset: str = "") -> UnitTruth:
    """Read the masks below a folder, or those in folders of a subset's name."""
    files = open_dataset(path)
    members = choose_members(files, path, subset, _list_masks, _NOUNS)
    units = [_open_unit(files, name, member) for name, member in members.items()]
    return UnitTruth(MicroscopyProtocol.family, LAYOUT, {}, units)


def _open_unit(files: Files, name: str, member: str) -> Unit:
    def load() -> List[TruthFrame]:
        def measure() -> Size:
            data = files.read(member)
            return tiff.size_of(data, wide=True)[1:] if _is_tiff(data) else png.size_of(data)

        size = guard_reading(member, measure)()
        return [
            TruthFrame(name, size, [], guard_reading(member, lambda: LabelMap(_read_map(files.read(member), size))))
        ]

    return Unit(name, 1, load)


# ── submissions ─────────────────────────────────────────────────────────────


class MicroscopySubmission(FilesOfUnits):
    """The masks of a submission, below any folders."""

    noun, send = "image", _SEND
    lacking, once = "has no PNG or TIFF", "Send one file for each image"
    protocol: MicroscopyProtocol
    has_sparse_files = True

    def pair_members(self) -> Iterator[Tuple[str, str]]:
        for name, members in _list_masks(self.files.sizes).items():
            for member in members:
                yield name, member

    @property
    def notes(self) -> List[str]:
        members = {member for members in self._members.values() for member in members}
        return [*note_channels(self.files, members, _has_channels), *super().notes]

    def read(self, name: str, size: Size, problems: Problems) -> Optional[Array]:
        """Return the labels of an image; None if it has problems."""

        def read_labels(member: str) -> Array:
            if member.lower().endswith(".png"):
                png.check_length(self.files.sizes[member], size)
            else:
                tiff.check_length(self.files.sizes[member], size, wide=True)
            return _read_map(self.files.read(member), size)

        return self.read_member(name, read_labels, problems)
