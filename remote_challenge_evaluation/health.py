"""The pages of monitoring, on loopback: whether the worker is alive, and numbers for Prometheus."""

from __future__ import annotations

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
_METRICS = {
    "waiting": ("gauge", "Submissions that wait on the server, at the last sweep."),
    "oldest_waiting_seconds": ("gauge", "How long the oldest of them waits."),
    "seconds_download": ("counter", "Seconds spent in fetching submissions."),
    "seconds_scoring": ("counter", "Seconds spent in scoring."),
    "seconds_reporting": ("counter", "Seconds spent in reporting results."),
    "requests": ("counter", "Calls of the API."),
    "faults": ("counter", "Faults of ours that were reported."),
}


def serve(port: int, journal: Callable[[], Journal], last_look: Callable[[], float]) -> ThreadingHTTPServer:
    """Answer in a thread; `last_look` returns when the worker was last alive."""

    class Handler(BaseHTTPRequestHandler):
        """Answers two pages."""

        timeout = _REQUEST_SECONDS

        def do_GET(self) -> None:
            """Answer the page."""
            if self.path == "/healthz":
                idle = time.monotonic() - last_look()
                self._answer(200 if idle < _STALE_SECONDS else 503, f"last turn {idle:.0f} s ago\n")
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


def metrics(journal: Journal) -> str:
    """Return the numbers in Prometheus' text format."""
    lines = []
    numbers = journal.numbers()
    for key, (kind, about) in _METRICS.items():
        name = f"segjudge_worker_{key}"
        lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}", f"{name} {numbers.get(key, 0.0):g}"]
    name = "segjudge_worker_jobs"
    lines += [f"# HELP {name} Jobs in the journal, by outcome or state.", f"# TYPE {name} gauge"]
    lines += [f'{name}{{outcome="{outcome}"}} {count}' for outcome, count in sorted(journal.counts().items())]
    return "\n".join(lines) + "\n"
