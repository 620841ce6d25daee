"""The outcomes of EvalAI's API calls for every answer of a server, and messages about accounts, as one text."""

from __future__ import annotations

import contextlib
import email.utils
import http.server
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest import mock

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai import client as clients
from segjudge.platforms.evalai import rows
from segjudge.platforms.evalai.boards import fetch_boards
from segjudge.platforms.evalai.bundle.push import ChallengePush, RejectedError
from segjudge.platforms.evalai.bundle.server_state import ServerState
from segjudge.platforms.evalai.client import ApiError, Client, EvalAISettings, Jobs, QueueMessage, is_safe_for_token
from segjudge.system import network
from tests.answers import count_repeats
from tests.builders import zipped
from tests.platforms.damages import GOLDEN, new_folder, show, write_yaml

from .damaged_bundles import CONFIG, FILES

FILE = GOLDEN / "api_calls.txt"
TOKEN = "token-0123456789"
#: Status, body (bytes as they are, else JSON), and further headers.
Answer = tuple[int, Any, dict[str, str]]


def says(body: Any, status: int = 200, **headers: str) -> Answer:
    return status, body, headers


class Server:
    """Answers each request with the next of its answers, repeating the last one, and notes the requests."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[str] = []
        played = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                fields = re.findall(rb'name="(\w+)"(?:; filename="[^"]*"\r\n[^\r]*)?\r\n\r\n([^\r]{1,40})', body)
                output = (
                    body.decode("latin-1")
                    if not fields
                    else ", ".join(f"{k.decode()}={v[: 2 if v[:2] == b'PK' else 20]!r}" for k, v in fields)
                )
                who = self.headers.get("Authorization", "nobody").replace(TOKEN, "TOKEN")
                played.asked.append(f"{self.command} {self.path} {output} ({who})".replace("  ", " "))
                status, given, headers = played.answers.pop(0) if len(played.answers) > 1 else played.answers[0]
                data = given if isinstance(given, bytes) else json.dumps(given).encode()
                self.send_response_only(status)  # which says no date
                for name, value in {"Content_Type": "application/json", **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = answer  # noqa: N815 - http.server's names

            def log_message(self, *_args: Any) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def _show(value: object) -> str:
    if isinstance(value, ApiError):
        flags = [name for name in ("is_transient", "denied", "refuses_token") if getattr(value, name)]
        return f"ApiError {value.status}: {value.message} | {value.body!r:.200} | wait {value.wait} | {' '.join(flags)}"
    return f"{type(value).__name__}: {value}" if isinstance(value, Exception) else repr(value)


def _try(call: Callable[[], Any]) -> str:
    try:
        return _show(call())
    except (ApiError, HostError, RejectedError, rows.ShapeError) as error:
        return _show(error)


LIST = "/api/hosts/challenge_host_team/"
#: What a server answers to a call.
_ANSWERS: dict[str, Answer] = {
    "an object": says({"id": 1}),
    "a list": says([1]),
    "created": says({"a": 1}, 201),
    "a number": says(5),
    "null": says(None),
    "nothing": says(b""),
    "no content": says(b"", 204),
    "half of JSON": says(b"[{"),
    "not UTF-8": says(b'{"a": "\xff"}'),
    "deep JSON": says(b"[" * 100_000),
    "JSON of small values": says([0] * 1_000_000),
    "a long text": says({"a": "x" * (1 << 21)}),
    "another place": says({}, 302, Location="https://elsewhere.org/a"),
    "no place": says({}, 301),
    "an error": says({"error": "no"}, 400),
    "a detail": says({"detail": "no"}, 400),
    "both": says({"error": "", "detail": "no"}, 400),
    "an empty refusal": says({}, 400),
    "a list of errors": says(["no"], 400),
    "errors of fields": says({"title": ["too long"]}, 400),
    "a long error": says({"error": "x" * 3000}, 400),
    "no token": says({"detail": "Invalid token"}, 401),
    "no rights": says({"error": "not you"}, 403),
    "a proxy's refusal": says({"title": "blocked"}, 403),
    "a proxy's page": says(b"<html>", 403, Content_Type="text/html; charset=utf-8"),
    "a page": says(b"<html>", 200, Content_Type="text/html"),
    "not found": says(b"", 404, Content_Type=""),
    "a late request": says({"error": "late"}, 408),
    "too many": says({"error": "slow"}, 429, Retry_After="7"),
    "too many, for long": says({"error": "slow"}, 429, Retry_After="999"),
    "too many, for very long": says({"error": "slow"}, 429, Retry_After="123456789"),
    "too many, until a date": says({"error": "slow"}, 429, Retry_After="Wed, 21 Oct 2026 07:28:00 GMT"),
    "a broken server": says(b"<html>", 500, Content_Type="text/html"),
    "a broken server that says why": says({"error": "the disk is full"}, 503),
    "a broken server with much to say": says(b"x" * (3 << 20), 502),
    "our own token": says({TOKEN: [f"a {TOKEN}"]}, 400),
    "an address with a password": says({"error": "https://me:secret@x.org/"}, 400),
    "control characters": says({"error": "a\x1b[2J\rb\nc"}, 400),
}
_ROW = {"id": 3, "challenge_phase": 2, "status": "running"}
_MESSAGE = {"receipt_handle": "h", "body": {"submission_pk": 3}}
#: What a worker asks, and what it is answered.
_JOBS: dict[str, tuple[Callable[[Jobs], Any], list[Answer]]] = {
    "receive": (lambda jobs: jobs.receive(), [says(_MESSAGE)]),
    "receive: empty": (lambda jobs: jobs.receive(), [says({"receipt_handle": "", "body": ""})]),
    "receive: no message": (lambda jobs: jobs.receive(), [says({"body": ""})]),
    "receive: a list": (lambda jobs: jobs.receive(), [says([])]),
    "receive: an odd handle": (lambda jobs: jobs.receive(), [says({**_MESSAGE, "receipt_handle": 7})]),
    "receive: a long handle": (lambda jobs: jobs.receive(), [says({**_MESSAGE, "receipt_handle": "x" * 4097})]),
    "receive: in trouble": (lambda jobs: jobs.receive(), [says({"error": "x"}, 500)]),
    "delete": (lambda jobs: jobs.delete(QueueMessage({}, "h")), [says({})]),
    "delete: at the third time": (
        lambda jobs: jobs.delete(QueueMessage({}, "h")),
        [says({"error": "x"}, 500), says({"error": "slow"}, 429, Retry_After="100"), says({})],
    ),
    "delete: never": (lambda jobs: jobs.delete(QueueMessage({}, "h")), [says({"error": "x"}, 500)]),
    "delete: refused": (lambda jobs: jobs.delete(QueueMessage({}, "h")), [says({"error": "x"}, 400)]),
    "fetch": (lambda jobs: jobs.fetch_submission(3), [says(_ROW)]),
    "fetch: another one": (lambda jobs: jobs.fetch_submission(4), [says(_ROW)]),
    "begin": (lambda jobs: jobs.begin(3, "job"), [says(_ROW)]),
    "finish": (
        lambda jobs: jobs.finish(3, 2, [{"split": "dev", "show_to_participant": True, "accuracies": {"a": 1}}], stdout="s"),
        [says({"success": "yes"})],
    ),
    "finish: no answer": (lambda jobs: jobs.finish(3, 2, []), [says({})]),
    "finish: refused": (lambda jobs: jobs.finish(3, 2, []), [says({"error": "odd"}, 400)]),
    "fail": (lambda jobs: jobs.fail(3, 2, stderr="s"), [says({"success": "yes"})]),
    "submissions": (lambda jobs: jobs.all_submissions(), [says([_ROW, {}, 7, {**_ROW, "id": "4"}])]),
    "submissions: none": (lambda jobs: jobs.all_submissions(), [says([])]),
    "submissions: none that can be read": (lambda jobs: jobs.all_submissions(), [says([{}])]),
    "submissions: no list": (lambda jobs: jobs.all_submissions(), [says({})]),
    "phases": (lambda jobs: jobs.phases(), [says([{"id": 1, "codename": "a"}, {"id": 2}, {"id": "x", "codename": "b"}])]),
    "splits": (lambda jobs: jobs.splits(), [says([{"a": 1}, 7])]),
    "the challenge": (lambda jobs: jobs.fetch_challenge(), [says({"id": "7", "title": "x"})]),
    "the challenge: without a number": (lambda jobs: jobs.fetch_challenge(), [says({"id": 0})]),
    "is the token taken": (lambda jobs: jobs.accepts_token(), [says({"id": 7})]),
    "is the token taken: no": (lambda jobs: jobs.accepts_token(), [says({"detail": "x"}, 401)]),
    "is the token taken: by a proxy": (lambda jobs: jobs.accepts_token(), [says({}, 403)]),
}  # fmt: skip
_HELD = {"id": 5, "github_repository": "me/x", "approved_by_admin": True, "use_fifo_sqs": False, "queue": "q"}
_OTHERS = [{"id": 4, "github_repository": "me/y"}, {"id": "6", "github_repository": "me/x"}]
_PHASES = [
    {"id": 21, "config_id": 2, "codename": "b", "slug": "x-b-5"},
    {"id": 20, "config_id": 1, "codename": "a", "slug": "x-a-5"},
    {"id": 22, "config_id": None, "codename": "c"},
]
_SPLIT = {
    "id": 31,
    "leaderboard": 41,
    "challenge_phase": 20,
    "dataset_split": 51,
    "visibility": 3,
    "leaderboard_decimal_precision": 2,
    "is_leaderboard_order_descending": True,
}
_BOARD, _PART = {"config_id": "1", "schema": {"labels": []}}, {"config_id": 9, "name": "Dev", "codename": "dev"}
_LAST = ServerState(leaderboards={1: "kept"}, splits={2: ["kept"]}, rows=[[1]], scoring={"a": "by hand"})
_WHOLE = [says([_HELD]), says(_PHASES), says([{"id": 31}]), says(_SPLIT), says(_BOARD), says(_PART)]
_NO_TEAM = {"error": "ChallengeHostTeam 7 does not exist"}
#: What a push asks, and what it is answered.
_PUSHES: dict[str, tuple[Callable[[ChallengePush], Any], list[Answer]]] = {
    "the challenge": (lambda push: push.fetch_challenge(), [says({"results": [*_OTHERS, _HELD]})]),
    "the challenge: on the second page": (
        lambda push: push.fetch_challenge(),
        [says({"results": _OTHERS, "next": "x"}), says({"results": [_HELD]})],
    ),
    "the challenge: none": (lambda push: push.fetch_challenge(), [says(_OTHERS)]),
    "the challenge: no list": (lambda push: push.fetch_challenge(), [says({"results": 7})]),
    "the state": (lambda push: push.fetch_state(None), _WHOLE),
    "the state: no challenge": (lambda push: push.fetch_state(None), [says([])]),
    "the state: of twenty rows": (lambda push: push.fetch_state(None), [*_WHOLE[:2], says([{"id": 31}] * 20), *[says(_SPLIT)] * 20, *_WHOLE[4:]]),
    "the state: of more rows": (lambda push: push.fetch_state(None), [*_WHOLE[:2], says([{"id": 31}] * 21)]),
    "the state: less": (lambda push: push.fetch_state(None), [*_WHOLE[:3], says({"id": 31})]),
    "the state: less, after a push": (lambda push: push.fetch_state(replace(_LAST, source=push.describe_challenge(5))), [*_WHOLE[:3], says({"error": "x"}, 403)]),
    "the state: less, after a push to another": (
        lambda push: push.fetch_state(ServerState("elsewhere", rows=[[1]])),
        [*_WHOLE[:3], says({"error": "x"}, 404)],
    ),
    "the state: in trouble": (lambda push: push.fetch_state(None), [*_WHOLE[:3], says({"error": "x"}, 500)]),
    "validate": (lambda push: push.validate("b.zip"), [says({"Success": "valid"})]),
    "validate: in small letters": (lambda push: push.validate("b.zip"), [says({"success": "valid"})]),
    "validate: a list": (lambda push: push.validate("b.zip"), [says(["valid"])]),
    "push": (lambda push: push.create_or_update("b.zip"), [says({"Success": "made"}), says([_HELD]), says(_PHASES)]),
    "push: no challenge after it": (lambda push: push.create_or_update("b.zip"), [says({"Success": "made"}), says([])]),
    "push: no phases after it": (
        lambda push: push.create_or_update("b.zip"),
        [says({"Success": "made"}), says([_HELD]), says({"error": "x"}, 500)],
    ),
    **{
        f"refused: {status} {body}": (lambda push: push.validate("b.zip"), [says(body, status)])
        for status, body in (
            *((status, {"error": "no"}) for status in (400, 401, 403, 404, 406, 413, 429, 500)),
            (400, _NO_TEAM),
            (406, {"error": {"title": "long", "image": "odd"}}),
            (406, {"error": "one\n {'a': [1]}\ntwo\n\n", "error_message": '"three"'}),
            (406, {"error": "one", "error_message": '"one"'}),
            (406, {"error": "one", "error_message": "two {"}),
            (406, {"error": "one", "error_message": "[2]"}),
            (406, {"detail": "a detail"}),
            (406, {}),
            (406, ["a list"]),
        )
    },
}  # fmt: skip
#: Sentences of the server, which are about a place of the YAML.
_SENTENCES = [
    "ERROR: The leaderboard with ID: 1 has the following schema errors:\n {'config_id': ['x']}",
    "ERROR: The leaderboard with ID: 9 has errors",
    "ERROR: Challenge phase 1 has the following schema errors:\n {'test_annotation': ['x']}",
    "ERROR: Challenge phase 1 has the following schema errors:\n {'slug': ['x']}",
    "ERROR: Dataset split 1 has the following schema errors:\n {'name': ['x']}",
    "ERROR: Duplicate codename dev for dataset split Dev. Please ensure codenames are unique.",
    "ERROR: Duplicate codename first for phase First. Please ensure codenames are unique",
    " ERROR: There is no key for description in phase First.",
    "ERROR: No test annotation file found in the zip file for challenge phase First",
    "ERROR: Invalid leaderboard id 9 found in challenge phase split 1.",
    "ERROR: Invalid leaderboard id 9 found in challenge phase split 7.",
    "Please add the terms and conditions.",
    "Please add the challenge title",
    "File at path evaluation_details not found. Please specify a valid file path",
    "ERROR: Tags are limited to 4. Please remove extra tags then try again!",
    "Error in creating challenge: None. Please check the yaml configuration!",
    "something else",
]
#: What stands in the environment, beside the file with the token of somebody else.
_ACCOUNTS: list[dict[str, str]] = [
    {},
    {"EVALAI_TOKEN": TOKEN},
    {"EVALAI_TOKEN": f" {TOKEN} ", "EVALAI_HOST": "eval.example/", "EVALAI_HOST_TEAM": " 7 "},
    {"EVALAI_TOKEN": TOKEN, "EVALAI_HOST": "http://eval.example"},
    {"EVALAI_TOKEN": TOKEN, "EVALAI_HOST": "http://localhost:8000"},
    {"EVALAI_TOKEN": "<token>"},
    {"EVALAI_TOKEN": TOKEN, "EVALAI_HOST_TEAM": "<team>"},
    {"EVALAI_TOKEN": "a b"},
    {"EVALAI_TOKEN": "é"},
    {"EVALAI_TOKEN": TOKEN, "EVALAI_HOST_TEAM": "seven"},
    {"EVALAI_TOKEN": " "},
]
_FILE_TEXT = "# mine\nexport EVALAI_TOKEN = 'token-of-the-file'\nEVALAI_HOST_TEAM=\"3\"\nno value\nOTHER=1\n"
_ADDRESSES = (
    *("https://eval.ai", "http://eval.ai", "http://127.0.0.1:8", "http://localhost", "http://[::1]:8", "http://[::1"),
    *("ftp://localhost", "https://", "https://me@eval.ai", "localhost"),
    *("http://127.0.0.1.evil.example", "http://localhost.evil.example", "http://localhost@evil.example"),
    *("http://127.0.0.1:80@evil.example", "https://eval.ai@evil.example", "http://", "HTTPS://eval.ai"),
)
_LABELS = {"dev": ["score", "loss"]}
_ENTRY = {"split": "dev", "accuracies": {"score": 1, "loss": 0.5}}
_ACCURACIES: list[Any] = [
    [_ENTRY],
    [],
    7,
    [7],
    [{"split": "test", "accuracies": {}}],
    [{"split": 7, "accuracies": {}}],
    [{"split": "dev"}],
    *([{**_ENTRY, "accuracies": {"score": value}}] for value in (True, None, "1", float("nan"), 10**400, -1)),
    [{**_ENTRY, "accuracies": {"other": 1}}],
]
_KEYS: list[Any] = [1, 0, -1, True, "7", "07", "x", "", "١", "1" * 19, "1" * 20, 2**62 - 1, 2**62, 1.5, None, [1]]
_SUBMISSIONS: list[Any] = [
    _ROW,
    {**_ROW, "id": "3", "other": 1},
    {**_ROW, "status": None},
    {**_ROW, "challenge_phase": 0},
    *(
        {**_ROW, "rerun_resumed_at": when}
        for when in (None, "2026-01-01T00:00:00Z", "soon", 7, "2026-01-01" + " " * 60)
    ),
    [],
]
_SCHEMA = {
    "labels": ["score", "loss"],
    "default_order_by": "loss",
    "metadata": {"loss": {"sort_ascending": True}, "score": {}},
}
_PLACES: list[list[Answer]] = [
    [
        says({"title": "Small"}),
        says(
            [
                {
                    "id": 3,
                    "visibility": 3,
                    "leaderboard_schema": {**_SCHEMA, "labels": ["old"]},
                    "challenge_phase_name": "P",
                    "dataset_split_name": "D",
                },
                *({"id": 5 + number, "visibility": number} for number in (1, 2)),  # which no visitor asks for
                {"id": 4, "visibility": 3},
            ]
        ),
        says(
            {
                "results": [
                    {
                        "submission__participant_team__team_name": "us <&>",
                        "filtering_score": 0.25,
                        "result": [0.5, 0.25],
                        "submission__submitted_at": "2026-01-02T03:04:05Z",
                        "submission__method_name": "m",
                        "leaderboard__schema": _SCHEMA,
                        "rank": 1,
                    },
                    {
                        "submission__participant_team__team_name": "them",
                        "filtering_score": None,
                        "result": [0.5],
                        "submission__submitted_at": None,
                        "submission__method_name": None,
                    },
                    {"submission__participant_team__team_name": "they", "filtering_score": 0.25, "result": [1, 0.25]},
                ]
            }
        ),
        says([]),
    ],
    [says([]), says([])],
]


def _list_jobs(server: Server) -> Iterator[str]:
    for name, (ask, answers) in _JOBS.items():
        for interrupted in (False, True) if name == "delete: never" else (False,):
            server.answers, server.asked, pauses = [*answers], [], list[float]()

            def sleep(seconds: float, pauses: list[float] = pauses, interrupted: bool = interrupted) -> bool:
                pauses.append(seconds)
                return interrupted

            jobs = Jobs(Client(server.address, TOKEN), 9, "q", sleep)
            became = _try(lambda ask=ask, jobs=jobs: ask(jobs))  # type: ignore[misc]
            long = f", {sum(seconds >= 100 for seconds in pauses)} of them long" if pauses else ""
            yield f"{name}{', and stopped' if interrupted else ''}: {became}"
            yield from (f"    {asked}" for asked in dict.fromkeys(server.asked))
            yield f"    {len(server.asked)} calls, {len(pauses)} pauses{long}"


def _list_pushes(server: Server) -> Iterator[str]:
    Path("b.zip").write_bytes(zipped({"challenge_config.yaml": write_yaml(CONFIG), **FILES}))
    for name, (ask, answers) in _PUSHES.items():
        server.answers, server.asked = [*answers], []
        push = ChallengePush(EvalAISettings(server.address, TOKEN, 7), "me/x")
        yield f"{name}: {_try(lambda ask=ask, push=push: ask(push))}"  # type: ignore[misc]
        yield from (f"    {asked}" for asked in server.asked)
    yield f"without a team: {_try(lambda: ChallengePush(EvalAISettings(server.address, TOKEN), 'me/x'))}"
    for sentence in _SENTENCES:
        yield f"located: {sentence!r}"
        yield from (f"    {show(problem)}" for problem in RejectedError({"error": sentence}).locate("b.zip"))


def _list_calls(server: Server) -> Iterator[str]:
    for name, answer in _ANSWERS.items():
        server.answers, server.asked = [answer], []
        output = _try(lambda: Client(server.address + "/", TOKEN).call("GET", "/api/{a}", {"a": 1}))
        yield f"{name}: {re.sub('x{40,}', lambda run: f'{len(run[0])} x', output)}"
    server.asked = []
    server.answers = [says([1])]
    Client(server.address, "").call("POST", "/api/", data={"a": "b"})
    yield f"nobody asks: {server.asked}"
    closed = Server()
    closed.close()
    yield f"nobody answers: {_try(lambda: Client(closed.address, TOKEN).call('GET', '/api/')).replace(closed.address, 'CLOSED')}"
    pages = [says({"results": [{"a": 1}, 7], "next": "x"}), says({"results": [{"b": 2}], "next": None})]
    for name, answers in {
        "pages": pages,
        "a page of none": [says({"results": [], "next": "x"})],
        "no list": [says({})],
    }.items():
        server.answers, server.asked = answers, []
        yield f"{name}: {_try(lambda: Client(server.address, TOKEN).fetch_rows('/api/'))} {len(server.asked)} calls"


#: What a client's limits are set to, and what is answered then.
_BOUNDS: list[tuple[str, int, Answer]] = [
    ("_ANSWER_BYTES", 8, says({"a": 1})),
    ("_ANSWER_BYTES", 7, says({"a": 1})),
    ("_REFUSAL_BYTES", 1 << 16, says({"a": "x" * (1 << 16)}, 400)),
    *(("_REFUSAL_BYTES", (1 << 16) - 1, says({"a": "x" * (1 << 16)}, status)) for status in (400, 300, 299)),
    ("_ANSWER_BYTES", 7, says({"a": 1}, 400)),
    ("_SMALL", 40, says([[{"a": 1}], 2, 3, 4, 5, 6, 7, 8, 90000])),
    ("_SMALL", 39, says([[{"a": 1}], 2, 3, 4, 5, 6, 7, 8, 90000])),
    ("_SMALL", 1, says({"a": "x" * 7})),
    ("_SMALL", 1, says({"a": "x" * 6})),
    ("_MESSAGE_LENGTH", 3, says({"error": "four"}, 400)),
    *(
        ("_SMALL", 1 << 20, says({"error": "x"}, 429, Retry_After=wait))
        for wait in ("119", "12345678", "0", "", "-1", "7.5", "²")
    ),
]
_MESSAGES: list[Any] = [{"submission_pk": 3}, {"submission_pk": "4"}, {"submission_pk": None}, {}, [3], 3]


def _list_clients(server: Server) -> Iterator[str]:
    """Yield the client's watching of calls, its estimate of the server's clock, and its limits."""
    for name, limit, answer in _BOUNDS:
        server.answers = [answer]
        with mock.patch.object(clients, name, limit):
            output = _try(lambda: Client(server.address, TOKEN).call("GET", "/"))
        yield re.sub("x{40,}", lambda run: f"{len(run[0])} x", f"{name} of {limit}, {answer}: {output}")
    noted = list[str]()
    client = Client(
        server.address,
        TOKEN,
        lambda urgent: noted.append(f"before {urgent}"),
        lambda urgent: noted.append(f"meanwhile {urgent}"),
    )
    with mock.patch.object(time, "time", return_value=50.0):
        yield f"before any answer: the server's clock says {client.now()} when ours says 50.0, answered at {client.answered_at}"

    def exchange(work: Callable[[Any], Any], watch: Callable[[], None]) -> Any:
        watch()
        return network.exchange(work, lambda: None)

    def with_deadline(seconds: float, watch: Callable[[], None]) -> Callable[[], None]:
        noted.append(f"within {seconds:g} s")
        return watch

    def ahead() -> str:
        return f"{int(round(client.now() - time.time(), -2))} s ahead, has answered: {abs(client.answered_at - time.time()) < 60}"

    server.answers = [says([])]
    with mock.patch.multiple(clients, exchange=exchange, with_deadline=with_deadline):
        client.call("GET", "/")
        client.call("GET", "/", urgent=False, timeout=(1.0, 2.0))
    yield f"a call is watched: {noted}"
    client = Client(server.address, TOKEN)
    yield f"a clock before any answer: {ahead()}"
    for title, hours, status in [
        ("refused", 9, 400), ("one", 1, 200), ("two", 3, 200), ("odd", None, 200), ("three", 2, 200), ("four", 5, 200),
        ("five", 5, 200), ("six", 5, 200),
    ]:  # fmt: skip
        date = "yesterday" if hours is None else email.utils.formatdate(time.time() + 3600 * hours, usegmt=True)
        server.answers = [says({"id": 1}, status, Date=date)]
        _try(lambda: client.call("GET", "/"))
        yield f"a clock after {title}: {ahead()}"

    def stop(urgent: bool) -> None:
        raise network.StoppedError

    def wait(work: Callable[[Any], Any], watch: Callable[[], None]) -> Any:
        watch()

    with mock.patch.object(clients, "exchange", wait):
        yield f"asked to stop: {_try(lambda: Client(server.address, TOKEN, watch=stop).call('GET', '/'))}"
    with mock.patch.object(clients, "_PAGES", 4):
        server.answers, server.asked = [says({"results": [{"a": 1}], "next": "x"})], []
        yield f"pages without an end: {_try(lambda: Client(server.address, TOKEN).fetch_rows('/api/', {}))} {server.asked}"
    yield from (f"a message about {body}: {QueueMessage(body, 'h').submission}" for body in _MESSAGES)
    yield from (
        f"a plain token {token!r}: {clients.is_plain_token(token)}" for token in ("a-1_b", "a b", "é", "a\n", "")
    )
    yield from (
        f"the address {text!r}: {clients.read_address({'KEY': text}, 'KEY', '')}"
        for text in (" a.org/x// ", "http://a/", "a:80")
    )
    yield f"the default address: {clients.read_address({}, 'KEY', 'https://a.org')}"
    with mock.patch.dict(os.environ, {"EVALAI_HOST": "me.org"}):
        yield f"the server: {clients.server_address()}"


def _list_values() -> Iterator[str]:
    file = Path("account")
    file.write_text(_FILE_TEXT)
    for mode in (0o600, 0o640):
        file.chmod(mode)
        for environment in _ACCOUNTS:
            for path in ("account", "none") if mode == 0o600 else ("account",):
                settings = _try(lambda e=environment, p=path: asdict(EvalAISettings.read(e, p)))  # type: ignore[misc]
                yield f"{environment} with {path} of {mode:o}: {settings}"
    yield f"a folder as the file: {_try(lambda: EvalAISettings.read({}, '.'))}"
    yield f"what is shown of an account: {EvalAISettings('h', TOKEN, 1)}"
    yield from (f"the token may go to {address}: {is_safe_for_token(address)}" for address in _ADDRESSES)
    yield from (f"{value!r:.80}: {_try(lambda v=value: rows.check_accuracies(v, _LABELS))}" for value in _ACCURACIES)  # type: ignore[misc]
    yield from (f"the key {value!r}: {rows.parse_key(value)}" for value in _KEYS)
    yield from (
        f"the submission {row}: {rows.parse_submission(row)}, as 4: {rows.parse_submission(row, 4)}"
        for row in _SUBMISSIONS
    )
    yield from (f"labels of {value}: {rows.board_labels({'leaderboard_schema': value})}" for value in (_SCHEMA, {}, 7))
    for label in ("score", "loss", "other"):
        yield f"the largest {label} first: {[rows.is_descending(_SCHEMA, label, row) for row in (True, False, None)]}"


def _list_boards(server: Server) -> Iterator[str]:
    for answers in _PLACES:
        server.answers, server.asked = [*answers], []
        title, boards = fetch_boards(server.address, 9)
        yield f"{title!r}"
        for board in boards:
            yield f"{board.number} {board.name} by {board.order}, {board.decimals} decimals"
            yield from (f"    {row}" for row in board.rows)
            yield board.draw_badge()
        yield from (f"    {asked}" for asked in server.asked)


def write_text() -> str:
    with new_folder(), contextlib.closing(Server()) as server:
        parts = {
            "calls": _list_calls(server),
            "a client": _list_clients(server),
            "a worker's calls": _list_jobs(server),
            "a push": _list_pushes(server),
            "leaderboards": _list_boards(server),
            "values": _list_values(),
        }
        text = "".join(f"── {title} ──\n" + "".join(f"{line}\n" for line in lines) for title, lines in parts.items())
        text = text.replace(server.address, "SERVER")
    return count_repeats(re.sub(r"\bErrno \d+\b", "Errno N", text))


if __name__ == "__main__":
    os.environ.pop("NETRC", None)
    FILE.write_text(write_text(), encoding="utf-8")
