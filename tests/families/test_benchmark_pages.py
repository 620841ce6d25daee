"""Each page on a benchmark: its example scores as shown, its commands run on it, and its numbers are the shown ones."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from docs.site.tables import list_families
from segjudge.cli import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.families.base.benchmarks import BenchmarkEntry
from segjudge.masks.tiff import encode_tiff
from tests.builders import ROOT, png
from tests.families.volumes.family import encode_volume

PAGES = sorted((ROOT / "docs" / "benchmarks").glob("*.md"))
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)

#: A file of the example: its path, what the numbers are where it is a picture, its lines.
FILE = re.compile(r"^`([\w./-]+)`(?:, (ids|labels|points|cells|volume))?:\n\n((?:    .*\n)+)", re.MULTILINE)
VALUE = re.compile(r"`([\w@&-]+)` (\d\.\d{4})")
#: A command; tests of platforms build challenges.
COMMAND = re.compile(r"^    \./run\.sh (?!build )(.*)$", re.MULTILINE)


def picture(kind: str, rows: list[str]) -> bytes:
    if kind == "volume":  # slices are separated by a line with a dash
        slices = [block.split("\n") for block in "\n".join(rows).split("\n-\n")]
        labels = np.array([[row.split() for row in block] for block in slices], np.uint8)
        return encode_volume(labels)
    numbers = np.array([row.split() for row in rows], np.uint32)
    if kind == "points":
        return numbers.astype("<u4").tobytes()
    if kind == "cells":
        return encode_tiff(numbers[None])
    if kind == "labels":
        return png(numbers.astype(np.min_scalar_type(int(numbers.max()))))
    return png(np.stack([numbers & 255, numbers >> 8 & 255, numbers >> 16], axis=-1).astype(np.uint8))


def write_example(page: Path, folder: Path) -> None:
    for name, kind, block in FILE.findall(page.read_text(encoding="utf-8")):
        lines = [line[4:] for line in block.splitlines()]
        path = folder / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(kind, lines) if kind else "\n".join([*lines, ""]).encode())


def commands(page: Path, folder: Path) -> list[list[str]]:
    """Return the commands of a page that name no files other than its example."""
    matches = COMMAND.findall(page.read_text(encoding="utf-8"))
    lines = [[word.replace("/data/", f"{folder}/data/") for word in shlex.split(line)] for line in matches]
    return [line for line in lines if all(Path(word).exists() for word in line if word.startswith(f"{folder}/data/"))]


@each_page
def test_the_example_scores_as_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_example(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    (first,) = [command for command in commands(page, tmp_path) if command[0] == "score"]
    expected = dict(VALUE.findall(page.read_text(encoding="utf-8")))
    assert expected
    assert main([*first, "--json", "-"]) == 0
    (((_, results),),) = (split.items() for split in json.loads(capsys.readouterr().out)["result"])
    assert {name: f"{results[name]:.4f}" for name in expected} == expected


@each_page
def test_the_commands_of_a_page_run_on_its_example(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_example(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "annotations").mkdir()
    lines = commands(page, tmp_path)
    assert [line[0] for line in lines][-2:] == ["new", "run"]
    assert lines[0][0] == "score"
    for message in lines[:-1]:  # the samples of all protocols are scored by `tests/starting/test_host.py`
        assert main(message) == 0, capsys.readouterr().err
    assert (tmp_path / lines[-1][1] / "challenge_config.yaml").exists()


def list_entries() -> list[BenchmarkEntry]:
    """Return the benchmarks of all families, as the documentation lists them."""
    return [row for family in list_families() for row in family.entry.benchmarks]


def test_the_list_of_benchmarks_has_each_protocol_once_and_each_page() -> None:
    rows = list_entries()
    assert sorted(name for row in rows for name in row.protocols) == sorted(PROTOCOLS)
    assert {row.page.partition("#")[0] for row in rows} - {""} == {page.name for page in PAGES}


def test_the_list_of_benchmarks_says_what_each_protocol_says_of_its_evaluator() -> None:
    for row in list_entries():
        official = {name for name in row.protocols if name.endswith("-official")}
        assumed = {name for name in row.protocols if "assumption" in PROTOCOLS[name].about}
        assert ("assumption" in row.evaluator) == bool(assumed)
        assert assumed in (set(), set(row.protocols))
        assert official <= set(re.findall("`(.+?)`", row.evaluator))


@each_page
def test_a_page_names_the_protocols_of_its_rows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for row in list_entries():
        if row.page == page.name:
            assert [name for name in row.protocols if f"`{name}`" not in text] == []
