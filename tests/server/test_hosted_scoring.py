"""Outcomes of submissions with hosted workers, whose processes obey the text of the submission."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from segjudge.platforms.evalai.hosted_worker.process import DiedError, HungError, UnloadableError, UnwantedError
from segjudge.server import workers
from segjudge.server.models import Challenge, ChallengePhase, Submission
from segjudge.server.store import BusyError
from segjudge.server.workers import JobScorer, Workers

from .hosted import Hosted, hosted_stage

SCORES = {"Score": 0.5}
FINISHED = {
    "status": "finished",
    "stdout": "out",
    "stderr": "err",
    "result": [{"lakes": SCORES, "ponds": {}}, {"ponds": SCORES}],
}
ANSWERS: dict[str, dict[str, Any]] = {
    "good": FINISHED,
    "raise": {"status": "failed", "stdout": "out", "stderr": "Traceback\nValueError: x"},
    "split": {**FINISHED, "result": [{"nowhere": SCORES}]},
    "rows": {**FINISHED, "result": []},
    "keys": {**FINISHED, "result": [{"lakes": SCORES, "ponds": {"Score": 0.9}}, {}]},
    "files": {**FINISHED, "submission_result": "[1]", "submission_metadata": '{"a": 1}', "error": [{"lakes": {"error_Score": 0.1}}]},
}  # fmt: skip
FAULTS: dict[str, Exception] = {
    "die": DiedError("its process was killed by SIGSEGV"), "exit": DiedError("its process ended with 3", killed=False),
    "hang": HungError("evaluate() did not answer within 6 s"), "away": BusyError("others write"), "stumble": ValueError("odd"),
    "unwanted": UnwantedError("gone"), "killed": DiedError("its process was killed by SIGKILL", blameless=True),
}  # fmt: skip


class Process:
    """A worker's process."""

    play: Hosted
    stop: threading.Event

    def __init__(self, python: object, folder: Any, challenge: int, terms: Any) -> None:
        self.alive, self._challenge = True, challenge
        self.begun = (python, sorted(path for path in Path(folder.root).rglob("*") if path.is_file()), terms)
        self.asked: list[Any] = []
        self.play.steps.append(f"starts for {self.title}")
        Process.last = self  # type: ignore[attr-defined]

    @property
    def title(self) -> str:
        return str(self.play.services.store.require(Challenge, self._challenge).config["title"])

    def ask(self, request: dict[str, Any], seconds: float, unwanted: Callable[[], bool]) -> dict[str, Any]:
        if request == {"ready": True}:
            assert (seconds, unwanted()) == (6.0, False)
            if self.title == "Unloadable":
                raise UnloadableError("no module named x", "what it wrote")
            if self.title == "Dying":
                raise DiedError("its process ended with exit code 3", killed=False)
            self.play.steps.append("is ready")
            return {}
        self.asked.append((request, Path(request["annotation"]).read_text(), {**self.play.services.workers}))
        word = Path(request["submission"]).read_text()
        self.play.steps.append(f"scores {request['phase']}")
        self.play.meanwhile()
        if word in FAULTS:
            self.alive = word not in ("die", "exit")
            self.play.steps.append("is unwanted" if unwanted() else "is wanted")
            raise FAULTS[word]
        return ANSWERS[word]

    def log(self) -> str:
        return "loading…\nlast words\n"

    def kill(self) -> None:
        self.play.steps.append("ends")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    folder = tmp_path_factory.mktemp("hosted")
    for name in ("segjudge-worker-abc", "other"):
        (folder / name).mkdir()

    def make_group(**asked: Any) -> Any:
        return SimpleNamespace(
            asked=asked, holds_bound=lambda kind: kind == "cpu", close=lambda: made.steps.append("closes its group")
        )

    with (
        hosted_stage(folder) as made, patch.object(workers, "WorkerProcess", Process), patch.object(workers, "ResourceGroup", make_group),
        patch.object(workers, "install_requirements", lambda python, *_: f"{python} with requirements"),
    ):  # fmt: skip
        Process.play = made
        for name in ("segjudge-worker-abc", "other", "gone"):
            made.services.store.note_folder(str(folder / name))
        made.pool = Workers(made.services, JobScorer("python3.9", 6.0, "box"), 2)  # type: ignore[arg-type, attr-defined]
        yield made
        close, pool = made.turns[0][2], made.pool  # type: ignore[attr-defined]
        made.take_steps()
        close()
        close()
        assert made.services.store.worker_folders() == [str(folder / "other")]
        pool.stop()
        assert made.take_steps().endswith("closes its group")


@pytest.fixture(autouse=True)
def turn(server: Hosted) -> Callable[[], bool]:
    server.clear()
    return server.turns[0][1]


HANGS = "On EvalAI this would hang: {}. The submission would stay `running`, and its team could send no more."
OUT = {"stdout": "out"}
LOGGED = "submission N: {}\nloading…\nlast words"


