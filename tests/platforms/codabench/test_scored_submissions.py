"""Codabench's worker with programs of all kinds, what it stores, and the problems that a trial of a competition finds."""

from __future__ import annotations

import json
import os
import re
import tempfile
import zipfile
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from segjudge.platforms.codabench import opened_competition, trial
from segjudge.platforms.codabench.opened_competition import OpenedCompetition
from segjudge.platforms.codabench.trial import FAILED, FINISHED, CompetitionTrial, ComputeWorker, ScoredSubmission
from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter
from tests.builders import written, zipped
from tests.calls import outcome
from tests.platforms.damages import put, show, write_yaml

from .competitions import CONFIG
from .competitions import FILES as COMPETITION_FILES
from .test_scoring_program import TOO_DEEP


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Bare(Interpreter):
    """An interpreter without a sandbox."""

    def find_sandbox(self, *, required: bool = False) -> str | None:
        return None


COMMAND, SCORES = "sh $program/s.sh $input $output", "echo '{}' > $2/scores.json"
PYTHON = "#!/bin/sh\nprintf 'python'; printf ' <%s>' \"$@\"; echo '{\"a\": 1}' > ../output/scores.json\n"
NO_SCORES = {"details": "Could not find scores file, did the scoring program output it?"}
BROKEN, FAILS = (
    "Could not decode scores json properly, it contains an error.\n",
    "Child task failed or non-zero return code",
)
BAD_ZIP = {"details": "Bad or empty zip file"}
METADATA = {
    "details": "Error, the output directory already contains a metadata file.",
    "output": ("metadata", "scores.json"),
}
FOLDERS = """\
FOLDER/program
../input/res/answer.txt
../input/res/metadata
../input_data/x
../program/metadata.yaml
../program/s.sh
elapsedTime: null
exitCode: null
ingestionElapsedTime: null
ingestionExitCode: null
HOME=FOLDER
PYTHONUNBUFFERED=1
SEGJUDGE_LOG=FOLDER/shared/SEGJUDGE_LOG
http_proxy=
https_proxy=
"""
ALL = "sh s.sh $input $output $program $ingestion_program $hidden $shared $submission_program $tmp $predictions"
PATHS = "input output program program input/ref shared ingested_program output input/res"
ONE = {"written": {"a": 1}, "scores": {"a": Decimal(1)}}
#: What a program's shell script does, what is otherwise than usual, and what comes of it.
RUNS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "scores": (
        'echo \'{"a": 1, "b": 2.5, "c": 3}\' > $2/scores.json', {}, FINISHED,
        {"written": {"a": 1, "b": 2.5, "c": 3}, "scores": {"a": Decimal(1), "b": Decimal("2.5")}, "output": ("scores.json",)},
    ),
    "the folders": (
        "pwd; find .. -type f | sort; cat $1/res/metadata; env | grep -E '^(HOME|PYTHON|http|SEGJUDGE)' | sort; echo 'a: 1' > $2/scores.txt",
        {"input_data": {"x": ""}}, FINISHED, {"stdout": FOLDERS, **ONE, "output": ("scores.txt",)},
    ),
    "the variables": (
        'echo "$@"', {"command": ALL}, FAILED,
        {**NO_SCORES, "stdout": " ".join(f"FOLDER/{path}" for path in PATHS.split()) + "\n"},
    ),
    "a log and a page": (
        f"echo private > $SEGJUDGE_LOG; echo page > $2/detailed_results.html; {SCORES}", {}, FINISHED,
        {"output": ("detailed_results.html", "scores.json"), "log": "private\n", "page": "page\n"},
    ),
    "a text and an exit code": (
        f"echo said; echo wrong >&2; {SCORES}; exit 3", {}, FAILED,
        {"details": FAILS, "stdout": "said\n", "stderr": "wrong\n", "output": ("scores.json",)},
    ),
    "a signal": ("kill -9 $$", {}, FAILED, {"details": FAILS}),
    "nothing": ("", {}, FAILED, NO_SCORES),
    "half of JSON": (
        "echo '{' > $2/scores.json; echo 'a: 1' > $2/scores.txt", {}, FAILED,
        {"details": f"{BROKEN}Expecting property name enclosed in double quotes", "output": ("scores.json", "scores.txt")},
    ),
    "JSON that is deep": (
        "head -c 200000 /dev/zero | tr '\\0' '[' > $2/scores.json", {}, FAILED, {"details": f"{BROKEN}too deep", "output": ("scores.json",)},
    ),
    "YAML that is none": ("echo 'a: [' > $2/scores.txt", {}, FINISHED, {"output": ("scores.txt",)}),
    "a list": ("echo '[1]' > $2/scores.json", {}, FINISHED, {"written": [1], "output": ("scores.json",)}),
    "a file named metadata": (f"echo > $2/metadata; {SCORES}", {}, FAILED, METADATA),
    "a file named metadata, and no scores": ("echo > $2/metadata", {}, FAILED, {**NO_SCORES, "output": ("metadata",)}),
    "Python": ("", {"command": "python3 s.py"}, FINISHED, {"stdout": "python <s.py>", **ONE, "output": ("scores.json",)}),
    "Python by its path": (
        "", {"command": "/usr/local/bin/python s.py 'two words'"}, FINISHED,
        {"stdout": "python <s.py> <two words>", **ONE, "output": ("scores.json",)},
    ),
    "no command": ("", {"command": " "}, FAILED, NO_SCORES),
    "a command that is not there": (
        "", {"command": "nothing-such $input"}, FAILED, {"details": f"{FAILS} ([Errno 2] No such file or directory: 'nothing-such')"},
    ),
    "an empty submission": ("", {"submission": {}}, FAILED, BAD_ZIP),
    "a submission with metadata": ("", {"submission": {"metadata.yaml": "", "a": ""}}, FAILED, BAD_ZIP),
    "no zip": ("", {"submission": b"odd"}, FAILED, BAD_ZIP),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_program_ends_as_on_codabench(name: str, folder: Path) -> None:
    text, how, status, expected = RUNS[name]
    written(folder, {"python": PYTHON})
    (folder / "python").chmod(0o755)
    worker = ComputeWorker(Bare(str(folder / "python"), "3.9", ()))
    assert not worker.is_boxed
    script = re.sub(r"\$(1|2|SEGJUDGE_LOG)\b", r'"\g<0>"', text)
    submission = how.get("submission", {"answer.txt": "41"})
    files = {
        "program.zip": zipped({"metadata.yaml": f"command: {how.get('command', COMMAND)}", "s.sh": script}),
        "submission.zip": submission if isinstance(submission, bytes) else zipped(submission),
        "input.zip": zipped(how.get("input_data", {})),
    }
    written(folder, files)
    task = {"scoring_program": "program.zip", **({"input_data": "input.zip"} if "input_data" in how else {})}
    made = asdict(worker.score(task, "submission.zip", ["a", "b"]))
    temporary = rf"{re.escape(tempfile.gettempdir())}/segjudge-\w+"
    made = {key: re.sub(temporary, "FOLDER", value) if isinstance(value, str) else value for key, value in made.items()}
    made["details"] = re.sub(f"{TOO_DEEP}.*", "too deep", made["details"])
    assert made.pop("status") == status
    del made["seconds"]
    shown = {key: value for key, value in made.items() if value not in ("", None, (), {})}
    assert shown == {key: value for key, value in expected.items() if value not in ("", {})}


