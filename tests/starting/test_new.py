"""`segjudge new`: a small repository that runs, checks and is scored by the installed package."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import yaml

from segjudge.cli import main
from segjudge.evaluation_script.families import FAMILIES, FOLDERS, PROTOCOLS
from segjudge.evaluation_script.families.sequences.protocols import BESIDE
from segjudge.evaluation_script.families.volumes.geometry import Geometry
from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.evaluation_script.scoring import VERSION
from segjudge.families import tools_of
from segjudge.families.volumes.challenges import encode_nifti
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.trial import try_samples
from segjudge.starting import lock, new_challenge
from segjudge.starting.new_challenge import MOST_LABELS, _evalai_title, _plain_title, choose_labels
from tests.builders import ROOT, written
from tests.commands.test_cli import of_davis
from tests.families.contract import merge_rows
from tests.families.sequences.family import davis

FILES = {
    "challenge_config.yaml", "evaluation_script/phases.py", "annotations/val.zip", "logo.png", "requirements.txt",
    "README.md", ".gitignore", ".github/workflows/evalai.yml",
    *(f"templates/{name}.html" for name in (
        "description", "evaluation_details", "submission_guidelines", "terms_and_conditions", "phase")),
}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a DAVIS root with two sequences in its val list, whose objects move."""
    return davis(tmp_path_factory.mktemp("truth"))


def made(folder: Path, protocol: str, truth: Path, *more: str) -> Path:
    assert main(["new", str(folder), "--protocol", protocol, "--truth", str(truth), *more]) == 0
    return folder


def test_it_holds_what_a_challenge_needs(root: Path, tmp_path: Path) -> None:
    folder = made(tmp_path / "my-challenge", "davis2017", root)
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    wheel = f"wheels/segjudge-{VERSION}-py3-none-any.whl"
    assert files == {*FILES, "examples/val/good.zip", "examples/val/poor.zip", wheel}


def test_nothing_of_the_demo_is_left(root: Path, tmp_path: Path) -> None:
    folder = made(tmp_path / "my-challenge", "davis2017", root, "--title", 'Cats: "all" & <more>')

    config = yaml.safe_load((folder / "challenge_config.yaml").read_text())
    assert config["title"] == 'Cats "all" & <more>'  # EvalAI makes an address of the first word
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
    scorers = ROOT / "evaluation_script"
    ours = {path.relative_to(scorers).as_posix() for path in scorers.rglob("*.py")} | {"requirements.txt"}
    assert set(script.namelist()) == ours
    assert script.read("phases.py") == (folder / "evaluation_script/phases.py").read_bytes()
    assert script.read("main.py") == (ROOT / "evaluation_script/main.py").read_bytes()


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
    arguments = ["new", str(folder), "--protocol", "davis2017", "--truth", str(root)]
    assert main(arguments) == 2
    assert "already exists and is not overwritten" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]

    (tmp_path / "empty").mkdir()
    assert main(["new", str(tmp_path / "none"), "--protocol", "davis2017", "--truth", str(tmp_path / "empty")]) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "mine"]


@pytest.mark.long
def test_a_challenge_carries_the_package_that_runs_whatever_became_of_where_it_came_from(
    root: Path, tmp_path: Path
) -> None:
    folder = made(tmp_path / "mine", "davis2017", root)
    (wheel,) = (folder / "wheels").iterdir()
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    line = f"file:./wheels/{wheel.name}#sha256={digest}"
    text = (folder / "requirements.txt").read_text()
    assert text.splitlines()[0] == f"segjudge[serve] @ {line}  # scores as of {VERSION}"
    assert re.sub(r"#.*", "", text.partition("\n")[2]).strip() == ""
    command = [
        sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(tmp_path / "there"),
    ]  # fmt: skip
    subprocess.run([*command, "-r", "requirements.txt"], cwd=folder, check=True)
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'there')!r}); import segjudge; print(segjudge.__file__)"
    out = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert out.startswith(str(tmp_path / "there"))
    taken = {path.relative_to(ROOT / "segjudge").as_posix() for path in (ROOT / "segjudge/starting/files").iterdir()}
    taken |= {f"families/{folder}/texts.html.jinja" for folder in FOLDERS}
    assert all((tmp_path / "there/segjudge" / name).is_file() for name in (*taken, "evaluation_script/main.py"))


