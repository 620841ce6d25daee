"""Commands write their files completely, or leave them unchanged."""

from __future__ import annotations

import argparse
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import segjudge
from segjudge import cli
from segjudge.cli import main
from segjudge.commands import COMMANDS, EARLIER
from segjudge.commands.shared import BundlePath, check_files
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.system.files import OutputFile, OutputFolder, file_name
from tests.builders import ANNOTATIONS, ROOT, STRONG, zipped
from tests.commands.test_participants import TRUTH
from tests.families.choices import SKIPS_MISSING

BEFORE = "written before"


def places(folder: Path) -> list[str]:
    """Return a picture and its categories, as arguments of `convert`."""
    (folder / "png").mkdir()
    Image.fromarray(np.ones((8, 9, 3), np.uint8)).save(folder / "png/a.png")
    (folder / "categories.json").write_text('{"categories": [{"id": 1, "name": "bed"}]}')
    return ["convert", "places", str(folder / "png"), str(folder / "out.json"), "--categories",
            str(folder / "categories.json")]  # fmt: skip


def scoring(folder: Path) -> list[str]:
    return ["score", str(STRONG), "--truth", str(ANNOTATIONS), "--protocol", SKIPS_MISSING, "--csv", str(folder)]


def drawing(folder: Path) -> list[str]:
    return ["show", "--truth", TRUTH, "--out", str(folder)]


