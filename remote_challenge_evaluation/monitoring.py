"""Monitoring of a worker: log, webhook, and health and metrics pages on loopback."""

from __future__ import annotations

import datetime
import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from segjudge.system.files import redact
from segjudge.system.network import StoppedError, Watch, WireError, exchange, with_deadline

from .journal import Journal, JournalError

#: The maximum number of characters of a fact.
_FACT_LENGTH = 4000
#: The facts that are sentences; readable lines show them without their names.
_SENTENCES = ("text", "why")
#: Events that need a person, and events that pass or are postponed; all others are normal.
_ERRORS = ("ALERT", "defect", "fault of ours")
_WARNINGS = (
    "journal", "journal unavailable", "server unavailable", "webhook unavailable", "refused", "not ready",
    "not limited", "copy not kept", "postponed", "unfinished", "message left", "message dropped",
    "message not deleted", "heartbeat lost", "result refused",
)  # fmt: skip
_WEBHOOK_SECONDS = 5.0


class Log:
    """A log of lines for people or as JSON, each with the fixed facts."""

    def __init__(self, form: str, **fixed: object) -> None:
        self._form, self._fixed = form, fixed

    def __call__(self, event: str, **facts: object) -> None:
        """Write one event and its facts, without secrets in URLs."""
        facts = {key: redact(value) if isinstance(value, str) else value for key, value in facts.items()}
        time_text = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        if self._form == "json":
            level = "error" if event in _ERRORS else "warning" if event in _WARNINGS else "info"
            line = json.dumps({"time": time_text, "level": level, "event": event, **self._fixed, **facts}, default=str)
        else:
            texts = {key: _line(value) for key, value in facts.items() if value not in ("", None)}
            text = " ".join(texts.pop(key) for key in _SENTENCES if key in texts)
            named = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in texts.items())
            line = f"{time_text}  {event:<22} {f'{text} ({named})' if text and named else text or named}".rstrip()
        # A failing log (a full disk, a closed pipe) must not cost a submission.
        with suppress(OSError, ValueError):
            sys.stderr.write(line + "\n")
            sys.stderr.flush()


def _line(value: object) -> str:
    """Return text as one line without control characters."""
    return "".join(character if character.isprintable() else " " for character in str(value)[:_FACT_LENGTH])


def send_to_webhook(address: str, text: str, log: Log, watch: Watch) -> None:
    """Send text to the operator's webhook; a webhook that does not answer is logged."""
    try:
        exchange(
            lambda session: session.post(address, json={"text": text}, timeout=_WEBHOOK_SECONDS, stream=True),
            with_deadline(_WEBHOOK_SECONDS, watch),
        )
    except (WireError, StoppedError) as error:
        log("webhook unavailable", why=str(error))


LOOPBACK = "127.0.0.1"
#: Seconds without a check after which the worker is unhealthy.
_STALE_SECONDS = 300.0
#: The maximum seconds of a request.
_REQUEST_SECONDS = 10.0
#: The metrics: type, name of the number, and description.
_METRICS = {
    "waiting": ("gauge", "waiting", "Submissions waiting on the server at the last sweep."),
    "oldest_waiting_seconds": ("gauge", "oldest_waiting_seconds", "Age of the oldest waiting submission."),
    "download_seconds_total": ("counter", "seconds_download", "Seconds spent downloading submissions."),
    "scoring_seconds_total": ("counter", "seconds_scoring", "Seconds spent scoring."),
    "reporting_seconds_total": ("counter", "seconds_reporting", "Seconds spent reporting results."),
    "requests_total": ("counter", "requests", "Calls of the API."),
    "faults_total": ("counter", "faults", "Alerts that the worker raised."),
}


def serve_health(
    port: int, journal: Callable[[], Journal], last_look: Callable[[], float], answered_at: Callable[[], float]
) -> ThreadingHTTPServer:
    """Serve health in a thread; `last_look` gives the worker's last sign of life, `answered_at` EvalAI's."""
    started = time.time()

    class Handler(BaseHTTPRequestHandler):
        """The handler of the health and metrics pages."""

        timeout = _REQUEST_SECONDS

        def do_GET(self) -> None:
            if self.path == "/healthz":
                idle = time.monotonic() - last_look()
                self._answer(200 if idle < _STALE_SECONDS else 503, _health(started, idle, answered_at()))
            elif self.path == "/metrics":
                try:
                    self._answer(200, _metrics(journal()))
                except JournalError as error:
                    self._answer(503, f"{error}\n")
            else:
                self._answer(404, "/healthz and /metrics\n")

        def _answer(self, status: int, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own name
            """Log nothing."""

    server = ThreadingHTTPServer((LOOPBACK, port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _health(started: float, idle: float, answered_at: float) -> str:
    last_turn = f"{_moment(time.time() - idle)}, {idle:.0f} s ago"
    state = f"running since {_moment(started)}; last turn at {last_turn}"
    if idle >= _STALE_SECONDS:
        state = f"stalled since {last_turn}; started at {_moment(started)}"
    return f"{state}\nEvalAI last answered at {_moment(answered_at)}, {time.time() - answered_at:.0f} s ago\n"


def _moment(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(round(seconds), datetime.timezone.utc).isoformat().replace("+00:00", "Z")


def _metrics(journal: Journal) -> str:
    """Return the numbers in Prometheus' text format."""
    lines = []
    numbers = journal.numbers()
    for metric, (kind, key, about) in _METRICS.items():
        name = f"segjudge_worker_{metric}"
        lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}", f"{name} {numbers.get(key, 0.0):g}"]
    name = "segjudge_worker_jobs"
    lines += [f"# HELP {name} Jobs in the journal, by outcome or state.", f"# TYPE {name} gauge"]
    lines += [f'{name}{{outcome="{outcome}"}} {count}' for outcome, count in sorted(journal.counts().items())]
    return "\n".join(lines) + "\n"