@pytest.mark.long
def test_run_and_build_say_that_the_requirements_name_another_version(root: Path, tmp_path: Path, capsys: Any) -> None:
    folder = made(tmp_path / "mine", "davis2017", root)
    assert main(["build", "--no-kernel", str(folder)]) == 0
    assert "requirements.txt" not in capsys.readouterr().err
    for line in (
        "file:./wheels/segjudge-9.1-py3-none-any.whl#sha256=00",
        "segjudge==9.1",
        "segjudge[serve] @ git+ssh://g/s  # scores as of 9.1",
    ):
        (folder / "requirements.txt").write_text(f"{line}\n")
        for command in (
            ["build", "--no-kernel"],
            ["build", "--platform", "codabench", "--no-kernel"],
            ["build", "--platform", "grand-challenge"],
        ):
            assert main([*command, str(folder)]) == 0
            assert (
                f"requirements.txt names Segjudge 9.1, but the scorers of the running version {VERSION} are used"
                in capsys.readouterr().err
            )


TITLES = {
    "MOSE/LVOS challenge": "MOSE-LVOS challenge", "VOS'26": "VOS-26", "C++": "C", "U.S.": "U-S", "Détection d'objets": "Detection d'objets",
    "挑战 2026": "Challenge 挑战 2026", "one\ntwo": "one two", "a  b": "a b", "-a b": "-a b", "a_b-c d": "a_b-c d", "+a+ b": "a b", "ﬁne day": "fine day",
    "αb c": "Challenge αb c", "straße x": "Challenge straße x", "²x": "2x", "🦢": "Challenge 🦢", ".": "Challenge .", "\u200b": "Challenge",
    "'": "Challenge '", "+ +": "Challenge + +", "naïve_α test": "Challenge naïve_α test", "{{ title }}": "Challenge {{ title }}",
    "\ud800": "Challenge", "null": "null", "2026": "2026", "x" * 100: "x" * 100, "x" * 240: "x" * 100, "a " + "b" * 98: "a " + "b" * 98,
    "a " + "b" * 99: "a " + "b" * 97 + "…", "word " * 60: "word " * 19 + "…", "日本" * 80: "Challenge " + "日本" * 44 + "日…",
    "a" * 49 + " " + "b" * 60: "a" * 49 + " …", "a" * 48 + " " + "b" * 60: "a" * 48 + " " + "b" * 50 + "…",
}  # fmt: skip


@pytest.mark.parametrize(("title", "expected"), TITLES.items())
def test_every_title_becomes_one_that_evalai_takes(title: str, expected: str) -> None:
    short = _evalai_title(_plain_title(title) or "Challenge")
    assert re.fullmatch(r"[-a-zA-Z0-9_]+", short.split(" ")[0]), short
    assert len(short) <= 100
    assert _evalai_title(short) == short
    assert short == expected


