"""`segjudge new`: a small repository that runs, checks and is scored by the installed package."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.cli import main
from segjudge.evaluation_script.phase import PROTOCOLS
from segjudge.evaluation_script.sequence_protocols import BESIDE
from segjudge.evaluation_script.version import VERSION
from segjudge.starting import lock
from segjudge.starting.meanings import meaning

from .builders import ROOT
from .published import davis

FILES = {
    "challenge_config.yaml", "evaluation_script/phases.py", "annotations/val.zip", "logo.png", "requirements.txt",
    "README.md", ".gitignore", ".github/workflows/evalai.yml",
    *(f"templates/{name}.html" for name in (
        "description", "evaluation_details", "submission_guidelines", "terms_and_conditions", "phase")),
}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DAVIS root with two sequences in its val list, whose objects move."""
    return davis(tmp_path_factory.mktemp("truth"))


def made(folder: Path, protocol: str, truth: Path, *more: str) -> Path:
    assert main(["new", str(folder), "--protocol", protocol, "--truth", str(truth), *more]) == 0
    return folder


def test_it_holds_what_a_challenge_needs(root: Path, tmp_path: Path) -> None:
    folder = made(tmp_path / "my-challenge", "davis2017", root)
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files == {*FILES, "examples/val/good.zip", "examples/val/poor.zip"}


def test_nothing_of_the_demo_is_left(root: Path, tmp_path: Path) -> None:
    folder = made(tmp_path / "my-challenge", "davis2017", root, "--title", 'Cats: "all" & <more>')

    config = yaml.safe_load((folder / "challenge_config.yaml").read_text())
    assert config["title"] == 'Cats: "all" & <more>'
    assert "Cats: &#34;all&#34; &amp; &lt;more&gt;" in (folder / "templates/description.html").read_text()
    texts = [path.read_text() for path in folder.rglob("*") if path.suffix in (".html", ".yaml", ".md", ".py", ".yml")]
    for word in (
        "demo challenge",
        "demonstration",
        "crossing",
        "synthetic",
        "./run.sh",
        "{{ title",
        "{%",
        "instances-dev",
    ):
        assert not [text for text in texts if word in text], word
    assert "swan/00000.png" in (folder / "templates/submission_guidelines.html").read_text()


def test_the_zip_holds_the_installed_scorers_beside_its_own_phases(root: Path, tmp_path: Path) -> None:
    folder = made(tmp_path / "my-challenge", "davis2017", root)
    assert main(["build", "--bundle", str(folder), "--no-kernel"]) == 0

    with zipfile.ZipFile(folder / "dist/challenge_config.zip") as bundle:
        script = zipfile.ZipFile(io.BytesIO(bundle.read("evaluation_script.zip")))
    ours = {path.name for path in (ROOT / "evaluation_script").iterdir() if path.suffix == ".py"} | {"requirements.txt"}
    assert set(script.namelist()) == ours
    assert script.read("phases.py") == (folder / "evaluation_script/phases.py").read_bytes()
    assert script.read("main.py") == (ROOT / "evaluation_script/main.py").read_bytes()


