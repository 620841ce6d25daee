"""A board on a played GitHub: issues in, one comment each and a page out."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.cli import main
from segjudge.evaluation_script.families import FAMILIES
from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.client import ApiError

from .played import Fault, PlayedGitHub, form


def make_board(folder: Path, *options: str) -> Path:
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["new", str(folder), "--board", "github", "--title", "Cats", "--quiet", *options]) == 0
    return folder


@pytest.fixture(scope="module")
def challenge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_board(tmp_path_factory.mktemp("new") / "cats", "--demo")


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segjudge.system.network.FIRST", 0.01)
    monkeypatch.setattr("segjudge.system.network.LONGEST", 0.01)


@pytest.fixture
def github(challenge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedGitHub]:
    played = PlayedGitHub(tmp_path, challenge)
    monkeypatch.setenv("HOME", str(played.home))
    yield played
    played.close()


def sample(challenge: Path, name: str = "good") -> bytes:
    (path,) = challenge.glob(f"private/examples/*/{name}.zip")
    return path.read_bytes()


def repack(data: bytes, **names: bytes) -> bytes:
    """Return a zip with further members."""
    out = io.BytesIO(data)
    with zipfile.ZipFile(out, "a") as archive:
        for name, content in names.items():
            archive.writestr(name, content)
    return out.getvalue()


def finish(step: subprocess.Popen[str]) -> str:
    output, _ = step.communicate(timeout=120)
    assert step.returncode == 0, output
    return output


# ── from the issue to the page ──────────────────────────────────────────────


def test_the_workflows_step_scores_an_issue_and_its_repetition_changes_nothing(
    github: PlayedGitHub, challenge: Path
) -> None:
    number = github.submit(sample(challenge), method="Net <b> | v1")
    question = github.open_issue("When does the phase end?")
    pull = github.open_issue(form("x"), pull_request={})
    finish(github.start_step())

    (answer,) = github.answers(number)
    assert answer.startswith("<!-- segjudge 1 run 1 -->\n**Scored.**\n\n- val: place 1 of 1; J&F-Mean 0.9")
    assert github.issues[number]["state"] == "closed"
    assert [github.issues[other]["state"] for other in (question, pull)] == ["open", "open"]
    assert github.answers(question) == github.answers(pull) == []
    assert "Net &lt;b&gt; | v1" in github.read("page/index.html")

    commits, comments = github.list_commits(), json.dumps(github.comments)
    github.issues[number] |= {"state": "open", "body": form("https://a.test/other", "0" * 64, "another name")}
    finish(github.start_step())
    assert github.list_commits() == commits
    assert json.dumps(github.comments) == comments
    assert github.issues[number]["state"] == "closed"


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_the_scores_of_score(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    protocol = next(iter(FAMILIES[family].protocols))
    board = make_board(tmp_path / "cats", "--demo", "--protocol", protocol)
    played = PlayedGitHub(tmp_path, board)
    monkeypatch.setenv("HOME", str(played.home))
    rows = yaml.safe_load((board / "private/challenge_config.yaml").read_text())
    (phase,) = [row["codename"] for row in rows["challenge_phases"]]
    number = played.submit(sample(board, "poor"), phase=phase)
    played.sweep()
    row = json.loads(played.read(f"results/{number}.1.json"))
    played.close()
    capsys.readouterr()
    monkeypatch.chdir(board / "private")
    assert main(["score", str(next(board.glob("private/examples/*/poor.zip"))), "--phase", phase, "--json", "-"]) == 0
    result = {
        split: values for entry in json.loads(capsys.readouterr().out)["result"] for split, values in entry.items()
    }
    assert row["scores"]
    for split, values in row["scores"].items():
        assert values == {label: result[split][label] for label in values}


def test_a_rejected_file_gets_the_usual_sentence_as_plain_text(github: PlayedGitHub, challenge: Path) -> None:
    name = "../```@everyone<img>$(touch owned).png"
    number = github.submit(repack(sample(challenge), **{name: b"no picture"}))
    github.sweep()
    (answer,) = github.answers(number)
    assert answer.startswith("<!-- segjudge 1 run 1 -->\n**Rejected.**\n\n")
    fence = answer.splitlines()[3]
    assert re.fullmatch(r"`{4,}text", fence)
    assert answer.endswith(f"\n{fence[:-4]}")
    assert answer.count(fence[:-4]) == 2
    assert not list(github.folder.rglob("owned"))
    assert github.issues[number]["state"] == "closed"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (form("no link"), "drop one file into the box"),
        (form("https://a.test/x https://b.test/y", "0" * 64), "drop one file into the box"),
        (form("http://a.test/x", "0" * 64), "must begin with https://"),
        (form("https://a.test/x"), "needs the SHA-256"),
        (form("https://a.test/x", "$(id)"), "has 64 digits"),
        (form("https://a.test/x", "0" * 64, phase="../../x"), "its phases are: val."),
        (form("https://a.test/x", "0" * 64, method="a\n\n### File\n\nhttps://b.test/z"), "without changing its headings"),
        (form("https://a.test/x", "0" * 64).replace("### Phase", "### Face"), "without changing its headings"),
        (form("https://127.0.0.2:1/x", "0" * 64), "could not be fetched"),
        ("### Submission to withdraw\n\n$(id)", "is that of its issue"),
        ("### Submission to withdraw\n\n999999999", "has no submission 999999999"),
    ],
)  # fmt: skip
def test_a_wrong_form_gets_a_sentence(body: str, sentence: str, github: PlayedGitHub) -> None:
    number = github.open_issue(body)
    github.sweep()
    (answer,) = github.answers(number)
    assert sentence in answer
    assert github.issues[number]["state"] == "closed"


class Trap:
    """A server in a private network, which must get no request."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.2", 0))
        self.url = f"http://127.0.0.2:{self.listener.getsockname()[1]}/latest/meta-data"
        self.requests: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                with client:
                    if data := client.recv(100):
                        self.requests.append(data)


