"""Completion in bash, and in other shells if they are installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from segjudge import cli
from segjudge.commands import COMMANDS, PLATFORMS
from segjudge.evaluation_script.families import PROTOCOLS

COMPLETE = """
eval "$(cat completion)"
COMP_WORDS=({words} "{current}") COMP_CWORD={index}
_segjudge
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    done = subprocess.run(
        [sys.executable, "-m", "segjudge", "completion", "bash"], capture_output=True, text=True, check=True
    )
    (folder / "completion").write_text(done.stdout)
    return folder


@pytest.mark.parametrize(
    ("arguments", "current", "offered"),
    [
        (["segjudge"], "sc", {"score", "schema"}),
        (["segjudge"], "", {*COMMANDS, "help"}),
        (["segjudge", "help"], "sc", {"score", "schema"}),
        (["segjudge", "help"], "--", {"--all"}),
        (["segjudge", "score", "a.zip"], "--prot", {"--protocol"}),
        (
            ["segjudge", "score", "a.zip", "--protocol"],
            "davis2017",
            {name for name in PROTOCOLS if name.startswith("davis2017")},
        ),
        (["segjudge", "completion"], "", {"bash", "zsh", "fish"}),
        (["segjudge", "build", "--platform"], "", {"evalai", *PLATFORMS}),
        (["segjudge", "score"], "resul", set()),
    ],
)
def test_bash_offers_what_may_stand_there(folder: Path, arguments: list[str], current: str, offered: set[str]) -> None:
    script = COMPLETE.format(words=" ".join(arguments), current=current, index=len(arguments))
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    completions = set(done.stdout.split())
    assert {name for name in completions if not name.startswith("davis2017-") or name in PROTOCOLS} == completions
    assert offered <= completions if current == "davis2017" else offered == completions
    assert not done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_command_and_option_is_in_each_script(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert text.startswith(("# ", "autoload"))
    for name in COMMANDS:
        assert name in text
    assert ("-l protocol" if shell == "fish" else "--protocol") in text
    script = tmp_path / "script"
    script.write_text(text)
    if program := shutil.which(shell):
        subprocess.run([program, "-n", str(script)], check=True)