def test_a_task_that_runs_code_of_participants_is_not_supported() -> None:
    worker = ComputeWorker(Bare("python", "3.9", ()))
    assert outcome(lambda: worker.score({"ingestion_program": "x"}, "submission.zip", [])) == (
        "HostError: tasks with an ingestion program run participants' code, which is not supported here"
    )


@pytest.mark.parametrize("path", ["zip", "folder"])
def test_zips_and_folders_are_read_and_unpacked(path: str, folder: Path) -> None:
    files = {"a.txt": "x", "b/c.txt": "y", "metadata.yaml": "command: z"}
    folders = {f"folder/{name}": text for name, text in files.items()}
    written(folder, {"zip": zipped({**files, "d/": ""}), **folders, "to/a.txt": "old", "to/e": ""})
    assert opened_competition.list_names(path) == ["a.txt", "b/c.txt", "metadata.yaml"]
    assert opened_competition.read_texts(path, ["b/c.txt"]) == {"b/c.txt": "y"}
    assert opened_competition.find_command(path) == "z"
    for target, more in (("new", {}), ("to", {"e": ""})):
        opened_competition.unpack(path, target)
        made = {str(each.relative_to(target)): each.read_text() for each in Path(target).rglob("*") if each.is_file()}
        assert made == {**files, **more}


WHOLE = ScoredSubmission(FINISHED, written={"a": 1}, scores={"a": Decimal(1)}, output=("scores.json",))


