"""An upload of another kind of file is refused by what it holds; byte order marks of texts are skipped."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from segjudge.evaluation_script.files.problems import SubmissionError
from tests.builders import png, zipped
from tests.families.choices import IMAGE_MAPS, TRACKS

_LINES = b"1 2001 2 4 6 08`0\n2 2001 2 4 6 48<\n"
_LABELS = np.array([[1, 1, 2], [1, 2, 2]], np.uint8)


def _write(files: dict[str, bytes], root: Path) -> None:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


_TRUTHS = {
    TRACKS: {"A/seqinfo.ini": b"[Sequence]\nseqLength=2\nimWidth=6\nimHeight=4\n", "A/gt/gt.txt": _LINES},
    IMAGE_MAPS: {"1.png": png(_LABELS), "2.png": png(_LABELS)},
}


def _score(protocol: str, upload: dict[str, bytes], folder: Path) -> Any:
    _write(_TRUTHS[protocol], folder / "truth")
    (folder / "results.zip").write_bytes(zipped(upload))
    return score(folder / "results.zip", folder / "truth", protocol)


@pytest.mark.parametrize(
    ("protocol", "upload", "fault"),
    [
        (IMAGE_MAPS, {"1.npz": b"PK", "2.npz": b"PK"}, "the upload holds only 1.npz, 2.npz. Send one zip with a PNG for"),
        (TRACKS, {"A.csv": _LINES}, "is missing: A; the upload holds only A.csv. Send one zip with a text file"),
        (TRACKS, {"A.txt": _LINES.decode().encode("utf-16")}, "A.txt: is UTF-16 text. Save it in ASCII or UTF-8"),
    ],
)  # fmt: skip
def test_what_an_upload_holds_instead_is_named(
    protocol: str, upload: dict[str, bytes], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(SubmissionError) as refusal:
        _score(protocol, upload, tmp_path)
    assert fault in str(refusal.value)


def test_byte_order_marks_are_skipped(tmp_path: Path) -> None:
    assert _score(TRACKS, {"A.txt": codecs.BOM_UTF8 + _LINES}, tmp_path)["HOTA"] == 1
