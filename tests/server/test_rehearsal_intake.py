"""Input of the rehearsal: large and odd bodies, texts, numbers and addresses."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterator

import pytest

from segjudge.platforms.evalai import routes
from tests.rehearsals import Rehearsal, private, started


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    with started(tmp_path_factory.mktemp("intake"), "--workers", "0", change=private) as running:
        yield running


# ── what is taken in ────────────────────────────────────────────────────────


def sent_before_refusal(server: Rehearsal, path: str, headers: dict[str, str], start: bytes) -> tuple[int, int]:
    """Return the bytes of a large body that the server reads before it rejects it, and the rejection."""
    host, port = server.address.removeprefix("http://").split(":")
    lines = {"Host": f"{host}:{port}", "Content-Length": str(150 << 20), **headers}
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{key}: {value}\r\n" for key, value in lines.items()) + "\r\n"
    sent = 0
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(head.encode() + start)
        try:
            while sent < 150 << 20:
                sent += connection.send(bytes(1 << 16))
        except OSError:
            pass
        answer = b""
        try:
            answer = connection.recv(4096)
        except OSError:
            pass
    status = re.match(rb"HTTP/1.1 (\d+)", answer)
    return sent, int(status.group(1)) if status else 0


MULTIPART = {"Content-Type": "multipart/form-data; boundary=b"}
PART = b'--b\r\nContent-Disposition: form-data; name="input_file"; filename="x"\r\n\r\n'


@pytest.mark.parametrize(
    ("path", "who", "origin"),
    [
        pytest.param("/challenges/1/submit", "", "http://evil.example", id="another-site"),
        pytest.param("/challenges/1/submit", "", "ours", id="forged-origin"),
        pytest.param("/submissions/1/rerun", "", "ours", id="forged-origin-rerun"),
        pytest.param("/login", "", "ours", id="login-form"),
        pytest.param(routes.LOGIN, "", "", id="login"),
        pytest.param("/api/jobs/challenge/1/challenge_phase/1/submission/", "", "", id="anonymous"),
        pytest.param("/api/jobs/challenge/1/challenge_phase/2/submission/", "aurora", "", id="private-phase"),
        pytest.param(routes.path(routes.VALIDATE, team=1), "aurora", "", id="push"),
        pytest.param(routes.path(routes.CREATE_OR_UPDATE, team=1), "aurora", "", id="update"),
        pytest.param(routes.CREATE_HOST_TEAM, "aurora", "", id="host-team"),
        pytest.param(routes.PARTICIPANT_TEAMS, "aurora", "", id="participant-team"),
        pytest.param(routes.path(routes.QUEUE_DELETE, queue="x"), "aurora", "", id="queue"),
        pytest.param("/nothing", "", "", id="nothing"),
        pytest.param("/upload/x/1?expires=9999999999&signature=x", "", "", id="part"),
    ],
)
def test_who_may_not_send_is_refused_before_the_body_is_read(
    closed: Rehearsal, path: str, who: str, origin: str
) -> None:
    headers = dict(MULTIPART)
    if who:
        headers["Authorization"] = f"Bearer {closed.people[who]['token']}"
    if origin:
        headers["Origin"] = closed.address if origin == "ours" else origin
    sent, status = sent_before_refusal(closed, path, headers, PART)
    assert sent < 16 << 20, "what fits into the buffers of the connection"
    assert status in (0, 303, 400, 401, 403, 404, 405, 406, 413)


# ── odd texts and numbers ───────────────────────────────────────────────────

HALF = '"\\ud800"'
ODD_BODIES = [
    pytest.param(f'{{"team_name": {HALF}}}', id="half-a-character"),
    pytest.param(f'{{"team_name": "x", "team_url": {HALF}}}', id="half-in-url"),
    pytest.param(f"{{{HALF}: 1}}", id="half-in-key"),
    pytest.param(f'{{"team_name": ["x", {{"y": {HALF}}}]}}', id="half-below"),
    pytest.param('{"team_name": "a\\u0000b"}', id="nul"),
    pytest.param('{"team_name": ""}', id="empty"),
    pytest.param('{"team_name": ' + "[" * 5000 + "]" * 5000 + "}", id="deep"),
    pytest.param('{"team_name": ' + "9" * 5000 + "}", id="digits"),
]
ODD_VALUES = [
    '"\\ud800"', "1" + "0" * 400, "1e400", "-1e400", "NaN", "null", "[]", "{}", "true", '"\\u0000"', '"💥"', "-1",
]  # fmt: skip
ODD_FIELDS = [
    ("POST", routes.LOGIN, "", ["username", "password"]),
    ("POST", routes.PARTICIPANT_TEAMS, "aurora", ["team_url"]),
    ("POST", routes.CREATE_HOST_TEAM, "host", ["team_url"]),
    ("PATCH", routes.path(routes.UPDATE_SUBMISSION, challenge=1), "host", ["submission", "submission_status", "job_name"]),
    ("PUT", routes.path(routes.UPDATE_SUBMISSION, challenge=1), "host",
     ["submission", "challenge_phase", "submission_status", "result", "stdout", "stderr", "environment_log", "metadata"]),
    ("PUT", routes.path(routes.UPDATE_PARTIAL, challenge=1), "host", ["submission", "challenge_phase", "result"]),
    ("PATCH", routes.path(routes.UPDATE_PARTIAL, challenge=1), "host", ["submission", "challenge_phase", "result"]),
    ("PATCH", routes.path(routes.SUBMISSION_META, challenge=1, submission=1), "host",
     ["status", "is_flagged", "is_public", "is_baseline", "method_name", "method_description"]),
    ("PATCH", routes.path(routes.LEADERBOARD_DATA, row=1), "host", ["leaderboard_data"]),
    ("POST", routes.path(routes.UPLOAD_URLS, phase=1), "aurora", ["file_name", "num_file_chunks", "method_name", "submission_metadata", "is_public"]),
    ("POST", routes.path(routes.UPLOAD_FINISHED, phase=1, submission=1), "aurora", ["parts", "upload_id"]),
    ("POST", routes.path(routes.UPLOAD_SEND, phase=1, submission=1), "aurora", ["x"]),
    ("POST", routes.path(routes.ANNOTATION_URLS, phase=1), "host", ["num_file_chunks", "file_name"]),
    ("POST", routes.path(routes.ANNOTATION_FINISHED, phase=1), "host", ["parts", "upload_id"]),
    ("POST", routes.path(routes.QUEUE_DELETE, queue="x"), "host", ["receipt_handle"]),
    ("PUT", routes.path(routes.MANAGE_WORKER, challenge=1, action="start"), "host", ["x"]),
    ("PUT", routes.path(routes.SCALE_RESOURCES, challenge=1), "host", ["worker_memory"]),
    ("POST", routes.path(routes.SUBMISSION_RESUME, submission=1), "host", ["x"]),
]  # fmt: skip


#: Fields whose text holds JSON, so that odd values may stand in it as well.
IN_TEXTS = ("result", "leaderboard_data", "parts", "submission_metadata")


@pytest.mark.parametrize("body", ODD_BODIES)
def test_an_odd_body_is_refused_with_a_sentence(closed: Rehearsal, body: str) -> None:
    answer = closed.call(
        "POST", routes.PARTICIPANT_TEAMS, "aurora", data=body.encode(), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 400, answer.text
    assert answer.json()


@pytest.mark.parametrize(("method", "path", "who", "fields"), ODD_FIELDS, ids=lambda value: str(value)[-40:])
def test_no_odd_value_is_a_defect(closed: Rehearsal, method: str, path: str, who: str, fields: list[str]) -> None:
    if not closed.get("/api/jobs/challenge/1/submission/", "host").json():
        assert closed.submit("aurora", b"x").status_code == 201
    good = {
        "submission": "1",
        "challenge_phase": "1",
        "submission_status": '"FINISHED"',
        "result": '"[]"',
        "username": '"x"',
    }
    for field in fields:
        for value in ODD_VALUES:
            body = {**good, field: value}
            text = "{" + ", ".join(f'"{key}": {output}' for key, output in body.items()) + "}"
            answer = closed.call(method, path, who, data=text.encode(), headers={"Content-Type": "application/json"})
            assert answer.status_code < 500 or answer.json().get("error", "").endswith("must be text"), (field, value)
            answer.json()
            if field not in IN_TEXTS:
                continue
            inner = json.dumps(f'[{{"split": {value}, "accuracies": {{"J&F-Mean": {value}}}}}]')
            text = "{" + ", ".join(f'"{key}": {output}' for key, output in {**good, field: inner}.items()) + "}"
            answer = closed.call(method, path, who, data=text.encode(), headers={"Content-Type": "application/json"})
            assert answer.status_code < 500, (field, inner, answer.text)


@pytest.mark.parametrize("target", [
    "/api/jobs/challenge/1/submission/?status=%ED%A0%80", "/api/jobs/challenge/1/submission/?submitted_after=%00",
    "/api/jobs/challenge/1/submission/?submitted_after=9999999999999-01-01", "/api/challenges/phase/%ED%A0%80/",
    "/api/jobs/challenge/1/submission/?submitted_after=0001-01-01T00:00:00%2B23:59",
    "/api/challenges/phase/%00/", "/api/challenges/challenge/%ED%A0%80/all/all", "/challenges/1/leaderboard?order=%ED%A0%80",
    "/challenges/1/host?status=%00", "/login?next=%ED%A0%80", "/media/%00/x?expires=1&signature=%ED%A0%80",
    "/media/x/y?expires=%D9%A1%D9%A1&signature=x", "/web/challenges/challenge-page/1/%ED%A0%80",
    "/api/jobs/challenge_phase_split/1/leaderboard/?order_by=%ED%A0%80", "/static/%00", "/static/%ED%A0%80",
])  # fmt: skip
def test_no_odd_address_is_a_defect(closed: Rehearsal, target: str) -> None:
    host, port = closed.address.removeprefix("http://").split(":")
    for headers in ({}, {"Authorization": f"Bearer {closed.people['host']['token']}"}):
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        connection.request("GET", target, headers=headers)
        assert connection.getresponse().status < 500
        connection.close()
