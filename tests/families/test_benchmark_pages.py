"""Each page on a benchmark: its example scores as it says, its commands run on it, its numbers are those that are shown."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from segjudge.cli import main
from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS
from segjudge.masks.tiff import encode_tiff
from tests.builders import ROOT, png

PAGES = sorted((ROOT / "docs" / "benchmarks").glob("*.md"))
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)

#: A file of the example: its path, what the numbers are where it is a picture, its lines.
FILE = re.compile(r"^`([\w./-]+)`(?:, (ids|labels|points|cells))?:\n\n((?:    .*\n)+)", re.MULTILINE)
VALUE = re.compile(r"`([\w@&-]+)` (\d\.\d{4})")
COMMAND = re.compile(r"^    \./run\.sh (.*)$", re.MULTILINE)


def picture(kind: str, rows: list[str]) -> bytes:
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
    found = COMMAND.findall(page.read_text(encoding="utf-8"))
    return [shlex.split(line.replace("/data/", f"{folder}/data/")) for line in found]


@each_page
def test_the_example_scores_as_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_example(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    (first,) = [words for words in commands(page, tmp_path) if words[0] == "score"]
    expected = dict(VALUE.findall(page.read_text(encoding="utf-8")))
    assert expected
    assert main([*first, "--json", "-"]) == 0
    (((_, found),),) = (split.items() for split in json.loads(capsys.readouterr().out)["result"])
    assert {name: f"{found[name]:.4f}" for name in expected} == expected


@each_page
def test_the_commands_of_a_page_run_on_its_example(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_example(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "annotations").mkdir()
    lines = commands(page, tmp_path)
    assert [words[0] for words in lines][-2:] == ["host", "run"]
    of_example = [
        words for words in lines if all(Path(word).exists() for word in words if word.startswith(f"{tmp_path}/data/"))
    ]
    names = [words[0] for words in of_example]
    assert (names[0], names[-2:]) == ("score", ["host", "run"])
    for words in of_example[:-1]:  # the samples of all protocols are scored by `tests/starting/test_host.py`
        assert main(words) == 0, capsys.readouterr().err
    assert (tmp_path / lines[-1][1] / "challenge_config.yaml").exists()


def benchmarks() -> list[tuple[str, list[str], str, str, str]]:
    """The rows of the README's table, without those that name a kind: links to pages, protocols, what they are equal to, EvalAI, Codabench."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("| benchmark | protocols |")[2]
    rows = [line for line in text.partition("\n\n")[0].splitlines()[2:] if not line.startswith("| **")]
    lines = [line.strip("| ").split(" | ") for line in rows]
    return [(name, re.findall("`(.+?)`", names), *others) for name, names, *others in lines]


def test_the_readmes_table_has_each_protocol_once_and_each_page() -> None:
    rows = benchmarks()
    assert sorted(name for _, names, *_ in rows for name in names) == sorted(PROTOCOLS)
    linked = {Path(target.partition("#")[0]).name for row in rows for target in re.findall(r"\((.+?)\)", row[0])}
    assert linked == {page.name for page in PAGES}


def test_the_readmes_table_says_what_each_protocol_says_of_its_evaluator() -> None:
    for _, names, equal, evalai, codabench in benchmarks():
        official = {name for name in names if name.endswith("-official")}
        assumed = {name for name in names if "assumption" in PROTOCOLS[name].about}
        assert ("assumption" in equal) == bool(assumed)
        assert assumed in (set(), set(names))
        assert official <= set(re.findall("`(.+?)`", equal))
        assert evalai == "yes"
        with_wheel = {FAMILIES[PROTOCOLS[name].family].needs_packages for name in names}
        assert with_wheel == {codabench == "with a wheel"}


@each_page
def test_a_page_names_the_protocols_of_its_rows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name, names, *_ in benchmarks():
        if f"({page.relative_to(ROOT)})" in name:
            assert [one for one in names if f"`{one}`" not in text] == []
