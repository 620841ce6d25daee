"""Messages call results by the name that the participant gave them."""

from __future__ import annotations

import json
import zipfile
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
