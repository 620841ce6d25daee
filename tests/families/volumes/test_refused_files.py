"""Each rejection of a file of a volume that is not one of a header's field, word for word."""

from __future__ import annotations

import gzip

import pytest

from segjudge.evaluation_script.families.volumes.voxels import VolumeFile
from segjudge.evaluation_script.files.problems import Flaw

from .test_header_rules import AGAIN, ONE_FILE, nifti

META = b"NDims = 3\n"
FILES = {
    "nothing": ("a.nii.gz", b"", f"is empty. {AGAIN}"),
    "no gzip": ("a.nii.gz", nifti(), "is not gzip data. Compress it with gzip, or name it .nii"),
    "gzip twice": ("a.nii.gz", gzip.compress(gzip.compress(nifti())), "is compressed twice. Compress it once"),
    "gzip by another name": ("a.nii", gzip.compress(nifti()), "is gzip data without the ending .gz. Name it .nii.gz"),
    "a header alone": ("a.mhd", META, "has its data in another file. Send one file for each case, .nii.gz, .seg.nrrd, .nii, .mha or .nrrd"),
    "a picture": ("a.png", b"x", "is no volume. Send one file for each case, .nii.gz, .seg.nrrd, .nii, .mha or .nrrd"),
    "no MetaImage": ("a.mha", b"NDims\nElementDataFile = LOCAL\n", "is not a MetaImage. Send label maps as .mha or .nii.gz"),
    "a MetaImage without an end": ("a.mha", META, f"is damaged: the end of its header is missing. {AGAIN}"),
    "a key of a MetaImage twice": ("a.mha", META * 2 + b"ElementDataFile = LOCAL\n", f"has NDims twice in its header. {AGAIN}"),
    "no NRRD": ("a.nrrd", b"NDims = 3\n", "is not a NRRD file. Send label maps as .nrrd or .nii.gz"),
    "a NRRD without an end": ("a.nrrd", b"NRRD0005\ntype: uint8\n", f"is damaged: the end of its header is missing. {AGAIN}"),
    "a NRRD of two files": ("a.nrrd", b"NRRD0005\ndata file: a.raw\n\n", f"has its data in another file (a.raw). {ONE_FILE}"),
    "places beyond any body": ("a.nii", nifti(("12f", 280, (-1, 0, 0, 1e30, 0, -2, 0, 8, 0, 0, 3, 9))), "has a position that is not a number, or lies outside any body. Write the prediction with the header of the image, in the grid of the truth"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_refused_by_its_own_sentence(name: str) -> None:
    path, data, sentence = FILES[name]
    with pytest.raises(Flaw) as caught:
        VolumeFile(path, len(data), iter([data]))
    assert str(caught.value.as_problem("a")) == f"a: {sentence}."