def test_a_redirect_into_a_private_network_gets_no_request(github: PlayedGitHub) -> None:
    trap = Trap()
    number = github.open_issue(form(github.attach(trap.url)))
    github.sweep()
    trap.listener.close()
    assert "leads into a private network" in github.answers(number)[0]
    assert trap.requests == []


def test_a_link_must_have_the_bytes_that_were_announced(github: PlayedGitHub, challenge: Path) -> None:
    data = sample(challenge)
    right = github.open_issue(form(github.attach(data), hashlib.sha256(data).hexdigest().upper()))
    wrong = github.open_issue(form(github.attach(data), "0" * 64), "ben")
    github.sweep()
    assert "**Scored.**" in github.answers(right)[0]
    assert f"has the SHA-256 {hashlib.sha256(data).hexdigest()}, not {'0' * 64}" in github.answers(wrong)[0]


@pytest.mark.long
def test_a_comment_of_somebody_else_is_no_answer(github: PlayedGitHub, challenge: Path) -> None:
    number = github.submit(sample(challenge))
    forged = "<!-- segjudge 1 run 1 -->\nYou won."
    for user in ({"login": "eve", "id": 5, "type": "User"}, {"login": "github-actions[bot]", "id": 5, "type": "User"}):
        github.comment(number, forged, user)
    github.sweep()
    assert [comment["body"] for comment in github.comments[number]][:2] == [forged] * 2
    assert len(github.answers(number)) == 1


@pytest.mark.long
def test_a_limit_is_said_and_the_next_day_counts_anew(github: PlayedGitHub, challenge: Path) -> None:
    config = github.private / "challenge_config.yaml"
    config.write_text(config.read_text().replace("max_submissions_per_day: 10", "max_submissions_per_day: 1"))
    github.push_private()
    numbers = [github.submit(sample(challenge), user) for user in ("ann", "ann", "ben")]
    github.sweep()
    assert ["Scored" in github.answers(number)[0] for number in numbers] == [True, False, True]
    assert "has used its 1 submissions today (UTC)" in github.answers(numbers[1])[0]
    moment = datetime.datetime.fromisoformat(github.issues[numbers[1]]["updated_at"]) + datetime.timedelta(days=1)
    github.issues[numbers[1]] |= {"state": "open", "updated_at": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}
    github.sweep()
    assert "Scored" in github.answers(numbers[1])[0]
    assert len(github.answers(numbers[1])) == 1


# ── two at once, killed, and a server in trouble ────────────────────────────


