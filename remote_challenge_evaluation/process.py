"""One worker process: from its settings to its end, through everything that a server, a network or a disk does."""

from __future__ import annotations

import errno
import os
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from segjudge.evalai.client import ApiError, Client
from segjudge.evalai.http_exchange import StoppedError, WireError, exchange, within
from segjudge.evalai.jobs import Jobs

from . import health
from .evaluation import forbid_inspection, has_process_limit, read_annotations, read_phases
from .journal import Journal
from .journal_file import DamagedError, JournalError, UnusableError, examined
from .operator_log import Log
from .queues import ApiQueue, OwnQueue, WorkQueue, annotations_from
from .reporting import RightsError, Tools, is_refusal
from .scoring_messages import ScoredPhase
from .settings import SettingsError, WorkerSettings
from .startup_check import StartError, checked, checked_annotations
from .stopping import Stop
from .sweep import Sweep
from .worker import Worker

#: Between two turns that found nothing.
_IDLE = 1.0
_TROUBLE, _LONGEST_TROUBLE = 2.0, 60.0
_WEBHOOK_SECONDS = 5.0
#: The server's word that a token, or a challenge, is not ours is believed when it says so as often.
_REFUSALS, _REFUSAL_PAUSE = 4, 2.0
#: `--once` waits so long for a submission that was put off.
_ONCE_PATIENCE = 60.0
#: A look of `--once` into a queue of the host's own.
_ONCE_LOOK = 2
#: Errors of a disk that may pass.
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)


