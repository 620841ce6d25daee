"""The service of an agent's session, called without a network and with a simulated clock."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from segjudge.code_upload.messages import Action, Labels, Reply
from segjudge.code_upload_challenge_evaluation.environment import service
from segjudge.code_upload_challenge_evaluation.environment.service import EvaluationOutcome, Service, TimeLimits
from tests.interactive.scene import Clock

from .frames import Context, Frames, RejectedCallError

#: What a reply says beside its session, frame by frame, and at the end.
FIRST: dict[str, Any] = {"value": {"frame": 1, "new_sequence": 1}}
SECOND = {"step": 1, "value": {"frame": 2, "new_sequence": 0}, "reward": 0.25}
THIRD = {"step": 2, "value": {"frame": 3, "new_sequence": 0}, "reward": 0.25}
END = {"step": 3, "value": {}, "done": True, "all_complete": True, "message": "The evaluation is complete."}
RESULT = [{"test": {"J": 0.5}}, {"secret": {"J": 0.125}}]

EARLY, REFUSED, BAD = "FAILED_PRECONDITION: ", "PERMISSION_DENIED: ", "INVALID_ARGUMENT: "
NO_SESSION = "There is no session: call reset first."
OVER = "The episode is over; no more calls are needed."
TAKEN = "A session is running; a reset can take over after 60 seconds without a call."
NOT_FINITE = "The result is not a finite number: the actions led the environment beyond its range."


class Player:
    """An agent that calls a service, and gets replies or rejections as `CODE: sentence`."""

    def __init__(self, task: Any = None, **limits: float) -> None:
        self.clock, self.session = Clock(), ""
        self.service = Service(task or Frames(), TimeLimits(**limits), self.clock)

    def call(self, name: str, package: bytes, *, active: bool = True) -> Any:
        try:
            reply = Reply.read(getattr(self.service, name)((self.clock.now, package), Context(active=active)))
        except RejectedCallError as error:
            return str(error)
        self.session = reply.session_id
        hidden = ("", 0, False, None)
        return {key: value for key, value in vars(reply).items() if value not in hidden and key != "session_id"}

    def reset(self, name: str = "me") -> Any:
        return self.call("reset", Action(name).pack())

    def act(self, step: int, value: Any = "good", session: str = "", *, active: bool = True, problem: str = "") -> Any:
        package = Action(session or self.session, step, value, problem).pack()
        return self.call("act_on_environment", package, active=active)

    def play(self, *, active: bool = True) -> Any:
        """Reset, act three times, and return the last reply, which the agent sees only while it is active."""
        assert self.reset() == FIRST
        assert [self.act(0), self.act(1)] == [SECOND, THIRD]
        return self.act(2, active=active)

    def watch(self, *connections: int | None, seconds: float = 0.0) -> str | None:
        """Look at these numbers of connections, at intervals, and return the failure, None if it still runs."""
        for count in connections:
            self.clock.now += seconds
            self.service.watch(count)
        assert self.service.outcome.result is None
        return self.service.outcome.failure if self.service.ended.is_set() else None

    def ended(self) -> tuple[EvaluationOutcome, dict[str, Any]]:
        assert self.service.ended.is_set()
        return self.service.outcome, self.service.outcome.metadata()


def test_wrong_calls_are_rejected_and_change_nothing() -> None:
    player = Player()
    assert player.act(0, session="x") == EARLY + NO_SESSION
    assert player.call("get_action_space", b"") == {"space": json.dumps({"type": "labels"})}
    assert player.reset() == player.reset() == FIRST
    assert player.reset("you") == EARLY + TAKEN
    mask = Labels((2, 3), {})
    for step, value, session, answer in (
        (1, "good", "", f"{EARLY}Step 1 is not due; step 0 is."),
        (-1 % 2**32, "good", "", f"{EARLY}Step 4294967295 is not due; step 0 is."),
        (0, "good", "other", f"{REFUSED}This is not the running session: call reset again."),
        (0, "wrong", "", f"{BAD}a/1: that is wrong."),
        (0, Labels((3, 2), {}), "", f"{BAD}a/1: the mask is 3 x 2, but the frame 2 x 3 (height x width)."),
        (0, [mask, {"a": mask}], "", f"{BAD}a/1: the mask is 2 x 3, but no more masks are due (height x width)."),
    ):
        assert player.act(step, value, session) == answer
    assert player.act(0, problem="no mask\x07" + "x" * 600) == f"{BAD}a/1: no mask {'x' * 492}."
    assert player.call("act_on_environment", b"\x80\x04") == f"{BAD}The message is cut off."
    assert player.act(0, mask) == SECOND


def test_a_step_may_be_repeated_and_a_session_that_idles_be_taken_over() -> None:
    player = Player()
    assert player.reset() == FIRST
    player.clock.now += 2
    assert player.act(0) == player.act(0) == SECOND
    player.clock.now += 3
    assert player.act(1) == THIRD
    player.clock.now += 59.9
    session = player.session
    assert player.reset("you") == EARLY + TAKEN
    player.clock.now += 0.2
    assert player.reset("you") == {"step": 2, "value": {"frame": 3, "new_sequence": 1}}
    assert player.session != session
    assert player.act(1) == f"{EARLY}Step 1 is not due; step 2 is."
    player.clock.now += 4
    player.service.reported.set()
    assert player.watch(1) is None
    assert player.service.outcome.metadata()["seconds_per_step"] == {"median": 2.5, "most": 3.0, "all": 5.0}
    assert player.act(2) == END
    times = {"steps": 3, "seconds_per_step": {"median": 3.0, "most": 4.0, "all": 9.0}}
    assert player.ended() == (EvaluationOutcome(RESULT, frozenset({"secret"}), "", [2.0, 3.0, 4.0]), times)
    assert player.act(2) == END
    assert [player.act(3), player.act(1), player.act(2, session="other")] == [EARLY + OVER] * 3
    player.clock.now += 99
    player.service.watch(0)
    assert player.service.current() == player.ended()[0]
    assert player.ended()[1] == times


def test_a_last_call_that_breaks_may_be_repeated_within_the_limit() -> None:
    player = Player(gone=5.0)
    assert player.play(active=False) == END
    player.clock.now += 5
    player.service.reported.set()
    assert player.act(2) == END
    assert player.service.current().failure == ""
    player = Player(gone=5.0)
    assert player.play(active=False) == END
    began = player.clock.now
    wait = SimpleNamespace(sleep=lambda seconds: setattr(player.clock, "now", player.clock.now + seconds))
    with mock.patch.object(service, "time", wait):
        outcome = player.service.current()
    failure = "The agent ended before the evaluation did, at the end."
    assert outcome == EvaluationOutcome(None, frozenset({"secret"}), failure, [0.0] * 3)
    assert player.clock.now - began == pytest.approx(5.0)


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_a_result_that_is_not_finite_is_a_failure(score: float) -> None:
    player = Player(Frames(score))
    assert player.play() == EARLY + NOT_FINITE
    outcome, facts = player.ended()
    assert (outcome.result, outcome.failure, facts["steps"]) == (None, NOT_FINITE, 3)


def test_a_defect_of_the_environment_is_no_mistake_of_the_agent() -> None:
    player = Player()
    player.reset()
    with mock.patch.object(service, "log"):
        answer = player.act(0, "broken")
    failure = "The environment failed; your agent is not the cause. Tell the organisers the number "
    assert re.fullmatch(rf"INTERNAL: {failure}[0-9a-f]{{8}}\.", answer)
    sentence = answer.removeprefix("INTERNAL: ")
    assert player.act(0) == EARLY + sentence
    assert (player.ended()[0].failure, player.ended()[1]["steps"]) == (sentence, 0)


def test_too_many_rejected_calls_end_a_session() -> None:
    with mock.patch.object(service, "_MOST_MISTAKES", 2):
        player = Player()
        assert [player.act(0, session="x") for _ in range(3)] == [EARLY + NO_SESSION] * 3
    sentence = f"More than 2 calls of the agent were rejected. Its last call was rejected: {NO_SESSION}"
    assert player.ended()[0].failure == sentence


STEP = "The agent did not answer a/1 within 6 seconds. Its last call was rejected: a/1: that is wrong."
GONE = "The agent ended before the evaluation did, at a/1. Its last call was rejected: a/1: that is wrong."


@pytest.mark.parametrize(
    ("limits", "connections", "seconds", "failure"),
    [
        ({"episode": 10, "begin": 5}, (1,), 5, None),
        ({"episode": 10, "begin": 5}, (None,), 5.1, "The agent did not call reset within 5 seconds."),
        ({"episode": 10, "begin": 50}, (0,), 10.1,
         "The time limit of 10 seconds ended at its start, before it called reset."),
        ({}, (32, 33), 0, "The agent opened more than 32 connections at once."),
        ({}, (0, 0, 0), 9, None),
    ],
)  # fmt: skip
def test_an_agent_that_does_not_begin(
    limits: dict[str, float], connections: tuple[int | None, ...], seconds: float, failure: str | None
) -> None:
    assert Player(**limits).watch(*connections, seconds=seconds) == failure


@pytest.mark.parametrize(
    ("connections", "seconds", "gone", "failure"),
    [
        ((1, 1), 6, 2.0, STEP),
        ((1,), 6.1, 2.0, STEP),
        ((0, 0), 2, 2.5, None),
        ((0, 0, 0), 2, 2.5, GONE),
        ((0, 1, 0, 0), 2, 2.5, STEP),
        ((None, None, None), 1.9, 2.0, None),
    ],
)
def test_an_agent_that_becomes_slow_or_is_gone(
    connections: tuple[int | None, ...], seconds: float, gone: float, failure: str | None
) -> None:
    player = Player(step=6.0, gone=gone)
    player.reset()
    assert player.act(0, "wrong") == f"{BAD}a/1: that is wrong."
    assert player.watch(*connections, seconds=seconds) == failure


def test_the_first_failure_stays() -> None:
    player = Player()
    player.service.agent_ended()
    player.service.fail("later")
    sentence = "The agent ended before the evaluation did, at its start, before it called reset."
    assert player.ended()[0].failure == sentence
    player = Player()
    player.reset()
    assert [player.act(0), player.act(1)] == [SECOND, THIRD]
    player.service.agent_ended()
    sentence = "The agent ended before the evaluation did, at a/3."
    assert player.act(2) == EARLY + sentence
    assert (player.ended()[0].failure, player.ended()[1]["steps"]) == (sentence, 2)


@pytest.mark.parametrize(
    ("rows", "count"),
    [(["0100007F:1F90 01", "0100007F:1F90 0A", "0000:1F90 01", "0100007F:1F91 01"], 2), ([], 0), (None, None)],
    ids=["two of port 8080", "an empty table", "no table"],
)
def test_connections_are_counted_in_the_tables_of_the_kernel(
    rows: list[str] | None, count: int | None, tmp_path: Path
) -> None:
    table = tmp_path / "tcp"
    if rows is not None:
        table.write_text("\n".join(["sl", *(f"0: {row.replace(' ', ' 00:0 ')} 00" for row in rows)]))
    with mock.patch.object(service, "_TABLES", (str(table), str(tmp_path / "none"))):
        assert service.count_connections(8080) == count
    with mock.patch("builtins.open", side_effect=OSError(24, "too many")):
        assert service.count_connections(8080) == 1 << 20
