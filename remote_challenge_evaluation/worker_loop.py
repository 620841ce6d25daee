"""The loop of a worker process, which survives failures of server and disk; several run at once."""

from __future__ import annotations

import errno
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from segjudge.platforms.evalai.client import ApiError, Client, Jobs
from segjudge.platforms.evalai.rows import ChallengeRow, board_labels, parse_key
from segjudge.system.network import StoppedError, growing_pauses
from segjudge.system.processes import Child, Streams

from .journal import DamagedError, Journal, JournalError, UnusableError
from .monitoring import Log, send_to_webhook, serve_health
from .scorer_process import forbid_inspection, read_annotations, read_phases
from .services import ApiQueue, HostQueue, Stop, TokenRefusedError, WorkerServices, WorkQueue, fetch_annotations
from .settings import ScoredPhase, SettingsError, StartError, WorkerSettings
from .worker import Sweep, Worker

#: Seconds between turns without work.
_IDLE = 1.0
#: The number of refusals after which a token, or a challenge, counts as refused.
_REFUSALS, _REFUSAL_PAUSE = 4, 2.0
#: The maximum seconds that `--once` waits for a delayed submission.
_ONCE_PATIENCE = 60.0
#: The seconds without progress after which `--once` ends.
_ONCE_STALLED = 120.0
#: Seconds that a poll of `--once` waits in a queue of the host's own.
_ONCE_POLL = 2
#: Temporary errors of a disk.
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)