class WorkerLoop:
    """A worker, as long as it lives."""

    _journal: Journal

    def __init__(self, told: WorkerSettings, *, once: bool = False) -> None:
        forbid_inspection()
        os.umask(0o077)
        self._told, self._once = replace(told, save_dir=os.path.abspath(told.save_dir)), once
        self._stop = Stop(told.grace_seconds)
        self._stop.listen()
        self._log = Log(told.log_format)
        self._client = Client(told.api_server, told.auth_token, self._budget, self._watch)
        self._jobs = Jobs(self._client, told.challenge_pk, told.queue_name, self._stop.wait)
        self._beat()

    # ── a proof ─────────────────────────────────────────────────────────────

    def check(self) -> list[str]:
        """Prove that everything is in place, and touch nothing; lines that say what is."""
        wrong = _unusable(self._told.save_dir) or examined(self._told.save_dir)
        if wrong:
            raise StartError(wrong)
        with tempfile.TemporaryDirectory(prefix="segjudge-check-") as folder:
            # A journal of its own: for the limit of requests, and for annotations that come from a bucket.
            self._journal = Journal(folder, self._stop.check)
            try:
                phases, told = self._local(folder)
                lines = checked(self._jobs, told, phases)
                found = read_annotations(folder, told.annotations, self._stop.check)
                return lines + checked_annotations(found, phases)
            except RuntimeError as error:
                raise StartError(str(error)) from None
            except ApiError as error:
                if error.denied:
                    raise RightsError(str(error)) from None
                raise StartError(f"{told.api_server}: {error}") from None
            finally:
                self._journal.close()

    # ── a life ──────────────────────────────────────────────────────────────

    def run(self) -> None:
        """Score until asked to stop."""
        with suppress(StoppedError):
            self._open()
            try:
                self._live(*self._started())
            finally:
                self._journal.close()
        self._log("stopped")

    def _live(self, phases: dict[str, ScoredPhase], told: WorkerSettings) -> None:
        tools = self._tools(told)
        worker = Worker(tools, phases)
        if told.health_port:
            self._serve_health(told.health_port)
        self._loop(worker, Sweep(tools, worker))

    def _open(self) -> None:
        """The journal, as soon as the disk lets us."""
        for wait in _growing():
            try:
                os.makedirs(self._told.save_dir, mode=0o700, exist_ok=True)
                say = lambda text: self._log("journal", text=text)  # noqa: E731
                self._journal = Journal(self._told.save_dir, self._stop.check_over, say)
            except UnusableError as error:
                raise StartError(str(error)) from None
            except JournalError as error:
                why = str(error)
            except OSError as error:
                why = f"SAVE_DIR {self._told.save_dir}: cannot be used ({error.strerror})"
                if error.errno not in _PASSING:
                    raise SettingsError(f"{why}. Name a folder of the worker's own") from None
            else:
                break
            self._trouble("journal away", why, wait)
            self._stop.check()
        self._log = Log(self._told.log_format, worker=self._journal.worker)

    def _local(self, folder: str) -> tuple[dict[str, ScoredPhase], WorkerSettings]:
        """What this machine can score, and with which annotations; RuntimeError where it cannot be found out."""
        phases = read_phases(folder, self._stop.check)
        names = [phase["annotation"] for phase in phases.values()]
        owner = self._journal.worker
        annotations = annotations_from(self._told.annotations, folder, names, owner, self._stop.check)
        return phases, replace(self._told, annotations=annotations)

    def _started(self) -> tuple[dict[str, ScoredPhase], WorkerSettings]:
        """Everything in place; a server that does not answer is waited for."""
        removed = self._journal.owners.clean()
        if removed:
            self._log("removed", what="what dead workers left", paths=", ".join(removed))
        try:
            phases, told = self._local(self._told.save_dir)
        except RuntimeError as error:
            raise StartError(str(error)) from None
        refusals = 0
        for wait in _growing():
            self._stop.check()
            self._beat()
            try:
                for line in checked(self._jobs, told, phases):
                    self._log("start", checked=line)
                return phases, told
            except (StartError, ApiError) as error:
                final = isinstance(error, StartError) or is_refusal(error) or not (error.denied or error.transient)
                refusals = refusals + 1 if final else 0
                if refusals >= _REFUSALS:
                    raise _finally(error, told.api_server) from None
                self._trouble("server away", str(error), _REFUSAL_PAUSE if final else wait)
            except (JournalError, OSError) as error:
                self._trouble("journal away", str(error), wait)
        raise AssertionError("waits do not end")

    def _tools(self, told: WorkerSettings) -> Tools:
        queue: WorkQueue
        if told.sqs_queue_url:
            try:
                queue = OwnQueue(told, self._log, self._stop.check, *([_ONCE_LOOK] if self._once else []))
            except Exception as error:  # noqa: BLE001 - botocore's errors have no family
                raise StartError(f"SQS_QUEUE_URL: {error}") from None
        else:
            queue = ApiQueue(self._jobs, self._journal, told, self._log)
        now, alert, beat = self._client.now, self._alert, self._beat
        return Tools(told, self._journal, self._jobs, queue, self._log, alert, now, self._stop, beat, self._once)

    def _loop(self, worker: Worker, sweep: Sweep) -> None:
        trouble = _growing()
        if not has_process_limit():
            self._log("not limited", what="processes and CPU of scorers: let the unit or the container do it")
        look = self._once
        while not self._stop.is_set():
            self._beat()
            try:
                self._journal.keep_up()
                if look:  # whoever looked last, and whatever came of it
                    self._journal.set("poll_at", 0)
                    look = False
                sweep.look()
                busy = worker.turn()
                if not busy and self._once and self._is_done():
                    return
            except Exception as error:  # noqa: BLE001 - nothing that a server or a disk does ends a worker
                self._met(error, next(trouble))
                look = self._once
                continue
            trouble = _growing()
            if not busy:
                self._stop.wait(_IDLE)

    def _met(self, error: Exception, wait: float) -> None:
        """Say what went wrong, and wait; raise what only a person can change."""
        if isinstance(error, StoppedError):
            return
        if isinstance(error, UnusableError):
            raise StartError(str(error)) from None
        if isinstance(error, RightsError) or (isinstance(error, ApiError) and is_refusal(error)):
            if self._is_refused():
                self._alert(f"EvalAI no longer accepts AUTH_TOKEN: {error}")
                raise RightsError(str(error)) from None
            self._trouble("refused", str(error), wait)
        elif isinstance(error, ApiError):
            self._trouble("server away", str(error), max(wait, error.wait or 0.0))
        elif isinstance(error, (JournalError, OSError)):
            self._trouble("journal away", str(error), wait)
            if isinstance(error, DamagedError):
                self._reopen()
        else:
            self._log("defect", why="".join(traceback.format_exception(error)))
            self._trouble("defect", f"{type(error).__name__}: {error}", wait)

    def _reopen(self) -> None:
        try:
            self._journal.reopen()
        except (JournalError, OSError) as error:
            self._log("journal away", why=str(error))

    def _is_refused(self) -> bool:
        """Whether the server says again and again that the token is not accepted."""
        for _ in range(_REFUSALS):
            if self._stop.wait(_REFUSAL_PAUSE):
                return False
            try:
                self._jobs.challenge()
            except ApiError as error:
                if not is_refusal(error):
                    return False
            else:
                return False
        return True

    def _is_done(self) -> bool:
        """Whether `--once` has nothing left to wait for."""
        wait = self._journal.waits()
        if wait is None:
            return True
        if wait > _ONCE_PATIENCE:
            self._log("left", what="submissions that were put off; start the worker again", seconds=round(wait))
            return True
        if wait > _IDLE:
            self._log("waits", what="a submission that was put off", seconds=round(wait))
            self._stop.wait(wait)
        return False

    # ── what others call ────────────────────────────────────────────────────

    def _beat(self) -> None:
        self._turned = time.monotonic()

    def _watch(self, urgent: bool) -> None:  # noqa: FBT001 - what the client calls
        """During a call: an urgent one reports what is in hand."""
        self._beat()
        if urgent:
            self._stop.check_over()
        else:
            self._stop.check()

    def _budget(self, urgent: bool) -> None:  # noqa: FBT001 - what the client calls
        """Wait for a request of the machine's budget."""
        most, said = self._told.requests_per_minute, False
        # A single run keeps one request for its last look, so that it ends soon after its last report.
        most = max(1, most - 1) if self._once and urgent else most
        while wait := self._journal.request(most, urgent=urgent or self._once):
            if wait > _IDLE and not said:
                said = True
                self._log(
                    "waits",
                    what=f"the limit of {self._told.requests_per_minute} requests a minute",
                    seconds=round(wait),
                )
            if self._stop.is_over() or (self._stop.is_set() and not urgent):
                raise ApiError(0, "asked to stop")
            self._beat()
            if self._stop.wait(min(wait, 1.0)):
                time.sleep(0.1)

    def _serve_health(self, port: int) -> None:
        try:
            health.serve(port, lambda: self._journal, lambda: self._turned)
        except OSError as error:
            raise SettingsError(f"HEALTH_PORT {port}: cannot be used ({error.strerror})") from None

    def _trouble(self, event: str, why: str, wait: float) -> None:
        self._log(event, why=why, again_in=f"{wait:g} s")
        self._stop.wait(wait)

    def _alert(self, text: str) -> None:
        """Tell the operator, here and elsewhere."""
        self._log("ALERT", text=text)
        self._journal.add("faults")
        if not self._told.webhook:
            return
        options: dict[str, Any] = {"json": {"text": f"segjudge worker: {text}"}, "timeout": _WEBHOOK_SECONDS}
        try:
            watch = within(_WEBHOOK_SECONDS, self._stop.check_over)
            exchange(lambda session: session.post(self._told.webhook, stream=True, **options), watch)
        except (WireError, StoppedError) as error:
            self._log("webhook away", why=str(error))


def _unusable(folder: str) -> str:
    """Why a state folder cannot be made or written; nothing where it can."""
    place = folder
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        return f"SAVE_DIR {folder}: {place} is not a folder"
    return "" if os.access(place, os.W_OK | os.X_OK) else f"SAVE_DIR {folder}: {place} cannot be written"


def _finally(error: StartError | ApiError, server: str) -> Exception:
    """What ends a start that was refused often enough."""
    if isinstance(error, StartError):
        return error
    return RightsError(str(error)) if error.denied else StartError(f"{server}: {error}")


def _growing() -> Iterator[float]:
    wait = _TROUBLE
    while True:
        yield wait
        wait = min(_LONGEST_TROUBLE, 2 * wait)