def test_a_program_without_an_exit_code_was_ended() -> None:
    for excess, sentence in (
        ("", "Execution Time Limit exceeded. Limit was 7 seconds"),
        ("it wrote more than 1 GB", "The scoring program was killed: it wrote more than 1 GB"),
    ):
        made = outcome(lambda excess=excess: trial._read_result(WHOLE, None, "nowhere", 7, excess))
        assert made == f"WorkerFailureError: {sentence}"


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ({"a": 0.12345678909, "b": "0.7", "c": 1}, {"a": "0.1234567891", "b": "0.7000000000"}),
        ({"a": True, "b": False}, {"a": "1.0000000000", "b": "0E-10"}),
        ({"a": 1, "b": 1e10}, {"a": "1.0000000000"}),
        ({"a": -1e10, "b": 1}, {}),
        ({"a": 9999999999.99, "b": -9999999999}, {"a": "9999999999.9900000000", "b": "-9999999999.0000000000"}),
        ({"a": None, "b": 1}, {}),
        ({"a": [1], "b": 1}, {}),
        ({"a": "text", "b": 1}, {}),
        ({"a": "nan", "b": 1}, {}),
        ({"a": "inf", "b": 1}, {}),
        ({"c": None, "b": 1}, {"b": "1.0000000000"}),
        ({"b": 1, "c": float("nan")}, {}),
        ([1], {}),
        (None, {}),
    ],
)
def test_scores_are_stored_up_to_the_first_that_is_none(values: Any, stored: dict[str, str]) -> None:
    assert {key: str(value) for key, value in trial.store_scores(values, ["a", "b"]).items()} == stored


def test_a_submission_is_sent_as_a_zip(folder: Path) -> None:
    written(folder, {"a.json": "{}", "b/x.png": "", "b/c/y.png": "", "c.zip": zipped({"z": ""})})
    for path, name, names in (
        ("a.json", "submission.zip", ["a.json"]),
        ("b", "submission.zip", ["c/y.png", "x.png"]),
        ("c.zip", "c.zip", ["z"]),
    ):
        with trial.as_zip(path) as sent, zipfile.ZipFile(sent) as archive:
            assert os.path.basename(sent) == name
            assert sorted(each for each in archive.namelist() if each[-1] != "/") == names


# ── a trial ─────────────────────────────────────────────────────────────────

LOST = "which is lost, with all later values. Write a number."
NO_COLUMN = "56: sample.txt: {} is written, but no column has that key. Add the column."
EMPTY = "60: {} is not written; an empty column may rank first. Write every column, or end with exit code 1."
PROGRAM, LIMIT = (
    "competition.yaml:30:4: tasks[0].scoring_program: ",
    "competition.yaml:54:4: phases[0].execution_time_limit: ",
)


def tell(run: Any) -> list[str]:
    """Return the problems of a run with their numbers, without the key of the program."""
    return [
        show(problem).removeprefix("warning ").replace(PROGRAM, "").replace(LIMIT, "limit: ")
        for problem in run.problems
    ]


class Worker:
    """Gives one outcome, and notes its requests."""

    is_boxed = True

    def __init__(self, made: ScoredSubmission) -> None:
        self.made = made
        self.asked: list[Any] = []

    def score(self, task: dict[str, str], submission: str, columns: list[str], seconds: int) -> ScoredSubmission:
        names = {key: os.path.basename(path) for key, path in task.items()}
        with zipfile.ZipFile(submission) as archive:
            self.asked.append((names, archive.namelist(), columns, seconds))
        return self.made


def open_trial(made: ScoredSubmission, **files: Any) -> tuple[CompetitionTrial, Worker]:
    """Return a trial of the competition with these files, and its worker."""
    Path("c").mkdir(exist_ok=True)
    written(Path("c"), {**COMPETITION_FILES, "competition.yaml": write_yaml(CONFIG), "sample.txt": "x", **files})
    worker: Any = Worker(made)
    return CompetitionTrial(OpenedCompetition("c"), worker), worker


def number(value: Any) -> ScoredSubmission:
    return replace(WHOLE, written={"a": value})


@pytest.mark.parametrize(
    ("made", "problems"),
    [
        (WHOLE, []),
        (replace(WHOLE, written={"a": 1, "z": 1, "y": 2}), [NO_COLUMN.format("z"), NO_COLUMN.format("y")]),
        (replace(WHOLE, written={}), [EMPTY.format("sample.txt: a")]),
        (number("x" * 50), [f"59: sample.txt: a is '{'x' * 39}, {LOST}"]),
        (replace(WHOLE, written={"a": True, "z": "1"}), [NO_COLUMN.format("z")]),
        (number("0.5"), []),
        (number(1e10), [f"59: sample.txt: a is 10000000000.0, {LOST}"]),
        (number(-1e10), [f"59: sample.txt: a is -10000000000.0, {LOST}"]),
        (number(9999999999), []),
        (number(float("nan")), [f"59: sample.txt: a is nan, {LOST}"]),
        (replace(WHOLE, written={"a": 1, "z": "x"}), [NO_COLUMN.format("z")]),
        (replace(WHOLE, written=[1]), ["59: sample.txt finishes without scores: its output is not an object. Write {key: number}."]),
        (
            replace(WHOLE, stderr=f"first\n{'x' * 30} {'y' * 100}\n \n"),
            [f"62: sample.txt: stderr, which participants read, says '{'x' * 30} {'y' * 89}'. Keep the log elsewhere."],
        ),
        (replace(WHOLE, stderr=" \n"), []),
        (
            ScoredSubmission(FAILED, "Execution Time Limit exceeded. Limit was 600 seconds", seconds=601.6),
            ["64: limit: sample.txt takes longer than 602 s, but Codabench's worker does not stop it. Let the program limit itself."],
        ),
        (ScoredSubmission(FAILED, "Child task failed", stderr="x"), []),
        (
            ScoredSubmission(FAILED, "Error", output=("metadata",)),
            ["63: writes a file named metadata, a name that Codabench uses itself. Rename it."],
        ),
    ],
)  # fmt: skip
def test_a_sample_shows_problems_of_the_competition(made: ScoredSubmission, problems: list[str]) -> None:
    (run,) = open_trial(made)[0].run({"P": ["c/sample.txt"]})
    assert (str(run), [problem.replace("tasks[0].scoring_program: ", "") for problem in tell(run)]) == (
        "P ← sample.txt",
        problems,
    )


