"""Files of volumes: a verdict on each of the golden files, and hostile headers."""

from __future__ import annotations

import gzip
import hashlib
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.volumes.geometry import describe_difference, find_order, fits
from segjudge.evaluation_script.families.volumes.headers import ODDITIES
from segjudge.evaluation_script.families.volumes.voxels import Volume, reorder_volume
from segjudge.evaluation_script.files.problems import Flaw
from tests.families.volumes.volumes import DATA as VOLUMES
from tests.families.volumes.volumes import open_volume, read_golden

DATA = VOLUMES / "formats"
GOLDEN = read_golden("formats")

#: Words of the message about a rejected file.
REFUSED = {
    "sheared.nii.gz": "shear: axes y and x are not orthogonal",
    "pixdim-differs.nii.gz": "disagree about the spacing along x (9 and 0.75 mm)",
    "pixdim-zero.nii.gz": "pixdim[3] is 0", "pixdim-negative.nii.gz": "pixdim[3] is negative",
    "two-channels.nii.gz": "a fourth axis of length 2", "not-whole.nii.gz": "holds 1.5, which is not a whole number",
    "nan.nii.gz": "values that are not numbers", "negative.nii.gz": "the negative label -1",
    "huge-label.nii.gz": "holds the label 9007199254740993", "cut.nii": "100 bytes are missing",
    "beyond.nii": "surplus bytes after its voxels", "bad-magic.nii": "no NIfTI magic",
    "dim-negative.nii": "dim[1] is -11", "dim-huge.nii": "declares 2.7e+13 voxels", "dim-zero.nii": "dim[3] is 0",
    "vox-offset.nii": "begin beyond the end", "datatype-unknown.nii": "the datatype 77",
    "rgb.nii.gz": "the datatype 128, which is not a type of labels",
    "complex.nii.gz": "the datatype 32, which is not a type of labels", "gz-cut.nii.gz": "gzip data end early",
    "gz-crc.nii.gz": "gzip checksum is wrong", "gz-inside-gz.nii.gz": "compressed twice",
    "not-gz.nii.gz": "is not gzip data", "gz-named.nii": "gzip data without the ending .gz",
    "gz-bomb.nii.gz": "has 512 x 512 x 512 voxels; the truth has 11 x 9 x 7", "empty.nii.gz": "is empty",
    "pair.hdr": "data in another file", "pair.mhd": "data in another file", "pairz.mhd": "data in another file",
    "pair2.nhdr": "data in another file", "cut.mha": "bytes are missing", "dims.mha": "declares 2.7e+13 voxels",
    "elsewhere.mhd": "data in another file", "absolute.mhd": "data in another file",
    "list.mhd": "data in another file", "singular.mha": "singular directions",
    "elsewhere.nrrd": "data in another file (../formats/pair.raw)", "sizes.nrrd": "declares 2.7e+13 voxels",
}  # fmt: skip
#: Words of the message about a file that is elsewhere in the body.
ELSEWHERE = {
    "ras.nii.gz": "runs in the opposite direction along x and y",
    "axes-exchanged.nii.gz": "x and y are exchanged",
    "flipped.nii.gz": "x is reversed (left and right are exchanged)",
    "oblique.nii.gz": "is rotated relative to the truth",
    "qform-sform-differ.nii.gz": "a spacing of 1.5 mm along x; the truth has 0.75 mm",
    "microns.nii.gz": "mm along",
    "direction.mha": "runs in the opposite direction along x",
    "lps-to-ras.nrrd": "runs in the opposite direction along x and y",
}
#: Files with the truth's voxels in another order.
ORDERED = {"axes-exchanged.nii.gz", "flipped.nii.gz"}
#: Words of the notes about files that are read.
NOTES = {
    "slope-one-third.nii.gz": "rounded",
    "neither.nii.gz": "without a position",
    "spacings.nrrd": "without a position",
    "microns.nii.gz": "converted to millimetres",
    "qform-sform-differ.nii.gz": "placed by the sform",
}


def digest(labels: Any) -> str:
    return hashlib.sha256(labels.astype("<i8").tobytes()).hexdigest()[:16]


def read(path: Path) -> Volume:
    """Read a file as the family does: geometry first."""
    file, truth = open_volume(path), open_volume(DATA / "plain.nii.gz").geometry
    if not fits(truth, file.geometry):
        raise describe_difference(truth, file.geometry)
    return file.read_labels()


@pytest.mark.parametrize("name", GOLDEN["files"])
def test_each_golden_file_has_its_verdict(name: str) -> None:
    verdict, path = GOLDEN["files"][name]["safe"], DATA / name
    truth = GOLDEN["truth"]["truth"]
    if verdict.startswith("refuse") or name in REFUSED:
        assert verdict.startswith("refuse") or "(or refuse" in verdict
        with pytest.raises(Flaw) as refusal:
            read(path)
        assert REFUSED[name] in refusal.value.fault
        return
    file, plain = open_volume(path), open_volume(DATA / "plain.nii.gz").geometry
    volume = file.read_labels()
    assert NOTES.get(name, "") in " ".join(ODDITIES[oddity] for oddity in volume.oddities)
    assert bool(volume.oddities) == (name in NOTES)
    assert ("geometry differs" in verdict) == (name in ELSEWHERE)
    if name in ELSEWHERE:
        assert not fits(plain, file.geometry)
        assert ELSEWHERE[name] in describe_difference(plain, file.geometry).fault
        order = find_order(plain, file.geometry)
        assert (order is not None) == (name in ORDERED)
        if order is not None:
            volume = reorder_volume(volume, plain, order)
    else:
        assert fits(plain, file.geometry)
        assert file.geometry.spacing == pytest.approx(GOLDEN["truth"]["spacing"], rel=1e-6)
    assert [*volume.labels.shape[::-1]] == truth["shape"]
    assert digest(volume.labels) == truth["sha256_int64_x_fastest"]


def test_positions_are_those_of_the_official_readers() -> None:
    for name, golden in GOLDEN["files"].items():
        affine = golden.get("nibabel", {}).get("affine")
        if affine is None or name in REFUSED or name in {"neither.nii.gz", "microns.nii.gz"}:
            continue
        ours = open_volume(DATA / name).geometry.affine
        assert ours == pytest.approx(np.array(affine)[:3], abs=1e-5), name


def test_bombs_are_known_from_their_header(tmp_path: Path) -> None:
    """A file that declares a legal volume inflates no more than that, and its surplus is not read."""
    header = bytearray(gzip.decompress((DATA / "plain.nii.gz").read_bytes())) if DATA.exists() else None
    if header is None:
        pytest.skip("needs the shared data")
    path = tmp_path / "bomb.nii.gz"
    path.write_bytes(gzip.compress(bytes(header) + bytes(64 << 20)))
    with pytest.raises(Flaw, match="too many bytes after its data"):
        read(path)
    struct.pack_into("<3h", header, 42, 1200, 1200, 1200)
    path.write_bytes(gzip.compress(bytes(header)))
    with pytest.raises(Flaw, match="has 1200 x 1200 x 1200 voxels"):
        read(path)
    with pytest.raises(Flaw, match="bytes are missing"):
        open_volume(path).read_labels()
