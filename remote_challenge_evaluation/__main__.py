"""`python -m remote_challenge_evaluation`: the remote worker, until it is told to stop.

Exit codes: 0 stopped, 2 settings, 3 the challenge cannot be scored here, 4 the
server no longer lets us.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import requests

from linejudge.evalai.client import ApiError, Client
from linejudge.evalai.jobs import Jobs

from . import health
from .evaluation import described, harden, limited
from .journal import Journal
from .log import Log
from .queues import ApiQueue, OwnQueue, Queue, annotations_from
from .settings import Settings, SettingsError, settings
from .start import StartError, checked
from .sweep import Sweep
from .worker import RightsError, Tools, Worker

STOPPED, SETTINGS, START, RIGHTS = 0, 2, 3, 4
#: Between two turns that found nothing.
_IDLE = 1.0
_TROUBLE, _LONGEST_TROUBLE = 2.0, 60.0
_WEBHOOK_SECONDS = 5.0


def main(arguments: list[str] | None = None) -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(prog="remote_challenge_evaluation", description=__doc__)
    parser.add_argument("--check", action="store_true", help="prove that everything is in place, and touch nothing")
    parser.add_argument("--once", action="store_true", help="score what waits, then end")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes score at once (1)")
    args = parser.parse_args(arguments)
    try:
        told = settings()
    except SettingsError as error:
        return _end(str(error), SETTINGS)
    if args.jobs > 1 and not args.check:
        return _supervise(args)
    try:
        return _Process(told).run(check=args.check, once=args.once)
    except StartError as error:
        return _end(str(error), START)
    except RightsError as error:
        return _end(
            f"EvalAI no longer lets us: {error}\nRenew AUTH_TOKEN; results so far are kept and will be sent.", RIGHTS
        )


def _end(text: str, code: int) -> int:
    sys.stderr.write(f"{text}\n")
    return code


class _Process:
    """One worker process."""

    def __init__(self, told: Settings) -> None:
        harden()
        os.makedirs(told.save_dir, exist_ok=True)
        self._told = told
        self._stop = threading.Event()
        self._journal = Journal(told.save_dir)
        self._log = Log(told.log_format, worker=self._journal.worker)
        self._client = Client(told.api_server, told.auth_token, self._budget)
        self._jobs = Jobs(self._client, told.challenge_pk, told.queue_name, self._stop.wait)
        self._turned = time.monotonic()

    def run(self, *, check: bool, once: bool) -> int:
        """From the start to the end."""
        worker = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._ask_to_stop(worker))
        lines, phases, told = self._started(check=check)
        if check:
            sys.stdout.write("\n".join(lines) + "\n")
            return STOPPED
        for line in lines:
            self._log("start", checked=line)
        tools = self._tools(told)
        worker = Worker(tools, phases)
        if told.health_port:
            health.serve(told.health_port, lambda: self._journal, lambda: self._turned)
        self._loop(worker, Sweep(tools, worker), once=once)
        self._log("stopped")
        self._journal.close()
        return STOPPED

    def _started(self, *, check: bool) -> tuple[list[str], dict[str, Any], Settings]:
        """Everything in place; a server that does not answer is waited for, unless somebody waits for us."""
        try:
            phases = described(os.path.abspath(self._told.save_dir))
            names = [phase["annotation"] for phase in phases.values()]
            folder = annotations_from(self._told.annotations, self._told.save_dir, names)
        except RuntimeError as error:
            raise StartError(str(error)) from None
        told = replace(self._told, annotations=folder, save_dir=os.path.abspath(self._told.save_dir))
        for wait in _growing():
            try:
                return checked(self._jobs, told, phases), phases, told
            except ApiError as error:
                if error.rights:
                    raise RightsError(str(error)) from None
                if check or not error.transient:
                    raise StartError(f"{self._told.api_server}: {error}") from None
                self._log("server away", why=str(error))
                if self._stop.wait(wait):
                    break
        raise StartError("told to stop before it began")

    def _tools(self, told: Settings) -> Tools:
        queue: Queue = OwnQueue(told, self._log) if told.sqs_queue_url else ApiQueue(self._jobs, self._journal, told)
        return Tools(told, self._journal, self._jobs, queue, self._log, self._alert, self._client.now, self._stop)

    def _loop(self, worker: Worker, sweep: Sweep, *, once: bool) -> None:
        trouble = _growing()
        if not limited():
            self._log("not limited", what="processes and CPU of scorers: let the unit or the container do it")
        if once:
            self._journal.set("poll_at", 0)
        while not self._stop.is_set():
            self._turned = time.monotonic()
            try:
                sweep.look()
                busy = worker.turn()
                trouble = _growing()
            except ApiError as error:
                if error.rights:
                    self._alert(f"EvalAI no longer lets us: {error}")
                    raise RightsError(str(error)) from None
                self._log("server away", why=str(error))
                self._stop.wait(max(next(trouble), error.wait or 0.0))
                continue
            if not busy and once:
                return
            if not busy:
                self._stop.wait(_IDLE)

    def _ask_to_stop(self, worker: Worker | None) -> None:
        """Finish what is in hand, or hand it back when that takes too long."""
        self._stop.set()
        if worker is not None:
            timer = threading.Timer(self._told.grace_seconds, worker.hurry)
            timer.daemon = True
            timer.start()

    def _budget(self, urgent: bool) -> None:  # noqa: FBT001 - what the client calls
        """Wait for a request of the machine's budget."""
        while wait := self._journal.request(self._told.requests_per_minute, urgent=urgent):
            if self._stop.wait(min(wait, 5.0)) and not urgent:
                raise ApiError(0, "told to stop")
            if self._stop.is_set():
                time.sleep(min(wait, 1.0))

    def _alert(self, text: str) -> None:
        """Tell the operator, here and elsewhere."""
        self._log("ALERT", text=text)
        self._journal.add("faults")
        if self._told.webhook:
            with suppress(requests.RequestException):
                requests.post(self._told.webhook, json={"text": f"linejudge worker: {text}"}, timeout=_WEBHOOK_SECONDS)


def _growing() -> Any:
    wait = _TROUBLE
    while True:
        yield wait
        wait = min(_LONGEST_TROUBLE, 2 * wait)


# ── several processes ───────────────────────────────────────────────────────


def _supervise(args: argparse.Namespace) -> int:
    """So many workers as processes of their own; one that dies comes back, one that may not go on ends all."""
    stop = threading.Event()
    command = [sys.executable, "-m", __package__, *(["--once"] if args.once else [])]
    start: Callable[[int], subprocess.Popen[bytes]] = lambda number: subprocess.Popen(  # noqa: E731
        command, env=os.environ if not number else {**os.environ, "HEALTH_PORT": "0"}
    )
    workers = [start(number) for number in range(args.jobs)]
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: stop.set())
    code, running = STOPPED, set(range(args.jobs))
    while running and not stop.wait(0.5):
        for number in sorted(running):
            ended = workers[number].poll()
            if ended is None:
                continue
            if ended in (SETTINGS, START, RIGHTS):
                code = ended
                stop.set()
            elif ended == STOPPED and args.once:
                running.discard(number)
            else:
                stop.wait(_TROUBLE)
                workers[number] = start(number)
    for process in workers:
        if process.poll() is None:
            process.terminate()
    for process in workers:
        process.wait()
    return code


if __name__ == "__main__":
    sys.exit(main())
