"""The counts of `./run.sh test`, with real runs of pytest."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import settings

import segjudge as _toolkit  # noqa: F401 - not for the worker's interpreter
from tests.builders import ROOT
from tests.conftest import QUICK_CASES
from tests.drawing import QUICK
from tests.everything import Part, environments_for, missing_path, report

GOOD = "import pytest\n\ndef test_one(): pass\n\ndef test_two(): pytest.skip('not here')\n"
BAD = "import pytest\n\n@pytest.fixture\ndef broken(): raise OSError\n\ndef test_one(): assert 0\n\ndef test_two(broken): pass\n"
GONE = "import os\n\ndef test_one(): pass\n\ndef test_two(): os._exit(0)\n"


def parts(folder: Path, *texts: str) -> list[Part]:
    made = []
    for number, text in enumerate(texts):
        path = folder / f"test_{number}.py"
        path.write_text(text)
        command = [sys.executable, "-m", "pytest", "-q", "--disable-plugin-autoload", str(path)]  # they take a second
        made.append(Part(f"Part {number}", command, folder / str(number)))
    return made


@pytest.mark.long
@pytest.mark.parametrize(
    ("texts", "last", "code"),
    [
        pytest.param([GOOD, GOOD], "2 passed, 0 failed, 2 skipped", 0, id="good"),
        pytest.param([GOOD, BAD], "1 passed, 2 failed, 1 skipped", 1, id="failure and error", marks=pytest.mark.long),
        pytest.param([GOOD, GONE], "1 passed, 1 failed, 1 skipped", 1, id="a process that goes with exit code 0", marks=pytest.mark.long),
        pytest.param([GOOD, "import nothing_like_it\n"], "1 passed, 1 failed, 1 skipped", 1, id="not importable", marks=pytest.mark.long),
        pytest.param([GOOD, ""], "1 passed, 0 failed, 1 skipped", 0, id="nothing for this interpreter", marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_the_last_line_counts_all_parts(texts: list[str], last: str, code: int, tmp_path: Path, capfd: object) -> None:
    made = parts(tmp_path, *texts)
    assert report(made) == code
    output = capfd.readouterr().out  # type: ignore[attr-defined]
    assert output.splitlines()[-1] == last
    for number in range(len(texts)):
        assert f" Part {number} ═" in output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["tests/test_jurnal.py"],
            "tests/test_jurnal.py: there is no such file; did you mean tests/remote/test_journal.py?",
        ),
        (["test_journal.py"], "test_journal.py: there is no such file; did you mean tests/remote/test_journal.py?"),
        (["tests/commands/test_options.py"], "tests/commands/test_options.py: there is no such file"),
        (["tests/runner/test_guard.py", "nothing/like/it"], "nothing/like/it: there is no such file"),
        (["tests/runner/test_guard.py::test_it", "tests/journeys", "-k", "some words", "-x", "--maxfail=3"], ""),
    ],
)
def test_a_path_that_does_not_exist_is_refused_before_anything_is_done(arguments: list[str], sentence: str) -> None:
    assert missing_path(arguments) == sentence


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ([], "toolkit[test] client try:worker"),
        (["--all"], "toolkit[test] client try:worker"),
        (["tests/journeys", "tests/remote/test_journal.py"], "toolkit[test] client try:worker"),
        (["tests/remote/test_journal.py", "-x"], "toolkit[test]"),
        (["tests/platforms/evalai/test_evalai_client.py::test_logging_in_gives_a_token"], "toolkit[test] client"),
        (["tests/runner/test_guard.py"], "toolkit[test] try:worker"),
        (["tests/remote/test_journal.py", "tests/runner/test_guard.py"], "toolkit[test] try:worker"),
        (["tests/scoring/test_upload.py"], "toolkit[test] try:worker"),
    ],
)
def test_only_the_environments_that_a_file_needs_are_made(
    arguments: list[str], names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "")
    assert environments_for(arguments) == names.split()
    monkeypatch.setenv("CI", "true")
    assert environments_for(arguments) == names.replace("try:", "").split()


def test_quick_tests_have_no_dice() -> None:
    """Generators have seeds, and hypothesis draws the same examples in quick runs."""
    dice = re.compile(
        r"default_rng\(\)|\bRandom\(\)|np\.random\.(?!default_rng)[a-z]+\(|\brandom\.rand(?:int|bytes|range)\("
    )
    for path in (ROOT / "tests").rglob("*.py"):
        assert path == Path(__file__) or not dice.search(path.read_text(encoding="utf-8")), path
    assert settings.default.derandomize or not QUICK


def test_the_tests_of_whose_cases_few_are_quick_are_there() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name in QUICK_CASES if f"def {name}(" not in texts and f"{name} = " not in texts] == []
