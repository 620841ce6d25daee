"""Scans below the masks of a report: found by the names of cases, and read as 256 levels of grey."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from segjudge.evaluation_script.families.base.units import open_dataset
from segjudge.evaluation_script.families.volumes.files import COMPRESSED, FIRST_CHANNEL, LABEL_SUFFIXES
from segjudge.evaluation_script.families.volumes.geometry import Geometry, require_order
from segjudge.evaluation_script.families.volumes.headers import VolumeHeader
from segjudge.evaluation_script.families.volumes.voxels import LABELS_END, Volume, VolumeFile, ending_of, reorder_volume
from segjudge.evaluation_script.files.limits import Files
from segjudge.evaluation_script.files.problems import Flaw, HostError, SubmissionError, inflect, name_list, printable
from segjudge.evaluation_script.masks.stack import Array

#: KiTS' name of a scan in its case's folder.
_LONE_NAME = "imaging"
#: The number of sampled voxels that determine how a scan is shown.
_SAMPLED = 1 << 20
#: A scan with values below this is a CT: air has -1000 Hounsfield units.
_AIR = -500.0
#: For a CT: levels and their Hounsfield units, finest in soft tissue; windows by name, level and width.
_CT_LEVELS, _CT_UNITS = (0.0, 50.0, 200.0, 255.0), (-1100.0, -200.0, 300.0, 1400.0)
_CT_WINDOWS = (("Soft tissue", 50.0, 400.0), ("Lung", -600.0, 1500.0), ("Bone", 400.0, 1800.0))
#: For other scans: the percentiles of windows.
_PERCENTILES = ((1.0, 99.0), (5.0, 95.0), (0.1, 99.9))

#: Scans have smaller values, which differ if 1 is added.
_LARGEST_VALUE = 1e15


class Shades(NamedTuple):
    """The conversion of values to grey levels, and the windows that a page offers."""

    #: Levels from 0 to 255 and their values, both ascending; levels between them are interpolated.
    levels: tuple[float, ...]
    values: tuple[float, ...]
    #: Name, level and width.
    windows: tuple[tuple[str, float, float], ...]

    def document(self) -> dict[str, Any]:
        """Return the fields as lists, for the script of the page."""
        return {key: list(numbers) for key, numbers in self._asdict().items()}

    def shade(self, values: Array) -> Array:
        """Return the levels of values; NaN gets the lowest."""
        low, high = self.values[0], self.values[-1]
        finite = np.nan_to_num(values, nan=low, posinf=high, neginf=low)
        levels: Array = np.rint(np.interp(finite, self.values, self.levels)).astype(np.uint8)
        return levels


class Scan(NamedTuple):
    """A scan in the grid of the truth."""

    #: Levels (z, y, x) in 8 bits.
    volume: Array
    shades: Shades


class ScanFolder:
    """The scans of a folder by case."""

    def __init__(self, folder: str, cases: Sequence[str]) -> None:
        """Find the scans of cases; raises HostError if there are none."""
        self._files: Files = open_dataset(folder, COMPRESSED)
        self._members = _match_cases(self._files.sizes, cases)
        #: The reasons why scans are not shown.
        self.refused: list[str] = []
        if not self._members:
            sought = name_list([f"{name}{FIRST_CHANNEL}.nii.gz" for name in cases[:3]])
            raise HostError(f"{folder}: has no scans of the scored cases; it needs files such as {sought}")

    def close(self) -> None:
        """Close the folder."""
        self._files.close()

    def has(self, case: str) -> bool:
        """Return whether a case has a scan."""
        return case in self._members

    def read(self, case: str, truth: Geometry) -> Scan | None:
        """Return the scan of a case; None if there is none, or if it does not lie in the grid of the truth."""
        if case not in self._members:
            return None
        member = self._members[case]
        try:
            with _refuse_damage():
                order = require_order(truth, self._open(member).geometry, reorders=True)
                shades = _choose_shades(self._open(member))
                file = self._open(member)
                volume = _shade_volume(file, shades)
        except Flaw as flaw:
            self.refused.append(f"{printable(member)} {flaw.fault}")
            return None
        return Scan(reorder_volume(Volume(file.geometry, volume, ()), truth, order).labels, shades)

    def describe_refused(self) -> str:
        """Return the sentence on scans that are not shown; "" without any."""
        if not self.refused:
            return ""
        return f"{inflect(len(self.refused), 'A scan is', 'Scans are')} not shown: {name_list(self.refused)}."

    def _open(self, member: str) -> VolumeFile:
        return VolumeFile(member, self._files.sizes[member], self._files.read_chunks(member))


@contextmanager
def _refuse_damage() -> Iterator[None]:
    """Turn errors of a file that cannot be read into flaws."""
    try:
        yield
    except SubmissionError as error:
        raise Flaw(f"cannot be read: {error}", "") from None
    except OSError as error:
        raise Flaw(f"cannot be read: {error.strerror}", "") from None


def _match_cases(members: Iterable[str], cases: Sequence[str]) -> dict[str, str]:
    """Return the scan of each case: `CASE_0000` before `CASE`, and these before longer names, such as `CASE-t1c`."""
    names, ranked_members = set(cases), dict[str, tuple[int, str]]()
    for member in members:
        folder, _, name = member.rpartition("/")
        ending = ending_of(name)
        stem = name[: len(name) - len(ending)]
        if not ending or stem.endswith(LABEL_SUFFIXES):
            continue
        stem = folder.rpartition("/")[2] if stem == _LONE_NAME else stem
        ends = (end for end in range(len(stem), 0, -1) if end == len(stem) or stem[end] in "-_")
        case = next((stem[:end] for end in ends if stem[:end] in names), "")
        if case:
            rank = [case + FIRST_CHANNEL, case].index(stem) if stem in {case, case + FIRST_CHANNEL} else 2
            ranked_members[case] = min(ranked_members.get(case, (rank, member)), (rank, member))
    return {case: member for case, (_, member) in ranked_members.items()}


def _scale(stored: Array, header: VolumeHeader) -> Array:
    """Return the values of stored numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        values: Array = stored.astype(np.float64) * header.scale[0] + header.scale[1]
    return values


