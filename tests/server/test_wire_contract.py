"""Every user calls every route of the API; each status and body is as in `wire_contract.txt`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import requests

from segjudge.platforms.evalai import routes
from tests.builders import ROOT
from tests.rehearsals import bundle_with

from .staged import Stage

CONTRACT = Path(__file__).parent / "wire_contract.txt"
STRONG = ROOT / "examples/sequences-dev/strong.zip"
USERS = ("", "aurora", "host")
LOGGED_OUT = '{"detail":"Authentication credentials were not provided."}'
#: What differs from run to run → what stands in its place.
VARYING = {
    r"http://127\.0\.0\.1:\d+": "ADDRESS", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z": "MOMENT",
    r"-rehearsal-[0-9a-f]{8}": "-rehearsal-RANDOM", r"\b[0-9a-f]{64}\b": "TOKEN", r"\b[0-9a-f]{32}\b": "ID",
    r"expires=\d+&signature=[\w-]+": "SIGNED", r"rehearsal/[0-9a-f]{16}": "rehearsal/DIGEST",
    r"Host_\d{5}_Team": "HOST_TEAM", r'"receipt_handle": "[^"]+"': '"receipt_handle": "HANDLE"',
    r'"execution_time": [\d.e-]+': '"execution_time": 0',
}  # fmt: skip


def shorten(value: Any) -> Any:
    """Return a body with long texts truncated, and each list as its length and first element."""
    if isinstance(value, dict):
        return {key: shorten(item) for key, item in value.items()}
    if isinstance(value, list) and len(value) > 1:
        return [f"{len(value)} as", shorten(value[0])]
    if isinstance(value, list):
        return [shorten(item) for item in value]
    return f"{value[:60]}…" if isinstance(value, str) and len(value) > 120 else value


class Session:
    """Calls a server, and notes each exchange on a line, with all users in a row who have the same one."""

    def __init__(self, server: Stage) -> None:
        self.server = server
        self.exchanges: list[str] = []

    def call(self, who: str, method: str, path: str, **options: Any) -> requests.Response:
        answer = self.server.call(method, path, who, **options)
        self.note(f"{who or 'nobody'} {method} {path}", answer)
        return answer

    def note(self, asked: str, answer: requests.Response) -> None:
        kind = answer.headers.get("Content-Type", "")
        body = json.dumps(answer.json(), sort_keys=True) if kind == "application/json" else json.dumps(kind)
        for pattern, word in VARYING.items():
            asked, body = re.sub(pattern, word, asked), re.sub(pattern, word, body)
        text = json.dumps(shorten(json.loads(body)), sort_keys=True, ensure_ascii=False)
        who, _, asked = f"{asked} → {answer.status_code} {text}".partition(" ")
        askers, _, last = self.exchanges[-1].partition(" ") if self.exchanges else ("", "", "")
        if asked == last:
            self.exchanges[-1] = f"{askers if who in askers.split(',') else f'{askers},{who}'} {asked}"
        elif f"{who} {asked}" not in self.exchanges[-3:]:
            self.exchanges.append(f"{who} {asked}")


def call_everything(server: Stage, folder: Path) -> list[str]:
    """Call every route with every method, as everybody, after a submission came and was scored."""
    session = Session(server)
    call = session.call

    def change(config: Any) -> None:
        config.update(remote_evaluation=True, allow_resuming_submissions=True, title="Remote", tags=["x"])
        for phase in config["challenge_phases"]:
            del phase["test_annotation_file"]
            phase.update(is_partial_submission_evaluation_enabled=True, max_submissions_per_day=1000)

    fields, bundle = {"GITHUB_REPOSITORY": "me/remote"}, bundle_with(folder, change).read_bytes()
    for who, data, content in (
        ("aurora", fields, bundle), ("host", {}, bundle), ("host", fields, b"no zip"), ("host", fields, bundle),
    ):  # fmt: skip
        files = {"zip_configuration": ("challenge_config.zip", content)}
        call(who, "POST", routes.path(routes.CREATE_OR_UPDATE, team=1), data=data, files=files)
    call("host", "POST", routes.path(routes.CREATE_OR_UPDATE, team=2), data=fields)
    for team in ("1", "2", "3", "99"):
        call("aurora", "POST", f"/api/challenges/challenge/2/participant_team/{team}")
    queue = server.get("/api/challenges/challenge/2/").json()["queue"]
    phase = server.get("/api/challenges/2/phases/", "host").json()[0]["id"]
    submit = routes.path(routes.SUBMISSIONS, challenge=2, phase=phase)
    upload = {"input_file": ("strong.zip", STRONG.read_bytes())}
    for who in USERS:
        call(who, "POST", submit, files=upload, data={"method_name": f"of {who}", "is_public": "true"})
    received = call("host", "GET", routes.path(routes.QUEUE, queue=queue)).json()
    for data in ({}, {"receipt_handle": "x"}, {"receipt_handle": received["receipt_handle"]}):
        call("host", "POST", routes.path(routes.QUEUE_DELETE, queue=queue), data=data)
    update = routes.path(routes.UPDATE_SUBMISSION, challenge=2)
    number = received["body"]["submission_pk"]
    report = {"challenge_phase": phase, "submission": number}
    scores = {"J&F-Mean": 0.5, "J-Mean": 0.25}
    result = json.dumps([{"split": "dev", "show_to_participant": True, "accuracies": scores}])
    call("host", "PATCH", update, data={**report, "submission_status": "RUNNING", "job_name": "worker-1"})
    call("host", "PUT", update, json={**report, "submission_status": "FINISHED", "result": result, "stdout": "out"})
    call("host", "PUT", update, json={"challenge_phase": 1, "submission": number})
    edit = routes.path(routes.SUBMISSION_META, challenge=2, submission=number)
    for who, change_of in (
        ("aurora", {"method_name": "mine"}), ("aurora", {"is_flagged": True}), ("borealis", {}), ("host", {"is_flagged": 2}),
        ("host", {"status": "x"}), ("host", {"is_baseline": True, "method_description": "d"}),
    ):  # fmt: skip
        call(who, "PATCH", edit, json=change_of)

    values = {
        "time": "present", "approved": "approved", "published": "public", "challenge": 2, "queue": queue, "team": 2,
        "phase": phase, "slug": "segjudge-sequences-dev-1", "split": 1, "leaderboard": 1, "action": "start",
        "submission": number, "row": 1,
    }  # fmt: skip
    places = [route for name, route in vars(routes).items() if name.isupper()]
    for method in ("GET", "PATCH", "PUT", "POST"):
        closed = 0  # to those who are not logged in
        for place in places:
            path = routes.path(place, **values)
            for who in USERS:
                answer = server.call(method, path, who)
                if answer.text == LOGGED_OUT and answer.status_code == 401 and not who:
                    closed += 1
                elif answer.status_code != 405:
                    session.note(f"{who or 'nobody'} {method} {place}", answer)
        session.exchanges.append(f"nobody {method} of {closed} other routes → 401 {LOGGED_OUT}")
    for place in places:
        if "{" in place:
            strange = {key: "none" if isinstance(value, str) else 99 for key, value in values.items()}
            call("host", "GET", routes.path(place, **strange))
    for query in ("?status=failed", "?status=lost", "?submitted_after=2099-01-01T00:00:00Z", "?submitted_before=x"):
        call("host", "GET", routes.path(routes.SUBMISSIONS_OF_CHALLENGE, challenge=2) + query)
    call("host", "GET", routes.SUBMISSION_FILES + "?key=a&bucket=b")
    call("host", "GET", routes.path(routes.LEADERBOARD, split=5) + "?order_by=J-Mean")
    call("", "GET", "/api/nothing")
    call("x", "GET", routes.AUTH_TOKEN)
    call("host", "DELETE", "/api/challenges/challenge/1/")
    return session.exchanges


def test_every_route_answers_as_it_always_did(tmp_path: Path) -> None:
    with Stage(tmp_path, bundle_with(tmp_path)) as server:
        exchanges = call_everything(server, tmp_path)
    assert exchanges == CONTRACT.read_text(encoding="utf-8").splitlines()