@pytest.mark.parametrize(
    ("message", "file"),
    [(places, "out.json"), (scoring, "results.csv"), (drawing, "index.html")],
    ids=["convert", "tables", "page"],
)
def test_a_file_that_cannot_be_written_whole_stays_as_it_was(
    message: Any, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    command = message(tmp_path)
    out = tmp_path / file
    out.parent.mkdir(exist_ok=True)
    out.write_text(BEFORE)
    replace = os.replace

    def full(source: str, target: str) -> None:
        if target == str(out):
            raise OSError(errno.ENOSPC, "No space left on device", source)
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert main(command) != 0

    assert f"{out}: cannot be written (No space left on device)" in capsys.readouterr().err
    assert out.read_text() == BEFORE
    assert not list(tmp_path.rglob("*.partial"))
    assert main(command) == 0
    assert out.read_bytes() != BEFORE.encode()


# ── where files may be written ──────────────────────────────────────────────


def test_every_option_that_writes_is_checked_before_anything_is_done() -> None:
    usual = {"out", "json", "csv", "plots", "report", "pages", "result", "results_yaml", "output_json"}
    for name in {*COMMANDS, *EARLIER} - {"host"}:  # it writes a new folder alone
        writing = usual | ({"draw"} if name == "report" else set())
        for platform in [cli.EVALAI, *(key for key, table in cli.PLATFORMS.items() if name in table)]:
            for parser in parsers(cli.make_parser([name, "--platform", platform])):
                for action in parser._actions:
                    if action.dest in writing and action.nargs != 0:
                        assert isinstance(action.type, type), (name, action.dest)
                        assert issubclass(action.type, OutputFile), (name, action.dest)


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action.choices.values():
                yield from parsers(choice)


SCORE = ["score", "R.zip", "--truth", "T.zip", "--protocol", "davis2017"]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ([*SCORE, "--json", "T.zip"], "T.zip"),
        ([*SCORE, "--report", "R.zip"], "R.zip"),
        ([*SCORE, "--results-yaml", "./T.zip"], "./T.zip"),
        ([*SCORE, "--part", "1/2", "--out", "T.zip"], "T.zip"),
        ([*SCORE, "--json", "link"], "link"),
        ([*SCORE, "--unseen", "unseen.txt", "--json", "unseen.txt"], "unseen.txt"),
        (["score", "folder", "--truth", "T.zip", "--protocol", "davis2017", "--json", "folder/a.png"], "folder/a.png"),
        (["score", "R.zip", "--phase", "sequences-dev", "--json", str(ANNOTATIONS)], str(ANNOTATIONS)),
        (["merge", "R.zip", "T.zip", "--json", "T.zip"], "T.zip"),
        (["report", "R.zip", "--truth", "T.zip", "--out", "T.zip"], "T.zip"),
        (["report", "R.zip", "--out", "R.zip"], "R.zip"),
        (["compare", "R.zip", "b=link", "--truth", "unseen.txt", "--json", "T.zip"], "T.zip"),
        (["compare", "R.zip", "T.zip", "--truth", "unseen.txt", "--out", "unseen.txt"], "unseen.txt"),
        (["rank", "unseen.txt", "--json", "unseen.txt"], "unseen.txt"),
        (["pack", "--layout", "davis2017", "--root", "T.zip", "--out", "T.zip"], "T.zip"),
        (["pack", "--layout", "davis2017", "--root", "folder", "--out", "folder/a.png"], "folder/a.png"),
        (["compress", "R.zip", "--out", "R.zip"], "R.zip"),
        (["convert", "places", "folder", "unseen.txt", "--categories", "unseen.txt"], "unseen.txt"),
        (["convert", "--ann_dir", "folder", "--output_json", "folder/a.png"], "folder/a.png"),
        (["build", str(ROOT), "--out", str(ROOT / "challenge_config.yaml")], str(ROOT / "challenge_config.yaml")),
        (["arena", "--truth", "T.zip", "--result", "T.zip", "--", "agent"], "T.zip"),
    ],
)
def test_no_output_is_written_over_an_input(
    arguments: list[str], path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    inputs(tmp_path, monkeypatch)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert main(arguments) == 2
    assert "would be overwritten; name another file" in (error := capsys.readouterr().err)
    assert error.startswith(f"segjudge: {path}: is ")
    assert before == {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}


def inputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write results and a truth into the current folder."""
    (folder / "folder").mkdir()
    for name, source in (("R.zip", STRONG), ("T.zip", ANNOTATIONS), ("folder/a.png", STRONG), ("unseen.txt", STRONG)):
        (folder / name).write_bytes(source.read_bytes())
    (folder / "link").symlink_to("T.zip")
    monkeypatch.chdir(folder)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--json", "X", "--report", "X"],
        ["--json", "X", "--results-yaml", "folder/../X"],
        ["--csv", "D", "--json", "D/global_results-dev.csv"],
        ["--csv", "D", "--report", "D/per-sequence_results-dev.csv"],
    ],
)
def test_no_two_outputs_are_written_to_one_place(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    inputs(tmp_path, monkeypatch)
    assert main([*SCORE, *arguments]) == 2
    assert "is named for two outputs; name a file for each" in capsys.readouterr().err
    assert not [file for file in tmp_path.rglob("*") if file.name == "X" or file.suffix == ".csv"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([*SCORE, "--csv", "R.zip"], "R.zip: cannot be written (Not a directory); choose another path with --csv"),
        ([*SCORE, "--json", "folder"], "folder: cannot be written (Is a directory)"),
        ([*SCORE, "--report", "none/x"], "none: cannot be written (No such file or directory)"),
        (["compare", "R.zip", "a=R.zip", "--truth", "T.zip", "--out", "folder"], "folder: cannot be written (Is a dir"),
        (["rank", "x.json", "--plots", "R.zip"], "R.zip: cannot be written (Not a directory)"),
        (["pack", "--layout", "davis2017", "--root", "folder", "--out", "R.zip/x.zip"], "R.zip: cannot be written (Not"),
        (["build", str(ROOT), "--out", "R.zip/x.zip"], "R.zip: cannot be written (Not a directory)"),
        (["show", "--truth", "T.zip", "--out", "R.zip/x"], "R.zip: cannot be written (Not a directory)"),
        (["schema", "--out", "R.zip/x"], "R.zip: cannot be written (Not a directory)"),
        (["report", "R.zip", "--out", "none/x"], "none: cannot be written (No such file or directory); choose another path with --out"),
        (["demo", "--out", "R.zip"], "R.zip: cannot be written (Not a directory)"),
        (["new", "R.zip/x", "--protocol", "davis2017", "--truth", "T.zip"], "R.zip: cannot be written (Not a dir"),
        (["interactive", "demo", "--out", "R.zip"], "R.zip: cannot be written (Not a directory)"),
        ([*SCORE, "--json", "/dev/full"], "/dev/full: cannot be written (No space left on device)"),
        ([*SCORE, "--report", "/dev/full"], "/dev/full: cannot be written (No space left on device)"),
        (["schema", "--out", "/dev/full"], "/dev/full: cannot be written (No space left on device)"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_ends_every_command_with_one_sentence_and_one_code(
    arguments: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    inputs(tmp_path, monkeypatch)
    assert main(arguments) == (3 if "No space" in reason else 2)
    line = capsys.readouterr().err.strip().splitlines()[-1].removeprefix("segjudge: ").replace(f"{tmp_path}/", "")
    assert line.startswith(reason)


@pytest.mark.parametrize("name", ["x/../../../ESCAPED", "/ESCAPED", "..", ".hidden", "a\nb", "%2F", "ü" * 300, "日本"])
def test_a_name_from_a_file_makes_no_path(name: str, tmp_path: Path, capsys: Any) -> None:
    (truth,) = sequence_truth.read(str(ANNOTATIONS)).splits.values()
    folder = tmp_path / "deep/deeper/csv"
    packed = tmp_path / "packed.zip"
    sequence_truth.write(str(packed), {name: truth, name.replace("/", "%2F") + "%": truth})
    arguments = ["score", str(STRONG), "--truth", str(packed), "--protocol", SKIPS_MISSING, "--csv", str(folder)]
    before = set(tmp_path.rglob("*"))
    assert main(arguments) == 0
    written = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert len(written) == 6
    assert {path.parent for path in written} == {folder}
    assert all(len(os.fsencode(path.name)) < 200 and not path.name.startswith(".") for path in written)
    part, merged = tmp_path / "part", tmp_path / "merged"
    assert main([*arguments[:-2], "--part", "1/1", "--out", str(part)]) == 0
    assert main(["merge", str(part), "--csv", str(merged)]) == 0
    assert {path.name for path in merged.iterdir()} == {path.name for path in written}


def test_names_of_files_differ_where_names_do() -> None:
    names = ["a/b", "a%2Fb", "a_b", "a-b", ".a", "a", "", "ü" * 100, "ü" * 101, "é", "e\u0301", "a b", "J&F-Mean"]
    made = [file_name(name) for name in names]
    assert len(set(made)) == len(names)
    assert not [name for name in made if "/" in name or name.startswith(".")]
    assert [file_name(name) for name in ("val", "J&F-Mean", "日本 1")] == ["val", "J&F-Mean", "日本 1"]


def test_no_terminal_is_too_old() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for arguments in (["benchmarks"], ["score", STRONG, "--truth", ANNOTATIONS, "--protocol", "davis2017"]):
        command = [sys.executable, "-m", "segjudge", *arguments]
        done = subprocess.run(command, check=True, capture_output=True, env=environment, timeout=60)
        assert b"Traceback" not in done.stderr
        assert "\\u" not in done.stdout.decode("ascii"), "the characters of our own words have plain forms"


def test_a_bundle_that_is_none_of_evalais_is_an_input_too(tmp_path: Path) -> None:
    competition = tmp_path / "competition.zip"
    competition.write_bytes(zipped({"competition.yaml": b"title: x"}))
    check_files({"bundle": BundlePath(competition), "pages": OutputFolder(tmp_path / "pages")}, [], "")
    with pytest.raises(segjudge.UsageError, match="would be overwritten"):
        check_files({"bundle": BundlePath(competition), "out": OutputFile(competition)}, [], "")


@pytest.mark.parametrize("command", ["report", "compare", "score"])
def test_names_whose_bytes_are_no_utf8_are_written_as_escapes(
    command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name = os.fsdecode(b"na\xefve.zip")
    try:
        (tmp_path / name).write_bytes(STRONG.read_bytes())
    except OSError:
        pytest.skip("this system has only names of UTF-8")
    files = [str(tmp_path / name), *([str(STRONG)] if command == "compare" else [])]
    output = ["--json", str(tmp_path / "out")] if command == "score" else ["--out", str(tmp_path / "out.html")]
    assert main([command, *files, "--truth", str(ANNOTATIONS), "--protocol", "davis2017", *output]) == 0
    capfd.readouterr()
    (written,) = tmp_path.glob("out*")
    assert "na" in written.read_text(encoding="utf-8")
