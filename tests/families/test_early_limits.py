"""Input beyond a limit is rejected before it costs work."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import pytest

from tests.builders import zipped
from tests.families.contract import examples, merge_rows
from tests.families.unit_counts import refusal_of
from tests.published import published
from tests.scoring.mistakes import write_mistakes

UPLOADS = merge_rows("UPLOADS")


@pytest.mark.parametrize("protocol", examples("records"))
@pytest.mark.parametrize("record", ["1", "{}"])
def test_a_thousand_bad_records_are_enough_and_are_one_sentence(protocol: str, record: str, tmp_path: Path) -> None:
    files = write_mistakes(protocol, tmp_path)
    upload = tmp_path / "upload.json"
    upload.write_text(f"[{','.join([record] * 20_000)}]", encoding="utf-8")
    text = refusal_of(protocol, upload, files.truth)
    assert re.search(r"records 0[^,]*, 1[^,]*, 2[^,]* and at least 997 more: each ", text)
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize("protocol", UPLOADS)
def test_an_image_far_larger_than_any_of_its_size_is_refused(protocol: str, tmp_path: Path) -> None:
    truth = published(protocol, tmp_path)
    data = UPLOADS[protocol][0](truth)
    images: list[str] = []
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        images = [name for name in files if name.endswith((".png", ".tif"))]
    if not images:
        pytest.skip("its uploads hold no images")
    large = images[min(1, len(images) - 1)]  # the first frame of a video may not count
    files[large] += bytes(5_000_000)
    upload = tmp_path / "upload.zip"
    upload.write_bytes(zipped(files, zipfile.ZIP_STORED))
    text = refusal_of(protocol, upload, str(truth))
    assert re.search(rf"{re.escape(large)}: has 5,000,\d+ bytes; .* of this size takes? at most ", text), text
