"""Notifications are sent, never delay a score, and never show an address."""

from __future__ import annotations

import http.server
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Iterator

import pytest

from segjudge.evaluation_script import evaluate, main
from segjudge.evaluation_script.phases import PHASES
from segjudge.evaluation_script.scoring import notify
from segjudge.evaluation_script.scoring.phase import Notify
from tests.builders import ANNOTATIONS, DEV, STRONG

SUBMISSION = {"id": 12, "participant_team_name": "Team", "input_file": "https://secret.example/file.zip"}


class Hook(http.server.BaseHTTPRequestHandler):
    """A webhook that stores its messages; `delay` makes it slow, `status` unfriendly."""

    got: ClassVar[list[tuple[str, Any]]] = []
    delay = 0.0
    status = 200

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).got.append((self.path, body))
        time.sleep(self.delay)
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hook]]:
    Hook.got, Hook.delay, Hook.status = [], 0.0, 200
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("SEGJUDGE_SLACK", f"http://127.0.0.1:{server.server_port}/slack-token")
    monkeypatch.setenv("SEGJUDGE_WEBHOOK", f"http://127.0.0.1:{server.server_port}/hook-token")
    monkeypatch.setattr(main, "PHASES", (replace(PHASES[0], notify=Notify()),))
    yield Hook
    server.shutdown()
    server.server_close()


def test_slack_and_webhook_are_told(hook: type[Hook]) -> None:
    answer = evaluate(str(ANNOTATIONS), str(STRONG), DEV, submission_metadata=SUBMISSION)

    output = dict(hook.got)
    assert "Submission 12 of Team in sequences-dev scored dev: J&F-Mean 0.9325" in output["/slack-token"]["text"]
    assert list(output["/slack-token"]) == ["text"]
    assert output["/hook-token"]["result"] == answer["result"]
    assert output["/hook-token"]["submission"]["id"] == 12
    assert "secret.example" not in json.dumps(output)


def test_a_slow_hook_costs_three_seconds_at_most(hook: type[Hook], monkeypatch: pytest.MonkeyPatch) -> None:
    hook.delay = 30
    monkeypatch.setattr(notify, "TIMEOUT_SECONDS", 0.5)
    started = time.monotonic()

    answer = evaluate(str(ANNOTATIONS), str(STRONG), DEV)

    assert answer["result"]
    assert time.monotonic() - started < hook.delay


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9/secret-token", "ftp://x/secret-token", "secret-token", "file:///etc/passwd"]
)
def test_a_broken_address_touches_nothing_and_is_not_printed(
    address: str, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setenv("SEGJUDGE_SLACK", address)
    monkeypatch.delenv("SEGJUDGE_WEBHOOK", raising=False)
    monkeypatch.setattr(main, "PHASES", (replace(PHASES[0], notify=Notify()),))

    assert evaluate(str(ANNOTATIONS), str(STRONG), DEV)["result"]
    printed = "".join(capfd.readouterr())
    assert "secret-token" not in printed
    assert "passwd" not in printed
    assert "slack notification failed" in printed


def test_addresses_may_stand_in_a_file_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("SLACK", "WEBHOOK"):
        monkeypatch.delenv(f"SEGJUDGE_{kind}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert notify.read_addresses() == {}
    path = tmp_path / ".config/segjudge/notify.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"slack": "https://a", "webhook": 5, "other": "https://b"}')
    assert notify.read_addresses() == {"slack": "https://a"}
    path.write_text("not json")
    assert notify.read_addresses() == {}
