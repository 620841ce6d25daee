"""One session of one agent: what each call is answered, and how the session ends.

Nothing an agent does may end it without an outcome: a result, or a sentence about what went wrong.  Frames that were
not answered in time, a connection that is gone and calls that never come are seen by `watch`, not by a call.
"""

from __future__ import annotations

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
from segjudge.code_upload.evaluation_proto import MessageError
from segjudge.code_upload.messages import Action, Reply, packed, read_action

from .refusals import CallRefusedError, bounded, sentence

log = logging.getLogger("environment")

#: More connections at once than this are no agent's: what is not read of replies to them lies in our memory.
CONNECTIONS = 32
#: More refused calls than this end a session: it is a flood, not a mistake.
MISTAKES = 1000


@dataclass(frozen=True)
class TimeLimits:
    """How long an agent may take, in seconds."""

    #: For everything together, from the start of the container.
    episode: float = 3600.0
    #: For one action.
    step: float = 600.0
    #: Until the first reset.
    begin: float = 900.0
    #: After so long without a call another reset takes the session over.
    idle: float = 60.0
    #: A connection that is gone for so long is no accident.
    gone: float = 5.0


@dataclass
class EvaluationOutcome:
    """How a session ended."""

    result: Result | None = None
    #: Splits of the result that participants are not shown.
    hidden: frozenset[str] = frozenset()
    failure: str = ""
    #: Seconds from each observation's leaving to its action's last byte.
    timings: list[float] = field(default_factory=list)
    steps: int = 0

    def told(self) -> dict[str, Any]:
        """As metadata of a submission."""
        spent = self.timings
        facts = {"median": statistics.median(spent), "most": max(spent), "all": sum(spent)} if spent else {}
        return {"steps": self.steps, "seconds_per_step": {name: round(value, 4) for name, value in facts.items()}}