@pytest.mark.long
def test_two_runs_at_once_score_each_submission_once(github: PlayedGitHub, challenge: Path) -> None:
    numbers = [github.submit(sample(challenge), f"user{index}") for index in range(3)]
    steps = [github.start_step("1"), github.start_step("2")]
    for step in steps:
        finish(step)
    github.sweep("3")  # what one of them still worked on when the other answered
    for number in numbers:
        assert github.count_commits("Result of", number) == 1
        assert github.count_commits("Claim", number) == 1
        assert [answer.splitlines()[1] for answer in github.answers(number)][:1] == ["**Scored.**"]
        assert github.issues[number]["state"] == "closed"
    assert len(github.read("page/val-val.csv").splitlines()) == 4


@pytest.mark.long
@pytest.mark.parametrize("moment", ["Claim submission 1", "Result of submission 1"])
def test_a_killed_run_is_continued(moment: str, github: PlayedGitHub, challenge: Path) -> None:
    number = github.submit(sample(challenge))
    step = github.start_step("1")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and moment not in github.list_commits():
        time.sleep(0.02)
    os.killpg(step.pid, signal.SIGKILL)
    step.communicate()
    if moment.startswith("Claim") and "Result of submission 1" not in github.list_commits():
        github.sweep("2")  # the claim of run 1 still holds
        assert github.answers(number) == []
    finish(github.start_step("1"))  # its re-run
    assert github.list_commits().count("Result of submission 1") == 1
    assert len(github.answers(number)) == 1
    assert github.issues[number]["state"] == "closed"


