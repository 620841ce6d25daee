"""Messages call results by the name that the participant gave them."""

from __future__ import annotations

import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import segjudge
from segjudge import cli
from tests.builders import ROOT

TRUTH = str(ROOT / "annotations" / "sequences-dev.zip")


def write_wrong_results(folder: Path) -> dict[str, Path]:
    """Return a folder, an archive, JSON and a text: none of them can be scored."""
    (folder / "my results" / "notes").mkdir(parents=True)
    (folder / "my results" / "notes" / "read me.txt").write_text("nothing")
    with zipfile.ZipFile(folder / "masks of mine.zip", "w") as archive:
        archive.writestr("notes.txt", "nothing")
    (folder / "mine.json").write_text(json.dumps({"nowhere": {}}))
    (folder / "mine.csv").write_text("a,b\n")
    return {
        "my results/": folder / "my results",
        **{name: folder / name for name in ("masks of mine.zip", "mine.json", "mine.csv")},
    }


@pytest.mark.parametrize("name", ["my results/", "masks of mine.zip", "mine.json", "mine.csv"])
def test_a_message_names_the_results_in_python_in_parts_and_on_the_command_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write_wrong_results(tmp_path)[name])
    for parallel in (None, 2):
        with pytest.raises(segjudge.SubmissionError) as raised:
            segjudge.score(path, TRUTH, protocol="davis2017", jobs=parallel)
        assert str(raised.value).startswith(f"{name}: ")
    options = ["--truth", TRUTH, "--protocol", "davis2017"]
    assert cli.main(["score", path, *options]) == 1
    assert capsys.readouterr().err.startswith(f"{name}: ")
    assert cli.main(["score", path, *options, "--part", "1/2", "--out", str(tmp_path / "part")]) == 1
    assert capsys.readouterr().err.startswith(f"{name}: ")


def test_a_name_cannot_forge_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a\nb\x1b[2J.csv"
    path.write_text("a,b\n")
    with pytest.raises(segjudge.SubmissionError) as raised:
        segjudge.score(str(path), TRUTH, protocol="davis2017")
    assert "\n" not in str(raised.value)
    assert "\x1b" not in str(raised.value)


def test_a_warning_names_the_results_in_parts_and_saved_scores_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts know results as `your file`; what reads them again says the name."""
    path, options = tmp_path / "of mine.zip", ["--truth", TRUTH, "--protocol", "sav"]
    with zipfile.ZipFile(ROOT / "examples/sequences-dev/strong.zip") as whole, zipfile.ZipFile(path, "w") as archive:
        for name in whole.namelist():
            if not name.startswith("solo/"):
                archive.writestr(name, whole.read(name))
    scores = segjudge.score(path, TRUTH, "sav")
    assert any("of mine.zip: 1 of 3 sequences is missing: solo" in line for line in scores.warnings)
    parts = [str(tmp_path / f"{number}.part") for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        assert cli.main(["score", str(path), *options, "--part", f"{number}/2", "--out", part]) == 0
    capsys.readouterr()
    assert cli.main(["merge", *parts]) == 0
    assert "of mine.zip: 1 of 3 sequences is missing: solo" in capsys.readouterr().err
    scores.save(tmp_path / "saved")
    assert segjudge.load(tmp_path / "saved") == scores
    segjudge.load(tmp_path / "saved").save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "saved").read_bytes()
    with ThreadPoolExecutor(2) as executor:
        shared = segjudge.score(path, TRUTH, "sav", executor=executor)
    shared.save(tmp_path / "shared")
    assert segjudge.load(tmp_path / "shared").warnings == shared.warnings == scores.warnings


def test_an_error_while_parts_are_merged_names_the_results(tmp_path: Path) -> None:
    """Whether a strict scoring rejects results that hold more than the truth shows when all counts are there."""
    truth, path = tmp_path / "truth.json", tmp_path / "mine.json"
    image, mask = {"id": 1, "height": 4, "width": 4}, {"size": [4, 4], "counts": [0, 16]}
    annotation = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": mask, "area": 16, "iscrowd": 0}
    categories = [{"id": 1, "name": "all"}]
    truth.write_text(json.dumps({"images": [image], "annotations": [annotation], "categories": categories}))
    record = {"image_id": 1, "category_id": 1, "segmentation": mask, "score": 0.5}
    path.write_text(json.dumps([record, {**record, "category_id": 9}]))
    with pytest.raises(segjudge.SubmissionError) as raised:
        segjudge.score(path, truth, "coco", strict=True)
    assert str(raised.value).startswith("mine.json: 1 of 2 records has a category that the truth lacks")
    with ThreadPoolExecutor(1) as executor, pytest.raises(segjudge.SubmissionError) as shared:
        segjudge.score(path, truth, "coco", strict=True, executor=executor)
    assert str(shared.value) == str(raised.value)