class WorkerLoop:
    """The loop that runs a worker until it is asked to stop."""

    _journal: Journal

    def __init__(self, settings: WorkerSettings, *, once: bool = False) -> None:
        forbid_inspection()
        os.umask(0o077)
        self._settings, self._once = settings.with_absolute_paths(), once
        self._stop = Stop(settings.grace_seconds)
        self._stop.listen()
        self._log = Log(settings.log_format)
        self._client = Client(settings.api_server, settings.auth_token, self._wait_for_request, self._watch)
        self._jobs = Jobs(self._client, settings.challenge_pk, settings.queue_name, self._stop.wait)

    def check(self) -> list[str]:
        """Check that a start would succeed, without changes; return the findings as lines."""
        problem = _folder_problem(self._settings.save_dir) or Journal.problem_in(self._settings.save_dir)
        if problem:
            raise StartError(problem)
        with tempfile.TemporaryDirectory(prefix="segjudge-check-") as folder:
            # A journal of its own: for the limit of requests, and for annotations that come from a bucket.
            self._journal = Journal(folder, self._stop.check)
            try:
                phases = self._read_challenge(folder)
                lines = _check_challenge(self._jobs, self._settings, phases)
                if any("script" in phase for phase in phases.values()):
                    return lines  # a host's own files are for its own evaluate() to read
                return lines + read_annotations(folder, self._settings.scorer_choice, self._stop.check)
            except ApiError as error:
                raise self._start_failure(error) from None
            finally:
                self._journal.close()

    def run(self) -> None:
        with suppress(StoppedError):
            self._open_journal()
            try:
                phases = self._wait_for_phases()
                services = self._services()
                worker = Worker(services, phases)
                if self._settings.health_port:
                    self._serve_health(self._settings.health_port)
                self._loop(worker, Sweep(services, worker))
            finally:
                self._journal.close()
        self._log("stopped")

    # ── the start ───────────────────────────────────────────────────────────

    def _open_journal(self) -> None:
        folder = self._settings.save_dir
        for pause in growing_pauses():
            try:
                os.makedirs(folder, mode=0o700, exist_ok=True)
                self._journal = Journal(folder, self._stop.check_over, lambda text: self._log("journal", text=text))
            except UnusableError as error:
                raise StartError(str(error)) from None
            except JournalError as error:
                why = str(error)
            except OSError as error:
                why = f"SAVE_DIR {folder}: cannot be used ({error.strerror})"
                if error.errno not in _PASSING:
                    raise SettingsError(f"{why}. Name a folder of the worker's own") from None
            else:
                break
            self._pause("journal unavailable", why, pause)
            self._stop.check()
        self._log = Log(self._settings.log_format, worker=self._journal.worker)

    def _read_challenge(self, folder: str) -> dict[str, ScoredPhase]:
        """Return the phases that this machine can score, and locate their annotations."""
        phases = read_phases(folder, self._settings.scorer_choice, self._stop.check)
        names = [phase["annotation"] for phase in phases.values() if phase["annotation"]]
        address, owner = self._settings.annotations, self._journal.worker
        annotations = fetch_annotations(address, folder, names, owner, self._stop.check)
        self._settings = replace(self._settings, annotations=annotations)
        return phases

    def _wait_for_phases(self) -> dict[str, ScoredPhase]:
        """Return the phases once everything is ready, waiting for an unresponsive server."""
        removed = self._journal.owners.remove_abandoned()
        if removed:
            self._log("removed", text="files of dead workers", paths=", ".join(removed))
        phases = self._read_challenge(self._settings.save_dir)
        refusals = 0
        for pause in growing_pauses():
            self._stop.check()
            try:
                for line in _check_challenge(self._jobs, self._settings, phases):
                    self._log("start", text=line)
                break
            except (StartError, ApiError) as error:
                is_final = not isinstance(error, ApiError) or (
                    error.refuses_token or not (error.denied or error.is_transient)
                )
                refusals = refusals + 1 if is_final else 0
                if refusals >= _REFUSALS:
                    raise self._start_failure(error) from None
                event = "server unavailable" if isinstance(error, ApiError) else "not ready"
                self._pause(event, str(error), _REFUSAL_PAUSE if is_final else pause)
            except (JournalError, OSError) as error:
                self._pause("journal unavailable", str(error), pause)
        return phases

    def _start_failure(self, error: StartError | ApiError) -> Exception:
        if isinstance(error, StartError):
            return error
        if error.denied:
            return TokenRefusedError(str(error))
        server, fault = self._settings.api_server, str(error)
        return StartError(fault if fault.startswith(server) else f"{server}: {fault}")

    def _services(self) -> WorkerServices:
        settings = self._settings
        queue: WorkQueue
        if settings.sqs_queue_url:
            try:
                queue = HostQueue(settings, self._log, self._stop.check, *([_ONCE_POLL] if self._once else []))
            except Exception as error:  # noqa: BLE001 - botocore's errors have no family
                raise StartError(f"SQS_QUEUE_URL: {error}") from None
        else:
            queue = ApiQueue(self._jobs, self._journal, settings.poll_seconds)
        return WorkerServices(
            settings=settings,
            journal=self._journal,
            jobs=self._jobs,
            queue=queue,
            log=self._log,
            alert=self._alert,
            server_time=self._client.now,
            stop=self._stop,
            once=self._once,
        )

    def _serve_health(self, port: int) -> None:
        try:
            serve_health(port, lambda: self._journal, lambda: self._stop.last_look, lambda: self._client.answered_at)
        except OSError as error:
            raise SettingsError(f"HEALTH_PORT {port}: cannot be used ({error.strerror})") from None

    # ── turns ───────────────────────────────────────────────────────────────

    def _loop(self, worker: Worker, sweep: Sweep) -> None:
        pauses = growing_pauses()
        if not _has_process_limit():
            text = "the processes and CPU time of scorers are unlimited; set a limit in the unit or the container"
            self._log("not limited", text=text)
        must_poll = self._once
        self._progress, self._progress_at = -1, 0.0
        while not self._stop.is_set():
            try:
                self._journal.file.follow_replacement()
                if must_poll:  # by any worker, with any result
                    self._journal.set("poll_at", 0)
                    must_poll = False
                sweep.run_if_due()
                is_busy = worker.take_turn()
                if self._once and self._is_done(is_busy=is_busy):
                    return
            except Exception as error:  # noqa: BLE001 - nothing that a server or a disk does ends a worker
                self._recover(error, next(pauses))
                must_poll = self._once
                continue
            pauses = growing_pauses()
            if not is_busy:
                self._stop.wait(_IDLE)

    def _recover(self, error: Exception, pause: float) -> None:
        """Log a failure and pause; raise failures that only a person can fix."""
        if isinstance(error, StoppedError):
            return
        if isinstance(error, UnusableError):
            raise StartError(str(error)) from None
        if isinstance(error, TokenRefusedError) or (isinstance(error, ApiError) and error.refuses_token):
            if self._is_token_refused():
                self._alert(f"EvalAI no longer accepts AUTH_TOKEN: {error}")
                raise TokenRefusedError(str(error)) from None
            self._pause("refused", str(error), pause)
        elif isinstance(error, ApiError):
            self._pause("server unavailable", str(error), max(pause, error.wait or 0.0))
        elif isinstance(error, (JournalError, OSError)):
            self._pause("journal unavailable", str(error), pause)
            if isinstance(error, DamagedError):
                try:
                    self._journal.file.reopen()
                except (JournalError, OSError) as second:
                    self._log("journal unavailable", why=str(second))
        else:
            self._log("defect", why="".join(traceback.format_exception(error)))
            self._pause("defect", f"{type(error).__name__}: {error}", pause)

    def _is_token_refused(self) -> bool:
        """Return whether the server persistently rejects the token."""
        return all(not (self._stop.wait(_REFUSAL_PAUSE) or self._jobs.accepts_token()) for _ in range(_REFUSALS))

    def _is_done(self, *, is_busy: bool) -> bool:
        """Return whether `--once` has no more work."""
        progress, moment = self._journal.progress(), time.monotonic()
        if progress > self._progress:
            self._progress, self._progress_at = progress, moment
        seconds, is_stalled = self._journal.seconds_until_due(), moment > self._progress_at + _ONCE_STALLED
        if seconds is None or (is_busy and not is_stalled):
            return not is_busy
        if is_stalled or seconds > _ONCE_PATIENCE:
            text = f"some submissions are postponed, the next for {seconds:.0f} s; start the worker again"
            self._log("unfinished", text=text)
            return True
        if seconds > _IDLE:
            self._log("waits", text=f"{seconds:.0f} s for a postponed submission")
            self._stop.wait(seconds)
        return False

    # ── called by others ────────────────────────────────────────────────────

    def _watch(self, urgent: bool) -> None:  # noqa: FBT001 - what the client calls
        """End a call when the process must stop; reports get the grace period."""
        (self._stop.check_over if urgent else self._stop.check)()

    def _wait_for_request(self, urgent: bool) -> None:  # noqa: FBT001 - what the client calls
        """Wait until the machine's request limit allows another request."""
        limit, is_said = self._settings.requests_per_minute, False
        # A single run reserves a request for its last poll, so that it ends soon after its last report.
        allowed = max(1, limit - 1) if self._once and urgent else limit
        while seconds := self._journal.take_request(allowed, urgent=urgent or self._once):
            if seconds > _IDLE and not is_said:
                is_said = True
                text = f"{seconds:.0f} s for the limit of {limit} requests a minute"
                self._log("waits", text=text)
            if self._stop.is_over() or (self._stop.is_set() and not urgent):
                raise ApiError(0, "asked to stop")
            if self._stop.wait(min(seconds, 1.0)):
                time.sleep(0.1)

    def _pause(self, event: str, why: str, seconds: float) -> None:
        if self._stop.is_set():
            return  # interruptions by a stop are not failures
        self._log(event, why=why, again_in=f"{seconds:g} s")
        self._stop.wait(seconds)

    def _alert(self, text: str) -> None:
        self._log("ALERT", text=text)
        self._journal.add("faults")
        if self._settings.webhook:
            send_to_webhook(self._settings.webhook, f"segjudge worker: {text}", self._log, self._stop.check_over)


