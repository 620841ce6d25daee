"""Input beyond a limit is rejected before it costs work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script.families.phrases.records import RecordReader
from segjudge.evaluation_script.files import archive
from segjudge.evaluation_script.files.limits import CHUNK_BYTES
from tests.families.unit_counts import refusal_of
from tests.scoring.mistakes import write_mistakes


@pytest.mark.parametrize("protocol", ["sa-co-veval", "sa-co-gold"])
def test_a_pair_with_too_many_predictions_ends_the_reading(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for reader in RecordReader.__subclasses__():
        monkeypatch.setattr(reader, "most_predictions", 300)
    written = write_mistakes(protocol, tmp_path)
    records: list[Any] = json.loads(Path(written.results).read_text(encoding="utf-8"))
    best = {**records[0], "score": 0.9}
    text = json.dumps([best] * (6 * CHUNK_BYTES // len(json.dumps(best))))
    upload = tmp_path / "upload.json"
    upload.write_text(text, encoding="utf-8")
    chunks: list[bytes] = []
    read_chunks = archive._JsonFile.read_chunks

    def count_chunks(self: Any, name: str) -> Iterator[bytes]:
        for chunk in read_chunks(self, name):
            chunks.append(chunk)
            yield chunk

    monkeypatch.setattr(archive._JsonFile, "read_chunks", count_chunks)
    assert "has more than 300" in refusal_of(protocol, upload, written.truth)
    assert len(chunks) <= 2