def _choose_shades(file: VolumeFile) -> Shades:
    """Return the shades for the values of a file; only the beginning of a CT is read."""
    x, y, z = file.geometry.shape
    step, sampled = max(1, x * y * z // _SAMPLED), []
    for slab in file.read_stored():
        values = _scale(slab[::step], file.header)
        sampled.append(values[np.isfinite(values)])
        if (sampled[-1] < _AIR).any():
            return Shades(_CT_LEVELS, _CT_UNITS, _CT_WINDOWS)
    values = np.concatenate(sampled)
    body = values[values > values.min()] if len(values) else values
    if not len(body):
        body = values if len(values) else np.zeros(1)
    ends = np.percentile(body, [percent for pair in _PERCENTILES for percent in pair]).tolist()
    greatest = max(map(abs, ends))
    if not greatest < _LARGEST_VALUE:
        raise Flaw(f"is no scan: its values reach {greatest:.3g}", "")
    pairs = list(zip(ends[::2], ends[1::2], strict=True))
    windows = [
        (f"{low:g} to {high:g} %", (darkest + brightest) / 2, brightest - darkest or 1.0)
        for (low, high), (darkest, brightest) in zip(_PERCENTILES, pairs, strict=True)
    ]
    darkest, brightest = pairs[-1]
    return Shades((0.0, 255.0), (darkest, brightest if brightest > darkest else darkest + 1), tuple(windows))


def _shade_volume(file: VolumeFile, shades: Shades) -> Array:
    """Return the levels of a file (z, y, x), read slab by slab."""
    (x, y, z), kind, start = file.geometry.shape, file.header.kind, 0
    levels: Array = np.empty(x * y * z, np.uint8)
    is_short = kind.itemsize <= np.dtype(np.uint16).itemsize
    index = np.dtype(f"{kind.byteorder if kind.itemsize > 1 else '|'}u{kind.itemsize}")
    numbers = np.arange(LABELS_END if kind.itemsize > 1 else 256).astype(index).view(kind) if is_short else None
    table = None if numbers is None else shades.shade(_scale(numbers, file.header))
    for slab in file.read_stored():
        shaded = shades.shade(_scale(slab, file.header)) if table is None else table[slab.view(index)]
        levels[start : start + len(shaded)] = shaded
        start += len(shaded)
    return levels.reshape(z, y, x)
