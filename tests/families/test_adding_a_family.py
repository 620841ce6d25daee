"""A family as `docs/adding-a-family.md` adds one: its folder and one word, in a copy of the sources."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adding-a-family.md").read_text(encoding="utf-8")
#: The blocks of the page by their first lines, which say where they belong.
BLOCKS = dict(re.findall(r"^```\w+\n# (.*?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
TRUTH, ANSWERS = {"a": 3, "b": 5, "c": 9}, {"a": 3, "b": 4, "c": 6}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources with the page's family."""
    copy = tmp_path_factory.mktemp("sources")
    for folder in ("segjudge", "evaluation_script"):
        ignored = shutil.ignore_patterns("__pycache__", "*.c")
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=ignored)
    for title, text in BLOCKS.items():
        name, _, place = title.partition(", ")
        path = copy / name
        if place:
            assert place == "in FOLDERS"
            before, line, after = path.read_text(encoding="utf-8").partition("FOLDERS = (")
            assert line
            path.write_text(before + line + text.strip() + " " + after, encoding="utf-8")
            continue
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (copy / "truth.json").write_text(json.dumps(TRUTH))
    (copy / "answers.json").write_text(json.dumps(ANSWERS))
    return copy


def run(sources: Path, *words: str, code: int = 0) -> str:
    """Run a command by the copy; return what it printed."""
    ours = f"import sys; sys.path.insert(0, {str(sources)!r}); from segjudge.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", ours, *words],
        cwd=sources,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def scores(sources: Path, *words: str) -> dict[str, float | None]:
    document = json.loads(run(sources, *words, "--json", "-"))
    found: dict[str, float | None] = document["result"][0]["val"]
    return found


def test_a_folder_and_a_word_are_a_family(sources: Path) -> None:
    assert len(BLOCKS) == 4
    score = ("score", "answers.json", "--truth", "truth.json", "--protocol")
    assert scores(sources, *score, "counting") == {"Error": 4 / 3, "Right": 1 / 3}
    run(sources, *score, "counting", "--csv", "tables")
    assert (sources / "tables/per-image_results-val.csv").read_text().splitlines()[:2] == ["Image,Id,Error", "a,,0.000"]
    assert scores(sources, *score, "counting-loose") == {"Error": 4 / 3, "Right": 2 / 3}
    assert scores(sources, *score, "counting", "--sequences", "a,b") == {"Error": 0.5, "Right": 0.5}
    run(sources, "pack", "--layout", "counting", "--root", "truth.json", "--out", "truth.zip")
    packed = ("score", "answers.json", "--truth", "truth.zip", "--protocol", "counting")
    assert scores(sources, *packed, "--jobs", "2") == {"Error": 4 / 3, "Right": 1 / 3}
    for number in ("1", "2"):
        run(sources, *packed, "--part", f"{number}/2", "--out", f"{number}.part")
    assert scores(sources, "merge", "2.part", "1.part") == {"Error": 4 / 3, "Right": 1 / 3}


def test_what_is_wrong_with_it_is_a_sentence(sources: Path) -> None:
    (sources / "some.json").write_text('{"a": 3}')
    (sources / "text.json").write_text('{"a": "three", "b": 5, "c": null}')
    on = ("--truth", "truth.json", "--protocol", "counting")
    assert "2 of 3 images are missing: b, c. Send every image." in run(sources, "score", "some.json", *on, code=1)
    assert "2. image c: has no whole number." in run(sources, "score", "text.json", *on, code=1)
    assert "layout has no meaning for counting" in run(sources, "score", "some.json", *on, "--layout", "lvos", code=2)


def test_a_phase_scores_it(sources: Path) -> None:
    phase = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from segjudge.evaluation_script import main\n"
        "from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit\n"
        "phase = Phase('p', 'truth.zip', (PhaseSplit('val', 'counting', ('Error',)),))\n"
        "print(main.evaluate_phase(phase, 'truth.zip', 'answers.json')['result'])\n"
    )
    run(sources, "pack", "--layout", "counting", "--root", "truth.json", "--out", "truth.zip")
    done = subprocess.run(
        [sys.executable, "-P", "-c", phase, str(sources)],
        cwd=sources,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == str([{"val": {"Error": 4 / 3}}])