@pytest.mark.long
@pytest.mark.parametrize("folder", ["-x", "挑战", "a.b", "it's", "two\nlines", "x" * 240])
def test_a_challenge_passes_the_step_that_it_names_next(
    folder: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--protocol", "davis2017", "--truth", str(root), "--title", "" if folder != "a.b" else "Ü+\n" * 60]
    assert main(["new", *arguments, "--", folder]) == 0
    command = capsys.readouterr().out.partition("Next: ")[2].partition("; its README")[0]
    assert main([*shlex.split(command)[1:]]) == 0
    assert main(["check", "--quick", "--strict", f"--bundle={folder}"]) == 0
    config = yaml.safe_load((tmp_path / folder / "challenge_config.yaml").read_text())
    assert config["title"].split(" ")[0].isascii()
    if folder == "a.b":
        assert "Ü+ Ü+" in (tmp_path / folder / "templates/description.html").read_text()


@pytest.mark.parametrize("split", ["true", "2026-01-01", "1e5", "007"])
def test_a_split_may_be_called_what_yaml_reads_as_something_else(split: str, root: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.zip"
    assert main([*of_davis(root), "--out", str(packed), "--split", split]) == 0
    folder = made(tmp_path / "mine", "davis2017", packed)
    assert main(["check", "--quick", "--strict", str(folder)]) == 0


def test_the_changelog_of_this_version_is_read() -> None:
    changes = list(lock._read_changes())
    assert changes
    for _, change in changes:
        named = re.findall(r"`([a-z0-9-]+)`", change.partition(":")[0])
        assert set(named) & {*PROTOCOLS, *FAMILIES} or not named, change
    assert {str(version) for version, _ in changes} == {VERSION}


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
    describe = tools_of(PROTOCOLS[protocol].family).describe_metric
    for metric in PROTOCOLS[protocol].metrics:
        assert metric in BESIDE or len(describe(metric)) > 10
        assert metric in BESIDE or describe(metric) != metric


def instances(path: Path, side: int) -> Path:
    """Return a COCO truth of three images, with an instance of this size in each."""
    box = [10, 10, side, side]
    outline = [10, 10, 10 + side, 10, 10 + side, 10 + side, 10, 10 + side]
    truth = {
        "images": [{"id": number, "width": 400, "height": 400} for number in (1, 2, 3)],
        "categories": [{"id": 1, "name": "swan"}],
        "annotations": [
            {"id": n, "image_id": n, "category_id": 1, "iscrowd": 0, "area": side * side, "bbox": box, "segmentation": [outline]}
            for n in (1, 2, 3)
        ],
    }  # fmt: skip
    path.write_text(json.dumps(truth))
    return path


def test_samples_of_a_tiny_truth_are_said_to_be_equal(tmp_path: Path, capsys: Any) -> None:
    for width, is_tiny in ((8, True), (80, False)):
        geometry = Geometry((width, 7, 6), (1.0, 1.0, 1.0), np.eye(4)[:3])
        labels = np.zeros((6, 7, width), np.uint8)
        labels[1:5, 2:5, 2:6] = 1
        truth = written(tmp_path / f"truth-{width}", {"a.nii.gz": encode_nifti(labels, geometry)})
        made(tmp_path / f"new-{width}", "msd", truth)
        assert ("samples: good.zip and poor.zip are equal: " in capsys.readouterr().err) == is_tiny


@pytest.mark.long
def test_a_leaderboard_leaves_out_what_its_truth_does_not_define(tmp_path: Path, capsys: Any) -> None:
    packed = tmp_path / "truth.zip"
    for name, side in (("near", 200), ("far", 20)):
        source = instances(tmp_path / f"{name}.json", side)
        arguments = ["pack", "--layout", "coco", "--root", str(source), "--out", str(packed), "--split", name]
        assert main(arguments) == 0
    folder = made(tmp_path / "mine", "coco", packed)
    output = capsys.readouterr().err
    assert "nothing to average for APs, APm, ARs, ARm in near: its leaderboard omits them" in output
    assert "nothing to average for APm, APl, ARm, ARl in far: its leaderboard omits them" in output
    config = yaml.safe_load((folder / "challenge_config.yaml").read_text())
    near, far = (board["schema"]["labels"] for board in config["leaderboard"])
    assert "APl" in near
    assert "APs" in far
    assert {"APm"}.isdisjoint({*near, *far})
    assert [row["leaderboard_id"] for row in config["challenge_phase_splits"]] == [1, 2]
    assert main(["run", str(folder)]) == 0
    assert "nothing to average" not in capsys.readouterr().out
    assert main(["check", "--quick", "--strict", str(folder)]) == 0


@pytest.mark.parametrize(("protocol", "labels"), merge_rows("BOARD_LABELS").items())
def test_a_leaderboard_has_the_first_metrics_and_no_half_of_a_group(protocol: str, labels: tuple[str, ...]) -> None:
    assert choose_labels(PROTOCOLS[protocol].metrics, groups_of(protocol)) == labels


def groups_of(protocol: str) -> Sequence[tuple[str, ...]]:
    return tools_of(PROTOCOLS[protocol].family).label_groups


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_leaderboard_begins_with_the_metric_that_ranks_and_fits_a_page(protocol: str) -> None:
    metrics = PROTOCOLS[protocol].metrics
    chosen = choose_labels(metrics, groups_of(protocol))
    assert metrics[0] == chosen[0]
    assert [metric for metric in metrics if metric in chosen] == [*chosen]
    assert 1 <= len(chosen) <= MOST_LABELS
    for group in map(set, groups_of(protocol)):
        assert group & {*chosen} in (set(), group & {*metrics}) or len(metrics) <= MOST_LABELS
    assert chosen == metrics or len(metrics) > MOST_LABELS


@pytest.mark.long
def test_check_and_run_name_the_labels_that_no_sample_has(tmp_path: Path, capsys: Any) -> None:
    folder = made(tmp_path / "mine", "coco", instances(tmp_path / "truth.json", 20), "--all-metrics")
    for name, old, new in (
        ("evaluation_script/phases.py", '"APs",', '"APl", "APs",'),
        ("challenge_config.yaml", '"APs", ', '"APl", "APs", '),
        ("challenge_config.yaml", "metadata:", "metadata:\n        APl: {sort_ascending: False, description: large}"),
    ):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))
    sentence = "val: val: nothing to average for APl on this truth, so the leaderboard shows 0"
    bundle = build(str(folder), str(tmp_path / "bundle.zip")).path
    assert [f"{problem.subject}: {problem.fault}" for problem in try_samples(str(folder), bundle)] == [sentence]
    capsys.readouterr()
    assert main(["run", str(folder)]) == 0
    out = capsys.readouterr().out
    assert sentence in out
    lines = " ".join(out.replace("\\\n", "").split())
    assert "pack --layout coco --root DATA --out annotations/NAME.zip" in lines  # the next step of this challenge


