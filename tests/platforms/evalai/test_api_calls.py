"""Calls of EvalAI's API: what each answer of a server means to a client, a worker, a push and a reader of leaderboards."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai import client as clients
from segjudge.platforms.evalai import rows
from segjudge.platforms.evalai.bundle.push import ChallengePush, PushedChallenge, RejectedError
from segjudge.platforms.evalai.bundle.server_state import ServerState
from segjudge.platforms.evalai.client import ApiError, Client, EvalAISettings, Jobs, QueueMessage, is_safe_for_token
from segjudge.system import network
from tests.builders import zipped
from tests.platforms.damages import show, write_yaml

from .bundles import CONFIG, FILES
from .servers import TOKEN, Answer, Server, says


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call returns or, if it raises, the words of the error, with its status, wait and marks."""
    try:
        return call()
    except ApiError as error:
        wait = [f"wait {error.wait:g}"] if error.wait is not None else []
        marks = [name for name in ("is_transient", "denied", "refuses_token") if getattr(error, name)]
        text = " | ".join([f"{error.status}: {error.message}", *wait, *marks])
    except (HostError, RejectedError, rows.ShapeError) as error:
        text = f"{type(error).__name__}: {error}"
    return re.sub(r"http://127.0.0.1:\d+", "SERVER", text)


def requests(server: Server) -> list[str]:
    """Return the requests that a server had, each without the token."""
    return [line.removesuffix(" (Bearer TOKEN)") for line in server.asked]


NO_JSON = "200: answers 200 with application/json instead of JSON; is that an EvalAI server? | is_transient"
ANSWERS: list[tuple[Answer, Any]] = [
    (says({"id": 1}), {"id": 1}),
    (says([1]), [1]),
    (says({"a": 1}, 201), {"a": 1}),
    *((says(body), NO_JSON) for body in (5, None, b"", b"[{", b'{"a": "\xff"}', b"[" * 100_000, [0] * 1_000_000)),
    (says({"a": "x" * (1 << 21)}), {"a": "x" * (1 << 21)}),
    (says(b"", 204), NO_JSON.replace("200", "204")),
    (says(b"<html>", Content_Type="text/html"), NO_JSON.replace("application/json", "text/html")),
    (says({}, 302, Location="https://elsewhere.org/a"), "302: redirects (https://elsewhere.org/a); is the address right?"),
    (says({}, 301), "301: redirects (); is the address right?"),
    (says({"error": "no"}, 400), "400: no"),
    (says({"error": "", "detail": "no"}, 400), "400: no"),
    *((says(body, 400), f"400: {body}") for body in ({}, ["no"], {"title": ["too long"]})),
    (says({"error": "x" * 3000}, 400), f"400: {'x' * 2000}"),
    (says({"detail": "Invalid token"}, 401), "401: Invalid token | denied | refuses_token"),
    (says({"error": "not you"}, 403), "403: not you | denied | refuses_token"),
    (says({"title": "blocked"}, 403), "403: {'title': 'blocked'} | denied"),
    (
        says(b"<html>", 403, Content_Type="text/html; charset=utf-8"),
        "403: answers 403 with text/html instead of JSON; is that an EvalAI server? | denied",
    ),
    (says(b"", 404, Content_Type=""), "404: answers 404 with  instead of JSON; is that an EvalAI server?"),
    (says({"error": "late"}, 408), "408: late | is_transient"),
    *(
        (says({"error": "slow"}, 429, Retry_After=text), f"429: slow{wait} | is_transient")
        for text, wait in (
            *(("7", " | wait 7"), ("0", " | wait 0"), ("119", " | wait 119"), ("999", " | wait 120"), ("12345678", " | wait 120")),
            *((text, "") for text in ("123456789", "", "-1", "7.5", "²", "Wed, 21 Oct 2026 07:28:00 GMT")),
        )
    ),
    (says(b"<html>", 500, Content_Type="text/html"), "500: answers 500: the server has a problem | is_transient"),
    (says({"error": "the disk is full"}, 503), "503: the disk is full | is_transient"),
    (says(b"x" * (3 << 20), 502), "502: answers 502: the server has a problem | is_transient"),
    (says({TOKEN: [f"a {TOKEN}"]}, 400), "400: {'…': ['a …']}"),
    (says({"error": "https://me:secret@x.org/"}, 400), "400: https://x.org/"),
    (says({"error": "a\x1b[2J\rb\nc"}, 400), "400: a [2J b\nc"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "expected"), ANSWERS, ids=range(len(ANSWERS)))