FAULTS: dict[str, Fault] = {
    "403": (403, {"Retry-After": "0"}), "429": (429, {"Retry-After": "0"}), "500": (500, {}), "502": (502, {}),
    "before": "cut before", "after": "cut after",
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_in_trouble_at_each_call_gets_one_comment(fault: str, github: PlayedGitHub, challenge: Path) -> None:
    number = github.submit(sample(challenge))
    github.first_fault = FAULTS[fault]
    github.sweep()
    assert len(github.answers(number)) == 1
    assert github.issues[number]["state"] == "closed"
    assert github.list_commits().count("Result of submission 1") == 1


def test_a_token_that_is_rejected_is_said(github: PlayedGitHub) -> None:
    github.faults = [(403, {})] * 20
    with pytest.raises(ApiError) as caught:
        github.sweep()
    assert caught.value.status == 403


# ── what nobody may see, and what organisers decide ─────────────────────────


def hide(github: PlayedGitHub) -> None:
    for path, old, new in (
        ("challenge_config.yaml", "visibility: 3", "visibility: 1"),
        ("evaluation_script/phases.py", "LABELS)", "LABELS, hidden=True)"),
    ):
        file = github.private / path
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
    github.push_private()


@pytest.mark.parametrize("way", ["hidden split", "blind phase", "unpublished leaderboard"])
def test_hidden_scores_reach_no_door(
    way: str, github: PlayedGitHub, challenge: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if way == "hidden split":
        hide(github)
    elif way == "blind phase":
        (github.public / "board.yaml").write_text("reveal:\n  val: 2999-01-01\n")
    else:
        config = github.private / "challenge_config.yaml"
        config.write_text(config.read_text().replace("leaderboard_public: True", "leaderboard_public: False"))
        github.push_private()
    number = github.submit(sample(challenge, "poor"))
    lines = github.sweep()
    hidden = github.git(github.folder / "cats-private.git", "show", f"ledger:results/{number}.1.json")
    values = [
        value for values in json.loads(hidden)["scores"].values() for value in values.values() if 0.05 < value < 1
    ]
    assert len(values) >= 4
    seen = github.history() + json.dumps(github.comments) + "\n".join(lines) + "".join(capfd.readouterr())
    for value in values:
        for shown in (f"{value:.3f}", f"{100 * value:.1f}", repr(value)[:5]):
            assert not re.search(rf"(?<![\d.]){re.escape(shown)}", seen)
    assert "**Scored.**" in github.answers(number)[0]
    if way == "blind phase":
        assert "The results of this phase appear on 2999-01-01." in github.answers(number)[0]
        (github.public / "board.yaml").write_text("reveal:\n  val: 2026-01-01\n")
        github.sweep()
        assert repr(values[0]) in github.read("page/val-val.csv")


@pytest.mark.long
def test_an_incident_has_a_number_and_its_log_is_private(github: PlayedGitHub, challenge: Path) -> None:
    (github.private / "annotations/val.zip").write_bytes(b"SECRET of the truth")
    github.push_private()
    number = github.submit(sample(challenge))
    lines = github.sweep()
    (answer,) = github.answers(number)
    incident = re.search(r"incident number ([0-9a-f]{8})\.", answer)
    assert incident
    assert "val.zip" not in github.history() + answer + "".join(lines)
    path = f"incidents/{number}.1.{incident[1]}.log"
    assert "val.zip" in github.git(github.folder / "cats-private.git", "show", f"ledger:{path}")


@pytest.mark.long
def test_organisers_and_accounts_take_submissions_off_the_page(github: PlayedGitHub, challenge: Path) -> None:
    for user in ("ann", "ben", "cay"):
        github.submit(sample(challenge), user)
    github.sweep()
    denied = github.open_issue("### Submission to withdraw\n\n#1", "ben")
    mine = github.open_issue("### Submission to withdraw\n\n1", "ann")
    inputs = {"action": "disqualify", "submission": "2", "reason": "used <b>the truth</b>"}
    github.sweep("2", inputs)
    assert "Your account has no submission 1." in github.answers(denied)[0]
    assert "**Withdrawn.**" in github.answers(mine)[0]
    rows = github.read("page/val-val.csv")
    assert [name in rows for name in ("ann", "ben", "cay")] == [False, False, True]
    assert "used &lt;b&gt;the truth&lt;/b&gt;" in github.read("page/index.html")
    with pytest.raises(HostError, match="give its number and a reason"):
        github.sweep("3", {"action": "disqualify", "submission": "", "reason": ""})


@pytest.mark.long
def test_all_are_scored_again_once_for_each_run(github: PlayedGitHub, challenge: Path) -> None:
    numbers = [github.submit(sample(challenge), user) for user in ("ann", "ben")]
    github.sweep()
    inputs = {"action": "score again", "submission": "", "reason": "corrected"}
    for _ in range(2):
        github.sweep("2", inputs)
    assert [github.count_commits("Result of", number) for number in numbers] == [2, 2]
    first, second = (json.loads(github.read(f"results/1.{run}.json"))["scores"] for run in (1, 2))
    assert first == second


# ── what the host sees ──────────────────────────────────────────────────────


def run_check(folder: Path) -> tuple[int, str]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        code = main(["check", str(folder), "--platform", "github"])
    return code, out.getvalue()


def _leak(folder: Path) -> None:
    (folder / "public/data.zip").write_bytes((folder / "private/annotations/val.zip").read_bytes())


def _edit(path: str, old: str, new: str) -> Any:
    def change(folder: Path) -> None:
        file = folder / path
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    return change


@pytest.mark.parametrize(
    ("change", "code", "sentence"),
    [
        (lambda _folder: None, 0, "The board would work"),
        (_leak, 3, "data.zip: is private/annotations/val.zip, which everybody could read"),
        (_edit("public/.github/workflows/board.yml", "issues: write", "write-all"), 0, "is not the text that this"),
        (_edit("private/evaluation_script/phases.py", 'codename="val"', 'codename="other"'), 4, "has no phase other"),
        (_edit("public/board.yaml", "reveal: {}", "reveal: {vall: 2027-01-01}"), 4, "names 'vall', which is no phase"),
        (_edit("public/board.yaml", "reveal: {}", "reveal: {val: soon}"), 4, "has lines such as"),
        (_edit("public/requirements.txt", "segjudge", "segjudge2"), 4, "differs between the two folders"),
    ],
)  # fmt: skip
def test_check_names_what_would_fail_later(
    change: Any, code: int, sentence: str, challenge: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "board"
    shutil.copytree(challenge, folder)
    change(folder)
    result, output = run_check(folder)
    assert sentence in output
    assert result == code, output


def test_the_workflow_has_no_untrusted_text_and_the_least_rights(challenge: Path) -> None:
    text = (challenge / "public/.github/workflows/board.yml").read_text()
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    assert {job["permissions"].get("contents") for job in workflow["jobs"].values()} == {"read", "write"}
    assert set(re.findall(r"\$\{\{ ?(.*?) ?\}\}", text)) == {"github.token", "secrets.PRIVATE_KEY"}
    assert "pull_request" not in text
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
            assert (
                not step.get("uses", "").startswith("actions/checkout") or step["with"]["persist-credentials"] is False
            )
    forms = [yaml.safe_load(path.read_text()) for path in challenge.glob("public/.github/ISSUE_TEMPLATE/*.yml")]
    assert {each["name"] for each in forms} == {"Submit", "Withdraw"}
