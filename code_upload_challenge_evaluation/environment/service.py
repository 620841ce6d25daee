"""The gRPC service of one agent's session: answers to calls, and its end.

Every session ends with an outcome: a result, or a sentence about the failure. `watch` detects late actions, lost
connections and missing calls.
"""

import errno
import json
import logging
import math
import secrets
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import grpc

from segjudge.code_upload.environments.tasks import ActionError, Observation, Result, Task
from segjudge.code_upload.messages import Action, Labels, MessageError, Reply

log = logging.getLogger("environment")

#: The maximum number of connections: unread replies stay in memory.
_MOST_CONNECTIONS = 32
#: The maximum number of rejected calls in a session.
_MOST_MISTAKES = 1000
#: The maximum length of a refusal, which the submission's stderr keeps.
_LONGEST_REFUSAL = 500

#: The kernel's tables of connections: gRPC does not report them between two calls.
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
#: The count to assume if no file descriptor is left to open the table.
_MANY = 1 << 20
_EXHAUSTED = (errno.EMFILE, errno.ENFILE)
_ESTABLISHED = "01"


@dataclass(frozen=True)
class TimeLimits:
    """The time limits of an agent, in seconds."""

    #: Seconds for the whole run, from the start of the container.
    episode: float = 3600.0
    #: Seconds for one action.
    step: float = 600.0
    #: Seconds until the first reset.
    begin: float = 900.0
    #: Seconds without a call after which another reset takes over the session.
    idle: float = 60.0
    #: Seconds without a connection after which the agent counts as ended.
    gone: float = 5.0


@dataclass
class EvaluationOutcome:
    """The outcome of a session."""

    result: Result | None = None
    #: The splits that participants do not see.
    hidden: frozenset[str] = frozenset()
    failure: str = ""
    #: Seconds from the sending of each observation to the last byte of its action.
    timings: list[float] = field(default_factory=list)

    def metadata(self) -> dict[str, Any]:
        spent = self.timings
        facts = {"median": statistics.median(spent), "most": max(spent), "all": sum(spent)} if spent else {}
        return {"steps": len(spent), "seconds_per_step": {name: round(value, 4) for name, value in facts.items()}}


