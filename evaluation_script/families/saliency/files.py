"""Maps and masks as PNGs, in one folder, or in one folder per data set, whose name precedes the image's.

A mask may be `GT/NAME.png` beside pictures; a submission holds `NAME.png`, or `DATASET/NAME.png`, below any folders.
"""

from __future__ import annotations

from typing import AbstractSet, Dict, Iterator, List, Optional, Tuple

import numpy as np

from ...files.limits import Files
from ...files.problems import Flaw, HostError, Problems, name_list
from ...masks import png
from ...masks.backend import backend
from ...masks.stack import Array, Size
from ..base.truth import DEFAULT_SPLIT
from ..base.units import FilesOfUnits, Unit, UnitTruth, open_dataset, png_frame
from .counting import MIDDLE
from .protocols import LAYOUT, SaliencyProtocol

_SEND = "Send one zip with a grey PNG for each image, named as its mask; for several data sets, use a folder for each"
_GREYS = "Save grey values from 0 to 255: PIL's mode L, or OpenCV's imwrite of (height, width)"
_ENDING = ".png"
#: The names of mask folders next to image folders, in lower case without separators.
_MASK_FOLDERS = frozenset({"gt", "gts", "mask", "masks", "gtobject", "groundtruth", "groundtruthmask", "annotations"})


def _read_grey(data: bytes, size: Size) -> Array:
    """Return the grey of each pixel of a PNG of this (height, width), in 8 bits; the upper 8 of 16 bits."""
    depth, kind = png.sample_kind_of(data)
    if kind == png.PALETTE:
        raise Flaw("has a palette instead of grey values", _GREYS)
    values = backend().read_channel(data, size, _GREYS)
    if depth > 8:
        return (values >> 8).astype(np.uint8)
    return values if depth == 8 else values * np.uint8(255 // ((1 << depth) - 1))


def _read_mask(data: bytes, size: Size) -> Array:
    values = _read_grey(data, size)
    check_mask(values)
    return (values > MIDDLE).view(np.uint8)


def check_mask(values: Array) -> None:
    """Raise a Flaw if a mask holds 0 and 1 instead of 0 and 255."""
    if values.max() == 1:
        raise Flaw("holds 0 and 1; objects must be 255", "Write 0 and 255")


def _is_mask_folder(name: str) -> bool:
    plain = "".join(filter(str.isalnum, name.lower()))
    return plain in _MASK_FOLDERS or plain.endswith(("mask", "masks"))


def read_truth(path: str, subset: str = "") -> UnitTruth:
    """Read the masks of a data set, of the named one, or of all."""
    files = open_dataset(path)
    paths = [name.split("/") for name in sorted(files.sizes) if name.lower().endswith(_ENDING)]
    if subset not in ("", DEFAULT_SPLIT):
        paths = [parts for parts in paths if subset in parts[:-1]]
    paths = [parts for parts in paths if any(map(_is_mask_folder, parts[:-1]))] or paths
    if not paths:
        raise HostError(f"{path}: has no PNG" + (f" in a folder {subset}" if subset else ""))
    folders = ["/".join(folder for folder in parts[:-1] if not _is_mask_folder(folder)) for parts in paths]
    names = {folder: folder.rpartition("/")[2] for folder in sorted(set(folders))}
    if len(set(names.values())) < len(names):
        raise HostError(f"{path}: has several data sets with the same name: {name_list(sorted(names))}")
    datasets = list(names.values())
    members: Dict[str, List[str]] = {}
    groups: Dict[str, int] = {}
    for parts, folder in zip(paths, folders):
        stem = parts[-1][: -len(_ENDING)]
        name = stem if len(datasets) == 1 else "/".join(filter(None, (names[folder], stem)))
        members.setdefault(name, []).append("/".join(parts))
        groups[name] = datasets.index(names[folder])
    doubled = [masks for masks in members.values() if len(masks) > 1]
    if doubled:
        raise HostError(f"{path}: has several masks for one image: {name_list(doubled[0])}")
    units = [_open_unit(files, name, member, groups[name]) for name, (member,) in members.items()]
    return UnitTruth(SaliencyProtocol.family, LAYOUT, {"subsets": [[name or "all"] for name in datasets]}, units)


def _open_unit(files: Files, name: str, member: str, group: int) -> Unit:
    return Unit(name, 1, lambda: [png_frame(files, member, [], _read_mask)], {"group": group})


class SaliencySubmission(FilesOfUnits):
    """The maps of a submission, below any other folders."""

    noun, send = "image", _SEND
    lacking, once = "has no PNG", "Send one PNG for each image"
    protocol: SaliencyProtocol

    def pair_members(self) -> Iterator[Tuple[str, str]]:
        images = self.truth.elsewhere.union(self.truth.item_names)
        datasets = {name.rpartition("/")[0] for name in images} - {""}
        for member in sorted(self.files.sizes):
            if member.lower().endswith(_ENDING):
                yield self._name_image(member[: -len(_ENDING)].split("/"), datasets), member

    def _name_image(self, parts: List[str], datasets: AbstractSet[str]) -> str:
        """Return the name of an image, prefixed with the innermost folder that names a data set."""
        folders = [folder for folder in map(self.truth_names.respell, parts[-2::-1]) if folder in datasets]
        if len(parts) == 1 == len(datasets):  # a single data set needs no folder
            folders = list(datasets)
        return "/".join([*folders[:1], parts[-1]])

    def read(self, name: str, size: Size, problems: Problems) -> Optional[Array]:
        """Return the map of an image; None if its file has a problem."""

        def read_map(member: str) -> Array:
            png.check_length(self.files.sizes[member], size)
            return _read_grey(self.files.read(member), size)

        return self.read_member(name, read_map, problems)
