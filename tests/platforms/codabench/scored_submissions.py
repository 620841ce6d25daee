"""The output of Codabench's scoring program, its worker's handling of programs, and a trial's messages, as one text."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.codabench import opened_competition, scoring_program, trial
from segjudge.platforms.codabench.opened_competition import OpenedCompetition
from segjudge.platforms.codabench.trial import FAILED, FINISHED, CompetitionTrial, ComputeWorker, ScoredSubmission
from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter
from tests.builders import written, zipped
from tests.calls import read_session, run_calls
from tests.platforms.damages import GOLDEN, new_folder, put, show, write_yaml

from .competitions import CONFIG
from .competitions import FILES as COMPETITION_FILES

FILE = GOLDEN / "scored_submissions.txt"

# ── the scoring program's parts ─────────────────────────────────────────────────────────────────────────────────────

_COLUMNS = [
    {"key": "A", "split": "dev", "label": "A", "hidden": False},
    {"key": "hard: A", "split": "hard", "label": "A", "hidden": True},
    {"key": "B", "split": "dev", "label": "B<", "hidden": False},
    {"key": "even: A", "split": "even", "label": "A", "hidden": False},
]
_TASK: dict[str, Any] = {
    "phase": "p", "annotations": "a.zip", "title": "T & T", "seconds": 9, "page": "means", "columns": _COLUMNS,
}  # fmt: skip
_ANSWER: dict[str, Any] = {
    "result": [{"dev": {"A": 0.5, "B<": 50}}, {"hard": {"A": 0.987}, "even": {"A": -0.25}}],
    "error": [{"dev": {"error_A": 0.01}}],
    "interval": [{"dev": {"A": [0.48, 0.52]}}, {"hard": {"A": [0.91, 0.99]}}],
    "submission_result": {
        "protocol": "x", "result": [{"dev": {"A": 0.5}}, {"even": {}}], "warnings": ["<b>", 7], "frames": [1],
        "versions": {"segjudge": "1", "numpy": "2"},
    },
}  # fmt: skip

#: What Pythons say of it.
_TOO_DEEP = r"(?:maximum recursion depth exceeded|Stack overflow \(used \d+ kB\))"


def _read_task(task: object) -> object:
    if task is not None:
        Path("task.json").write_bytes(task if isinstance(task, bytes) else json.dumps(task).encode())
    try:
        return f"{scoring_program._read_task('task.json')['seconds']} s"
    except scoring_program._TaskError as error:
        text = str(error).replace(scoring_program._TELL_ORGANISERS.format(scoring_program._REBUILD), "…")
        return re.sub(rf"{_TOO_DEEP}[^)]*", "it is nested too deeply", text)
    finally:
        Path("task.json").unlink(missing_ok=True)


def _pick(**files: str) -> str:
    """Return the scored part of a submission, with these files in its folder; _ stands for a dot."""
    with new_folder():
        Path("res").mkdir()
        written(Path("res"), {name.replace("__", "/").replace("_", "."): text for name, text in files.items()})
        return f"{scoring_program._find_submission('.')}, beside {sorted(os.listdir('res'))}"


def _make_page(
    task: Any, answer: Any, seconds: int, error: Exception | None = None, output: bytes = b"drawn",
    name: str = "page/page_program.py",
) -> list[str]:  # fmt: skip
    """Return the request to a page's program, and the page's beginning."""
    message, errors = list[str](), io.StringIO()

    def run(arguments: list[str], **how: Any) -> SimpleNamespace:
        assert arguments[0] == sys.executable
        message.append(f"{os.path.relpath(arguments[1])} within {how['timeout']} s, checked: {how['check']}")
        message.append(how["input"].decode())
        if error:
            raise error
        return SimpleNamespace(stdout=output)

    fake = SimpleNamespace(run=run, PIPE=subprocess.PIPE)
    with new_folder() as folder, contextlib.redirect_stderr(errors):
        written(folder, {name: ""})
        with mock.patch.multiple(scoring_program, _FOLDER=str(folder), subprocess=fake):
            text = scoring_program._submission_page(task, answer, seconds)
    return [*message, *errors.getvalue().splitlines()[-1:], text.splitlines()[0]]


def _list_parts() -> Iterator[str]:
    names = {
        "sp": scoring_program, "os": os, "Path": Path, "put": put, "task": _TASK, "answer": _ANSWER, "read": _read_task,
        "submission": _pick, "page": _make_page, "body": lambda text: text[text.index("<h1>") :],
    }  # fmt: skip
    with new_folder() as folder:
        yield (
            run_calls(read_session(FILE, "the parts of the scoring program"), names)
            .replace(str(folder), "FOLDER")
            .rstrip("\n")
        )


# ── the program, in a process of its own ────────────────────────────────────────────────────────────────────────────

_EVALUATE = "import os, sys\ndef evaluate(truth, submission, phase, submission_metadata):\n    {}\n"
_RETURN = f"print(os.path.relpath(truth), os.path.relpath(submission), phase, submission_metadata); return {_ANSWER!r}"
#: What the scorers do.
_SCORERS = {
    "it returns scores": _RETURN,
    "it refuses": "class SubmissionError(Exception): pass\n    raise SubmissionError('a frame is missing \\n')",
    "it fails": "print('said'); os.write(2, b'the truth'); raise KeyError('the truth')",
    "it takes longer than its second": "print('said'); import time; time.sleep(20)",
    "it leaves": "raise SystemExit(0)",
    "it says too little": "return {'result': []}",
    "it says too much": _RETURN.replace("'even': {}", "'hard': {}"),
}


def _list_programs() -> Iterator[str]:
    program = Path(scoring_program.__file__).read_bytes()
    for name, body in [*_SCORERS.items(), ("there is no task", ""), ("there are no scorers", "")]:
        with new_folder() as folder:
            written(folder, {"program/score.py": program, "in/res/metadata": "", "in/res/a.json": "{}", "out/.x": ""})
            if body:
                written(folder, {"program/evaluation_script/__init__.py": _EVALUATE.format(body)})
            task = {**_TASK, "seconds": 1} if "second" in name else _TASK
            written(folder, {"in/ref/x" if name == "there is no task" else "in/ref/task.json": json.dumps(task)})
            arguments = [sys.executable, "-E", "-s", "-S", "-B", "program/score.py", "in", "out"]
            for log in ("log", "") if name == "it fails" else ("log",):
                run = subprocess.run(arguments, capture_output=True, check=False, text=True, env={"SEGJUDGE_LOG": log})
                yield f"{name}{'' if log else ', and there is no log'}: exit code {run.returncode}"
                yield from (f"    stdout: {line}" for line in run.stdout.splitlines())
                errors = run.stderr.replace(scoring_program._NOT_YOURS, "it is not your fault …")
                yield from (f"    stderr: {line}" for line in errors.splitlines())
            yield from (f"    log: {line}" for line in Path("log").read_text().splitlines()[-1:])
            for file in sorted(Path("out").iterdir()):
                yield f"    {file}: {file.read_text()[:100]!r}"


# ── the worker ──────────────────────────────────────────────────────────────────────────────────────────────────────


class _Bare(Interpreter):
    """An interpreter without a sandbox."""

    def find_sandbox(self, *, required: bool = False) -> str | None:
        return None


_COMMAND = "sh $program/s.sh $input $output"
_SUBMISSION = {"answer.txt": "41"}
#: What a program's shell script does, and its command, the submission, and what else is otherwise.
_RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "scores": ('echo \'{"a": 1, "b": 2.5, "c": 3}\' > $2/scores.json', {}),
    "the folders": (
        "pwd; find .. -type f | sort; cat $1/res/metadata; env | grep -E '^(HOME|PYTHON|http|SEGJUDGE)' | sort; echo 'a: 1' > $2/scores.txt",
        {"input_data": {"x": ""}},
    ),
    "the variables": (
        'echo "$@"',
        {"command": "sh s.sh $input $output $program $ingestion_program $hidden $shared $submission_program $tmp $predictions"},
    ),
    "a log and a page": ("echo private > $SEGJUDGE_LOG; echo page > $2/detailed_results.html; echo '{}' > $2/scores.json", {}),
    "a text and an exit code": ("echo said; echo wrong >&2; echo '{}' > $2/scores.json; exit 3", {}),
    "a signal": ("kill -9 $$", {}),
    "nothing": ("", {}),
    "half of JSON": ("echo '{' > $2/scores.json; echo 'a: 1' > $2/scores.txt", {}),
    "JSON that is deep": ("head -c 200000 /dev/zero | tr '\\0' '[' > $2/scores.json", {}),
    "YAML that is none": ("echo 'a: [' > $2/scores.txt", {}),
    "a list": ("echo '[1]' > $2/scores.json", {}),
    "a file named metadata": ("echo > $2/metadata; echo '{}' > $2/scores.json", {}),
    "a file named metadata, and no scores": ("echo > $2/metadata", {}),
    "Python": ("", {"command": "python3 s.py"}),
    "Python by its path": ("", {"command": "/usr/local/bin/python s.py 'two words'"}),
    "no command": ("", {"command": " "}),
    "a command that is not there": ("", {"command": "nothing-such $input"}),
    "an empty submission": ("", {"submission": {}}),
    "a submission with metadata": ("", {"submission": {"metadata.yaml": "", "a": ""}}),
    "no zip": ("", {"submission": b"odd"}),
}  # fmt: skip


def _show_outcome(outcome: ScoredSubmission) -> Iterator[str]:
    yield f"    {outcome.status}"
    for key, value in asdict(outcome).items():
        if value not in ("", None, (), {}) and key not in ("status", "seconds"):
            text = " ".join(f"{k}={v}" for k, v in value.items()) if key == "scores" else value
            shown = text if isinstance(text, str) else repr(text)
            shown = re.sub(f"{_TOO_DEEP}.*", "it is nested too deeply", shown)
            yield from (
                f"    {key}: {line}"
                for line in re.sub(rf"{re.escape(tempfile.gettempdir())}/segjudge-\w+", "FOLDER", shown).splitlines()
            )


def _list_runs() -> Iterator[str]:
    with new_folder() as folder:
        python = folder / "python"
        python.write_text(
            "#!/bin/sh\nprintf 'python'; printf ' <%s>' \"$@\"; echo '{\"a\": 1}' > ../output/scores.json\n"
        )
        python.chmod(0o755)
        worker = ComputeWorker(_Bare(str(python), "3.9", ()))
        yield f"in a sandbox: {worker.is_boxed}"
        for name, (text, how) in _RUNS.items():
            files = {
                "metadata.yaml": f"command: {how.get('command', _COMMAND)}",
                "s.sh": re.sub(r"\$(1|2|SEGJUDGE_LOG)\b", r'"\g<0>"', text),
            }
            submission = how.get("submission", _SUBMISSION)
            data = {
                "program.zip": zipped(files),
                "submission.zip": submission if isinstance(submission, bytes) else zipped(submission),
                "input.zip": zipped(how.get("input_data", {})),
            }
            written(folder, data)
            task = {"scoring_program": "program.zip", **({"input_data": "input.zip"} if "input_data" in how else {})}
            yield name
            try:
                outcome = worker.score(task, "submission.zip", ["a", "b"])
            except HostError as error:
                yield f"    {error}"
                continue
            yield from _show_outcome(outcome)
        try:
            worker.score({"ingestion_program": "x"}, "submission.zip", [])
        except HostError as error:
            yield f"an ingestion program: {error}"


_STORED: list[Any] = [
    {"a": 0.12345678909, "b": "0.7", "c": 1},
    {"a": True, "b": False},
    {"a": 1, "b": 1e10},
    {"a": -1e10, "b": 1},
    {"a": 9999999999.99, "b": -9999999999},
    {"a": None, "b": 1},
    {"a": [1], "b": 1},
    {"a": "text", "b": 1},
    {"a": "nan", "b": 1},
    {"a": "inf", "b": 1},
    {"c": None, "b": 1},
    {"b": 1, "c": float("nan")},
    [1],
    None,
]


def _list_unpacked() -> Iterator[str]:
    """Yield the reading of a zip and of a folder, and the failures of a worker."""
    files = {"a.txt": "x", "b/c.txt": "y", "metadata.yaml": "command: z"}
    with new_folder() as folder:
        written(
            folder,
            {
                "zip": zipped({**files, "d/": ""}),
                **{f"folder/{name}": text for name, text in files.items()},
                "to/a.txt": "old",
                "to/e": "",
            },
        )
        for path in ("zip", "folder"):
            yield f"{path}: {opened_competition.list_names(path)} {opened_competition.read_texts(path, ['b/c.txt'])}"
            yield f"    {opened_competition.find_command(path)}"
            for target in (f"new/{path}", "to"):
                opened_competition.unpack(path, target)
                results = {
                    str(p.relative_to(target)): p.read_text() for p in sorted(Path(target).rglob("*")) if p.is_file()
                }
                yield f"    {results}"
                Path("to/a.txt").write_text("old")
    for excess in ("", "it wrote more than 1 GB"):
        try:
            trial._read_result(_WHOLE, None, "nowhere", 7, excess)
        except opened_competition.GivenUpError as error:
            yield str(error)


def _list_values() -> Iterator[str]:
    for written_values in _STORED:
        kept = {key: str(value) for key, value in trial.store_scores(written_values, ["a", "b"]).items()}
        yield f"{written_values}: {kept}"
    with new_folder() as folder:
        written(folder, {"a.json": "{}", "b/x.png": "", "b/c/y.png": "", "c.zip": zipped({"z": ""})})
        for path in ("a.json", "b", "c.zip"):
            with trial.as_zip(path) as name, zipfile.ZipFile(name) as archive:
                yield f"{path} as {os.path.basename(name)}: {sorted(n for n in archive.namelist() if n[-1] != '/')}"


# ── a trial ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_WHOLE = ScoredSubmission(FINISHED, written={"a": 1}, scores={"a": Decimal(1)}, output=("scores.json",))
#: What a worker made of a sample.
_OUTCOMES: dict[str, ScoredSubmission] = {
    "as it should be": _WHOLE,
    "a column more": replace(_WHOLE, written={"a": 1, "z": 1, "y": 2}),
    "no column": replace(_WHOLE, written={}),
    "what is no number": replace(_WHOLE, written={"a": "x" * 50}),
    "a flag, and a number in quotes": replace(_WHOLE, written={"a": True, "z": "1"}),
    "a number in quotes": replace(_WHOLE, written={"a": "0.5"}),
    "a number that is too large": replace(_WHOLE, written={"a": 1e10}),
    "a negative number that is too large": replace(_WHOLE, written={"a": -1e10}),
    "a number that is large": replace(_WHOLE, written={"a": 9999999999}),
    "no number": replace(_WHOLE, written={"a": float("nan")}),
    "an odd value of no column": replace(_WHOLE, written={"a": 1, "z": "x"}),
    "no object": replace(_WHOLE, written=[1]),
    "a word on stderr": replace(_WHOLE, stderr=f"first\n{'x' * 30} {'y' * 100}\n \n"),
    "blanks on stderr": replace(_WHOLE, stderr=" \n"),
    "its time is over": ScoredSubmission(FAILED, "Execution Time Limit exceeded. Limit was 600 seconds", seconds=601.6),
    "it fails": ScoredSubmission(FAILED, "Child task failed", stderr="x"),
    "it fails with a file named metadata": ScoredSubmission(FAILED, "Error", output=("metadata",)),
}
_MORE = {
    "tasks": [
        *CONFIG["tasks"],
        {"index": 1, "name": "U", "scoring_program": "other.zip", "input_data": "more.zip", "reference_data": None},
        {"index": 2, "name": "V", "key": "x", "scoring_program": 7},
    ],
    "phases": [
        {**CONFIG["phases"][0], "index": 1, "tasks": [1, 0], "execution_time_limit": None},
        {**CONFIG["phases"][0], "index": 0, "name": "Q", "tasks": [0], "execution_time_limit": 77},
        {**CONFIG["phases"][0], "index": 2, "name": "R", "tasks": None},
        {**CONFIG["phases"][0], "index": 3, "name": "S", "tasks": [2]},
    ],
    "solutions": [
        {"index": 0, "tasks": [0], "path": "truth.zip"},
        {"index": 1, "tasks": [1, 2], "path": "odd.zip"},
        {"index": 2, "tasks": [0], "path": "lost.zip"},
        {"index": 3, "path": "odd.zip"},
    ],
}


class _Worker:
    """Gives one outcome, and notes its requests."""

    def __init__(self, outcome: ScoredSubmission) -> None:
        self.outcome = outcome
        self.asked: list[str] = []

    def score(self, task: dict[str, str], submission: str, columns: list[str], seconds: int) -> ScoredSubmission:
        names = {key: os.path.basename(path) for key, path in task.items()}
        with zipfile.ZipFile(submission) as archive:
            self.asked.append(f"{names} {archive.namelist()} {columns} {seconds} s")
        return self.outcome


def _list_trials() -> Iterator[str]:
    with new_folder():
        document = json.dumps({"columns": [{"key": "b"}, {"key": "a"}], "seconds": 300})
        Path("c").mkdir()
        truth = zipped({"task.json": document})
        written(Path("c"), {**COMPETITION_FILES, "competition.yaml": write_yaml(CONFIG), "sample.txt": "x"})
        for name, outcome in _OUTCOMES.items():
            (run,) = CompetitionTrial(OpenedCompetition("c"), _Worker(outcome)).run({"P": ["c/sample.txt"]})  # type: ignore[arg-type]
            yield f"{name}: {run}"
            yield from (f"    {show(problem)}" for problem in run.problems)
        written(Path("c"), {"truth.zip": truth, "competition.yaml": write_yaml({**CONFIG, **_MORE})})
        worker = _Worker(_WHOLE)
        competition = CompetitionTrial(OpenedCompetition("c"), worker)  # type: ignore[arg-type]
        yield f"columns {competition.columns}, of which less is better of {competition.ascending}"
        solutions = competition.solutions()
        yield from (f"solutions of {name}: {[os.path.basename(p) for p in paths]}" for name, paths in solutions.items())
        for run in competition.run({"P": ["c/sample.txt", "c/folder/"], "Q": ["c/truth.zip"], "R": ["c/truth.zip"]}):
            yield f"{run}"
            yield from (f"    {show(problem)}" for problem in run.problems)
        yield from worker.asked
        try:
            list(competition.run({"S": ["c/truth.zip"]}))
        except HostError as error:
            yield str(error)
        boards = put(CONFIG, "leaderboards.0.columns.0.sorting", "asc")
        written(Path("c"), {"competition.yaml": write_yaml(boards)})
        yield f"less is better of {CompetitionTrial(OpenedCompetition('c'), worker).ascending}"  # type: ignore[arg-type]
        written(Path("c"), {"competition.yaml": write_yaml({**CONFIG, "leaderboards": []})})
        yield f"without a leaderboard: {CompetitionTrial(OpenedCompetition('c'), worker).columns}"  # type: ignore[arg-type]


def write_text() -> str:
    parts = {
        "the parts of the scoring program": _list_parts,
        "the scoring program": _list_programs,
        "what Codabench's worker makes of programs": _list_runs,
        "what is unpacked": _list_unpacked,
        "what is stored, and sent": _list_values,
        "what a trial says": _list_trials,
    }
    return "".join(f"── {title} ──\n" + "".join(f"{line}\n" for line in lines()) for title, lines in parts.items())


if __name__ == "__main__":
    FILE.write_text(write_text(), encoding="utf-8")
