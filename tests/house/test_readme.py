"""The README's promises are kept."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from segjudge.cli import main
from tests.builders import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.long
def test_the_first_screen_is_what_the_command_prints() -> None:
    block = re.search(r"    \$ \./run\.sh\n((?:    .*\n|\n)+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert block
    shown = [line.strip() for line in block.group(1).splitlines() if line.strip(" …")]
    printed = subprocess.run(
        [sys.executable, "-m", "segjudge", "run"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    def settled(line: str) -> str:
        return re.sub(r"([\d,]+|…) kB|in \d+\.\d+ s", "…", line.strip())

    lines = [settled(line) for line in printed.stdout.splitlines()]
    assert all(settled(line) in lines for line in shown)
    assert max(map(len, printed.stdout.splitlines())) <= 80


def test_the_first_score_is_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"    \$ \./run\.sh (score .+)\n((?:    .*\n|\n)+?)    …\n", text)
    assert block
    assert main(shlex.split(block[1])) == 0
    shown = re.sub(r"^    ", "", block[2], flags=re.MULTILINE)
    note, _, tables = shown.partition("\n")
    output = capsys.readouterr()
    assert output.err.splitlines()[0] == note
    assert output.out.startswith(tables)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_table_has_a_head(page: Path) -> None:
    lines = ["", *page.read_text(encoding="utf-8").splitlines(), ""]
    starts = [
        index for index, line in enumerate(lines) if line.startswith("|") and not lines[index - 1].startswith("|")
    ]
    assert not [lines[index] for index in starts if not re.fullmatch(r"\|[ :|-]+\|", lines[index + 1])]


#: A command on a line of its own, or within a sentence; `tests/house/test_snippets.py` runs the former.
SHOWN = re.compile(
    r"^\s*(?:\$ )?(?:\./run\.sh|segjudge) ([a-z].*)$|`(?:\./run\.sh|segjudge) ([a-z][^`]*)`", re.MULTILINE
)
#: Commands of `run.sh` itself, and the name of a format.
NO_COMMANDS = ("test", "format", "site", "part")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_docs_are_commands(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in (first or second for first, second in SHOWN.findall(page.read_text(encoding="utf-8"))):
        arguments = shlex.split(line.split("#")[0])
        if arguments[0] in NO_COMMANDS:
            continue
        options = [word.partition("=")[0] for word in arguments[1:] if word.startswith("--") and word != "--"]
        platform = (
            arguments[arguments.index("--platform") : arguments.index("--platform") + 2]
            if "--platform" in arguments
            else []
        )
        asked = [*arguments[: 2 if arguments[0] == "interactive" else 1], *platform]
        with pytest.raises(SystemExit) as caught:
            main([*asked, "--help"])
        assert caught.value.code == 0
        known = capsys.readouterr().out
        assert all(option in known for option in options), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert os.path.exists(page.parent / target), target