def test_two_workers_share_a_group_and_old_folders_are_removed(server: Hosted, turn: Callable[[], bool]) -> None:
    assert not (server.folder / "segjudge-worker-abc").exists()
    assert server.services.store.worker_folders() == [str(server.folder / "other")]
    pool = server.pool  # type: ignore[attr-defined]
    assert (pool._group.asked, pool.is_limited) == ({"cores": 1.0, "processes": 2048}, True)
    assert [name for name, _, _ in server.turns] == ["worker 1", "worker 2"]
    assert server.services.workers == {1: "idle", 2: "idle"}
    assert not turn()


def test_a_process_has_the_script_the_truths_and_the_submission(server: Hosted, turn: Callable[[], bool]) -> None:
    server.services.store.change(Challenge, 1, version=7)  # a new version is loaded anew
    number = server.send(1, 1, "good")
    assert turn()
    assert server.take_steps().removeprefix("ends, ") == "starts for Hosted, is ready, scores practice"
    process = Process.last  # type: ignore[attr-defined]
    python, files, terms = process.begun
    assert (python, [*vars(terms).values()][:3]) == (
        "python3.9 with requirements",
        [1 << 30, "box", (f"{server.folder}/data",)],
    )
    data = "WORKER/compute/challenge_data"
    truths = [server.settle(str(path.parent)) for path in files if "phase_data" in path.parts]
    assert sorted(truths)[:2] == [f"{data}/challenge_1/phase_data/phase_1", f"{data}/challenge_1/phase_data/phase_2"]
    scripts = [server.settle(str(path)) for path in files if "phase_data" not in path.parts]
    assert [path for path in scripts if "submission_files" not in path] == [
        f"{data}/__init__.py",
        f"{data}/challenge_1/__init__.py",
    ]
    ((request, truth, shown),) = process.asked
    assert (request["phase"], request["splits"], truth) == ("practice", ["lakes", "ponds"], "truth")
    folders = [server.settle(str(Path(request[name]).parent)) for name in ("annotation", "submission")]
    assert folders == [f"{data}/challenge_1/phase_data/phase_1", f"WORKER/compute/submission_files/submission_{number}"]
    assert request["metadata"]["status"] == "running"
    assert shown == {1: f"scores submission {number}", 2: "idle"}


@pytest.mark.parametrize(
    ("word", "status", "texts", "scored", "logged"),
    [
        ("good", "finished", OUT, ["lakes", "ponds"], ""),
        ("files", "finished", {**OUT, "submission_result": "[1]", "metadata": '{"a": 1}'}, ["lakes", "ponds"], ""),
        ("raise", "failed", {**OUT, "stderr": "Traceback\nValueError: x"}, [], ""),
        ("split", "failed", {"stderr": "EvalAI could not store what evaluate() returned: KeyError('nowhere')"}, [], ""),
        ("rows", "finished", OUT, [], ""),
        ("keys", "finished", OUT, ["lakes"], ""),
        ("stumble", "failed", {"stderr": HANGS.format("the worker failed on it (odd)")}, [], "submission N: ValueError('odd')"),
        (
            "hang", "failed", {"stderr": HANGS.format("evaluate() did not answer within 6 s, and EvalAI waits forever")}, [],
            LOGGED.format("evaluate() did not answer within 6 s"),
        ),
        ("exit", "running", {}, [], LOGGED.format("its process ended with 3")),
    ],
)  # fmt: skip
def test_an_answer_is_an_outcome(
    word: str,
    status: str,
    texts: dict[str, str],
    scored: list[str],
    logged: str,
    server: Hosted,
    turn: Callable[[], bool],
) -> None:
    number = server.send(1, 1, word)
    assert turn()
    assert server.end_of(number) == (status, texts)
    splits = {split.id: split.dataset_split.codename for split in server.services.store.splits_of(1)}
    scores = server.services.submissions.scores(number)
    assert {splits[split]: values for split, values in scores.items()} == dict.fromkeys(scored, SCORES)
    assert server.take_log() == ([logged] if logged else [])
    steps = server.take_steps()
    assert steps.endswith(", is wanted, ends" if logged else "scores practice")
    assert server.queued() == ([3600] if word == "exit" else [])


def test_a_submission_whose_processes_die_again_and_again_fails(server: Hosted, turn: Callable[[], bool]) -> None:
    number = server.send(1, 1, "die")
    died = LOGGED.format("its process was killed by SIGSEGV")
    fails = {"stderr": HANGS.format("its process was killed by SIGSEGV, again and again")}
    for deaths, status, texts in ((1, "running", {}), (2, "running", {}), (3, "failed", fails)):
        before = server.services.store.require(Submission, number).deaths
        assert turn()
        assert server.services.store.require(Submission, number).deaths > before
        assert (server.end_of(number), server.take_log()) == ((status, texts), [died])
        assert server.queued() == ([3600] if deaths < 3 else [])
        server.stage.now += 3601
    assert not turn()