def test_what_cannot_be_written_is_a_sentence(root: Path, tmp_path: Path, capsys: Any) -> None:
    folder = made(tmp_path / "mine", "davis2017", root)
    (folder / "dist").write_text("a file in the place of the folder for what is built")
    for platform in ("evalai", "codabench", "grand-challenge"):
        capsys.readouterr()
        assert main(["build", "--platform", platform, str(folder)]) == 3
        assert f"{folder}/dist" in capsys.readouterr().err
    assert main(["new", "--demo", str(folder / "dist/inside")]) == 2
    assert "/dist: cannot be written" in capsys.readouterr().err


def test_a_truth_with_nothing_to_score_is_refused(tmp_path: Path, capsys: Any) -> None:
    truth = instances(tmp_path / "truth.json", 20)
    content = json.loads(truth.read_text())
    content["annotations"] = []
    truth.write_text(json.dumps(content))
    assert main(["new", str(tmp_path / "mine"), "--protocol", "coco", "--truth", str(truth)]) == 3
    assert "holds nothing that coco can score" in capsys.readouterr().err


def test_splits_that_cannot_be_codenames_and_samples_that_do_not_score_are_sentences(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    packed = tmp_path / "packed.zip"
    for split in ("x" * 50, "x" * 51, "a b"):
        arguments = [*of_davis(root), "--out", str(packed)]
        assert main([*arguments, "--split", split]) == 0
    assert main(["new", str(tmp_path / "mine"), "--protocol", "davis2017", "--truth", str(packed)]) == 2
    rule = "cannot be a codename, which has up to 50 characters of a-z, 0-9, - and _; pack the truth with --split NAME first"
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"{'x' * 51}, a b: {rule}")
    monkeypatch.setattr(new_challenge.Scorer, "score", Mock(side_effect=SubmissionError("a mask is missing")))
    assert main(["new", str(tmp_path / "mine"), "--protocol", "davis2017", "--truth", str(root)]) == 3
    expected = "the samples made from this truth cannot be scored: a mask is missing"
    assert capsys.readouterr().err.splitlines()[-1] == expected
    assert not (tmp_path / "mine").exists()
