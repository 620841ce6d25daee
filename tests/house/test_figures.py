"""Benchmarks run, and every figure on a page is the output of its command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from benchmarks import figures
from tests.data import ROOT

DATA = json.loads(figures.DATA.read_text())


def test_marked_places_hold_what_the_commands_gave() -> None:
    marked = set()
    for page in figures.PAGES:
        text = page.read_text()
        marked |= {name for _, name, *_ in figures.MARKED.findall(text)}
        assert figures.filled(text, DATA) == text, f"{page} differs; run `python -m benchmarks.figures`"
        assert len(figures.MARKED.findall(text)) == text.count("<!-- figures: ") == text.count("<!-- /figures -->")
    assert marked == DATA.keys()


def test_a_page_with_another_figure_is_noticed_and_mended() -> None:
    page = "Before\n<!-- figures: arena -->\n<!-- /figures -->\nafter\n"
    right = figures.filled(page, DATA)
    assert figures.filled(right.replace(DATA["arena"]["rows"][0][1], "0.001"), DATA) == right != page


def test_the_data_are_of_the_commands_of_today() -> None:
    for name, entry in DATA.items():
        assert entry["command"] == f"python -m benchmarks.{figures.FIGURES[name][0]}"
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", entry["date"])
        assert entry["machine"]
        assert all(len(row) == len(entry["head"]) for row in entry["rows"])


def test_every_benchmark_gives_figures() -> None:
    programs = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if "\nif __name__ ==" in path.read_text()}
    assert {command.split()[0] for command, _ in figures.FIGURES.values()} == programs - {"figures"}


@pytest.mark.long
@pytest.mark.parametrize("name", {command.split()[0]: name for name, (command, _) in figures.FIGURES.items()}.values())
def test_a_benchmark_runs_on_a_tiny_set(name: str) -> None:
    module, *arguments = figures.FIGURES[name][1].split()
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    if module in figures.WITH_PEERS:
        command += ["--peers", "no such folder", "--peer-python", sys.executable]
    variables = {"SEGJUDGE_KERNEL": "off"} if name == "installing" else {}  # the wheel's own tests compile it
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    head, line, *rows = [text for text in done.stdout.splitlines() if text.startswith("|")]
    assert head.count("|") == line.count("|")
    assert rows
    assert all(row.count("|") == head.count("|") for row in rows)
    if module in figures.WITH_PEERS:
        assert " is left out: " in done.stdout