class Service:
    """The gRPC service; one call at a time uses `task`."""

    def __init__(self, task: Task, limits: TimeLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._task, self._limits, self._clock = task, limits, clock
        self._started = clock()
        self._lock = threading.Lock()
        self._session, self._asked_session = "", ""
        self._step = -1
        #: Whether the session still waits for its first action.
        self._fresh = True
        self._observation: Observation | None = None
        #: The last reply, for repeated calls.
        self._reply = b""
        #: When the pending observation was sent, and when the session's agent last called.
        self._due_since = self._called_at = self._started
        self._busy = False
        #: The calls that wait for the end, and when the last of them left. A broken call may leave after its
        #: repetition.
        self._waiting: set[grpc.ServicerContext] = set()
        self._left_at = self._started
        self._mistakes = 0
        #: The last refusal, until an action is taken.
        self._refused = ""
        self._lost: float | None = None
        self.outcome = EvaluationOutcome()
        #: Set when there is an outcome, and when it was reported; reporting may turn it into a failure.
        self.ended, self.reported = threading.Event(), threading.Event()

    # ── the calls ───────────────────────────────────────────────────────────

    def get_action_space(self, _request: tuple[float, bytes], _context: grpc.ServicerContext) -> bytes:
        return Reply(space=json.dumps(self._task.space())).pack()

    def reset(self, request: tuple[float, bytes], context: grpc.ServicerContext) -> bytes:
        return self._answer_call(context, lambda: self._begin(self._read(request[1])))

    def act_on_environment(self, request: tuple[float, bytes], context: grpc.ServicerContext) -> bytes:
        reply = self._answer_call(context, lambda: self._act(self._read(request[1]), request[0], context))
        if self.ended.is_set():
            self._hold(context)
            if self.outcome.result is None:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, self.outcome.failure)
        return reply

    def _answer_call(self, context: grpc.ServicerContext, answer: Callable[[], bytes]) -> bytes:
        """Run one call at a time, turning errors into rejections or the session's failure."""
        try:
            with self._lock:
                self._busy = True
                reply_before = self._reply
                try:
                    return answer()
                finally:
                    self._busy = False
                    if self._reply is not reply_before:
                        self._due_since = self._clock()
        except _CallRefusedError as error:
            self._note_mistake(str(error))
            return context.abort(error.code, str(error))
        except Exception:
            number = secrets.token_hex(4)
            log.exception("incident %s", number)
            self.fail(f"The environment failed; your agent is not the cause. Tell the organisers the number {number}.")
            return context.abort(grpc.StatusCode.INTERNAL, self.outcome.failure)

    def _note_mistake(self, message: str) -> None:
        self._mistakes += 1
        self._refused = message
        if self._mistakes > _MOST_MISTAKES:
            self._blame(f"More than {_MOST_MISTAKES} calls of the agent were rejected.")

    def _read(self, package: bytes) -> Action:
        try:
            action = Action.read(package)
        except MessageError as error:
            raise _CallRefusedError(str(error), grpc.StatusCode.INVALID_ARGUMENT) from None
        is_ours = self.outcome.result is not None and action.session_id == self._session
        if self.ended.is_set() and not (is_ours and action.step == self._step - 1):
            raise _CallRefusedError(self.outcome.failure or "The episode is over; no more calls are needed.")
        return action

    def _begin(self, request_action: Action) -> bytes:
        time_now = self._clock()
        if self._session and request_action.session_id == self._asked_session and self._fresh:
            return self._reply
        if self._session and time_now - max(self._called_at, self._due_since) < self._limits.idle:
            raise _CallRefusedError(
                f"A session is running; a reset can take over after {self._limits.idle:.0f} seconds without a call."
            )
        if self._observation is None:
            self._observation, self._step = self._task.begin(), 0
        # A session that is taken over continues where it was: seen frames cannot be segmented again.
        values = self._observation.values
        if self._session and isinstance(values, dict) and "new_sequence" in values:
            values = {**values, "new_sequence": 1}
        self._session, self._asked_session, self._fresh = secrets.token_hex(16), request_action.session_id[:64], True
        self._called_at = time_now
        self._reply = Reply(self._session, self._step, values).pack()
        return self._reply

    def _act(self, action: Action, arrived: float, context: grpc.ServicerContext) -> bytes:
        if not self._session:
            raise _CallRefusedError("There is no session: call reset first.")
        if not secrets.compare_digest(action.session_id.encode(), self._session.encode()):
            raise _CallRefusedError(
                "This is not the running session: call reset again.", grpc.StatusCode.PERMISSION_DENIED
            )
        self._called_at = self._clock()
        if action.step == self._step - 1 and not self._fresh:
            if self.ended.is_set():
                self._waiting.add(context)
            return self._reply
        if action.step != self._step:
            raise _CallRefusedError(f"Step {action.step} is not due; step {self._step} is.")
        observation = self._observation
        assert observation is not None  # noqa: S101 - a session has begun
        seconds = max(0.0, arrived - self._due_since)
        try:
            if action.problem:
                raise ActionError(action.problem)
            _check_sizes(action.value, observation.sizes)
            following = self._task.act(action.value)
        except ActionError as error:
            message = f"{observation.position}: {_clean_sentence(str(error))}"
            raise _CallRefusedError(message, grpc.StatusCode.INVALID_ARGUMENT) from None
        self._refused = ""
        self.outcome.timings.append(seconds)
        self._observation, self._step, self._fresh = following, self._step + 1, False
        if not following.done:
            self._reply = Reply(self._session, self._step, following.values, following.reward).pack()
            return self._reply
        self._finish(following, context)
        return self._reply

    def _finish(self, following: Observation, context: grpc.ServicerContext) -> None:
        """Score the episode and keep its last reply."""
        result = self._task.result()
        if self.ended.is_set():  # the time ran out meanwhile
            raise _CallRefusedError(self.outcome.failure)
        if not all(math.isfinite(value) for entry in result for scores in entry.values() for value in scores.values()):
            self.fail("The result is not a finite number: the actions led the environment beyond its range.")
            raise _CallRefusedError(self.outcome.failure)
        self.outcome.hidden = getattr(self._task, "hidden", frozenset())  # a host's own task may have none
        self.outcome.result = result
        self._waiting.add(context)
        sentence = "The evaluation is complete."
        reply = Reply(
            self._session,
            self._step,
            following.values,
            following.reward,
            done=True,
            all_complete=True,
            message=sentence,
        )
        self._reply = reply.pack()
        self.ended.set()

    def _hold(self, context: grpc.ServicerContext) -> None:
        """Hold the last call until the result is reported, since the platform fails runs that exit earlier."""
        while not self.reported.wait(0.05):
            if not context.is_active():
                self._left_at = self._clock()
                self._waiting.discard(context)
                return

    # ── what no call shows ──────────────────────────────────────────────────

    def fail(self, message: str) -> None:
        """End the session without a result; the first end counts."""
        if not self.ended.is_set():
            self.outcome.failure = message
            self.ended.set()

    def _blame(self, message: str) -> None:
        """End the session because of the agent, naming the last rejection as a possible cause."""
        self.fail(message + (f" Its last call was rejected: {self._refused}" if self._refused else ""))

    def agent_ended(self) -> None:
        """End the session of an agent whose process is known to have ended."""
        self._blame(self._early_end)

    def current(self) -> EvaluationOutcome:
        """Return the current outcome, before it is reported.

        A result that no call receives is lost, because the platform has seen the container exit. A broken call may be
        repeated within `TimeLimits.gone` seconds.
        """
        while self.outcome.result is not None and not self._waiting:
            if self._clock() - self._left_at > self._limits.gone:
                self.outcome.result = None
                self.outcome.failure = self._early_end
            else:
                time.sleep(0.05)
        return replace(self.outcome, timings=[*self.outcome.timings])

    def settle(self, reported: EvaluationOutcome) -> None:
        """Answer the waiting call with the outcome that was reported."""
        self.outcome = reported
        self.reported.set()

    @property
    def _position(self) -> str:
        return (self._observation.position or "the end") if self._observation else "its start, before it called reset"

    @property
    def _early_end(self) -> str:
        return f"The agent ended before the evaluation did, at {self._position}."

    def watch(self, connections: int | None) -> None:
        """Check time limits and the number of connections (None if unknown)."""
        time_now, limits = self._clock(), self._limits
        if self.ended.is_set():
            return
        if time_now - self._started > limits.episode:
            self._blame(f"The time limit of {limits.episode:.0f} seconds ended at {self._position}.")
        elif connections is not None and connections > _MOST_CONNECTIONS:
            self._blame(f"The agent opened more than {_MOST_CONNECTIONS} connections at once.")
        elif not self._busy:
            self._watch_agent(time_now, connections)

    def _watch_agent(self, time_now: float, connections: int | None) -> None:
        limits = self._limits
        if not self._session and time_now - self._started > limits.begin:
            self._blame(f"The agent did not call reset within {limits.begin:.0f} seconds.")
        elif self._session and time_now - self._due_since > limits.step:
            self._blame(f"The agent did not answer {self._position} within {limits.step:.0f} seconds.")
        if connections is None or connections or not self._session:
            self._lost = None
        elif self._lost is None:
            self._lost = time_now
        elif time_now - self._lost > limits.gone:
            self.agent_ended()