# ── checks before the first submission ──────────────────────────────────────


def _folder_problem(folder: str) -> str:
    """Return why a state folder cannot be created or written; "" if it can."""
    existing = folder
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        return f"SAVE_DIR {folder}: {existing} is not a folder"
    return "" if os.access(existing, os.W_OK | os.X_OK) else f"SAVE_DIR {folder}: {existing} cannot be written"


def _check_challenge(jobs: Jobs, settings: WorkerSettings, phases: dict[str, ScoredPhase]) -> list[str]:
    """Return lines about the setup; raises StartError for faults, ApiError without a server."""
    challenge = _challenge(jobs, settings)
    lines = [
        f"token: accepted by {settings.api_server}",
        f"queue: {settings.queue_name} belongs to challenge {settings.challenge_pk}",
        f"challenge: {challenge.get('title', '')}, remote evaluation; the token belongs to a host",
    ]
    rows = {row["codename"]: row for row in jobs.phases()}
    table = "challenge_config.yaml" if any("script" in phase for phase in phases.values()) else "phases.py"
    problems = [f"{table} has no phase {name}: its submissions would fail" for name in sorted(rows.keys() - phases)]
    splits = jobs.splits()
    for name in sorted(rows.keys() & phases.keys()):
        number, labels = rows[name]["id"], phases[name]["labels"]
        path = settings.annotation_path(phases[name])
        if os.path.isfile(path) or not phases[name].get("needs_annotation", True):
            lines.append(f"phase {number}: {name}, {path or 'its own truth'}, {', '.join(labels)}")
        else:
            problems.append(f"{path or settings.annotations}: there is no annotation file for {name}; set ANNOTATIONS")
        phase_splits = [split for split in splits if parse_key(split.get("challenge_phase")) == number]
        problems += _label_problems(name, phase_splits, labels, table)
    if problems:
        raise StartError("\n".join(problems))
    return lines