NAMES_APP = (
    "warning: sample.txt may fail because the program names /app, a folder that exists only in the sandbox. {}".format(
        "Install bubblewrap (apt-get install bubblewrap), and run it again."
    )
)
IN_APP, OURS = "open('/app/input/ref/x')", zipped({"task.json": json.dumps({"columns": [{"key": "a"}]})})


@pytest.mark.parametrize(
    ("made", "is_boxed", "files", "problems"),
    [
        (ScoredSubmission(FAILED, "Child"), False, {"program.zip": zipped({"s.py": IN_APP})}, [NAMES_APP]),
        (ScoredSubmission(FAILED, "Child"), True, {"program.zip": zipped({"s.py": IN_APP})}, []),
        (ScoredSubmission(FAILED, "Child"), False, {"program.zip": zipped({"s.py": "x", "metadata": "command: x /app/input"})}, []),
        (ScoredSubmission(FAILED, "Child"), False, {"program.zip": zipped({"s.py": IN_APP}), "truth.zip": OURS}, []),
        (WHOLE, False, {"program.zip": zipped({"s.py": IN_APP})}, []),
    ],
    ids=["without a sandbox", "in the sandbox", "named by the command", "our program", "finished"],
)  # fmt: skip
def test_a_program_that_needs_the_sandbox_is_told_how_to_get_it(
    made: ScoredSubmission, files: dict[str, Any], problems: list[str], *, is_boxed: bool
) -> None:
    competition, worker = open_trial(made, **files)
    worker.is_boxed = is_boxed
    (run,) = competition.run({"P": ["c/sample.txt"]})
    assert tell(run) == problems


MORE = {
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


def test_samples_run_in_each_task_of_their_phases() -> None:
    truth = zipped({"task.json": json.dumps({"columns": [{"key": "b"}, {"key": "a"}], "seconds": 300})})
    config = {"truth.zip": truth, "competition.yaml": write_yaml({**CONFIG, **MORE})}
    competition, worker = open_trial(WHOLE, **config)
    assert (competition.columns, [*competition.ascending]) == (["a"], [])
    solutions = {name: [os.path.basename(path) for path in paths] for name, paths in competition.solutions().items()}
    assert solutions == {"Q": ["truth.zip"], "P": ["truth.zip", "odd.zip"], "S": ["odd.zip"]}
    samples = {"P": ["c/sample.txt", "c/folder/"], "Q": ["c/truth.zip"], "R": ["c/truth.zip"]}
    runs = [(str(run), tell(run)) for run in competition.run(samples)]
    assert runs == [
        ("Q ← truth.zip", [EMPTY.format("truth.zip: b")]),
        ("P ← sample.txt", []),
        ("P ← sample.txt", [EMPTY.format("sample.txt: b")]),
        ("P ← folder", []),
        ("P ← folder", [EMPTY.format("folder: b")]),
    ]
    first = {"scoring_program": "program.zip", "reference_data": "truth.zip"}
    second = {"input_data": "more.zip", "scoring_program": "other.zip"}
    assert worker.asked == [
        (first, ["task.json"], ["a"], 77), (second, ["sample.txt"], ["a"], 600), (first, ["sample.txt"], ["a"], 600),
        (second, ["file.md"], ["a"], 600), (first, ["file.md"], ["a"], 600),
    ]  # fmt: skip
    assert outcome(lambda: [*competition.run({"S": ["c/truth.zip"]})]) == (
        "HostError: task 2 belongs to the site; its program is not in the bundle"
    )


def test_the_leaderboard_says_what_is_better() -> None:
    boards = put(CONFIG, "leaderboards.0.columns.0.sorting", "asc")
    assert [*open_trial(WHOLE, **{"competition.yaml": write_yaml(boards)})[0].ascending] == ["a"]
    assert open_trial(WHOLE, **{"competition.yaml": write_yaml({**CONFIG, "leaderboards": []})})[0].columns == []