def test_an_answer_is_json_or_an_error_that_says_what_it_means(server: Server, answer: Answer, expected: Any) -> None:
    server.answer(answer)
    assert outcome(lambda: Client(server.address + "/", TOKEN).call("GET", "/api/{a}", {"a": 1})) == expected
    assert requests(server) == ["GET /api/1"]


@pytest.mark.parametrize(
    ("name", "limit", "answer", "expected"),
    [
        ("_ANSWER_BYTES", 8, says({"a": 1}), {"a": 1}),
        ("_ANSWER_BYTES", 7, says({"a": 1}), "0: SERVER does not answer (its answer is endless) | is_transient"),
        ("_ANSWER_BYTES", 7, says({"a": 1}, 400), "0: SERVER does not answer (its answer is endless) | is_transient"),
        ("_REFUSAL_BYTES", 1 << 16, says({"error": "no", "a": "x" * 65536}, 400), "400: no"),
        ("_REFUSAL_BYTES", (1 << 16) - 1, says({"error": "no", "a": "x" * 65536}, 400), NO_JSON.replace("200", "400").replace(" | is_transient", "")),
        ("_REFUSAL_BYTES", (1 << 16) - 1, says([" " * 65536], 300), "300: redirects (); is the address right? | is_transient"),
        ("_REFUSAL_BYTES", (1 << 16) - 1, says([" " * 65536], 299), [" " * 65536]),
        ("_SMALL", 40, says([[{"a": 1}], 2, 3, 4, 5, 6, 7, 8, 90000]), [[{"a": 1}], 2, 3, 4, 5, 6, 7, 8, 90000]),
        ("_SMALL", 39, says([[{"a": 1}], 2, 3, 4, 5, 6, 7, 8, 90000]), NO_JSON),
        ("_SMALL", 1, says({"a": "x" * 7}), {"a": "x" * 7}),
        ("_SMALL", 1, says({"a": "x" * 6}), NO_JSON),
        ("_MESSAGE_LENGTH", 3, says({"error": "four"}, 400), "400: fou"),
    ],
    ids=range(12),
)  # fmt: skip
def test_an_answer_has_limits(
    server: Server, name: str, limit: int, answer: Answer, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, name, limit)
    server.answer(answer)
    result = outcome(lambda: Client(server.address, TOKEN).call("GET", "/"))
    assert result == expected


def test_an_error_has_the_body_of_the_answer(server: Server) -> None:
    for body, expected in (({TOKEN: [f"a {TOKEN}\x1b"]}, {"…": ["a … "]}), ([1], [1]), (b"<", None)):
        server.answer(says(body, 400))
        with pytest.raises(ApiError) as raised:
            Client(server.address, TOKEN).call("GET", "/")
        assert raised.value.body == expected


def test_without_a_token_or_a_server(server: Server) -> None:
    Client(server.answer(says([1])).address, "").call("POST", "/api/", data={"a": "b"})
    assert requests(server) == ["POST /api/ a=b (nobody)"]
    closed = Server()
    closed.close()
    result = outcome(lambda: Client(closed.address, TOKEN).call("GET", "/api/"))
    assert re.fullmatch(r"0: SERVER does not answer \(\[Errno \d+\] Connection refused\) \| is_transient", result)


