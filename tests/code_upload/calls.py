"""Messages of agents, environments and hosts, without a network and with a simulated clock, as one text."""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import math
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import grpc
import gymnasium
import numpy as np
from gymnasium import spaces

from segjudge import agent, static
from segjudge.code_upload import ADDRESS_VARIABLE, arena
from segjudge.code_upload.environments import INTERACTIVE, VIDEO, tasks, video
from segjudge.code_upload.messages import Action, Labels, Picture, Reply
from segjudge.code_upload_challenge_evaluation.environment import service
from segjudge.families.truths import TruthSource, pack
from tests.answers import count_repeats, fold_sections, join_json
from tests.interactive.tale import Tale, answer, settle, write_root
from tests.wire import length_delimited as field_of
from tests.wire import varint

from .calls_of_hosts import a_static_submission, an_arena_without_processes, settings_and_reports
from .calls_of_processes import PARTS as PROCESSES

FILE = Path(__file__).parent.parent / "golden/calls.txt"
MAGIC = b"SJ1\0"


class AbortedError(grpc.RpcError):
    """The error that a rejected call raises on the other side."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(f"{code.name}: {message}")
        self._code, self._words = code, message

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._words


class Context:
    """A call that is active, or broken."""

    def __init__(self, *, active: bool = True) -> None:
        self.active = active

    def abort(self, code: grpc.StatusCode, message: str) -> None:
        raise AbortedError(code, message)

    def is_active(self) -> bool:
        return self.active


class Frames:
    """A task of three frames, whose actions are texts or masks."""

    hidden = frozenset({"secret"})

    def __init__(self, score: float = 0.5) -> None:
        self._score, self._left = score, 3

    def space(self) -> dict[str, Any]:
        return {"type": "labels"}

    def begin(self) -> tasks.Observation:
        return self._show()

    def _show(self) -> tasks.Observation:
        self._left -= 1
        values = {"frame": 3 - self._left, "new_sequence": int(self._left == 2)}
        return tasks.Observation(values, 0.25, position=f"a/{3 - self._left}", sizes=[(2, 3)])

    def act(self, action: Any) -> tasks.Observation:
        if action == "wrong":
            raise tasks.ActionError("that is\nwrong .. ")
        if action == "broken":
            raise ZeroDivisionError("a defect")
        return self._show() if self._left else tasks.Observation({}, done=True)

    def result(self) -> list[dict[str, dict[str, float]]]:
        return [{"test": {"J": self._score}}, {"secret": {"J": 0.125}}]

    def close(self) -> None:
        """Do nothing."""


class Player:
    """Calls a service and notes the outcome."""

    def __init__(self, tale: Tale, task: Any = None, **limits: float) -> None:
        self.tale = tale
        self.service = service.Service(task or Frames(), service.TimeLimits(**limits), tale.clock)
        self.session = ""

    def call(self, name: str, package: bytes = b"", *, active: bool = True, about: str = "") -> Any:
        try:
            data = getattr(self.service, name)((self.tale.clock.now, package), Context(active=active))
        except AbortedError as error:
            self.tale.say(f"{about or name} → {error}")
            return None
        reply = Reply.read(data)
        shown = {key: value for key, value in vars(reply).items() if value not in ("", 0, False, None)}
        self.tale.say(f"{about or name} → {shown}")
        return reply

    def reset(self, name: str = "me") -> None:
        reply = self.call("reset", Action(name).pack(), about=f"reset by {name}")
        self.session = reply.session_id if reply else self.session

    def act(
        self, step: int, value: Any = "good", session: str | None = None, *, active: bool = True, problem: str = ""
    ) -> None:
        package = Action(self.session if session is None else session, step, value, problem).pack()
        about = f"step {step} {repr(problem) if problem else value}{'' if active else ', and the call breaks'}"
        self.call("act_on_environment", package, active=active, about=about)

    def watch(self, *connections: int | None, seconds: float = 0.0) -> None:
        for count in connections:
            self.tale.clock.now += seconds
            self.service.watch(count)
        self.end()

    def end(self) -> None:
        outcome = self.service.outcome
        self.tale.say(
            f"  ended {self.service.ended.is_set()}: {outcome.result} {sorted(outcome.hidden)} {outcome.failure} {outcome.metadata()}"
        )


def sessions_of_agents(tale: Tale) -> None:  # noqa: PLR0915 - a long day
    player = Player(tale)
    player.act(0, session="x")
    player.call("get_action_space")
    player.reset()
    player.reset()
    player.reset("you")
    tale.clock.now += 2
    for step, value, session in ((1, "good", None), (-1 % 2**32, "good", None), (0, "good", "other"), (0, "wrong", None),
                                 (0, Labels((3, 2), {}), None), (0, [Labels((2, 3), {}), {"a": Labels((2, 3), {})}], None)):  # fmt: skip
        player.act(step, value, session)
    player.act(0, problem="no mask\x07" + "x" * 600)
    player.call("act_on_environment", b"\x80\x04")
    player.act(0, Labels((2, 3), {}))
    player.act(0)
    tale.clock.now += 3
    player.act(1)
    tale.clock.now += 59.9
    player.reset("you")
    tale.clock.now += 0.2
    player.reset("you")
    player.act(1)
    tale.clock.now += 4
    player.service.reported.set()
    player.watch(1)
    player.act(2)
    player.end()
    for step in (2, 3, 1):
        player.act(step)
    player.act(2, session="other")
    player.watch(0, seconds=99)
    tale.say(player.service.current() == player.service.outcome)

    tale.say("── whose last call breaks")
    player = Player(tale, gone=5.0)
    player.reset()
    for step in range(3):
        player.act(step, active=step < 2)
    tale.clock.now += 5
    player.service.reported.set()
    player.act(2)
    tale.say(player.service.current().failure)
    player = Player(tale, gone=5.0)
    player.reset()
    for step in range(3):
        player.act(step, active=step < 2)
    began = tale.clock.now
    tale.say(player.service.current(), tale.clock.now - began)

    tale.say("── that fail")
    for score in (math.nan, math.inf):
        player = Player(tale, Frames(score))
        player.reset()
        for step in range(3):
            player.act(step)
        player.end()
    player = Player(tale)
    player.reset()
    player.act(0, "broken")
    player.act(0)
    player.end()
    with mock.patch.object(service, "_MOST_MISTAKES", 2):
        player = Player(tale)
        for _ in range(3):
            player.act(0)
        player.end()

    tale.say("── that are too slow, or gone")
    Player(tale, episode=10, begin=5).watch(1, seconds=5)
    Player(tale, episode=10, begin=5).watch(None, seconds=5.1)
    Player(tale, episode=10, begin=50).watch(0, seconds=10.1)
    Player(tale).watch(32, 33)
    Player(tale).watch(0, 0, 0, seconds=9)
    for counts, seconds in (
        ((1, 1), 6),
        ((1,), 6.1),
        ((0, 0), 2),
        ((0, 0, 0), 2),
        ((0, 1, 0, 0), 2),
        ((None, None, None), 1.9),
    ):
        player = Player(tale, step=6.0, gone=2.0 if seconds != 2 else 2.5)
        player.reset()
        player.act(0, "wrong")
        player.watch(*counts, seconds=seconds)
    player = Player(tale)
    player.service.agent_ended()
    player.service.fail("later")
    player.end()
    player = Player(tale)
    player.reset()
    for step in range(2):
        player.act(step)
    player.service.agent_ended()
    player.act(2)
    player.end()
    for rows in (["0100007F:1F90 0 01", "0100007F:1F90 0 0A", "0000:1F90 0 01", "0100007F:1F91 0 01"], [], None):
        table = tale.folder / "tcp"
        if rows is None:
            table.unlink()
        else:
            table.write_text("\n".join(["sl", *(f"0: {row.replace(' 0 ', ' 00:0 ')} 00" for row in rows)]))
        with mock.patch.object(service, "_TABLES", (str(table), str(tale.folder / "none"))):
            tale.say("connections:", service.count_connections(8080))
    with mock.patch("builtins.open", side_effect=OSError(24, "too many")):
        tale.say("connections:", service.count_connections(8080))


# ── messages ────────────────────────────────────────────────────────────────

VALUES: tuple[Any, ...] = (
    None, True, -1, 2**63 - 1, 0.5, "text", Picture(b"\xff\xd8"), Labels((2, 3), {}),
    Labels((300, 1), {1: "0", 255: "ab"}), [], {}, [1, [2, ["x"]]], {"a": 1, 2: "b"}, (1, 2), np.zeros((2, 0), "<u2"),
    np.arange(3, dtype=">i4"), np.array(1.5), np.array([True]), np.zeros((1, 2, 3), "<f2"),
)  # fmt: skip
UNSENDABLE: tuple[Any, ...] = (
    2**63,
    "\ud800",
    object(),
    {1},
    [None],
    b"bytes",
    np.zeros(2, complex),
    np.array(["x"]),
    Labels((1, 1), {-1: ""}),
)


def messages_and_bytes(tale: Tale) -> None:
    for value in VALUES:
        package = Action("s", 3, value).pack()
        back = Action.read(package)
        kind = f" {back.value.dtype} {back.value.shape}" if isinstance(back.value, np.ndarray) else ""
        tale.say(f"{value!r}: {package.hex()} → {settle(back.value)!r}{kind}")
    tale.say(
        [
            Action(value=value).pack() == Action(value=value.item()).pack()
            for value in (np.int16(-3), np.float32(0.25), np.bool_(True))
        ]
    )
    reply = Reply("s", 1, 2, reward=-0.5, done=True, all_complete=True, message="m", space="{}")
    tale.say(Reply.read(reply.pack()) == reply, reply.pack().hex())
    for depth, wrap in ((8, list), (9, list), (8, dict), (9, dict)):
        value: Any = 1
        for _ in range(depth):
            value = [value] if wrap is list else {"a": value}
        tale.try_out(f"{depth} deep in each {wrap.__name__}", lambda value=value: len(Action(value=value).pack()))  # type: ignore[misc]
    for value in UNSENDABLE:
        shown = ascii(value) if type(value) is not object else "an object"
        tale.try_out(shown, lambda value=value: Action(value=value).pack())  # type: ignore[misc]

    def packed(content: bytes) -> bytes:
        return field_of(1, MAGIC + content)

    def valued(number: int, content: bytes) -> bytes:
        return packed(field_of(3, field_of(number, content)))

    array = field_of(1, b"<u2") + field_of(2, b"\2\3")
    deep = b""
    for _ in range(12):
        deep = field_of(3, field_of(7, field_of(1, deep))) if not deep else field_of(7, field_of(1, deep))
    for about, data in {
        "nothing": b"", "no magic": field_of(1, b"SJ2\0"), "a pickle": field_of(1, b"\x80\x05K\x01."), "an old pickle": field_of(1, b"\x80\x02."),
        "no pickle": field_of(1, b"\x80\x06."), "magic alone": packed(b""), "cut": packed(b"\x0a"), "cut in a number": packed(b"\x10\xff"),
        "a long number": packed(b"\x10" + b"\xff" * 10 + b"\1"), "cut in a text": packed(b"\x0a\x05a"), "a group": packed(b"\x0b"),
        "another type": packed(b"\x08\x01"), "another type of a text": packed(b"\x09" + bytes(8)), "eight bytes cut": packed(b"\x29" + bytes(7)),
        "four bytes": packed(b"\x55" + bytes(4)), "an unknown field": packed(b"\xa0\x06\x01"), "no UTF-8": packed(field_of(1, b"\xff")),
        "too deep": packed(deep), "an array": valued(4, array + field_of(3, bytes(12))), "short": valued(4, array + field_of(3, bytes(11))),
        "no type": valued(4, field_of(1, b"<u3")), "nine dimensions": valued(4, field_of(1, b"|u1") + field_of(2, b"\1" * 9) + field_of(3, b"\0")),
        "eight dimensions": valued(4, field_of(1, b"|u1") + field_of(2, b"\1" * 8) + field_of(3, b"\0")),
        "large and empty": valued(4, field_of(1, b"|u1") + field_of(2, varint(2**32 - 1) * 3 + b"\0")),
        "object 0": valued(6, field_of(3, b"")), "object 256": valued(6, field_of(3, b"\x08" + varint(256))),
        "an object twice": valued(6, field_of(3, b"\x08\1") * 2), "many": packed(b"\x10\x01" * 200_001), "as many": packed(b"\x10\x01" * 199_999),
        "many numbers": valued(4, field_of(2, b"\0" * 200_000)), "two kinds": packed(field_of(3, field_of(3, b"a") + field_of(5, b"b"))),
    }.items():  # fmt: skip
        tale.try_out(about, lambda data=data: vars(Action.read(data)))  # type: ignore[misc]


# ── environments ────────────────────────────────────────────────────────────


class Lamp(gymnasium.Env[Any, Any]):
    """An environment with three actions, whose episodes end after two steps."""

    def __init__(self, spaces_of_action: Any = None, limit: int = 2) -> None:
        self.action_space = spaces_of_action or spaces.Discrete(3, start=1)
        self.observation_space, self._limit, self._steps = spaces.Discrete(9), limit, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        del options
        self._steps = 0
        return {"seed": seed}, {}

    def step(self, action: Any) -> Any:
        self._steps += 1
        reward = float(action) if np.ndim(action) == 0 and not isinstance(action, (dict, tuple, str)) else 1.0
        return {"step": self._steps}, reward, self._steps == self._limit, self._steps > 5, {}


def environments_answer(tale: Tale) -> None:
    task = tasks._GymTask(Lamp(), 2, 7)
    tale.try_out("before", lambda: task.act(1))
    tale.say(task.space(), task.begin())
    for action in (0, "x", None, 3, 1, 2, 3, 1):
        tale.try_out(f"act {action}", lambda action=action: task.act(action))  # type: ignore[misc]
    tale.say(task.result())
    box = spaces.Box(0, 1, (2,), np.float32)
    pair = spaces.Dict({"n": spaces.Discrete(2), "t": spaces.Tuple([box, spaces.Text(3)])})
    tale.say(tasks._describe_space(pair), tasks._describe_space(spaces.MultiBinary(3)))
    for space, action in (
        (box, [0, 1]), (box, [0, 2]), (box, [[0], [1]]), (box, ["x", 1]), (box, "ab"), (box, None), (box, True), (box, np.ones(2)),
        (pair, {"n": 1, "t": [[0.5, 0.5], "ab"]}), (pair, {"n": 1}), (pair, {"n": 1, "t": [[0.5, 0.5]]}), (pair, 3),
        (pair, {"n": 2, "t": [[0.5, 0.5], "ab"]}), (spaces.MultiBinary(2), [1, 0]),
    ):  # fmt: skip
        tale.try_out(f"{space}: {action}", lambda space=space, action=action: tasks._member(space, action))  # type: ignore[misc]
    options = {"truth": str(tale.folder / "truth.zip"), "frames": str(tale.root)}
    made: Any = tasks.make_task(VIDEO, options)
    tale.say("space:", made.space())
    seen = made.begin()
    for number in range(8):
        values = {key: value for key, value in seen.values.items() if key != "frame"}
        tale.say(seen.position, seen.sizes, values, made.truth() is not None and int(made.truth().sum()))
        if number == 1:
            for action in (None, [[1]], np.zeros((40, 60)), np.zeros(3, int), np.zeros((39, 60), int), np.full((40, 60), 256),
                           np.full((40, 60), -1), Labels((40, 61), {}), Labels((40, 60), {1: "00"}), Labels((40, 60), {1: "5"})):  # fmt: skip
                tale.try_out(f"  {getattr(action, 'shape', action)}", lambda action=action: made.act(action))  # type: ignore[misc]
        name, frame = seen.position.split("/")
        if seen.done or not name:
            break
        guess = answer(name, 4, 2)[int(frame)]
        seen = made.act(np.pad(guess, 3)[3:, 3:] if number % 2 else Labels((40, 60), messages_of(guess)))
        if seen.done:
            break
    tale.say(made.result())
    tale.try_out("after", lambda: made.act(None))
    for about, changes in (("nowhere", {"truth": "nowhere"}), ("nobody", {"sequence": "nobody"}), ("no pictures", {"frames": str(tale.folder)}),
                           ("no protocol", {"protocol": "coco"}), ("no phase", {"phase": "nothing"})):  # fmt: skip
        with mock.patch.object(video, "SEQUENCE_PROTOCOLS", {"davis2017": video.SEQUENCE_PROTOCOLS["davis2017"]}):
            tale.try_out(about, lambda changes=changes: tasks.make_task(VIDEO, {**options, **changes}))  # type: ignore[misc]
    padded: Any = gymnasium.make(VIDEO, **options, sequence="duo", reward=True)
    values, facts = padded.reset()
    tale.say(padded.action_space, _sums(values), facts)
    for frame in range(4):
        values, reward, ended, _, facts = padded.step(answer("duo", 4, 2)[frame].astype(np.uint8))
        tale.say(_sums(values), reward, ended, facts)
    padded.close()
    for values, action in (([[0, 0]], [[0, 0]]), ([[0, 255]], [[0, 1]]), ([[1, 1]], [[1, 0]])):
        tale.say(video._similarity(np.array(values, np.uint8), np.array(action)))


def _sums(values: dict[str, Any]) -> dict[str, int]:
    """Replace pictures by their means, which are equal on all machines."""
    return {key: round(float(value.mean() if key == "frame" else value.sum())) for key, value in values.items()}


def messages_of(mask: Any) -> dict[int, str]:
    from segjudge.masks.run_lengths import encode_labels

    return dict(encode_labels(mask.astype(np.uint8)))


def an_interactive_environment(tale: Tale) -> None:
    options = {"truth": str(tale.root), "interactions": 2, "clock": tale.clock, "subset": "val"}
    made: Any = tasks.make_task(INTERACTIVE, options)
    tale.say(made.space())
    tale.try_out("before", lambda: made.act({}))
    seen = made.begin()
    for _ in range(6):
        values = {**seen.values, "frames": len(seen.values["frames"])}
        values["scribbles"] = [(line["object_id"], line["frame"], len(line["path"])) for line in values["scribbles"]]
        tale.say(seen.position, seen.sizes, values)
        for action in (None, {}, {"masks": [1]}, {"masks": []}, {"masks": [Labels((1, 1), {1: "5"})]}, {"masks": [Labels((1, 1), {}), Labels((1, 2), {})]},
                       {"masks": np.zeros((1, 2, 3), int)})[: 7 if "frames" in seen.values and seen.position == "box, interaction 1" else 0]:  # fmt: skip
            tale.try_out(f"  {action}", lambda action=action: made.act(action))  # type: ignore[misc]
        tale.clock.now += 6
        name, count = seen.values["sequence"], seen.values["size"][0]
        masks = [Labels((40, 60), messages_of(frame)) for frame in answer(name, count, 2)]
        seen = made.act({"masks": masks, "candidates": [1] if name == "duo" else []})
        tale.say("score:", made.last_score())
    tale.say(seen, made.result())
    tale.try_out("after", lambda: made.act({"masks": []}))
    made.close()
    taken = {"masks": answer("duo", 4, 2).astype(np.uint8), "candidates": np.array([0, 1, 0, 0])}
    for rewarded in (True, False):
        padded: Any = gymnasium.make(
            INTERACTIVE, truth=str(tale.root), sequence="duo", interactions=2, clock=tale.clock, reward=rewarded
        )
        values, facts = padded.reset()
        tale.say(padded.action_space, facts)
        for _ in range(2):
            frames = [round(float(frame.mean())) for frame in values["frames"]]
            tale.say(values["size"], values["new_sequence"], frames, np.unique(values["scribbles"], return_counts=True))
            values, reward, ended, _, facts = padded.step(taken)
            tale.say(reward, ended, facts)
        padded.close()
    tale.try_out("no sequence", lambda: gymnasium.make(INTERACTIVE, truth=str(tale.root), sequence="nobody"))


# ── the agent's side, and the host's ────────────────────────────────────────


class Channel:
    """Calls a service in place of a network; some calls break before."""

    def __init__(self, played: service.Service, clock: Any, troubles: list[Any]) -> None:
        self._service, self._clock, self._troubles = played, clock, troubles

    def unary_unary(self, path: str) -> Callable[..., bytes]:
        name = path.rpartition("/")[2]

        def call(package: bytes, *, wait_for_ready: bool) -> bytes:
            assert not wait_for_ready
            if self._troubles:
                trouble = self._troubles.pop(0)
                if trouble:
                    raise AbortedError(*trouble)
            data: bytes = getattr(self._service, name)((self._clock.now, package), Context())
            return data

        return call

    def close(self) -> None:
        """Do nothing."""


def an_agent_plays(tale: Tale) -> None:
    away, full = (grpc.StatusCode.UNAVAILABLE, "no connection"), (grpc.StatusCode.RESOURCE_EXHAUSTED, "busy")
    large = (grpc.StatusCode.RESOURCE_EXHAUSTED, "message larger than max (5 vs. 4)")

    def play(troubles: list[Any], actions: tuple[Any, ...], **options: Any) -> None:
        played = service.Service(Frames(), service.TimeLimits(), tale.clock)
        played.reported.set()
        tale.say("──", options, [trouble and trouble[1] for trouble in troubles])
        with mock.patch.object(
            agent.grpc,
            "insecure_channel",
            lambda address, options: tale.say("channel:", address, options) or Channel(played, tale.clock, troubles),
        ):  # type: ignore[attr-defined]
            began = tale.clock.now
            with agent.Environment(**options) as environment:
                tale.try_out("reset", environment.reset)
                tale.say(environment.action_space)
                for action in actions:
                    tale.try_out(f"act {str(action)[:60]}", lambda action=action: environment.act(action))  # type: ignore[misc]
                    tale.say("  ", environment.done, environment.reward, environment.message, played._refused[:120])
            tale.say(f"{tale.clock.now - began:.1f} s")

    mask = np.array([[0, 1, 0], [0, 0, 2]])
    play(
        [away, full, away],
        (
            np.zeros(2),
            np.zeros((2, 3)),
            np.full((2, 3), 256),
            np.full((2, 3), 255),
            np.full((2, 3), -1),
            [[1], [1, 2]],
            np.zeros((3, 2), bool),
        ),
        quiet=True,
        address="x:1",
    )
    play([], (mask, mask, mask, mask), quiet=False, address="x:1")
    play([None, None, large, None, (grpc.StatusCode.INTERNAL, "broken"), away], (mask, mask, mask), quiet=False)
    play([away] * 99, (), patience=2.0, quiet=True)
    for variables in ({"LOCAL_EVALUATION": "1"}, {}):
        with mock.patch.dict(os.environ, variables):
            tale.say(agent._default_address())
    space = {"type": "mapping", "values": {"masks": {"type": "list", "of": "labels"}, "n": {"type": "integer"}}}
    tale.say(
        agent._pack({"masks": [mask], "n": 2, "more": [mask.tolist()]}, space),
        agent._pack([1], {}),
        agent._pack(3, space),
    )
    small = io.BytesIO()
    from PIL import Image

    Image.new("L", (2, 1), 9).save(small, "PNG")
    value = {"p": Picture(small.getvalue()), "l": [Labels((1, 2), {3: "11"})], "n": 1}
    tale.say(agent._unpack(value))
    for terminal in (True, False):
        stream = io.StringIO()
        stream.isatty = lambda terminal=terminal: terminal  # type: ignore[method-assign,misc]
        with mock.patch.object(agent.sys, "stderr", stream):  # type: ignore[attr-defined]
            progress = agent._Progress()
            for number, seconds in enumerate((0, 0.1, 0.15, 29, 2)):
                tale.clock.now += seconds
                progress(f"line {number}", number == 4)
        tale.say(repr(stream.getvalue()))


PARTS = (
    sessions_of_agents, messages_and_bytes, environments_answer, an_interactive_environment, an_agent_plays, settings_and_reports,
    an_arena_without_processes, a_static_submission, *PROCESSES,
)  # fmt: skip


@contextlib.contextmanager
def _same_everywhere(tale: Tale) -> Iterator[None]:
    numbers = itertools.count(1)

    def wait(seconds: float) -> None:
        tale.clock.now += seconds

    clock = SimpleNamespace(monotonic=tale.clock, sleep=wait, time=tale.clock)
    keys = SimpleNamespace(
        token_hex=lambda size: f"key{next(numbers):0{2 * size}}", compare_digest=secrets.compare_digest
    )
    with contextlib.ExitStack() as ends:
        for module in (service, agent, arena, static):
            ends.enter_context(mock.patch.object(module, "time", clock))
        for module in (service, agent):
            ends.enter_context(mock.patch.object(module, "secrets", keys))
        ends.enter_context(mock.patch("random.uniform", return_value=1.0))
        ends.enter_context(mock.patch.dict(os.environ))
        for name in ("DATASET_DAVIS", "LOCAL_EVALUATION", ADDRESS_VARIABLE, "SUBMISSION_PATH", "SEGJUDGE_DATASET"):
            os.environ.pop(name, None)
        stream = ends.enter_context(contextlib.redirect_stderr(io.StringIO()))
        logging.getLogger("environment").disabled = True
        try:
            yield
        finally:
            logging.getLogger("environment").disabled = False
            tale.say(repr(stream.getvalue()))


def write_part(part: Callable[[Tale], None]) -> str:
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        tale = Tale(Path(folder))
        write_root(tale.root)
        pack(TruthSource(str(tale.root), "davis2017", "val"), str(tale.folder / "truth.zip"), split="test")
        with _same_everywhere(tale):
            part(tale)
    text = re.sub(r"0x[0-9a-f]{8,}", "0x…", fold_sections(join_json(count_repeats("\n".join(tale.lines)))))
    return f"═══ {part.__name__.replace('_', ' ')}\n{text}\n\n"


if __name__ == "__main__":
    FILE.write_text("".join(map(write_part, PARTS)), encoding="utf-8")
