"""`segjudge.agent` and `segjudge.static`, without a network and with a simulated clock."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import grpc
import numpy as np
import pytest
from PIL import Image

from segjudge import agent, static
from segjudge.code_upload import ADDRESS_VARIABLE
from segjudge.code_upload.messages import Labels, Picture
from segjudge.code_upload_challenge_evaluation.environment import service
from tests.interactive.scene import Clock
from tests.outcomes import outcome_of

from .frames import Context, Frames, RejectedCallError

AWAY, BUSY = (grpc.StatusCode.UNAVAILABLE, "no connection"), (grpc.StatusCode.RESOURCE_EXHAUSTED, "busy")
LARGE = (grpc.StatusCode.RESOURCE_EXHAUSTED, "message larger than max (5 vs. 4)")
BROKEN = (grpc.StatusCode.INTERNAL, "broken")
MASK = np.array([[0, 1, 0], [0, 0, 2]])
VARIABLES = ("LOCAL_EVALUATION", ADDRESS_VARIABLE, "SUBMISSION_PATH", "SEGJUDGE_DATASET")


class Channel:
    """Calls a service in place of a network; each trouble breaks one call."""

    def __init__(self, played: service.Service, clock: Clock, troubles: list[Any]) -> None:
        self._service, self._clock, self._troubles = played, clock, troubles

    def unary_unary(self, path: str) -> Callable[..., bytes]:
        name = path.rpartition("/")[2]

        def call(package: bytes, *, wait_for_ready: bool) -> bytes:
            assert not wait_for_ready
            trouble = self._troubles.pop(0) if self._troubles else None
            if trouble:
                raise RejectedCallError(*trouble)
            data: bytes = getattr(self._service, name)((self._clock.now, package), Context())
            return data

        return call

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock on which waits of agents pass at once, where no variable of a host is set."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    clock = Clock()
    sleep = lambda seconds: setattr(clock, "now", clock.now + seconds)  # noqa: E731
    for module in (agent, static):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock, sleep=sleep, time=clock))
    monkeypatch.setattr("random.uniform", lambda *_: 1.0)
    return clock


class Play:
    """An agent's environment whose calls reach a service, except for these troubles."""

    def __init__(self, clock: Clock, *troubles: Any, **options: Any) -> None:
        self.began, self.clock = clock.now, clock
        self.service = service.Service(Frames(), service.TimeLimits(), clock)
        self.service.reported.set()
        channel = mock.Mock(return_value=Channel(self.service, clock, [*troubles]))
        with mock.patch.object(agent.grpc, "insecure_channel", channel):  # type: ignore[attr-defined]
            self.environment = agent.Environment(**options)
        (self.address,), self.options = channel.call_args

    def act(self, action: Any) -> Any:
        return outcome_of(lambda: self.environment.act(action))

    @property
    def seconds(self) -> float:
        return round(self.clock.now - self.began, 1)


IDS = "a mask has two dimensions and whole ids from 0 to 255, not "
INHOMOGENEOUS = "setting an array element with a sequence. The requested array has an inhomogeneous shape"
#: What an agent sends one after the other, and the sentence, "" where it is taken.
ACTIONS: list[tuple[Any, str]] = [
    (np.zeros(2), f"a/1: {IDS}float64 (2,) with 0.0 to 0.0."),
    (np.zeros((2, 3)), f"a/1: {IDS}float64 (2, 3) with 0.0 to 0.0."),
    (np.full((2, 3), 256), f"a/1: {IDS}int64 (2, 3) with 256 to 256."),
    (np.full((2, 3), 255), ""),
    (np.full((2, 3), -1), f"a/2: {IDS}int64 (2, 3) with -1 to -1."),
    ([[1], [1, 2]], f"a/2: the action cannot be sent ({INHOMOGENEOUS}"),
    (np.zeros((3, 2), bool), "a/2: the mask is 3 x 2, but the frame 2 x 3 (height x width)."),
]


def test_an_action_that_cannot_be_sent_is_explained_to_agent_and_host(clock: Clock) -> None:
    play = Play(clock, AWAY, BUSY, AWAY, quiet=True, address="x:1")
    sizes = [("grpc.max_receive_message_length", 1 << 30), ("grpc.max_send_message_length", 1 << 30)]
    assert (play.address, play.options) == ("x:1", {"options": sizes})
    with play.environment as environment:
        assert environment.reset() == {"frame": 1, "new_sequence": 1}
        assert environment.action_space == {"type": "labels"}
        for action, sentence in ACTIONS:
            outcome = play.act(action)
            if not sentence:
                assert outcome == {"frame": 2, "new_sequence": 0}
                continue
            assert outcome.startswith(f"ActionRefusedError: {sentence}")
            assert play.service._refused.startswith(sentence)
            assert (environment.done, environment.message) == (False, "")
        assert environment.reward == 0.25
    assert play.seconds == 0.7, "three calls were repeated"


