"""The evaluator of a board on the played Hub: requests in; rows, page and hidden results out."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from huggingface_hub import HfApi

from segjudge.cli import main
from segjudge.evaluation_script.families import FAMILIES
from segjudge.ledger.hub_dataset import HubDataset
from segjudge.ledger.rows import read_rows
from segjudge.platforms.hugging_face.requests import Request, clean_file
from segjudge.platforms.hugging_face.worker import work

from .played import FAULTS, PlayedHub

NAME = "ann/cats"
SUBMISSIONS, RESULTS, PRIVATE = (f"{NAME}-{suffix}" for suffix in ("submissions", "results", "private"))
RIGHTS = {SUBMISSIONS: "read", RESULTS: "write", PRIVATE: "write"}


class Board:
    """The data sets of a board, as the host's push makes them and the Space writes them."""

    def __init__(self, hub: PlayedHub, challenge: Path) -> None:
        self.hub, self.challenge = hub, challenge
        self.host = HfApi(hub.url, token=hub.add_token("ann"))
        for name in (SUBMISSIONS, RESULTS, PRIVATE):
            self.host.create_repo(name, repo_type="dataset", private=name != RESULTS)
        self.token = hub.add_token("evaluator", RIGHTS)
        self.push()

    def push(self) -> None:
        needed = ["*.yaml", "annotations/*", "evaluation_script/*"]
        options = {"repo_type": "dataset", "folder_path": self.challenge, "path_in_repo": "bundle"}
        self.host.upload_folder(repo_id=PRIVATE, allow_patterns=needed, **options)

    def change(self, path: str, old: str, new: str) -> None:
        """Change a file of the challenge, and push."""
        file = self.challenge / path
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
        self.push()

    def request(self, data: bytes = b"", team: str = "ben", name: str = "results.zip", **fields: object) -> int:
        """Do what the Space does for a submission or withdrawal; return its number."""
        storage = HubDataset(self.host, SUBMISSIONS, ignored="files")
        number = 1 + len([path for path in storage.read() if path.startswith("requests/")])
        sha256 = hashlib.sha256(data).hexdigest() if data else ""
        at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
        values = {"method": "net", "phase": "val", "file": clean_file(name) if data else "", **fields}
        request = Request(number, f"id-{team}", team, at, sha256=sha256, **values)  # type: ignore[arg-type]
        storage.write(
            {request.path: request.to_bytes(), **({request.file_path: data} if data else {})}, f"Request {number}"
        )
        return number

    def work(self) -> list[str]:
        return list(work(HfApi(self.hub.url, token=self.token), NAME, once=True))

    def start(self, *options: str) -> subprocess.Popen[str]:
        """Start the command."""
        environment = {**os.environ, "HF_ENDPOINT": self.hub.url, "HF_TOKEN": self.token}
        command = [sys.executable, "-m", "segjudge", "worker", "--platform", "hugging-face", NAME, *options]
        return subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def row(self, number: int, run: int = 1) -> dict[str, object]:
        return json.loads(self.hub.read(RESULTS, f"results/{number}.{run}.json"))

    def count(self, change: str, number: int) -> int:
        """Return how many commits have a change of a submission."""
        pattern = rf"{change} submissions? ([\d, ]*\b)?{number}\b"
        return sum(bool(re.match(pattern, each)) for each in self.hub.list_commits(RESULTS))

    def list_board(self) -> list[str]:
        return [line.split(",")[1] for line in self.hub.read(RESULTS, "page/val-val.csv").decode().splitlines()[1:]]


def make_challenge(folder: Path, *options: str) -> Path:
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["new", str(folder), "--title", "Cats", "--demo", "--quiet", *options]) == 0
    return folder


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[PlayedHub]:
    for name in ("FIRST", "LONGEST"):
        monkeypatch.setattr(f"segjudge.system.network.{name}", 0.01)
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    played = PlayedHub()
    yield played
    played.close()


@pytest.fixture
def board(hub: PlayedHub, tmp_path: Path) -> Board:
    return Board(hub, make_challenge(tmp_path / "cats"))


def sample(board: Board, name: str = "good") -> bytes:
    (path,) = board.challenge.glob(f"examples/*/{name}.zip")
    return path.read_bytes()


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    return output