def test_a_netrc_does_not_take_the_tokens_place(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    Client(server.answer(says([])).address, TOKEN).call("GET", "/api/")
    assert server.asked == ["GET /api/ (Bearer TOKEN)"]


PAGE = {"results": [{"a": 1}, 7], "next": "x"}


@pytest.mark.parametrize(
    ("answers", "expected", "calls"),
    [
        ([says(PAGE), says({"results": [{"b": 2}], "next": None})], [{"a": 1}, {"b": 2}], ["", "?page=2"]),
        ([says({"results": [], "next": "x"})], [], [""]),
        ([says(PAGE)], [{"a": 1}] * 3, ["", "?page=2", "?page=3"]),
        ([says({})], "0: SERVER does not answer with a list | is_transient", [""]),
    ],
)
def test_the_rows_of_all_pages_are_fetched(
    server: Server, answers: list[Answer], expected: Any, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_PAGES", 4)
    result = outcome(lambda: Client(server.answer(*answers).address, TOKEN).fetch_rows("/api/"))
    assert result == expected
    assert requests(server) == [f"GET /api/{call}" for call in calls]


def test_a_call_is_watched_and_can_be_stopped(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = []

    def with_deadline(seconds: float, watch: Callable[[], None]) -> Callable[[], None]:
        events.append(seconds)
        return watch

    def exchange(work: Callable[[Any], Any], watch: Callable[[], None]) -> Any:
        watch()
        return network.exchange(work, lambda: None)

    def stop(_urgent: bool) -> None:
        raise network.StoppedError

    monkeypatch.setattr(clients, "exchange", exchange)
    monkeypatch.setattr(clients, "with_deadline", with_deadline)
    server.answer(says([]))
    client = Client(server.address, TOKEN, lambda urgent: events.append(("before", urgent)), events.append)
    client.call("GET", "/")
    client.call("GET", "/", urgent=False, timeout=(1.0, 2.0))
    assert events == [("before", True), 190.0, True, ("before", False), 123.0, False]
    assert (
        outcome(lambda: Client(server.address, TOKEN, watch=stop).call("GET", "/")) == "0: asked to stop | is_transient"
    )


def test_the_servers_clock_is_the_median_of_its_last_answers(server: Server) -> None:
    client = Client(server.address, TOKEN)
    assert client.answered_at == 0
    for hours, status, ahead in (
        *((9, 400, 0), (1, 200, 1), (3, 200, 2), (None, 200, 2), (2, 200, 2), (5, 200, 2.5), (5, 200, 3), (5, 200, 5)),
    ):
        date = "yesterday" if hours is None else email.utils.formatdate(time.time() + 3600 * hours, usegmt=True)
        server.answer(says({"id": 1}, status, Date=date))
        outcome(lambda: client.call("GET", "/"))
        assert round((client.now() - time.time()) / 3600, 1) == ahead
        assert (abs(client.answered_at - time.time()) < 60) == (ahead > 0)


ROW = {"id": 3, "challenge_phase": 2, "status": "running"}
MESSAGE = {"receipt_handle": "h", "body": {"submission_pk": 3}}
NO_ROW = "0: the server gives an unexpected answer to GET {} | is_transient"
X = {"error": "x"}
QUEUE, UPDATE = "GET /api/jobs/challenge/queues/q/", "PUT /api/jobs/challenge/9/update_submission/"
SUBMISSIONS, CHALLENGE = "GET /api/jobs/challenge/9/submission/", "GET /api/challenges/challenge/queues/q/"
DELETE = "POST /api/jobs/queues/q/ receipt_handle=h"
RESULT: Any = [{"split": "dev", "show_to_participant": True, "accuracies": {"a": 1}}]
REPORT = '{"submission": 3, "challenge_phase": 2, "submission_status": '
NO_MESSAGE = "0: the server's answer is not a message | is_transient"
NO_HANDLE = "0: the server answers with a message that has no receipt handle | is_transient"
NO_SUCCESS = "0: the server does not say whether it accepted the result | is_transient"
#: What a worker calls and is answered, the outcome, the request, and how often it was sent.
JOBS: list[tuple[Callable[[Jobs], Any], list[Answer], Any, str, int]] = [
    (Jobs.receive, [says(MESSAGE)], QueueMessage({"submission_pk": 3}, "h"), QUEUE, 1),
    (Jobs.receive, [says({"receipt_handle": "", "body": ""})], None, QUEUE, 1),
    (Jobs.receive, [says({"body": ""})], NO_MESSAGE, QUEUE, 1),
    (Jobs.receive, [says([])], NO_MESSAGE, QUEUE, 1),
    (Jobs.receive, [says({**MESSAGE, "receipt_handle": 7})], NO_HANDLE, QUEUE, 1),
    (Jobs.receive, [says({**MESSAGE, "receipt_handle": "x" * 4097})], NO_HANDLE, QUEUE, 1),
    (Jobs.receive, [says(X, 500)], "500: x | is_transient", QUEUE, 1),
    (lambda jobs: jobs.delete(QueueMessage({}, "h")), [says({})], None, DELETE, 1),
    (lambda jobs: jobs.delete(QueueMessage({}, "h")), [says(X, 500), says(X, 429, Retry_After="100"), says({})], None, DELETE, 3),
    (lambda jobs: jobs.delete(QueueMessage({}, "h")), [says(X, 500)], "500: x | is_transient", DELETE, 5),
    (lambda jobs: jobs.delete(QueueMessage({}, "h")), [says(X, 400)], "400: x", DELETE, 1),
    (lambda jobs: jobs.fetch_submission(3), [says(ROW)], ROW, "GET /api/jobs/submission/3", 1),
    (lambda jobs: jobs.fetch_submission(4), [says(ROW)], NO_ROW.format("/api/jobs/submission/4"), "GET /api/jobs/submission/4", 5),
    (lambda jobs: jobs.begin(3, "job"), [says(ROW)], None, f"{UPDATE.replace('PUT', 'PATCH')} submission=3&submission_status=RUNNING&job_name=job", 1),
    (lambda jobs: jobs.finish(3, 2, RESULT, stdout="s"), [says({"success": "yes"})], None,
     f'{UPDATE} {REPORT}"FINISHED", "result": {json.dumps(json.dumps(RESULT))}, "stdout": "s"}}', 1),
    (lambda jobs: jobs.finish(3, 2, []), [says({})], NO_SUCCESS, f'{UPDATE} {REPORT}"FINISHED", "result": "[]"}}', 1),
    (lambda jobs: jobs.finish(3, 2, []), [says(X, 400)], "400: x", f'{UPDATE} {REPORT}"FINISHED", "result": "[]"}}', 1),
    (lambda jobs: jobs.fail(3, 2, stderr="s"), [says({"success": "yes"})], None, f'{UPDATE} {REPORT}"FAILED", "stderr": "s"}}', 1),
    (Jobs.all_submissions, [says([ROW, {}, 7, {**ROW, "id": "4"}])], [ROW, {**ROW, "id": 4}], SUBMISSIONS, 1),
    (Jobs.all_submissions, [says([])], [], SUBMISSIONS, 1),
    (Jobs.all_submissions, [says([{}])], NO_ROW.format(SUBMISSIONS[4:]), SUBMISSIONS, 5),
    (Jobs.all_submissions, [says({})], NO_ROW.format(SUBMISSIONS[4:]), SUBMISSIONS, 5),
    (Jobs.phases, [says([{"id": 1, "codename": "a"}, {"id": 2}, {"id": "x", "codename": "b"}])], [{"id": 1, "codename": "a"}],
     "GET /api/challenges/9/phases/", 1),
    (Jobs.splits, [says([{"a": 1}, 7])], [{"a": 1}], "GET /api/challenges/9/challenge_phase_split", 1),
    (Jobs.fetch_challenge, [says({"id": "7", "title": "x"})], {"id": 7, "title": "x"}, CHALLENGE, 1),
    (Jobs.fetch_challenge, [says({"id": 0})], NO_ROW.format(CHALLENGE[4:]), CHALLENGE, 5),
    (Jobs.accepts_token, [says({"id": 7})], True, CHALLENGE, 1),
    (Jobs.accepts_token, [says({"detail": "x"}, 401)], False, CHALLENGE, 1),
    (Jobs.accepts_token, [says({}, 403)], True, CHALLENGE, 1),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "answers", "expected", "request_line", "calls"), JOBS, ids=range(len(JOBS)))
def test_a_worker_asks_again_where_that_may_help(
    server: Server, ask: Any, answers: list[Answer], expected: Any, request_line: str, calls: int
) -> None:
    pauses: list[float] = []
    jobs = Jobs(Client(server.answer(*answers).address, TOKEN), 9, "q", pauses.append)
    assert outcome(lambda: ask(jobs)) == expected
    assert requests(server) == [request_line] * calls
    assert len(pauses) == calls - 1
    assert [number for number, seconds in enumerate(pauses) if seconds >= 100] == [1] * (calls == 3)
    server.answer(says(X, 500))
    outcome(lambda: ask(Jobs(Client(server.address, TOKEN), 9, "q", lambda _seconds: True)))
    assert len(server.asked) == 1, "a worker that is stopped does not ask again"


HELD = {"id": 5, "github_repository": "me/x", "approved_by_admin": True, "use_fifo_sqs": False, "queue": "q"}
OTHERS = [{"id": 4, "github_repository": "me/y"}, {"id": "6", "github_repository": "me/x"}]
PHASES = [
    {"id": 21, "config_id": 2, "codename": "b", "slug": "x-b-5"},
    {"id": 20, "config_id": 1, "codename": "a", "slug": "x-a-5"},
    {"id": 22, "config_id": None, "codename": "c"},
]
SPLIT = {
    "id": 31, "leaderboard": 41, "challenge_phase": 20, "dataset_split": 51, "visibility": 3,
    "leaderboard_decimal_precision": 2, "is_leaderboard_order_descending": True,
}  # fmt: skip
MADE = "/api/challenges/challenge/create/"
READS = [
    "/api/challenges/challenge_host_team/7/challenge",
    "/api/challenges/5/phases/",
    "/api/challenges/5/challenge_phase_split",
]
HEAD, TAIL = (
    [says([HELD]), says(PHASES)],
    [says({"config_id": "1", "schema": {"labels": []}}), says({"config_id": 9, "name": "Dev", "codename": "dev"})],
)
STATE = ServerState("", approved=True, fifo=False, phases={2: "b", 1: "a"}, slugs=["x-b", "x-a"])
WHOLE = replace(STATE, leaderboards={1: {"labels": []}}, splits={9: ["Dev", "dev"]}, rows=[[1, 1, 9, 3, 2, True]])
LAST = ServerState(
    "challenge 5 of me/x on SERVER",
    leaderboards={1: "kept"},
    splits={2: ["kept"]},
    rows=[[1]],
    scoring={"a": "by hand"},
)
UNREADABLE = [*HEAD, says([{"id": 31}])]


@pytest.mark.parametrize(
    ("state", "answers", "expected", "calls"),
    [
        (None, [*UNREADABLE, says(SPLIT), *TAIL], WHOLE, (3, 1, 2)),
        (None, [says([])], None, (1, 0, 0)),
        (None, [*HEAD, says([{"id": 31}] * 20), *[says(SPLIT)] * 20, *TAIL], replace(WHOLE, rows=WHOLE.rows * 20), (3, 20, 2)),
        (None, [*HEAD, says([{"id": 31}] * 21)], STATE, (3, 0, 0)),
        (None, [*UNREADABLE, says({"id": 31})], STATE, (3, 1, 0)),
        (LAST, [*UNREADABLE, says(X, 403)], replace(LAST, approved=True, fifo=False, phases=STATE.phases, slugs=STATE.slugs), (3, 1, 0)),
        (ServerState("elsewhere", rows=[[1]]), [*UNREADABLE, says(X, 404)], STATE, (3, 1, 0)),
        (None, [*UNREADABLE, says(X, 500)], "HostError: SERVER says: x", (3, 1, 0)),
    ],
    ids=("all", "no challenge", "twenty rows", "more rows", "no row", "after a push", "after a push to another", "trouble"),
)  # fmt: skip
def test_a_push_reads_what_the_server_has(
    server: Server, state: ServerState | None, answers: list[Answer], expected: Any, calls: tuple[int, int, int]
) -> None:
    push = ChallengePush(EvalAISettings(server.answer(*answers).address, TOKEN, 7), "me/x")
    source = push.describe_challenge(5)
    if state is LAST:
        state = replace(state, source=source)
    if isinstance(expected, ServerState):
        expected = replace(expected, source=source)
    assert outcome(lambda: push.fetch_state(state)) == expected
    paths = zip(
        calls,
        (READS, [f"{MADE}challenge_phase_split/31/"] * 20, [f"{MADE}leaderboard/41/", f"{MADE}dataset_split/51/"]),
    )
    assert requests(server) == [f"GET {path}" for count, each in paths for path in each[:count]]
    assert source == f"challenge 5 of me/x on {server.address}"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("bundle") / "b.zip"
    path.write_bytes(zipped({"challenge_config.yaml": write_yaml(CONFIG), **FILES}))
    return str(path)


SENT = "POST /api/challenges/challenge/challenge_host_team/7/{}/ GITHUB_REPOSITORY=b'me/x', zip_configuration=b'PK'"
VALIDATED, SAVED = SENT.format("validate_challenge_config"), SENT.format("create_or_update_github_challenge")
NUMBERS = {"a": 20, "b": 21, "c": 22}
REJECTED: list[tuple[int, Any, str]] = [
    (400, "no", "RejectedError: no"),
    (401, "no", ("HostError: SERVER says: no\nYour token is wrong, has expired (renew it on your profile page, then set EVALAI_TOKEN), "
     "or does not belong to a member of host team EVALAI_HOST_TEAM.")),
    (403, "no", ("HostError: SERVER says: no\nSomebody else's challenge already has this repository, or your e-mail address is not verified. "
     "Push under your own OWNER/NAME with --repository.")),
    (404, "no", "HostError: SERVER says: no\nThe server does not know it: EVALAI_HOST_TEAM is the number in the address of your host team's page."),
    (406, "no", "RejectedError: no"),
    (413, "no", "HostError: SERVER says: no\nThe bundle is too large; upload large annotation files with the evalai client."),
    (429, "no", "HostError: SERVER says: no\nToo many requests: each user may send 60 a minute in total. Wait a minute."),
    (500, "no", "HostError: SERVER says: no"),
    (400, "ChallengeHostTeam 7 does not exist", ("HostError: SERVER says: ChallengeHostTeam 7 does not exist\nEVALAI_HOST_TEAM is not "
     "the number of a host team there: it is in the address of your host team's page.")),
    (406, {"error": {"title": "long", "image": "odd"}}, "RejectedError: title: long; image: odd"),
    (406, {"error": "one\n {'a': [1]}\ntwo\n\n", "error_message": '"three"'}, "RejectedError: one\n {'a': [1]}\ntwo\n\"three\""),
    (406, {"error": "one", "error_message": '"one"'}, "RejectedError: one"),
    (406, {"error": "one", "error_message": "two {"}, "RejectedError: one\ntwo {"),
    (406, {"error": "one", "error_message": "[2]"}, "RejectedError: one\n[2]"),
    (406, {"detail": "a detail"}, "RejectedError: a detail"),
    (406, {}, "RejectedError: EvalAI rejected it without a reason"),
    (406, ["a list"], "HostError: SERVER says: ['a list']"),
]  # fmt: skip
#: What a push asks and is answered, the outcome, and the requests.
PUSHES: list[tuple[Callable[[ChallengePush, str], Any], list[Answer], Any, list[str]]] = [
    (lambda push, _: push.fetch_challenge(), [says({"results": [*OTHERS, HELD]})], HELD, [f"GET {READS[0]}"]),
    (lambda push, _: push.fetch_challenge(), [says({"results": OTHERS, "next": "x"}), says({"results": [HELD]})], HELD,
     [f"GET {READS[0]}", f"GET {READS[0]}?page=2"]),
    (lambda push, _: push.fetch_challenge(), [says(OTHERS)], None, [f"GET {READS[0]}"]),
    (lambda push, _: push.fetch_challenge(), [says({"results": 7})], ("HostError: SERVER says: SERVER does not answer with a list\n"
     "Check your network and EVALAI_HOST (default: https://eval.ai), then push again."), [f"GET {READS[0]}"]),
    *((ChallengePush.validate, [says(body)], text, [VALIDATED])
      for body, text in (({"Success": "valid"}, "valid"), ({"success": "valid"}, "valid"), (["valid"], "['valid']"))),
    *((ChallengePush.validate, [says({"error": body} if isinstance(body, str) else body, status)], text, [VALIDATED])
      for status, body, text in REJECTED),
    (ChallengePush.create_or_update, [says({"Success": "made"}), *HEAD], PushedChallenge("made", 5, "q", NUMBERS, approved=True),
     [SAVED, *(f"GET {path}" for path in READS[:2])]),
    (ChallengePush.create_or_update, [says({"Success": "made"}), says([])],
     "HostError: made\nBut no challenge of host team 7 names me/x.", [SAVED, f"GET {READS[0]}"]),
    (ChallengePush.create_or_update, [says({"Success": "made"}), HEAD[0], says(X, 500)],
     "HostError: made\nIts phases could not be looked up: SERVER says: x", [SAVED, *(f"GET {path}" for path in READS[:2])]),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "answers", "expected", "calls"), PUSHES, ids=range(len(PUSHES)))
def test_a_push_says_what_the_server_answers(
    server: Server, bundle: str, ask: Any, answers: list[Answer], expected: Any, calls: list[str]
) -> None:
    push = ChallengePush(EvalAISettings(server.answer(*answers).address, TOKEN, 7), "me/x")
    result = outcome(lambda: ask(push, bundle))
    assert result == expected
    assert requests(server) == calls
    without_team = outcome(lambda: ChallengePush(EvalAISettings(server.address, TOKEN), "me/x"))
    assert without_team.startswith(
        "HostError: EVALAI_HOST_TEAM is not set: it is the number of your host team, in the address"
    )


@pytest.mark.parametrize(
    ("sentence", "place"),
    [
        ("ERROR: The leaderboard with ID: 1 has the following schema errors:\n {'config_id': ['x']}", "38:4: leaderboard[0].id"),
        ("ERROR: The leaderboard with ID: 9 has errors", ""),
        ("ERROR: Challenge phase 1 has the following schema errors:\n {'test_annotation': ['x']}", "64:4: challenge_phases[0].test_annotation_file"),
        ("ERROR: Challenge phase 1 has the following schema errors:\n {'slug': ['x']}", "60:4: challenge_phases[0].codename"),
        ("ERROR: Dataset split 1 has the following schema errors:\n {'name': ['x']}", "94:4: dataset_splits[0].name"),
        ("ERROR: Duplicate codename dev for dataset split Dev. Please ensure codenames are unique", "92:3: dataset_splits[0]"),
        ("ERROR: Duplicate codename first for phase First. Please ensure codenames are unique", "57:3: challenge_phases[0]"),
        (" ERROR: There is no key for description in phase First.", "57:3: challenge_phases[0]"),
        ("ERROR: No test annotation file found in the zip file for challenge phase First", "57:3: challenge_phases[0]"),
        ("ERROR: Invalid leaderboard id 9 found in challenge phase split 1.", "99:3: challenge_phase_splits[0]"),
        ("ERROR: Invalid leaderboard id 9 found in challenge phase split 7.", ""),
        ("Please add the terms and conditions.", "5:2: terms_and_conditions"),
        ("Please add the challenge title", "2:2: title"),
        ("File at path evaluation_details not found. Please specify a valid file path", "4:2: evaluation_details"),
        ("ERROR: Tags are limited to 4. Please remove extra tags then try again!", "24:2: tags"),
        ("ERROR: Challenge phase 1 has the following schema errors: {'max_submissions': [ErrorDetail(string='x')]}", "67:4: challenge_phases[0].max_submissions"),
        ("ERROR: Unable to serialize the challenge because of the following errors: {'image': []}.", "7:2: image"),
        ("something else", ""),
    ],
)  # fmt: skip
def test_a_sentence_of_the_server_has_the_place_it_is_about(bundle: str, sentence: str, place: str) -> None:
    (problem,) = RejectedError({"error": sentence}).locate(bundle)
    subject = f"challenge_config.yaml:{place}" if place else "EvalAI"
    text = re.sub(r"\s+", " ", sentence).strip().removesuffix(".")
    assert show(problem) == f"refused: {subject}: {text}{'' if text[-1] == '!' else '.'} Correct it and push again."


def test_without_a_reason_there_is_still_something_to_try(bundle: str) -> None:
    sentence = "Error in creating challenge: None. Please check the yaml configuration!"
    (problem,) = RejectedError({"error": sentence}).locate(bundle)
    assert (
        show(problem)
        == f"refused: EvalAI: {sentence} EvalAI gives no reason: find the last addition, and push again without it."
    )


SCHEMA = {
    "labels": ["score", "loss"],
    "default_order_by": "loss",
    "metadata": {"loss": {"sort_ascending": True}, "score": {}},
}


def test_the_schema_of_a_leaderboard_says_its_labels_and_order() -> None:
    assert [rows.board_labels({"leaderboard_schema": schema}) for schema in (SCHEMA, {}, 7)] == [
        ["score", "loss"],
        None,
        None,
    ]
    orders = {
        label: [rows.is_descending(SCHEMA, label, row) for row in (True, False, None)]
        for label in ("score", "loss", "other")
    }
    assert orders == {"score": [False] * 3, "loss": [False] * 3, "other": [True, False, False]}


ACCOUNT = "# mine\nexport EVALAI_TOKEN = 'token-of-the-file'\nEVALAI_HOST_TEAM=\"3\"\nno value\nOTHER=1\n"
PLACEHOLDER = (
    "EVALAI_TOKEN, EVALAI_HOST_TEAM or EVALAI_HOST is still a placeholder in angle brackets; set it to your own value"
)
UNSET = "EVALAI_TOKEN is not set: copy it from your profile page, into the environment or ~/.config/segjudge/evalai (mode 0600)"
NO_TOKEN = "EVALAI_TOKEN is not a token: it holds spaces or other characters; copy it again"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"EVALAI_TOKEN": TOKEN}, ("https://eval.ai", TOKEN, 0)),
        ({"EVALAI_TOKEN": f" {TOKEN} ", "EVALAI_HOST": "eval.example/", "EVALAI_HOST_TEAM": " 7 "}, ("https://eval.example", TOKEN, 7)),
        ({"EVALAI_TOKEN": TOKEN, "EVALAI_HOST": "http://localhost:8000"}, ("http://localhost:8000", TOKEN, 0)),
        ({"EVALAI_TOKEN": TOKEN, "EVALAI_HOST": "http://eval.example"},
         "EVALAI_HOST is http://eval.example: tokens are sent only over https or to this machine; begin it with https://"),
        *(({"EVALAI_TOKEN": TOKEN, key: "<x>"}, PLACEHOLDER) for key in ("EVALAI_TOKEN", "EVALAI_HOST", "EVALAI_HOST_TEAM")),
        *(({"EVALAI_TOKEN": token}, NO_TOKEN) for token in ("a b", "é")),
        *((variables, UNSET) for variables in ({}, {"EVALAI_TOKEN": " "})),
        ({"EVALAI_TOKEN": TOKEN, "EVALAI_HOST_TEAM": "seven"},
         "EVALAI_HOST_TEAM is 'seven': it is the number of your host team, in the URL of its page"),
    ],
    ids=str,
)  # fmt: skip
def test_an_account_is_read_from_the_environment_then_from_a_private_file(
    environment: dict[str, str], expected: Any, tmp_path: Path
) -> None:
    file = tmp_path / "account"
    file.write_text(ACCOUNT)
    file.chmod(0o600)
    for path in (str(tmp_path / "none"), str(file)):
        settings = outcome(lambda path=path: tuple(asdict(EvalAISettings.read(environment, path)).values()))  # type: ignore[misc]
        if path == str(file) and isinstance(expected, tuple):
            expected = (*expected[:2], expected[2] or 3)
        if path == str(file) and not environment:
            expected = ("https://eval.ai", "token-of-the-file", 3)
        assert settings == (f"HostError: {expected}" if isinstance(expected, str) else expected)
    file.chmod(0o640)
    private = f"HostError: {file} can be read by others (mode 640): chmod 600 it, and renew the token"
    assert outcome(lambda: EvalAISettings.read(environment, str(file))) == private