def test_its_phases_are_scored_in_its_folder(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    folder = made(tmp_path / "my-challenge", "davis2017", root)
    monkeypatch.chdir(folder)
    assert main(["score", "examples/val/good.zip", "--phase", "val"]) == 0
    assert "swan" in capsys.readouterr().out


def test_a_packed_truth_keeps_its_splits(tmp_path: Path) -> None:
    folder = made(tmp_path / "two", "davis2017", ROOT / "annotations/sequences-test.zip")
    config = yaml.safe_load((folder / "challenge_config.yaml").read_text())
    assert [split["codename"] for split in config["dataset_splits"]] == ["test", "test-hard"]
    assert main(["check", "--quick", "--strict", str(folder)]) == 0


def test_a_link_to_an_empty_folder_is_filled(root: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    made(tmp_path / "link", "davis2017", root)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "empty" / "challenge_config.yaml").is_file()


def test_nothing_is_written_over_and_nothing_half_made_stays(root: Path, tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years")
    words = ["new", str(folder), "--protocol", "davis2017", "--truth", str(root)]
    assert main(words) == 2
    assert "is there already" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]

    (tmp_path / "empty").mkdir()
    assert main(["new", str(tmp_path / "none"), "--protocol", "davis2017", "--truth", str(tmp_path / "empty")]) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "mine"]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("", f"segjudge=={VERSION}"),
        ("1.2", "segjudge==1.2"),
        ("https://example.org/segjudge.git@v1", "segjudge @ git+https://example.org/segjudge.git@v1"),
        ("git+ssh://git@example.org/segjudge", "segjudge @ git+ssh://git@example.org/segjudge"),
    ],
)
def test_the_lock_names_what_scores(source: str, line: str, root: Path, tmp_path: Path) -> None:
    folder = made(tmp_path / "mine", "davis2017", root, "--segjudge", source)
    assert (folder / "requirements.txt").read_text() == f"{line}  # scores as of {VERSION}\n"


def test_a_wheel_goes_into_the_repository(root: Path, tmp_path: Path, capsys: Any) -> None:
    wheel = tmp_path / "segjudge-0.1.0-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    folder = made(tmp_path / "mine", "davis2017", root, "--segjudge", str(wheel))
    assert (folder / "requirements.txt").read_text().startswith(f"./wheels/{wheel.name}  #")
    assert (folder / "wheels" / wheel.name).read_bytes() == b"a wheel"
    for other in ("none.whl", "one point two"):
        words = ["new", str(tmp_path / "other"), "--protocol", "davis2017", "--truth", str(root), "--segjudge", other]
        assert main(words) == 2
        assert other in capsys.readouterr().err


def test_check_says_what_changed_in_scores_since_the_lock(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    folder = made(tmp_path / "mine", "davis2017", root)
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(
        "# Changelog\n\n## Unreleased\n\n### Added\n- A word.\n\n### Scores\n- J of an empty\n  frame: 0 → 1.\n\n"
        "## 0.2.0\n\n### Scores\n- F: 0.5 → 0.6.\n\n## 0.1.0\n\n### Scores\n- First numbers.\n"
    )
    monkeypatch.setattr(lock, "_CHANGELOG", str(changelog))
    monkeypatch.setattr(lock, "VERSION", "0.3.0")

    assert main(["check", "--quick", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "has scores as of 0.1.0; 0.3.0 changed them: J of an empty frame: 0 → 1" in out
    assert "0.2.0 changed them: F: 0.5 → 0.6" in out
    assert "First numbers" not in out
    assert main(["check", "--quick", "--strict", str(folder)]) == 3

    (folder / "requirements.txt").write_text("segjudge==0.3.0  # scores as of 0.3.0\n")
    assert main(["check", "--quick", "--strict", str(folder)]) == 0
    (folder / "requirements.txt").write_text("segjudge==0.4.0  # scores as of 0.4.0\n")
    assert main(["check", "--quick", "--strict", str(folder)]) == 3


def test_the_changelog_of_this_version_is_read() -> None:
    changes = list(lock._changes())
    assert any("First numbers" in change for _, change in changes)


def test_it_asks_on_a_terminal_and_nowhere_else(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert main(["new", str(tmp_path / "mine")]) == 2
    assert "new needs --protocol" in capsys.readouterr().err

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(f"davis2017\n\n{root}\n"))
    monkeypatch.setattr("sys.stderr", Terminal())
    assert main(["new", str(tmp_path / "mine")]) == 0
    assert (tmp_path / "mine/challenge_config.yaml").is_file()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_metric_has_a_meaning(protocol: str) -> None:
    assert all(len(meaning(metric)) > 10 for metric in PROTOCOLS[protocol].metrics if metric not in BESIDE)
