"""What the README promises is what happens."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from segjudge.cli import main
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
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
        return re.sub(r"\d+ kB|in \d+\.\d+ s", "…", line.strip())

    lines = [settled(line) for line in printed.stdout.splitlines()]
    assert all(settled(line) in lines for line in shown)
    size, size_now = (int(re.findall(r"(\d+) kB", text)[0]) for text in (block.group(1), printed.stdout))
    assert abs(size - size_now) < size_now / 5, "the size in README.md is not the one that is printed"


#: A command on a line of its own, or within a sentence; `tests/house/test_snippets.py` runs the former.
SHOWN = re.compile(
    r"^\s*(?:\$ )?(?:\./run\.sh|segjudge) ([a-z].*)$|`(?:\./run\.sh|segjudge) ([a-z][^`]*)`", re.MULTILINE
)
#: What `run.sh` does itself, and the name of a format.
NO_COMMANDS = ("test", "format", "site", "part")


#: Options of other tools, which are taken and not shown.
_HIDDEN = {
    "score": ("--davis_path", "--results_path", "--task", "--set", "--preds_json", "--dataset_json", "--imgCatIdsFile"),
    "convert": ("--ann_dir", "--imgCatIdsFile", "--output_json"),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_docs_are_commands(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in (one or other for one, other in SHOWN.findall(page.read_text(encoding="utf-8"))):
        words = shlex.split(line.split("#")[0])
        if words[0] in NO_COMMANDS:
            continue
        options = [word.partition("=")[0] for word in words[1:] if word.startswith("--") and word != "--"]
        platform = words[words.index("--platform") : words.index("--platform") + 2] if "--platform" in words else []
        asked = [*words[: 2 if words[0] == "interactive" else 1], *platform]
        with pytest.raises(SystemExit) as caught:
            main([*asked, "--help"])
        assert caught.value.code == 0
        known = capsys.readouterr().out + " ".join(_HIDDEN.get(words[0], ()))
        assert all(option in known for option in options), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert os.path.exists(page.parent / target), target


def test_every_protocol_is_listed_for_hosts_and_in_the_readme() -> None:
    for page in ("README.md", "docs/hosts.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert [name for name in SEQUENCE_PROTOCOLS if f"`{name}`" not in text] == []
