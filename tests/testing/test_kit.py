"""The conformance kit reports each broken promise: the family of the docs, with one mistake."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from segjudge.testing import CHECKS, Case, check, checks
from segjudge.testing.hostile import make_variants
from segjudge.testing.running import run_in_child
from tests.builders import png, zipped
from tests.families.plugins import ROOT, counting
from tests.scoring.shares import write_files

PROGRAM = """
import json, sys
from segjudge.testing import CHECKS, Case

def evaluate(truth, submission):
    true, predicted = (json.load(open(path)) for path in (truth, submission))
    errors = [abs(true[name] - predicted[name]) for name in true]
    return {"Error": sum(errors) / len(errors), "Right": errors.count(0) / len(errors)}

faults = {"faulty.json": ["image a", "image c"]}
case = Case("counting", "truth.json", {"some": "some.json"}, evaluate, faults=faults, other_truth="other.json")
CHECKS[sys.argv[1]](case)
"""


def run_kit(folder: Path, name: str, changes: dict[str, tuple[str, str]] | None = None) -> str:
    """Check the family of the docs, with changes by file; return the failing sentence, or None."""
    site = counting(folder / "site")
    for path, (before, after) in (changes or {}).items():
        text = (site / "segjudge_counting" / path).read_text(encoding="utf-8")
        assert before in text
        (site / "segjudge_counting" / path).write_text(text.replace(before, after), encoding="utf-8")
    documents = {
        "truth": {"a": 3, "b": 5, "c": 9},
        "other": {"a": 4, "b": 4, "c": 9},
        "some": {"a": 3, "b": 4, "c": 6},
        "faulty": {"a": "x", "b": 1, "c": None},
    }
    for stem, document in documents.items():
        (folder / f"{stem}.json").write_text(json.dumps(document))
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, name], cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}, capture_output=True, text=True, timeout=200,
        check=False,
    )  # fmt: skip
    assert not done.returncode or "AssertionError: " in done.stderr, done.stderr
    return done.stderr.partition("AssertionError: ")[2]


def test_all_checks_are_tried_and_each_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(case: Case) -> None:
        raise AssertionError(f"{case.protocol} is wrong")

    monkeypatch.setattr(checks, "CHECKS", {"rules": fail, "numbers": repr, "hidden": fail})
    with pytest.raises(AssertionError, match="^rules: davis2017 is wrong\nhidden: davis2017 is wrong$"):
        check(Case("davis2017", "t", {}))
    monkeypatch.setattr(checks, "CHECKS", {"rules": repr})
    check(Case("davis2017", "t", {}))


ENGINE, TOOLS, ROWS = "upload/engine.py", "toolkit/__init__.py", "upload/protocols.py"
MISTAKES = {
    "a metric without a meaning": ("rules", TOOLS, "return MEANINGS[metric]", 'return ""', "Error has no description"),
    "a revision of 0": ("rules", ROWS, "revision: int = 1", "revision: int = 0", "has no revision from 1"),
    "another number": ("numbers", ENGINE, "wrong = abs(predicted - true)", "wrong = (predicted - true) ** 2", "is expected"),
    "beyond its bounds": ("numbers", ENGINE, '"Error": error', '"Error": -error', "not within 0.0 to inf"),
    "a number that nobody computes": ("numbers", ENGINE, ', "Right": right', "", "names Right, which the family does not compute"),
    "what a process counted before": (
        "sharing", ENGINE, "wrong = abs(predicted - true)",
        "count.calls = getattr(count, 'calls', 0) + 1\n    wrong = abs(predicted - true) + count.calls", "give different scores",
    ),
    "a list of the first problem alone": (
        "problems", ENGINE, "        problem = Problem(",
        ("        from ...files import SubmissionError\n"
         "        raise SubmissionError.from_problem(Problem(f'image {unit.name}', 'is wrong', 'x'))\n        problem = Problem("),
        "problems do not mention image c",
    ),
    "a traceback": (
        "hostile", ENGINE, "if type(predicted) is not int:", "if predicted is None:", "TypeError",
    ),
    "much memory": (
        "hostile", ENGINE, "if type(predicted) is not int:", "bytearray(1 << 30)\n    if type(predicted) is not int:", "MiB; the limit is 400",
    ),
    "much time": (
        "hostile", ENGINE, "if type(predicted) is not int:",
        ("import time\n    end = time.process_time() + 6 * (predicted == [])\n    while time.process_time() < end: pass\n"
        "    if type(predicted) is not int:"),
        "CPU seconds; the limit is 5",
    ),
    "an end of the process": (
        "hostile", ENGINE, "if type(predicted) is not int:", "import os\n    if predicted == []: os._exit(1)\n    if type(predicted) is not int:",
        "the process that scored it died",
    ),
    "a score that is printed": (
        "hidden", ENGINE, '    return {"Error": error', '    print(error)\n    return {"Error": error',
        "participants read scores of a hidden split: 1.3333333333333333",
    ),
    "the truth, printed": (
        "hidden", ENGINE, "    wrong = abs", "    print(wrong := predicted == true)\n    wrong = abs",
        "what participants read about a hidden split depends on its truth",
    ),
    "a page that differs": (
        "report", TOOLS, '"The largest errors first."', "str(id(self.make_sections)) + str(__import__('time').time())",
        "two pages of the same scores differ",
    ),
    "a better sample that is worse": (
        "challenge", TOOLS, '{"Error": "smaller"', '{"Error": "larger"', "a poor sample whose Error is 3.0, and a good",
    ),
    "a newer Python": ("python39", ENGINE, "import json\n", "import json\nfrom itertools import pairwise\n", "has no pairwise"),
}  # fmt: skip
QUICK = ("another number", "a traceback", "a score that is printed", "a newer Python")


@pytest.mark.parametrize(
    "mistake", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in MISTAKES]
)
def test_a_mistake_is_found_and_told(mistake: str, tmp_path: Path) -> None:
    name, path, before, after, message = MISTAKES[mistake]
    assert message in run_kit(tmp_path, name, {path: (before, after)})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[]", "a trick: is scored"),
        (b"[", "a trick: the message does not say `a link`, only: your file: is not valid JSON"),
    ],
)
def test_an_archive_that_is_scored_or_refused_for_another_reason_is_told(
    data: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "make_refused", lambda _: [("a trick", data, "a link")])
    files = write_files("coco", tmp_path)
    with pytest.raises(AssertionError, match=message):
        CHECKS["archives"](Case("coco", files.truth, {"results": files.results}))


def test_a_protocol_that_is_not_installed_is_a_sentence() -> None:
    with pytest.raises(AssertionError, match="there is no protocol 'counting' .`segjudge benchmarks`"):
        Case("counting", "t", {})


@pytest.mark.long
def test_hostile_variants_are_many_and_distinct(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps([{"image_id": 1, "mask": {"size": [3, 4], "counts": "x"}}] * 3))
    masks = {"a/0.png": png(np.zeros((4, 5), np.uint8)), "list.txt": b"a 1 2\n"}
    (tmp_path / "masks.zip").write_bytes(zipped(masks))
    (tmp_path / "lines.jsonl").write_text('{"id": 1, "size": [3, 4]}\n{"id": 2, "size": [3, 4]}\n')
    for name in ("rows.json", "masks.zip", "lines.jsonl"):
        names = []
        for about, write in make_variants(tmp_path / name):
            folder = tmp_path / name.partition(".")[0] / str(len(names))
            folder.mkdir(parents=True)
            path = write(folder)
            assert path.exists() or path.is_symlink()
            shutil.rmtree(folder)
            names.append(about)
        assert len(names) > 100
        assert len(set(names)) == len(names)


def test_work_apart_that_dies_hangs_or_fails_is_told_and_the_next_is_done() -> None:
    works = {
        "returns": lambda: 3, "dies": lambda: os._exit(0), "fails": [].pop, "hungers": lambda: len(bytes(8 << 30)),
        "sleeps": lambda: __import__("time").sleep(99), "returns too": lambda: 4,
    }  # fmt: skip
    outcomes = {name: outcome.kind for name, outcome in run_in_child(works.items(), 0.1, 1 << 28)}
    assert outcomes == {
        "returns": "returned", "dies": "died", "fails": "IndexError", "hungers": "MemoryError", "sleeps": "hung",
        "returns too": "returned",
    }  # fmt: skip


def test_every_check_says_what_it_holds() -> None:
    page = (ROOT / "docs/adding-a-family.md").read_text(encoding="utf-8")
    assert [name for name in CHECKS if f"| `{name}` |" not in page] == []
