"""Who may read which report, the orders for it, and their outcome, as one text.

No page is made.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from segjudge.server.actions import reading
from segjudge.server.models import Challenge, ChallengePhase, ChallengePhaseSplit, StoredFile, Submission
from segjudge.server.report_pages import PageOrder
from segjudge.server.report_program import LEVELS
from segjudge.server.submissions import SplitScores

from .scenario import bundle_of, config_of
from .staged import Stage
from .test_rehearsal_reports import own_bundle

FILE = Path(__file__).with_name("readers.txt")
_LINK = 'href="(.*?)"'
_LEVELS = {
    "sequences-dev": ["all", [], ["dev"]],
    "sequences-test": ["all", ["test-hard"], ["test", "test-hard"]],
    "instances-dev": ["means", [], ["dev"]],
}


class _Play:
    """A server, and its notes."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.services = stage, stage.services
        self.lines: list[str] = []
        #: Path → answer → those who get it.
        self._answers: dict[str, dict[str, list[str]]] = {}

    def note(self, text: object) -> None:
        self.lines.append(str(text))

    def make(self, order: PageOrder) -> str:
        """Make the ordered page, and note it."""
        names = {name: self.services.store.require(StoredFile, number).name for name, number in order.files.items()}
        self.note(f"orders {order.kind} of {order.challenge}: {names}, {order.texts}, {order.values}")
        page = f"<!doctype html>\n<body>\n<h1>{order.kind}</h1>"
        return json.dumps({"levels": _LEVELS} if order.kind == LEVELS else {"page": page})

    def ask(self, path: str, who: str) -> None:
        """Request a page until it exists."""
        with patch.object(self.services.report_pages, "_make_product", self.make):
            for _ in range(4):
                answer = self.stage.browse("GET", path, who)
                message = re.findall(r"<(?:h1|p)>([^<]*)<", answer.text)[:2]
                trail = re.findall(_LINK, "".join(re.findall(r'<nav class="trail".*?</nav>', answer.text)))
                if "Refresh" not in answer.headers:
                    break
                expected = (200, ["Preparing the report…", "It will open here."], "1")
                assert (answer.status_code, message, answer.headers["Refresh"]) == expected
                self.services.report_pages._turn()
        outcome = " ".join(map(str, (answer.status_code, answer.headers.get("Location", ""), message, *trail)))
        outcome = outcome.replace("/challenges/1 /challenges/1/leaderboard/", "in ")
        self._answers.setdefault(path, {}).setdefault(outcome, []).append(who or "nobody")

    def note_answers(self) -> None:
        """Note who got which answer."""
        for path, answers in self._answers.items():
            self.note(f"{path}: {'; '.join(f'{chr(32).join(who)} {outcome}' for outcome, who in answers.items())}")
        self._answers.clear()

    def send(self, phase: int, who: str, **changes: Any) -> int:
        answer = self.stage.call(
            "POST", f"/api/jobs/challenge/1/challenge_phase/{phase}/submission/", who, data={"is_public": "true", "method_name": changes.pop("named", "")},
            files={"input_file": (f"{who}.zip", b"masks")},
        )  # fmt: skip
        number = int(answer.json()["id"])
        splits = self.services.store.splits_of(phase)
        scores = [SplitScores(split.id, dict.fromkeys(split.labels, 0.5)) for split in splits]
        result = json.dumps([{split.dataset_split.codename: {"AP": 0.5}} for split in splits])
        if changes.pop("left", True):
            self.services.submissions.end(
                number, changes.pop("status", "finished"), scores, submission_result_file=result
            )
        self.services.submissions.update(number, **changes)
        return number


