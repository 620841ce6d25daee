"""A family as `docs/adding-a-family.md` adds one: its two folders and one word, in a copy of the sources."""

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
#: A Segjudge that scores, which is not fetched here.
COMMIT = f"git+https://example.org/segjudge@{'0' * 40}"
#: A protocol of each family that is taken away.
PROTOCOLS_OF = {"panoptic": "vipseg", "semantic": "vspw", "tracking": "kitti-mots"}
TRUTH, ANSWERS = {"a": 3, "b": 5, "c": 9}, {"a": 3, "b": 4, "c": 6}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources with the page's family."""
    copy = tmp_path_factory.mktemp("sources")
    for folder in ("segjudge", "evaluation_script"):
        ignored = shutil.ignore_patterns("__pycache__", "*.c")
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=ignored)
    for name in ("logo.png", "CHANGELOG.md"):  # links to files beside the folders
        (copy / "segjudge/starting" / name).unlink()
        shutil.copyfile(ROOT / "segjudge/starting" / name, copy / "segjudge/starting" / name)
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


def test_two_folders_and_a_word_are_a_family(sources: Path) -> None:
    assert len(BLOCKS) == 6
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


def test_its_mirror_makes_challenges_and_a_section_of_the_report(sources: Path) -> None:
    run(sources, "report", "answers.json", "--truth", "truth.json", "--protocol", "counting", "--out", "page.html")
    page = (sources / "page.html").read_text(encoding="utf-8")
    assert "Miscounted images" in page
    assert page.index("<td>c</td>") < page.index("<td>b</td>")
    run(sources, "new", "mine", "--demo", "--protocol", "counting", "--segjudge", COMMIT)
    config = (sources / "mine/challenge_config.yaml").read_text(encoding="utf-8")
    assert 'description: "the mean error of numbers"' in config
    assert "sort_ascending: True" in config
    guide = (sources / "mine/templates/submission_guidelines.html").read_text(encoding="utf-8")
    assert '{"street": 3, …}' in guide
    sample = ("score", "mine/examples/val/poor.zip", "--truth", "mine/annotations/val.zip")
    assert scores(sources, *sample, "--protocol", "counting") == {"Error": 3.0, "Right": 0.0}


@pytest.mark.long
def test_two_submissions_to_it_are_compared_on_a_page(sources: Path) -> None:
    (sources / "exact.json").write_text(json.dumps(TRUTH))
    compared = ("compare", "A=answers.json", "B=exact.json", "--truth", "truth.json", "--protocol", "counting")
    assert "Error" in run(sources, *compared, "--out", "compared.html")
    assert "Error" in (sources / "compared.html").read_text(encoding="utf-8")
    assert "failures of counting have no kinds" in run(sources, *compared, "--kinds", code=2)


def test_a_family_without_a_mirror_scores_and_shows_its_tables(sources: Path, tmp_path: Path) -> None:
    copy = tmp_path / "sources"
    shutil.copytree(sources, copy, symlinks=True)
    shutil.rmtree(copy / "segjudge/families/counting")
    score = ("answers.json", "--truth", "truth.json", "--protocol", "counting")
    assert scores(copy, "score", *score) == {"Error": 4 / 3, "Right": 1 / 3}
    run(copy, "report", *score, "--out", "page.html")
    assert "Error" in (copy / "page.html").read_text(encoding="utf-8")
    assert "counting has no synthetic truth" in run(copy, "new", "mine", "--demo", "--protocol", "counting", code=2)


@pytest.mark.parametrize("folder", ["panoptic", "semantic", "tracking"])
def test_without_its_folders_and_its_word_a_family_is_gone_and_the_rest_scores(
    sources: Path, tmp_path: Path, folder: str
) -> None:
    copy = tmp_path / "sources"
    shutil.copytree(sources, copy, symlinks=True)
    for room in ("segjudge", "evaluation_script"):
        shutil.rmtree(copy / room / "families" / folder)
    registry = copy / "evaluation_script/families/__init__.py"
    text = registry.read_text(encoding="utf-8")
    assert f' "{folder}"' in text
    registry.write_text(text.replace(f' "{folder}"', "", 1).replace(",,", ","), encoding="utf-8")
    score = ("answers.json", "--truth", "truth.json", "--protocol", "counting")
    run(copy, "report", *score, "--out", "page.html")
    listed = run(copy, "benchmarks")
    assert "davis2017" in listed
    assert PROTOCOLS_OF[folder] not in listed
    assert run(copy, "new", "other", "--demo", "--segjudge", COMMIT).startswith("other")
