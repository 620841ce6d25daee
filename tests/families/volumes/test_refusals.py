"""Refused uploads of volumes, by the whole sentence: lists of jobs, names of cases, and grids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.families.refusals import refuse

from .family import encode_volume

LABELS = np.zeros((4, 5, 6), np.uint8)
LABELS[1:3, 1:3, 1:3] = 1
VOLUME = encode_volume(LABELS)
FILE, LIST = "j/output/images/x/a.nii.gz", "predictions.json"
EXAMPLE = '[{"pk": "JOB", "inputs": [{"image": {"name": "CASE.mha"}}], "outputs": [{"image": {"pk": "UUID"}}]}]'


def jobs(*jobs_inputs: str) -> bytes:
    """Return the list of jobs with these input images, separated by spaces."""
    output = {"socket": {"relative_path": "images/x"}, "image": {"pk": "y"}}
    return json.dumps(
        [
            {"pk": "j", "inputs": [{"image": {"name": name}} for name in names.split()], "outputs": [output]}
            for names in jobs_inputs
        ]
    ).encode()


CASES = ["case1"]
REFUSED: dict[str, tuple[list[str], dict[str, Any], str]] = {
    "two lists of jobs": (CASES, {LIST: b"[]", f"x/{LIST}": b"[]"}, f"up.zip: has several {LIST}: {LIST}, x/{LIST}. Send one of them."),
    "no list": (CASES, {LIST: b"{}"}, f"{LIST}: has another form. Write {EXAMPLE}."),
    "jobs of another form": (CASES, {LIST: b'[{"pk": 1}]'}, f"{LIST}: has another form. Write {EXAMPLE}."),
    "jobs without files": (CASES, {LIST: jobs("case1.nii.gz")}, f"{LIST}: names no volume that was sent. Send the files of each job, such as JOB/output/images/SLUG/UUID.mha."),
    "a job twice": (CASES, {LIST: jobs("case1.nii.gz", "case1.nii.gz"), FILE: VOLUME}, f"{LIST}: names {FILE} twice. List each job and each output once."),
    "a job of two cases": (["case1", "case2"], {LIST: jobs("case1.nii.gz case2.nii.gz"), FILE: VOLUME}, f"{LIST}: has a job with images of several cases: case1, case2. Send a job for each case."),
    "images of channels": (CASES, {"case1_0000.nii.gz": VOLUME}, "up.zip: 1 of 1 case is missing: case1; 1 is not in the truth: case1_0000. Send predictions, not images of channels, and name them without _0000."),
    "a truth of channels": (["case1_0000"], {"case1.nii.gz": VOLUME}, "up.zip: 1 of 1 case is missing: case1_0000; 1 is not in the truth: case1. The truth holds images of channels: use nnU-Net's labels, such as labelsTr, not imagesTr."),
    "another name": (CASES, {"x.nii.gz": VOLUME}, "up.zip: 1 of 1 case is missing: case1; 1 is not in the truth: x. Name each volume after its case, such as case1.nii.gz."),
    "bytes after its end": (CASES, {"case1.nii.gz": VOLUME + b"x"}, "case1.nii.gz: has bytes after its gzip data. Write the file again and repeat the upload."),
    "zeros without an end": (CASES, {"case1.nii.gz": VOLUME + bytes(3 << 20)}, "case1.nii.gz: has too many bytes after its data. Write the file again and repeat the upload."),
    "exchanged axes": (CASES, {"case1.nii.gz": encode_volume(np.ascontiguousarray(LABELS.transpose(2, 1, 0)))}, "case1.nii.gz: has 4 x 5 x 6 voxels; the truth has 6 x 5 x 4. Transpose the array into the image's order of axes."),
    "another shape": (CASES, {"case1.nii.gz": encode_volume(LABELS[:3])}, "case1.nii.gz: has 6 x 5 x 3 voxels; the truth has 6 x 5 x 4. Resample it to the grid of the image."),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_upload_is_answered_by_one_sentence(name: str, tmp_path: Path) -> None:
    cases, upload, sentence = REFUSED[name]
    truth = {f"{case}.nii.gz": VOLUME for case in cases}
    assert refuse(tmp_path, "volumes", truth, upload) == sentence