def test_an_agent_plays_to_the_end(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with (play := Play(clock, quiet=False, address="x:1")).environment as environment:
        environment.reset()
        assert [play.act(MASK), play.act(MASK), play.act(MASK)] == [
            {"frame": 2, "new_sequence": 0}, {"frame": 3, "new_sequence": 0}, {},
        ]  # fmt: skip
        assert (environment.done, environment.reward, environment.message) == (True, 0.0, "The evaluation is complete.")
        assert play.act(MASK) == "ActionRefusedError: the episode is over"
    assert play.seconds == 0
    assert capsys.readouterr().err == "1 steps\n3 steps: The evaluation is complete.\n"


def test_calls_that_break_are_repeated_and_others_explained(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with (play := Play(clock, None, None, LARGE, None, BROKEN, AWAY)).environment as environment:
        assert play.address == "localhost:8085"
        environment.reset()
        large = "a/1: the message is too large (message larger than max (5 vs. 4))."
        assert play.act(MASK) == f"ActionRefusedError: {large}"
        assert play.act(MASK) == "ActionRefusedError: broken"
        assert play.service._refused == large
        assert (play.act(MASK), play.service._refused) == ({"frame": 2, "new_sequence": 0}, "")
    assert (play.seconds, capsys.readouterr().err) == (0.1, "calls again\n")
    with (play := Play(clock, *[AWAY] * 99, patience=2.0, quiet=True)).environment as environment:
        sentence = "ConnectionError: localhost:8085 does not answer (no connection)"
        assert outcome_of(environment.reset) == sentence
        assert environment.action_space == {}
    assert play.seconds == 3.1


def test_the_address_of_a_host_depends_on_where_an_agent_runs(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    assert agent._default_address() == "localhost:8085"
    monkeypatch.setenv("LOCAL_EVALUATION", "1")
    assert agent._default_address() == "environment:8085"


def test_masks_are_packed_where_the_space_has_labels() -> None:
    space = {"type": "mapping", "values": {"masks": {"type": "list", "of": "labels"}, "n": {"type": "integer"}}}
    labels = Labels((2, 3), {1: "213", 2: "51"})
    packed = agent._pack({"masks": [MASK], "n": 2, "more": [MASK.tolist()]}, space)
    assert packed == {"masks": [labels], "n": 2, "more": [MASK.tolist()]}
    assert (agent._pack([1], {}), agent._pack(3, space)) == ([1], 3)
    small = io.BytesIO()
    Image.new("L", (2, 1), 9).save(small, "PNG")
    seen = agent._unpack({"p": Picture(small.getvalue()), "l": [Labels((1, 2), {3: "11"})], "n": 1})
    assert (seen["p"].tolist(), seen["l"][0].tolist(), seen["n"]) == ([[[9] * 3] * 2], [[0, 3]], 1)


@pytest.mark.parametrize(
    ("terminal", "text"),
    [(True, "\r\x1b[Kline 0\r\x1b[Kline 2\r\x1b[Kline 3\r\x1b[Kline 4\n"), (False, "line 0\nline 4\n")],
)
def test_progress_is_shown_at_intervals(
    terminal: bool, text: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr(agent.sys, "stderr", stream)  # type: ignore[attr-defined]
    progress = agent._Progress()
    for number, seconds in enumerate((0, 0.1, 0.15, 29, 2)):
        clock.now += seconds
        progress(f"line {number}", number == 4)
    assert stream.getvalue() == text


def test_masks_become_the_sequences_of_a_static_submission() -> None:
    masks = [np.array([[0, 1]], np.uint8), np.array([[0, 0]], np.uint8), np.array([[2, 1]], np.uint8)]
    right, left = ({"size": [1, 2], "counts": counts} for counts in ("11", "011"))
    assert static.sequence_of(masks) == {"1": [right, None, right], "2": [None, None, left]}
    assert (static.sequence_of(masks[1:2]), static.sequence_of([])) == ({"1": [None]}, {"1": []})


def test_a_static_submission_waits_until_it_is_taken(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert static.dataset() == "/dataset"
    monkeypatch.setenv("SUBMISSION_PATH", str(tmp_path))
    monkeypatch.setenv("SEGJUDGE_DATASET", "there")
    assert static.dataset() == "there"
    for arguments, seconds in (((), 660.0), ((10.0,), 10.1)):
        began = clock.now
        assert not static.write_submission({"a": [1]}, *arguments)
        assert clock.now - began == pytest.approx(seconds)
    (tmp_path / static.TAKEN_FILE).touch()
    assert static.write_submission({"a": [None, 1]})
    assert (tmp_path / "submission.json").read_text() == '{"a":[null,1]}'
    assert capsys.readouterr().err == ""