def _label_problems(phase: str, splits: list[dict[str, object]], scored: dict[str, list[str]], table: str) -> list[str]:
    """Return the splits and labels of a phase that differ from the server's."""
    if len(splits) != len(scored):
        counts = f"{len(splits)} and {len(scored)}"
        return [f"{phase}: EvalAI and {table} differ in the number of splits, {counts}; push the challenge again"]
    boards = [labels for labels in map(board_labels, splits) if labels is not None]
    if len(boards) != len(splits):
        return []  # the server does not send them
    problems = []
    for split, labels in scored.items():
        board = next((board for board in boards if set(board) == set(labels)), None)
        if board is not None:
            boards.remove(board)
            continue
        labels_of_boards = "; ".join(", ".join(board) for board in boards)
        problems.append(
            f"{phase}: {table} scores {split} as {', '.join(labels)}, but EvalAI's leaderboard has {labels_of_boards}. "
            f"Labels of an existing challenge cannot change: change {table}"
        )
    return problems


def _challenge(jobs: Jobs, settings: WorkerSettings) -> ChallengeRow:
    try:
        challenge = jobs.fetch_challenge()
    except ApiError as error:
        if error.status == 400:
            raise StartError(f"QUEUE_NAME: {error}") from None
        raise
    if challenge["id"] != settings.challenge_pk:
        raise StartError(
            f"CHALLENGE_PK is {settings.challenge_pk}, but the queue belongs to challenge {challenge['id']}"
        )
    if challenge.get("is_docker_based"):
        raise StartError(
            "This challenge runs code that participants upload, so another worker scores it, not this one."
        )
    if not challenge.get("remote_evaluation"):
        raise StartError(
            "This challenge has remote_evaluation: False, so EvalAI's own worker scores it too, and both would report. "
            "Push it with --variant remote."
        )
    return challenge


def _has_process_limit() -> bool:
    """Return whether a cgroup limits the number of processes."""
    with suppress(OSError), open("/proc/self/cgroup", encoding="ascii") as file:
        for line in file.read().splitlines():
            _, kind, path = line.split(":", 2)
            for root in ("/sys/fs/cgroup", f"/sys/fs/cgroup/{kind}"):
                with suppress(OSError), open(f"{root}{path}/pids.max", encoding="ascii") as limit:
                    if limit.read().strip() != "max":
                        return True
    return False


#: Seconds between the end of a worker and the start of its replacement.
_PAUSE = 2.0
#: Seconds between checks of the workers.
_WATCH_PAUSE = 0.2
#: Seconds beyond its grace that a worker takes to stop.
_MARGIN = 5.0


def run_workers(count: int, arguments: list[str], final: tuple[int, ...], grace: float) -> int:
    """Run several workers, restart dead ones, and return the exit code; a final one ends all."""
    stop = Stop(grace)
    stop.listen()
    command = [sys.executable, "-P", "-m", "segjudge.remote_challenge_evaluation", *arguments]

    def start(number: int) -> Child:
        # Only the first one serves monitoring.
        environment = dict(os.environ) if not number else {**os.environ, "HEALTH_PORT": "0"}
        return Child(command, Streams(), environment=environment)

    workers = {number: start(number) for number in range(count)}
    try:
        return _watch(workers, start, stop, final, once="--once" in arguments)
    finally:
        _end_workers(workers, grace)


def _watch(
    workers: dict[int, Child], start: Callable[[int], Child], stop: Stop, final: tuple[int, ...], *, once: bool
) -> int:
    #: The times at which workers that died are restarted.
    restarts: dict[int, float] = {}
    while (workers or restarts) and not stop.wait(_WATCH_PAUSE):
        for number, worker in list(workers.items()):
            code = worker.poll()
            if code is None:
                continue
            worker.end()
            del workers[number]
            if code in final:
                return code
            if code or not once:
                restarts[number] = time.monotonic() + _PAUSE
        for number in [number for number, moment in restarts.items() if moment <= time.monotonic()]:
            try:
                workers[number] = start(number)
                del restarts[number]
            except OSError:  # no process can be started at the moment
                restarts[number] = time.monotonic() + _PAUSE
    return 0


def _end_workers(workers: dict[int, Child], grace: float) -> None:
    for worker in workers.values():
        worker.signal(signal.SIGTERM)
    deadline = time.monotonic() + grace + _MARGIN
    for worker in workers.values():
        worker.wait(max(0.0, deadline - time.monotonic()))
        worker.end()
