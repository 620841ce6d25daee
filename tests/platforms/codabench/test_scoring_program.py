"""Codabench's scoring program: what it reads, writes and shows, in parts and as a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from segjudge.platforms.codabench import scoring_program
from tests.builders import written
from tests.calls import outcome
from tests.platforms.damages import put

COLUMNS = [
    {"key": "A", "split": "dev", "label": "A", "hidden": False},
    {"key": "hard: A", "split": "hard", "label": "A", "hidden": True},
    {"key": "B", "split": "dev", "label": "B<", "hidden": False},
    {"key": "even: A", "split": "even", "label": "A", "hidden": False},
]
TASK: dict[str, Any] = {
    "phase": "p", "annotations": "a.zip", "title": "T & T", "seconds": 9, "page": "means", "columns": COLUMNS,
}  # fmt: skip
ANSWER: dict[str, Any] = {
    "result": [{"dev": {"A": 0.5, "B<": 50}}, {"hard": {"A": 0.987}, "even": {"A": -0.25}}],
    "error": [{"dev": {"error_A": 0.01}}],
    "interval": [{"dev": {"A": [0.48, 0.52]}}, {"hard": {"A": [0.91, 0.99]}}],
    "submission_result": {
        "protocol": "x", "result": [{"dev": {"A": 0.5}}, {"even": {}}], "warnings": ["<b>", 7], "frames": [1],
        "versions": {"segjudge": "1", "numpy": "2"},
    },
}  # fmt: skip
NOT_YOURS = (
    "Scoring failed; your submission is not the cause. Tell the organisers the ID of your submission. Organisers: download that submission "
    "into examples/ of your bundle, in the phase's folder; `segjudge run --platform codabench` shows the log that Codabench does not keep."
)
REBUILD = (
    "Tell the organisers the ID of your submission. Organisers: rebuild the competition with `segjudge build --platform codabench`, "
    "and upload its reference data."
)
CANNOT = "This competition cannot score anything: task.json"
#: What Pythons say of JSON that is nested too deeply.
TOO_DEEP = r"(?:maximum recursion depth exceeded|Stack overflow \(used \d+ kB\))[^)]*"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


WRONG_TYPE = "TypeError: a value has the wrong type"


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (TASK, 9),
        (put(TASK, "seconds", 0), 1),
        (put(TASK, "seconds", "7"), 7),
        (put(TASK, "seconds", 1), 1),
        (put(TASK, "seconds", 2**31), 2147483647),
        ({**TASK, "columns": []}, 9),
        (put(TASK, "seconds", float("inf")), "OverflowError: cannot convert float infinity to integer"),
        (put(TASK, "phase", 7), WRONG_TYPE),
        (put(TASK, "title", None), WRONG_TYPE),
        (put(TASK, "annotations", []), WRONG_TYPE),
        (put(TASK, "columns.3.label", 7), WRONG_TYPE),
        (put(TASK, "columns.0.hidden", 0), WRONG_TYPE),
        ({**TASK, "columns": None}, "TypeError: 'NoneType' object is not iterable"),
        ({}, "KeyError: 'phase'"),
        ([], "TypeError: list indices must be integers or slices, not str"),
        (b"{", "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"[" * 100_000, "RecursionError: too deep"),
        (None, ""),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_task_is_read_or_the_organisers_must_rebuild_it(task: Any, expected: Any) -> None:
    if task is not None:
        Path("task.json").write_bytes(task if isinstance(task, bytes) else json.dumps(task).encode())
    read = outcome(lambda: scoring_program._read_task("task.json"))
    if isinstance(expected, int):
        assert read["seconds"] == expected
    else:
        reason = f"in its reference data cannot be read ({expected})" if expected else "is not in its reference data"
        assert re.sub(TOO_DEEP, "too deep", read) == f"_TaskError: {CANNOT} {reason}. {REBUILD}"


@pytest.mark.parametrize(
    ("dev", "expected"),
    [
        ({"A": 0.5, "B<": 50}, (0.5, 50.0)),
        ({"A": 9999999999.5, "B<": True}, (9999999999.5, 1.0)),
        ({"A": 1e10, "B<": 1}, "ValueError: A is 10000000000.0"),
        ({"A": -1e10, "B<": 1}, "ValueError: A is -10000000000.0"),
        ({"A": 1, "B<": float("inf")}, "ValueError: B is inf"),
        ({"A": 1}, "KeyError: 'B<'"),
    ],
)
def test_columns_have_numbers_that_codabench_keeps(dev: dict[str, Any], expected: Any) -> None:
    filled = outcome(lambda: scoring_program._fill_columns(TASK, put(ANSWER, "result.0.dev", dev)))
    if isinstance(expected, tuple):
        expected = {"A": expected[0], "hard: A": 0.987, "B": expected[1], "even: A": -0.25}
    assert filled == expected
    assert outcome(lambda: scoring_program._fill_columns(TASK, put(ANSWER, "result", []))) == "KeyError: 'dev'"


def test_only_splits_of_visible_columns_are_shown() -> None:
    shown = [{"hard": {}, "dev": {}}, {"b": {}, "a": {}}]
    for answer, expected in (
        (ANSWER, None),
        (put(ANSWER, "submission_result.result", None), None),
        (put(ANSWER, "submission_result", None), None),
        (
            put(ANSWER, "submission_result.result", shown),
            "ValueError: the phase returns scores of ['a', 'b', 'hard'], which no visible column shows",
        ),
    ):
        assert outcome(lambda answer=answer: scoring_program._check_shown(TASK, answer)) == expected
    public = {name: ANSWER["submission_result"][name] for name in ("protocol", "result", "warnings", "versions")}
    assert scoring_program._select_public(TASK, ANSWER) == public
    assert scoring_program._select_public({**TASK, "page": "all"}, ANSWER) == {**public, "frames": [1]}


def row(name: str, value: str, width: str) -> str:
    return f'<tr><th>{name}</th><td class="number">{value}</td><td class="bar"><div style="width: {width}%"></div></td></tr>'


INTERVAL = '<span title="Student’s t interval, 95 %">({} to {})</span>'


def test_the_page_of_results_has_a_table_of_each_visible_split() -> None:
    dev = row("A", f"0.500 ± 0.010 {INTERVAL.format('0.480', '0.520')}", "50.0")
    table = "<h2>{}</h2>\n<table>\n{}\n</table>\n"
    text = scoring_program._results_page(TASK, ANSWER)
    assert text[text.index("<h1>") :] == (
        "<h1>T &amp; T</h1>\n" + table.format("dev", f"{dev}\n{row('B&lt;', '50.000', '50.0')}")
        + table.format("even", row("A", "-0.250", "0.0"))
        + "<h2>Warnings</h2>\n<ul>\n<li>&lt;b&gt;</li>\n<li>7</li>\n</ul>\n<footer>segjudge 1 · numpy 2</footer>\n</html>\n"
    )  # fmt: skip
    text = scoring_program._results_page({**TASK, "columns": COLUMNS[:1]}, {"result": ANSWER["result"]})
    end = "<footer></footer>\n</html>\n"
    assert text[text.index("<h1>") :] == f"<h1>T &amp; T</h1>\n{table.format('dev', row('A', '0.500', '50.0'))}{end}"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a.json"], "./res/a.json"), (["a.json", "metadata"], "./res/a.json"), (["a.json", "b.json"], "./res"), (["a.gz"], "./res/a.gz"),
        (["a.tar"], "./res/a.tar"), (["a.zip"], "./res/a.zip"), (["a.png"], "./res"), (["a.json/b"], "./res"), ([], "./res"),
    ],
)  # fmt: skip
def test_a_submission_of_one_file_is_that_file(files: list[str], expected: str) -> None:
    Path("res").mkdir()
    written(Path("res"), dict.fromkeys(files, ""))
    assert scoring_program._find_submission(".") == expected
    assert not Path("res/metadata").exists()


PLAIN = "<!DOCTYPE html>"


# ── the program, in a process of its own ────────────────────────────────────

EVALUATE = "import os, sys\ndef evaluate(truth, submission, phase, submission_metadata):\n    {}\n"
RETURN = f"print(os.path.relpath(truth), os.path.relpath(submission), phase, submission_metadata); return {ANSWER!r}"
ARGUMENTS = "in/ref/a.zip in/res/a.json p {}\n"
#: What the scorers do; then the program's streams, and the last line of its log.
SCORERS = {
    "it returns scores": (RETURN, ARGUMENTS, "", ""),
    "it refuses": (
        "class SubmissionError(Exception): pass\n    raise SubmissionError('a frame is missing \\n')", "", "a frame is missing", "",
    ),
    "it fails": ("print('said'); os.write(2, b'the truth'); raise KeyError('the truth')", "said\n", NOT_YOURS, "KeyError: 'the truth'"),
    "it takes longer than its second": (
        "print('said'); import time; time.sleep(20)", "said\n", "Your submission could not be scored: it takes longer than 1 s.", "",
    ),
    "it leaves": ("raise SystemExit(0)", "", NOT_YOURS, "SystemExit: 0"),
    "it says too little": ("return {'result': []}", "", NOT_YOURS, "KeyError: 'dev'"),
    "it says too much": (
        RETURN.replace("'even': {}", "'hard': {}"), ARGUMENTS, NOT_YOURS,
        "ValueError: the phase returns scores of ['hard'], which no visible column shows",
    ),
    "there is no task": ("", "", f"{CANNOT} is not in its reference data. {REBUILD}", ""),
    "there are no scorers": ("", "", NOT_YOURS, "ModuleNotFoundError: No module named 'evaluation_script'"),
}  # fmt: skip


@pytest.mark.parametrize("name", SCORERS)
def test_the_program_writes_scores_or_ends_with_a_sentence(name: str, folder: Path) -> None:
    body, stdout, stderr, noted = SCORERS[name]
    program = Path(scoring_program.__file__).read_bytes()
    written(folder, {"program/score.py": program, "in/res/metadata": "", "in/res/a.json": "{}", "out/.x": ""})
    if body:
        written(folder, {"program/evaluation_script/__init__.py": EVALUATE.format(body)})
    task = {**TASK, "seconds": 1} if "second" in name else TASK
    written(folder, {"in/ref/x" if name == "there is no task" else "in/ref/task.json": json.dumps(task)})
    arguments = [sys.executable, "-E", "-s", "-S", "-B", "program/score.py", "in", "out"]
    for log in ("log", "") if name == "it fails" else ("log",):
        run = subprocess.run(arguments, capture_output=True, check=False, text=True, env={"SEGJUDGE_LOG": log})
        assert (run.returncode, run.stdout, run.stderr.strip()) == (int(name != "it returns scores"), stdout, stderr)
    assert "".join(Path("log").read_text().splitlines()[-1:]) == noted
    files = sorted(os.listdir("out"))
    if name == "it returns scores":
        assert files == [".x", "detailed_results.html", "scores.json"]
        assert json.loads(Path("out/scores.json").read_text()) == {
            "A": 0.5,
            "hard: A": 0.987,
            "B": 50.0,
            "even: A": -0.25,
        }
        assert Path("out/detailed_results.html").read_text().startswith(PLAIN)
    else:
        assert files == [".x"]
