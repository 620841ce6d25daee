"""Unread files of a submission are named, and archives in it too."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

import segjudge
from segjudge.evaluation_script.files.problems import SubmissionError
from tests.builders import drawn, png, zipped
from tests.families.contract import examples, examples_of
from tests.scoring.shares import write_files


def with_a_note(results: Path, folder: Path) -> Path:
    """Return the results as a zip, with an unread text file."""
    path = folder / "with-a-note.zip"
    if zipfile.is_zipfile(results):
        shutil.copyfile(results, path)
    with zipfile.ZipFile(path, "a") as archive:
        for file in results.rglob("*"):
            archive.write(file, file.relative_to(results))
        if results.is_file() and not zipfile.is_zipfile(results):
            archive.write(results, "results.jsonl" if results.read_bytes().count(b"}\n") > 1 else "results.json")
        archive.writestr("notes.md", "how this was made")
    return path


@pytest.mark.parametrize("protocol", examples("surplus"))
def test_a_file_that_nothing_reads_is_named(protocol: str, tmp_path: Path) -> None:
    files = write_files(protocol, tmp_path)
    sentence = "1 file is not part of the results and was ignored: notes.md"
    assert not any(sentence in line for line in segjudge.score(files.results, files.truth, protocol).warnings)
    results = with_a_note(Path(files.results), tmp_path)
    assert any(sentence in line for line in segjudge.score(str(results), files.truth, protocol).warnings)


@pytest.mark.parametrize("protocol", examples_of("phrases", "surplus"))
def test_pictures_where_json_is_read_are_named(protocol: str, tmp_path: Path) -> None:
    files = write_files(protocol, tmp_path)
    pictures = tmp_path / "pictures.zip"
    pictures.write_bytes(zipped({f"{number}.png": png(drawn("12", "00")) for number in range(5)}))
    with pytest.raises(SubmissionError, match=r"holds no JSON file, only 0.png, 1.png, 2.png and 2 more\. "):
        segjudge.score(str(pictures), files.truth, protocol)