def write_readers(folder: Path) -> str:
    with Stage(folder, own_bundle(folder, "all")) as stage:
        play = _Play(stage)
        _play_reports(play, folder)
    (folder / "other").mkdir()
    (folder / "other/lakes.zip").write_bytes(bundle_of(config_of("Lakes", remote_evaluation=True)))
    with Stage(folder / "other", folder / "other/lakes.zip") as stage:
        _play_withheld(play, stage)
    text = "\n".join(play.lines).replace(str(folder), "FOLDER")
    return re.sub(r"\b[0-9a-f]{32,64}\b", "ID", text) + "\n"


def _play_reports(play: _Play, folder: Path) -> None:
    play.note("# Reports and comparisons\n")
    stage, services = play.stage, play.services
    (folder / "pictures/sequences-dev").mkdir(parents=True)
    services.report_pages.pictures[1] = str(folder / "pictures")
    services.accounts.create("cygnus", "secret")
    stage.people["cygnus"] = {"password": "secret", "token": ""}
    first = play.send(1, "aurora", named="First")
    second = play.send(1, "aurora")
    baseline = play.send(1, "borealis", is_baseline=True)
    hidden = play.send(1, "borealis", is_baseline=True, is_flagged=True)
    failed = play.send(1, "borealis", status="failed")
    of_test, of_means = play.send(2, "aurora"), play.send(3, "aurora")
    nothing = play.send(3, "borealis", submission_result_file=None)
    for who in ("", "host", "aurora", "borealis", "cygnus"):
        for number in (first, baseline, hidden, failed, of_test, of_means, nothing, 99):
            play.ask(f"/submissions/{number}/report", who)
        for pair in (
            (first, second),
            (first, baseline),
            (baseline, first),
            (first, hidden),
            (first, of_test),
            (first, failed),
            (first, first),
        ):
            play.ask(f"/leaderboard/1/compare?submission={pair[0]}&submission={pair[1]}", who)
        play.ask(f"/leaderboard/2/compare?submission={of_test}&submission={of_test}", who)
    for phase, split, item in ((2, 2, of_test), (3, 4, of_means)):
        another = play.send(phase, "aurora")
        for who in ("host", "aurora", "borealis"):
            play.ask(f"/leaderboard/{split}/compare?submission={item}&submission={another}", who)
    second_upload = play.send(1, "host", named="other", is_baseline=True)
    more = play.send(1, "host", named="more")
    unnamed = play.send(1, "host")
    for pair in ((second_upload, more), (second_upload, unnamed)):
        play.ask(f"/leaderboard/1/compare?submission={pair[0]}&submission={pair[1]}", "host")
    play.ask(f"/leaderboard/4/compare?submission={of_means}&submission={nothing}", "aurora")
    play.note_answers()
    for path in (
        "/challenges/1/leaderboard/1",
        "/challenges/1/leaderboard/2",
        "/challenges/1/teams/2",
        "/challenges/1/submissions",
        "/challenges/1/host",
    ):
        listed: dict[str, list[str]] = {}
        for who in ("", "host", "aurora", "borealis", "cygnus"):
            page = play.stage.browse("GET", path, who).text
            results = [
                f"{name}{number}"
                for name, number in re.findall(
                    r'(?:href="/submissions/(?=\d+/report)|value="(?=\d+" form="comp))()(\d+)', page
                )
            ]
            listed.setdefault(str(results), []).append(who or "nobody")
            with patch.object(services.report_pages, "_make_product", play.make):
                while not services.report_pages._orders.empty():  # summaries of splits
                    services.report_pages._turn()
        play.note(
            f"reports on {path}: {'; '.join(f'{chr(32).join(names)} {found}' for found, names in listed.items())}"
        )
    services.store.change(ChallengePhase, 1, annotation=None)
    play.ask(f"/submissions/{first}/report", "aurora")
    play.ask(f"/leaderboard/1/compare?submission={first}&submission={second}", "aurora")
    services.submissions.update(
        second, submission_input_file=services.files.keep(b"x", "product.json", "submission_input_file")
    )
    config = services.store.require(Challenge, 1).config
    services.store.change(Challenge, 1, config={**config, "is_docker_based": True})
    services.store.change(ChallengePhase, 1, annotation=services.files.keep(b"x", "truth.zip", "annotation"))
    play.ask(f"/submissions/{first}/report", "host")
    play.ask(f"/submissions/{second}/report", "host")
    play.note_answers()
    play.note(
        f"pictures: {[services.report_pages.find_pictures(*place) for place in ((1, 'sequences-dev'), (1, 'x'), (2, 'sequences-dev'))]}"
    )


