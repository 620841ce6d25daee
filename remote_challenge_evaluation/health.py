"""The pages of monitoring, on loopback: whether the worker is alive, and numbers for Prometheus."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .journal import Journal
from .journal_file import JournalError

LOOPBACK = "127.0.0.1"
#: Seconds without a look after which the worker is not healthy.
_STALE_SECONDS = 300.0
#: Seconds within which a request has to come.
_REQUEST_SECONDS = 10.0
#: The metrics: their kind, the journal's number, and what they are.
_METRICS = {
    "waiting": ("gauge", "waiting", "Submissions that wait on the server, at the last sweep."),
    "oldest_waiting_seconds": ("gauge", "oldest_waiting_seconds", "How long the oldest of them waits."),
    "download_seconds_total": ("counter", "seconds_download", "Seconds spent in fetching submissions."),
    "scoring_seconds_total": ("counter", "seconds_scoring", "Seconds spent in scoring."),
    "reporting_seconds_total": ("counter", "seconds_reporting", "Seconds spent in reporting results."),
    "requests_total": ("counter", "requests", "Calls of the API."),
    "faults_total": ("counter", "faults", "Faults of ours that were reported."),
}


def serve(
    port: int, journal: Callable[[], Journal], last_look: Callable[[], float], answered_at: Callable[[], float]
) -> ThreadingHTTPServer:
    """Answer in a thread; `last_look` returns when the worker was last alive, `answered_at` when EvalAI answered."""
    started = time.time()

    class Handler(BaseHTTPRequestHandler):
        """Answers two pages."""

        timeout = _REQUEST_SECONDS

        def do_GET(self) -> None:
            """Answer the page."""
            if self.path == "/healthz":
                idle = time.monotonic() - last_look()
                self._answer(200 if idle < _STALE_SECONDS else 503, _health(started, idle, answered_at()))
            elif self.path == "/metrics":
                try:
                    self._answer(200, metrics(journal()))
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
    """Return since when the worker runs or stands still, and when EvalAI answered last."""
    last = f"{_moment(time.time() - idle)}, {idle:.0f} s ago"
    state = f"runs since {_moment(started)}; its last turn was at {last}"
    if idle >= _STALE_SECONDS:
        state = f"stands still since {last}; it was started at {_moment(started)}"
    return f"{state}\nEvalAI answered last at {_moment(answered_at)}, {time.time() - answered_at:.0f} s ago\n"


def _moment(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(round(seconds), datetime.UTC).isoformat().replace("+00:00", "Z")


def metrics(journal: Journal) -> str:
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
