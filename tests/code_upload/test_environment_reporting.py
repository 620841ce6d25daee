"""An environment delivers its result to a server that is slow, down, or contradictory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from segjudge.code_upload.messages import Labels
from tests.environments import SIZE, Caller, Served, dataset

BODY = json.dumps({"challenge_pk": "7", "phase_pk": "3", "submission_pk": 41, "submitted_image_uri": "it's:1"})
GOOD = Labels(SIZE, {})


class Diary:
    """A simulated EvalAI that records calls, and answers as configured."""

    def __init__(self, answers: list[tuple[int, str]]) -> None:
        self.answers, self.reports, self.tokens = answers, [], []
        self.paths: list[str] = []

    def answer(self, path: str, token: str, body: Any) -> tuple[int, str]:
        self.paths.append(path)
        self.tokens.append(token)
        self.reports.append(body)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def evalai(*answers: tuple[int, str]) -> Iterator[tuple[str, Diary]]:
    diary = Diary(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, text = diary.answer(self.path, self.headers["Authorization"], body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", diary
    finally:
        server.shutdown()
        server.server_close()


DONE = (200, '{"success": "updated"}')


def served(folder: Path, server: str, *arguments: str) -> Served:
    return Served(
        folder, *dataset(folder), "--gone-seconds", "1", *arguments,
        LOCAL_EVALUATION="", AUTH_TOKEN="secret-token", EVALAI_API_SERVER=server, BODY=BODY, SUBMISSION_TIME_LIMIT="60",
    )  # fmt: skip


def played(running: Served) -> Any:
    agent = Caller(running.address)
    agent.begin()
    for _ in range(11):
        reply = agent.act(GOOD, timeout=60)
    agent.close()
    return reply


def ended(running: Served) -> int:
    code = running.process.wait(timeout=120)
    running.end()
    return code


@pytest.mark.long
def test_the_result_is_put_until_it_is_accepted_and_only_then_all_is_complete(tmp_path: Path) -> None:
    broken = (502, "<html>bad gateway</html>")
    with evalai(broken, (500, '{"error": "later"}'), (429, '{"detail": "slowly"}'), DONE) as (server, diary):
        running = served(tmp_path, server)
        reply = played(running)
        assert len(diary.reports) == 4, "the reply was held until the server took it"
        assert reply.all_complete
        assert ended(running) == 0
    last = diary.reports[-1]
    assert diary.paths[-1] == "/api/jobs/challenge/7/update_submission/"
    assert diary.tokens[-1] == "Bearer secret-token"
    assert (last["submission"], last["challenge_phase"], last["submission_status"]) == (41, 3, "FINISHED")
    (split,) = json.loads(last["result"])
    assert split["split"] == "test"
    assert split["show_to_participant"] is True
    assert 0 <= split["accuracies"]["J&F-Mean"] <= 1
    assert json.loads(last["metadata"])["steps"] == 11
    assert "secret-token" not in (tmp_path / "environment.log").read_text()