def test_a_submission_survives_many_kills_from_outside(server: Hosted, turn: Callable[[], bool]) -> None:
    number = server.send(1, 1, "killed")
    for _ in range(17):
        assert turn()
        assert server.end_of(number) == ("running", {})
        server.stage.now += 3601
    assert turn()
    status, texts = server.end_of(number)
    assert status == "failed"
    assert texts["stderr"].endswith("or by a person. Ask the host to run the submission again.")
    assert not server.queued()


def test_a_database_that_is_away_leaves_the_submission_in_the_queue(server: Hosted, turn: Callable[[], bool]) -> None:
    number = server.send(1, 1, "away")
    with pytest.raises(BusyError, match="others write"):
        turn()
    assert (server.end_of(number), server.queued()) == (("running", {}), [3600])


def test_a_cancelled_submission_is_not_scored(server: Hosted, turn: Callable[[], bool]) -> None:
    number = server.send(1, 1, "good")
    server.services.submissions.update(number, status="cancelled")
    turn()
    assert (server.take_steps(), server.end_of(number)) == ("", ("cancelled", {}))
    for word, steps in (("good", "scores practice"), ("unwanted", "scores practice, is unwanted, ends")):
        number = server.send(1, 1, word)
        server.meanwhile = lambda number=number: server.services.submissions.update(number, status="cancelled")
        turn()
        assert (server.take_steps().partition("is ready, ")[2] or steps, server.end_of(number)) == (
            steps,
            ("cancelled", {}),
        )
    queue = server.services.store.require(Challenge, 1).queue
    server.services.queue.send(queue, {"submission_pk": "999"})
    turn()
    assert not server.queued()


def test_a_phase_without_a_truth_would_hang(server: Hosted, turn: Callable[[], bool]) -> None:
    truth = server.services.store.require(ChallengePhase, 3).annotation
    server.services.store.change(ChallengePhase, 3, annotation=None)
    number = server.send(1, 3, "good", who="host")
    turn()
    assert server.end_of(number) == ("failed", {"stderr": HANGS.format("the phase has no annotation file")})
    server.services.store.change(ChallengePhase, 3, annotation=truth)


NOT_LOADED = (
    "evaluation_script cannot be loaded: no module named x. EvalAI shows this to the hosts in the Manage tab and scores nothing until they "
    "correct it."
)


@pytest.mark.parametrize(
    ("title", "turns", "status", "texts"),
    [
        ("Unloadable", [True, False, False], "failed", {"stderr": NOT_LOADED}),
        ("Dying", [True, False, False], "failed", {"stderr": HANGS.format("the worker cannot load the evaluation script (last words)")}),
        ("Remote", [False, False, False], "submitted", {}),
    ],
)  # fmt: skip
def test_a_script_that_cannot_be_loaded_scores_nothing(
    title: str, turns: list[bool], status: str, texts: dict[str, str], server: Hosted, turn: Callable[[], bool]
) -> None:
    challenge = server.push(title, remote_evaluation=title == "Remote")
    number = server.send(challenge, server.phase(challenge), "good", who="host")
    assert [turn() for _ in range(3)] == turns
    assert server.end_of(number) == (status, texts)
    assert server.queued() == ([0] if title == "Remote" else [])
    queue = server.services.store.require(Challenge, 1).queue
    server.services.queue.send(queue, {"submission_pk": number, "phase_pk": "1"})  # of another challenge
    turn()
    assert server.end_of(number) == (status, texts)


def test_no_challenge_waits_behind_a_busy_one(server: Hosted, turn: Callable[[], bool]) -> None:
    second = server.push("Second")
    for place in ((1, 1), (1, 1), (1, 1), (second, server.phase(second))):
        server.send(*place, "good", who="host")
    assert [turn() for _ in range(5)] == [True, True, True, True, False]
    steps = server.take_steps().split(", ")
    assert (steps.count("scores practice"), steps.count("starts for Second")) == (4, 1)


@pytest.mark.parametrize(
    ("word", "status", "ends"),
    [
        ("good", "finished", False),
        ("die", "submitted", False),
        ("stumble", "submitted", True),
        ("unwanted", "submitted", True),
    ],
)
def test_a_stop_of_the_server_hands_the_submission_back(
    word: str, status: str, ends: bool, server: Hosted, turn: Callable[[], bool]
) -> None:
    number, pool = server.send(1, 1, word), server.pool  # type: ignore[attr-defined]
    server.meanwhile = pool._stop.set
    with suppress(BusyError):
        turn()
    pool._stop.clear()
    assert server.end_of(number) == (status, OUT if word == "good" else {})
    assert server.queued() == ([] if word == "good" else [0])
    assert server.take_steps().endswith(", is unwanted" + ", ends" * ends if word != "good" else "scores practice")