class Service:
    """Answers the calls; `task` is used by one call at a time."""

    def __init__(self, task: Task, limits: TimeLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._task, self._limits, self._clock = task, limits, clock
        self._started = clock()
        self._lock = threading.Lock()
        self._session, self._asked = "", ""
        self._step = -1
        #: Nothing was acted on in this session yet.
        self._fresh = True
        self._sight: Observation | None = None
        #: The last reply, for whoever did not get it.
        self._reply = b""
        #: When the observation left that is due; when the session's own agent last called.
        self._due_since = self._called_at = self._started
        self._busy = False
        #: Somebody waits for the end; or since when nobody does.
        self._held, self._left_at = False, self._started
        self._mistakes = 0
        #: Why the last call was refused, until an action is taken.
        self._refused = ""
        self._lost: float | None = None
        self.outcome = EvaluationOutcome()
        #: There is an outcome; it was reported, which may have turned it into a failure.
        self.ended, self.reported = threading.Event(), threading.Event()

    # ── the calls ───────────────────────────────────────────────────────────

    def get_action_space(self, _request: tuple[float, bytes], _context: grpc.ServicerContext) -> bytes:
        """What an action is."""
        return packed(Reply(space=json.dumps(self._task.space())))

    def reset(self, request: tuple[float, bytes], context: grpc.ServicerContext) -> bytes:
        """A session, if none lives."""
        return self._answered(context, lambda: self._begin(self._read(request[1])))

    def act_on_environment(self, request: tuple[float, bytes], context: grpc.ServicerContext) -> bytes:
        """What follows an action."""
        reply = self._answered(context, lambda: self._act(self._read(request[1]), request[0], context))
        if self.ended.is_set():
            self._hold(context)
            if self.outcome.result is None:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, self.outcome.failure)
        return reply

    def _answered(self, context: grpc.ServicerContext, answer: Callable[[], bytes]) -> bytes:
        """One call at a time; whatever goes wrong is said, and the service lives on."""
        try:
            with self._lock:
                self._busy = True
                before = self._reply
                try:
                    return answer()
                finally:
                    self._busy = False
                    if self._reply is not before:
                        self._due_since = self._clock()
        except CallRefusedError as error:
            self._note_mistake(str(error))
            return context.abort(error.code, str(error))
        except Exception:
            number = secrets.token_hex(4)
            log.exception("incident %s", number)
            self.fail(f"The environment failed, and it is not your fault. Tell the organisers the number {number}.")
            return context.abort(grpc.StatusCode.INTERNAL, self.outcome.failure)

    def _note_mistake(self, words: str) -> None:
        self._mistakes += 1
        self._refused = words
        if self._mistakes > MISTAKES:
            self._blame(f"The agent made more than {MISTAKES} calls that had to be refused.")

    def _read(self, package: bytes) -> Action:
        try:
            action = read_action(package)
        except MessageError as error:
            raise CallRefusedError(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from None
        mine = self.outcome.result is not None and action.session_id == self._session
        if self.ended.is_set() and not (mine and action.step == self._step - 1):
            words = self.outcome.failure or "The episode is over; there is nothing left to do."
            raise CallRefusedError(grpc.StatusCode.FAILED_PRECONDITION, words)
        return action

    def _begin(self, asked: Action) -> bytes:
        now = self._clock()
        if self._session and asked.session_id == self._asked and self._fresh:
            return self._reply
        if self._session and now - max(self._called_at, self._due_since) < self._limits.idle:
            words = f"A session is running; it can be taken over after {self._limits.idle:.0f} seconds without a call."
            raise CallRefusedError(grpc.StatusCode.FAILED_PRECONDITION, words)
        if self._sight is None:
            self._sight, self._step = self._task.begin(), 0
        # Whoever takes over goes on where it stood: what was seen cannot be answered anew.
        values = self._sight.values
        if self._session and isinstance(values, dict) and "new_sequence" in values:
            values = {**values, "new_sequence": 1}
        self._session, self._asked, self._fresh = secrets.token_hex(16), asked.session_id[:64], True
        self._called_at = now
        self._reply = packed(Reply(self._session, self._step, values))
        return self._reply

    def _act(self, action: Action, arrived: float, context: grpc.ServicerContext) -> bytes:
        if not self._session:
            raise CallRefusedError(grpc.StatusCode.FAILED_PRECONDITION, "There is no session: call reset first.")
        if not secrets.compare_digest(action.session_id.encode(), self._session.encode()):
            raise CallRefusedError(grpc.StatusCode.PERMISSION_DENIED, "That is not the session that is running.")
        self._called_at = self._clock()
        if action.step == self._step - 1 and not self._fresh:
            self._held = self._held or self.ended.is_set()
            return self._reply
        if action.step != self._step:
            words = f"Step {action.step} is not due; {self._step} is."
            raise CallRefusedError(grpc.StatusCode.FAILED_PRECONDITION, words)
        sight = self._sight
        assert sight is not None  # noqa: S101 - a session has begun
        taken = max(0.0, arrived - self._due_since)
        if action.problem:
            raise CallRefusedError(grpc.StatusCode.INVALID_ARGUMENT, f"{sight.where}: {sentence(action.problem)}")
        try:
            following = self._task.act(bounded(action.value, sight))
        except ActionError as error:
            raise CallRefusedError(grpc.StatusCode.INVALID_ARGUMENT, f"{sight.where}: {sentence(str(error))}") from None
        self._refused = ""
        self.outcome.timings.append(taken)
        self._sight, self._step, self._fresh = following, self._step + 1, False
        self.outcome.steps = self._step
        if not following.done:
            self._reply = packed(Reply(self._session, self._step, following.values, following.reward))
            return self._reply
        result = self._task.result()
        if self.ended.is_set():  # the time was over meanwhile
            raise CallRefusedError(grpc.StatusCode.FAILED_PRECONDITION, self.outcome.failure)
        if not all(math.isfinite(value) for entry in result for held in entry.values() for value in held.values()):
            self.fail("The result is not a finite number: the actions led the environment beyond what it can measure.")
            raise CallRefusedError(grpc.StatusCode.FAILED_PRECONDITION, self.outcome.failure)
        self.outcome.hidden = getattr(self._task, "hidden", frozenset())  # a host's own task may have none
        self.outcome.result = result
        self._held, self._left_at = context.is_active(), self._clock()
        words = "The evaluation is complete."
        self._reply = packed(Reply(self._session, self._step, following.values, following.reward, True, True, words))  # noqa: FBT003 - done, all_complete
        self.ended.set()
        return self._reply

    def _hold(self, context: grpc.ServicerContext) -> None:
        """The agent's container must not exit before the result is safe, or the platform calls the run failed."""
        while not self.reported.wait(0.05):
            if not context.is_active():
                self._held, self._left_at = False, self._clock()
                return

    # ── what no call tells ──────────────────────────────────────────────────

    def fail(self, words: str) -> None:
        """End without a result; the first end counts."""
        if not self.ended.is_set():
            self.outcome.failure = words
            self.ended.set()

    def _blame(self, words: str) -> None:
        """End for what the agent did or left undone; it may be because of what it was refused."""
        self.fail(words + (f" Its last call was refused: {self._refused}" if self._refused else ""))

    def agent_ended(self) -> None:
        """Somebody saw it."""
        self._blame(self._gone)

    def current(self, sleep: Callable[[float], object] = time.sleep) -> EvaluationOutcome:
        """The outcome as it stands, before it is reported.

        A result for which nobody waits is worth nothing: the platform has seen a container exit.  A call that broke
        may be made again, so that is given a moment.
        """
        while self.outcome.result is not None and not self._held:
            if self._clock() - self._left_at > self._limits.gone:
                self.outcome.result = None
                self.outcome.failure = self._gone
            else:
                sleep(0.05)
        return replace(self.outcome, timings=[*self.outcome.timings])

    def settle(self, reported: EvaluationOutcome) -> None:
        """What was reported in the end is what whoever waits is told."""
        self.outcome = reported
        self.reported.set()

    @property
    def _place(self) -> str:
        return (self._sight.where or "the end") if self._sight else "its start, before it called reset"

    @property
    def _gone(self) -> str:
        return f"The agent ended before the evaluation did, at {self._place}."

    def watch(self, connections: int | None) -> None:
        """Look at the clocks; `connections` is how many there are now, None where that is not known."""
        now, limits = self._clock(), self._limits
        if self.ended.is_set():
            return
        if now - self._started > limits.episode:
            self._blame(f"The time limit of {limits.episode:.0f} seconds was over at {self._place}.")
        elif connections is not None and connections > CONNECTIONS:
            self._blame(f"The agent held more than {CONNECTIONS} connections at once.")
        elif not self._busy:
            self._watch_agent(now, connections)

    def _watch_agent(self, now: float, connections: int | None) -> None:
        limits = self._limits
        if not self._session and now - self._started > limits.begin:
            self._blame(f"The agent did not call reset within {limits.begin:.0f} seconds.")
        elif self._session and now - self._due_since > limits.step:
            self._blame(f"The agent did not answer {self._place} within {limits.step:.0f} seconds.")
        if connections is None or connections or not self._session:
            self._lost = None
        elif self._lost is None:
            self._lost = now
        elif now - self._lost > limits.gone:
            self.agent_ended()
