"""Truths that are nested too deeply or cut off are refused with a sentence for the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from segjudge import score
from segjudge.evaluation_script.files.problems import HostError
from tests import published
from tests.families.choices import SALIENCY
from tests.families.contract import merge_rows
from tests.families.test_suspicions import publish, write

DEEP = b'{"images":' + b"[" * 200_000
#: Protocols whose truth has JSON, and the file that is damaged.
JSONS = merge_rows("JSON_TRUTHS")


def refuse(protocol: str, truth: Path, results: Path) -> str:
    with pytest.raises(HostError) as refusal:
        score(results, truth, protocol)
    return str(refusal.value)


@pytest.mark.parametrize("protocol", JSONS)
def test_damaged_json_is_named(protocol: str, tmp_path: Path) -> None:
    truth, data = publish(protocol, tmp_path)
    results = write(tmp_path, data)
    (path,) = [path for path in (truth, *truth.rglob("*")) if path.name == JSONS[protocol]][:1]
    whole = path.read_bytes()
    path.write_bytes(DEEP)
    line = refuse(protocol, truth, results)
    assert line.startswith(str(truth))
    assert "is nested too deeply" in line
    assert "the file that the dataset publishes" in line
    path.write_bytes(whole[: len(whole) // 2])
    line = refuse(protocol, truth, results)
    assert line.startswith(str(truth))
    assert protocol == "mevis" or "its JSON is cut off: copy the file again" in line


@pytest.mark.parametrize("protocol", ["coco", "kitti-mots", SALIENCY])
def test_a_zip_that_is_cut_off_is_not_to_be_uploaded(protocol: str, tmp_path: Path) -> None:
    results = write(tmp_path, publish("coco", tmp_path)[1])
    truth = tmp_path / "truth.zip"
    upload = published.upload(SALIENCY, published.published(SALIENCY, tmp_path / SALIENCY))
    truth.write_bytes(upload[: len(upload) // 2])
    line = refuse(protocol, truth, results)
    assert "is a zip that was cut off: its table of contents is missing. Create " in line
    assert "upload" not in line