# ── refusals and connections ────────────────────────────────────────────────


class _CallRefusedError(Exception):
    """Raised to reject a call with a sentence and a status."""

    def __init__(self, message: str, code: grpc.StatusCode = grpc.StatusCode.FAILED_PRECONDITION) -> None:
        super().__init__(message)
        self.code = code


def _clean_sentence(message: str) -> str:
    """Return untrusted text as one printable sentence of limited length."""
    text = "".join(character if character.isprintable() else " " for character in message[:_LONGEST_REFUSAL])
    return text.rstrip(" .") + "."


def _check_sizes(value: object, sizes: list[tuple[int, int]]) -> None:
    """Check the sizes of an action's masks, before any is decoded; raises ActionError."""
    due = iter(sizes)
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, (list, dict)):
            pending += reversed([*value.values()] if isinstance(value, dict) else value)
        elif isinstance(value, Labels):
            size = next(due, None)
            if value.size != size:
                expectation = f"the frame {size[0]} x {size[1]}" if size else "no more masks are due"
                raise ActionError(f"the mask is {value.size[0]} x {value.size[1]}, but {expectation} (height x width)")


def count_connections(port: int) -> int | None:
    """Return the number of connections of a local port; None if the system has no table."""
    count, has_table = 0, False
    for table in _TABLES:
        try:
            with open(table, encoding="ascii") as file:
                rows = file.read().splitlines()[1:]
        except OSError as error:
            if error.errno in _EXHAUSTED:
                return _MANY
            continue
        has_table = True
        for row in rows:
            _, local, _, state, *_ = row.split()
            count += state == _ESTABLISHED and int(local.rpartition(":")[2], 16) == port
    return count if has_table else None