def score(board: Board, name: str, phase: str, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, float]]:
    """Return the scores that the host's own command gives a sample."""
    capsys.readouterr()
    (path,) = board.challenge.glob(f"examples/*/{name}.zip")
    with contextlib.chdir(board.challenge):
        assert main(["score", str(path), "--phase", phase, "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)["result"]
    return {split: values for row in rows for split, values in row.items()}


# ── from the request to the page ────────────────────────────────────────────


def test_the_command_scores_a_request_and_its_repetition_changes_nothing(
    board: Board, capsys: pytest.CaptureFixture[str]
) -> None:
    number = board.request(sample(board), method="Net <b> | v1", name="../$(touch owned) ä.zip")
    output = finish(board.start("--once"))
    assert f"submission {number}: scored" in output
    assert board.token not in output
    scores, expected = board.row(number)["scores"], score(board, "good", "val", capsys)
    assert scores == {"val": {label: expected["val"][label] for label in scores["val"]}}  # type: ignore[index, call-overload]
    (line,) = map(json.loads, board.hub.read(RESULTS, "page/val-val.jsonl").splitlines())
    assert line == {"name": "Net <b> | v1", "team": "ben", "submitted": line["submitted"], **scores["val"]}  # type: ignore[index]
    head = yaml.safe_load(board.hub.read(RESULTS, "README.md").decode().split("---")[1])
    assert head == {"configs": [{"config_name": "val-val", "data_files": "page/val-val.jsonl"}]}
    assert "Net &lt;b&gt;" in board.hub.read(RESULTS, "page/index.html").decode()
    assert "owned" not in board.hub.history(RESULTS)
    commits = board.hub.list_commits(RESULTS)
    finish(board.start("--once"))
    assert board.hub.list_commits(RESULTS) == commits


@pytest.mark.long
@pytest.mark.parametrize("family", list(FAMILIES)[::3])  # GitHub's board scores all
def test_every_family_has_the_scores_of_score(
    family: str, hub: PlayedHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    protocol = next(iter(FAMILIES[family].protocols))
    board = Board(hub, make_challenge(tmp_path / "cats", "--protocol", protocol))
    rows = yaml.safe_load((board.challenge / "challenge_config.yaml").read_text())
    (phase,) = [row["codename"] for row in rows["challenge_phases"]]
    number = board.request(sample(board, "poor"), phase=phase)
    board.work()
    scores, expected = board.row(number)["scores"], score(board, "poor", phase, capsys)
    assert scores
    for split, values in scores.items():  # type: ignore[attr-defined]
        assert values == {label: expected[split][label] for label in values}


@pytest.mark.long
def test_what_is_not_accepted_has_its_reason_in_the_ledger(board: Board) -> None:
    board.change("challenge_config.yaml", "max_submissions_per_day: 10", "max_submissions_per_day: 1")
    numbers = [board.request(sample(board), team) for team in ("ben", "ben", "cay")]
    numbers += [board.request(sample(board), phase="../x"), board.request(b"no zip", "dan")]
    numbers += [board.request(team="cay", withdraws=numbers[0]), board.request(team="ben", withdraws=numbers[0])]
    board.work()
    rows = read_rows({path: board.hub.read(RESULTS, path) for path in board.hub.list_files(RESULTS)})
    assert {number: remark.reason.partition(" (")[0] for number, remark in rows.refusals.items()} == {
        numbers[1]: "Your account has used its 1 submissions today",
        numbers[3]: "This challenge has no such phase; its phases are: val.",
        numbers[5]: f"Your account has no submission {numbers[0]}.",
    }
    assert "zip" in str(board.row(numbers[4])["refused"])
    assert (set(rows.withdrawals), board.list_board()) == ({numbers[0]}, ["cay"])
    commits = board.hub.list_commits(RESULTS)
    assert board.work() == []
    assert board.hub.list_commits(RESULTS) == commits


def test_a_file_that_is_gone_or_too_large_is_refused(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, large = board.request(b"x" * 500, "cay"), board.request(sample(board))
    board.host.delete_file(f"files/{gone}/results.zip", SUBMISSIONS, repo_type="dataset")
    monkeypatch.setattr("segjudge.platforms.hugging_face.worker.MOST_BYTES", 1000)
    board.work()
    assert "could not be fetched" in str(board.row(gone)["refused"])
    assert "is larger than" in str(board.row(large)["refused"])


@pytest.mark.long
def test_organisers_disqualify_and_score_again(board: Board) -> None:
    numbers = [board.request(sample(board), team) for team in ("ben", "cay")]
    board.work()
    finish(board.start("--disqualify", "1", "--reason", "used <b>the truth</b>"))
    finish(board.start("--score-again"))
    board.work()
    assert board.list_board() == ["cay"]
    assert board.row(numbers[1], 2)["scores"] == board.row(numbers[1])["scores"]
    assert "used &lt;b&gt;the truth" in board.hub.read(RESULTS, "page/index.html").decode()


# ── several at once, killed, and a Hub in trouble ───────────────────────────


@pytest.mark.long
def test_two_evaluators_at_once_score_each_submission_once(board: Board) -> None:
    numbers = [board.request(sample(board), f"team{index}") for index in range(6)]
    for process in [board.start("--once"), board.start("--once")]:
        finish(process)
    board.work()
    for number in numbers:
        assert (board.count("Result of", number), board.count("Claim", number)) == (1, 1)
    assert len(board.list_board()) == 6


@pytest.mark.long
@pytest.mark.parametrize("moment", ["Enter", "Claim", "Result of"])
def test_a_killed_evaluator_is_continued(moment: str, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    number = board.request(sample(board))
    process = board.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not board.count(moment, number):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    if moment == "Claim" and not board.count("Result of", number):
        with monkeypatch.context() as patched:
            patched.setattr("socket.gethostname", lambda: "another")
            board.work()  # the claim of the other machine still holds
        assert not board.count("Result of", number)
    finish(board.start("--once"))
    assert board.count("Result of", number) == 1
    assert board.list_board() == ["ben"]


@pytest.mark.long
@pytest.mark.parametrize("fault", [*FAULTS, "412"])
def test_a_hub_in_trouble_at_each_call_gets_one_result(fault: str, board: Board) -> None:
    number = board.request(sample(board))
    board.hub._seen.clear()
    board.hub.first_fault = FAULTS.get(fault, (412, {}))
    board.hub.fault_at = "/commit/" if fault == "412" else ""  # the Hub answers 412 to commits only
    board.work()
    assert board.count("Result of", number) == 1
    assert board.list_board() == ["ben"]


@pytest.mark.long
def test_a_rush_stays_below_the_limits_of_the_hub(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    from segjudge.ledger.scoring import Answer

    monkeypatch.setattr("segjudge.ledger.evaluator.score_file", lambda *_: Answer({"val": {"AP": 0.5}}))
    for index in range(40):
        board.request(b"x", f"team{index}", name="a.txt")
    board.hub.calls.clear()
    before = len(board.hub.list_commits(RESULTS))
    board.work()
    assert len([path for path in board.hub.list_files(RESULTS) if path.startswith("results/")]) == 40
    assert len(board.hub.list_commits(RESULTS)) - before <= 10
    assert board.hub.count_calls() < 200


# ── what nobody may see ─────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["hidden split", "blind phase"])
def test_hidden_scores_are_never_in_public_data_sets(way: str, board: Board, capfd: pytest.CaptureFixture[str]) -> None:
    if way == "hidden split":
        board.change("challenge_config.yaml", "visibility: 3", "visibility: 1")
        board.change("evaluation_script/phases.py", "LABELS)", "LABELS, hidden=True)")
    else:
        (board.challenge / "board.yaml").write_text("reveal:\n  val: 2999-01-01\n")
        board.push()
    number = board.request(sample(board, "poor"))
    lines = board.work()
    hidden = json.loads(board.hub.read(PRIVATE, f"results/{number}.1.json"))["scores"]
    values = [value for row in hidden.values() for value in row.values() if 0.05 < value < 1]
    assert len(values) >= 4
    seen = board.hub.history(RESULTS) + "\n".join(lines) + "".join(capfd.readouterr())
    for value in values:
        for shown in (f"{value:.3f}", f"{100 * value:.1f}", repr(value)[:5]):
            assert not re.search(rf"(?<![\d.]){re.escape(shown)}", seen)
    if way == "blind phase":
        (board.challenge / "board.yaml").write_text("reveal:\n  val: 2026-01-01\n")
        board.push()
        board.work()
        assert repr(values[0]) in board.hub.read(RESULTS, "page/val-val.csv").decode()


@pytest.mark.long
def test_an_incident_has_a_number_and_its_log_is_private(board: Board) -> None:
    (board.challenge / "annotations/val.zip").write_bytes(b"SECRET of the truth")
    board.push()
    number = board.request(sample(board))
    lines = board.work()
    incident = str(board.row(number)["incident"])
    assert "val.zip" not in board.hub.history(RESULTS) + "".join(lines)
    assert b"val.zip" in board.hub.read(PRIVATE, f"incidents/{number}.1.{incident}.log")


@pytest.mark.long
def test_a_missing_token_or_board_is_a_sentence(board: Board) -> None:
    board.token = ""
    process = board.start("--once")
    assert "HF_TOKEN is not set" in process.communicate()[0]
    assert process.returncode == 3
    board.token = board.hub.add_token("eve", {RESULTS: "read"})
    process = board.start("--once")
    assert f"{PRIVATE}: the Hub answers 404" in process.communicate()[0]
    assert process.returncode == 3