def test_an_account_that_is_a_folder_and_the_server_without_an_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = outcome(lambda: EvalAISettings.read({}, str(tmp_path)))
    assert re.fullmatch(
        rf"HostError: {tmp_path}: cannot be read \(\[Errno \d+\] Is a directory: '{tmp_path}'\)", result
    )
    assert repr(EvalAISettings("h", TOKEN, 1)) == "EvalAISettings(host='h', team=1)"
    monkeypatch.setenv("EVALAI_HOST", "me.org")
    assert clients.server_address() == "https://me.org"


SAFE = ("https://eval.ai", "http://127.0.0.1:8", "http://localhost", "http://[::1]:8", "HTTPS://eval.ai")
UNSAFE = (
    *("http://eval.ai", "http://[::1", "ftp://localhost", "https://", "https://me@eval.ai", "localhost", "http://"),
    *("http://127.0.0.1.evil.example", "http://localhost.evil.example", "http://localhost@evil.example"),
    *("http://127.0.0.1:80@evil.example", "https://eval.ai@evil.example"),
)


def test_a_token_goes_only_over_https_or_to_this_machine() -> None:
    assert [address for address in (*SAFE, *UNSAFE) if is_safe_for_token(address)] == [*SAFE]


ENTRY = {"split": "dev", "accuracies": {"score": 1, "loss": 0.5}}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([ENTRY], ""),
        ([], ""),
        ([{**ENTRY, "accuracies": {"score": -1}}], ""),
        (7, "the result is not a list of splits"),
        ([7], "the result names the split None; the phase has dev"),
        ([{"split": "test", "accuracies": {}}], "the result names the split 'test'; the phase has dev"),
        ([{"split": 7, "accuracies": {}}], "the result names the split 7; the phase has dev"),
        ([{"split": "dev"}], "the result names the split 'dev'; the phase has dev"),
        *(([{**ENTRY, "accuracies": {"score": value}}], f"dev: score is {str(value)[:40] if value != '1' else repr(value)}, which is not a finite number")
          for value in (True, None, "1", float("nan"), 10**400)),
        ([{**ENTRY, "accuracies": {"other": 1}}], "dev: 'other' is not a label of its leaderboard"),
    ],
)  # fmt: skip
def test_a_result_has_finite_numbers_under_the_labels_of_its_splits(value: Any, message: str) -> None:
    expected = f"ShapeError: {message}" if message else value
    assert outcome(lambda: rows.check_accuracies(value, {"dev": ["score", "loss"]})) == expected