def _play_withheld(play: _Play, stage: Stage) -> None:
    play.note("\n# What a script of a host's own writes, where a split is hidden\n")
    services = stage.services
    stage.call(
        "POST", "/api/jobs/challenge/1/challenge_phase/1/submission/", "aurora", files={"input_file": ("a.zip", b"x")}
    )
    for title, column, text in (
        ("an error", "stderr_file", "Traceback\n  ponds: 0.3\nValueError: ponds 0.3"), ("an error of a module", "stderr_file", "x\na.b.Error: x\n\n"),
        ("no error", "stderr_file", "ponds 0.3: x"), ("nothing", "stderr_file", ""), ("output", "stdout_file", "ponds 0.3"),
        ("no JSON", "submission_result_file", "{"), ("nothing visible", "submission_result_file", '[{"ponds": 1}]'),
        ("both", "submission_result_file", '[{"lakes": {"a": 1}}, {"ponds": {"a": 2}}, {"Lakes": [1], "Ponds": 2}]'),
        ("rows", "submission_result_file", '[["lakes", 1], ["ponds", 2], ["lakes", "ponds"], [1, 2], {"split": "lakes", "a": [3]}, {"split": "Ponds"}]'),
        ("deep", "submission_result_file", '{"x": {"y": {"lakes": {"ponds": 1}, "z": 3}}, "ponds": {"lakes": 1}}'),
        ("too deep", "submission_result_file", "[" * 201 + '{"lakes": 1}' + "]" * 201), ("as deep as may be", "submission_result_file", "[" * 200 + '{"lakes": 1}' + "]" * 200),
        ("a text", "submission_result_file", '"lakes"'),
    ):  # fmt: skip
        services.submissions.keep_texts(1, **{column: text})
        url = stage.get("/api/jobs/submission/1", "aurora").json()[column]
        play.note(f"{title}: {stage.get(url.removeprefix(stage.address)).text[:200]}")
    row = services.store.require(Submission, 1)
    services.store.change(StoredFile, row.submission_result_file, size=(32 << 20) + 1)
    play.note(
        f"a large file: {stage.get(stage.get('/api/jobs/submission/1', 'aurora').json()['submission_result_file'].removeprefix(stage.address)).text}"
    )
    for split in services.store.splits_of(1):
        services.store.change(ChallengePhaseSplit, split.id, visibility=3)
    play.note(f"where no split is hidden: {stage.get(url.removeprefix(stage.address)).text}")
    script = services.files.path(services.store.require(Challenge, 1).script)
    Path(script).write_bytes(b"no zip")
    reading._is_our_script.cache_clear()
    services.store.change(ChallengePhaseSplit, 1, visibility=1)
    play.note(f"where the script cannot be read: {stage.get(url.removeprefix(stage.address)).text}")
    for split in services.store.splits_of(1):
        services.store.change(ChallengePhaseSplit, split.id, visibility=1)
    for phase in services.store.phases(1):
        services.store.change(ChallengePhase, phase.id, config={**phase.config, "leaderboard_public": False})
    for path in ("/challenges/1/leaderboard", "/challenges/1/leaderboard/1"):
        answer = stage.browse("GET", path)
        play.note(f"{path}: {answer.status_code} {re.findall('<(?:h1|h2|p)>([^<]*)<', answer.text)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="segjudge-") as scratch:
        FILE.write_text(write_readers(Path(scratch)), encoding="utf-8")
