"""The environment's service with correct and with faulty agents."""

from __future__ import annotations

import gzip
import os
import pickle
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from segjudge.agent import ActionRefusedError, Environment
from segjudge.code_upload.messages import Action, Labels
from segjudge.evaluation_script import main
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.masks.run_lengths import encode_labels
from tests.builders import png, zipped
from tests.environments import MEMORY, SIZE, VIDEOS, Caller, Served, dataset
from tests.wire import field_of, varint

MAGIC = b"SJ1\0"

GOOD = Labels(SIZE, {})
CODE = grpc.StatusCode


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("service")
    dataset(folder)
    return folder


@pytest.fixture
def served(data: Path) -> Iterator[Served]:
    """Start a service whose time limits are too long to end a session before the test does."""
    running = Served(data, *dataset(data), "--step-seconds", "20", "--gone-seconds", "1")
    yield running
    running.end()


def guess(place: int, frame: int) -> Any:
    return VIDEOS[place].labels(max(frame - 1, 0))


def test_an_agent_is_scored_as_an_upload_of_the_same_masks(
    data: Path, served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    begun_at = time.monotonic()
    with Environment(served.address, quiet=True) as environment:
        observation = environment.reset()
        assert environment.action_space["type"] == "labels"
        place = -1
        while not environment.done:
            if observation["new_sequence"]:
                place, frame = place + 1, 0
                assert np.array_equal(observation["first_mask"], VIDEOS[place].truth(0) % 255)
            assert observation["frame"].shape == (*VIDEOS[place].size, 3)
            observation = environment.act(guess(place, frame))
            frame += 1
        assert environment.message == "The evaluation is complete."
        with pytest.raises(ActionRefusedError, match="episode is over"):
            environment.act(guess(0, 0))
    assert capsys.readouterr().err == "", "it is to be quiet"
    output = served.outcome()
    assert served.process.returncode == 0
    assert output["status"] == "finished"
    assert output["metadata"]["steps"] == 11
    assert 0 < output["metadata"]["seconds_per_step"]["most"] < time.monotonic() - begun_at
    upload = data / "upload.zip"
    upload.write_bytes(
        zipped(
            {
                f"{video.name}/{k:05d}.png": png(guess(p, k))
                for p, video in enumerate(VIDEOS)
                for k in range(video.frames)
            }
        )
    )
    phase = Phase("x", "", (PhaseSplit("test", "davis2017", tuple(output["result"][0]["test"])),))
    wanted = main.score_phase(phase, main.open_truth(str(data / "truth.zip"), phase), str(upload), lambda _: None, 0.0)
    assert output["result"] == wanted["result"]


def test_cartpole_as_evalais_documentation_has_it(data: Path) -> None:
    running = Served(data, "--env", "CartPole-v1", "--episodes", "2", "--seed", "7")
    with Environment(running.address, quiet=True) as environment:
        observation = environment.reset()
        assert environment.action_space == {"type": "discrete", "n": 2, "start": 0}
        with pytest.raises(ActionRefusedError, match=r"action 5 is not in Discrete\(2\)"):
            environment.act(5)
        rewards = 0.0
        while not environment.done:
            observation = environment.act(int(observation[2] > 0))
            rewards += environment.reward
    output = running.outcome()
    assert output["result"] == [{"test": {"score": rewards / 2}}]


@pytest.mark.long
def test_health(served: Served) -> None:
    with grpc.insecure_channel(served.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for name in ("", "evaluation.Environment"):
            output = stub.Check(health_pb2.HealthCheckRequest(service=name))
            assert output.status == health_pb2.HealthCheckResponse.SERVING


# ── agents that do not know what they do, or know it too well ───────────────


#: The file that the bomb leaves; its name is of this run of the tests alone.
BOMBED = f"/tmp/segjudge-was-here-{os.getpid()}"


class Bomb:
    """If unpickled, it leaves a file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {BOMBED}",)


def runs(text: str) -> bytes:
    return Action("S", 0, Labels(SIZE, {1: text})).pack()


HOSTILE: dict[str, tuple[bytes, CODE, str]] = {
    **{
        f"pickle {protocol}": (
            b"\x0a" + bytes([len(body := pickle.dumps(Bomb(), protocol))]) + body,
            CODE.INVALID_ARGUMENT,
            "Python pickle, which is never opened",
        )
        for protocol in (2, 5)
    },
    "garbage": (b"\xff" * 1000, CODE.INVALID_ARGUMENT, "is cut off"),
    "too small": (Action("S", 0, Labels((1, 1), {})).pack(), CODE.INVALID_ARGUMENT, "drift/00000: the mask is 1 x 1"),
    "two masks": (Action("S", 0, [GOOD, GOOD]).pack(), CODE.INVALID_ARGUMENT, "no more masks are due"),
    "endless run": (runs("o" * 50), CODE.INVALID_ARGUMENT, "end too early or do not end"),
    "many runs": (runs("0" * 1_000_000), CODE.INVALID_ARGUMENT, "more than 19200 pixels can need"),
    "overlapping": (
        Action("S", 0, Labels(SIZE, dict.fromkeys(range(1, 200), encode_labels(np.ones(SIZE, np.uint8))[1]))).pack(),
        CODE.INVALID_ARGUMENT,
        "masks that overlap",
    ),
    "a foreign session": (Action("other", 0, GOOD).pack(), CODE.PERMISSION_DENIED, "not the running session"),
    "a later step": (Action("S", 9, GOOD).pack(), CODE.FAILED_PRECONDITION, "Step 9 is not due"),
    "17 MB": (b"\x0a" + b"x" * (17 << 20), CODE.RESOURCE_EXHAUSTED, "larger than max"),
}  # fmt: skip


def test_hostile_calls_are_refused_with_a_sentence_and_change_nothing(data: Path, served: Served) -> None:
    Path(BOMBED).unlink(missing_ok=True)
    agent = Caller(served.address)
    session = agent.begin().session_id
    for name, (message, code, text) in HOSTILE.items():
        known = message
        if b"\x0a\x01S" in message[:40]:  # with the session that is running
            inside = message[message.index(MAGIC) + 4 :].replace(b"\x0a\x01S", b"\x0a\x20" + session.encode(), 1)
            known = b"\x0a" + varint(len(inside) + 4) + MAGIC + inside
        results, output = agent.refused("act_on_environment", known)
        assert results == code, (name, results, output)
        assert text in output, (name, output)
        assert served.memory() < MEMORY, name
    assert not Path(BOMBED).exists()
    play_to_the_end(agent, served)


def begun(running: Served) -> Caller:
    agent = Caller(running.address)
    agent.begin()
    return agent


def play_to_the_end(agent: Caller, running: Served, answer: Any = GOOD) -> None:
    for _ in range(11):
        reply = agent.act(answer)
    assert reply.all_complete
    agent.close()
    assert running.outcome()["status"] == "finished"


@pytest.mark.long
def test_two_gigabytes_in_one_message(data: Path, served: Served) -> None:
    """Two gigabytes are rejected both as a header's claim and as few bytes of gzip."""
    agent = begun(served)
    squeezed = Caller(served.address, **{"grpc.default_compression_algorithm": 2})
    code, _ = squeezed.refused("act_on_environment", bytes(200 << 20), timeout=60)
    assert code == CODE.RESOURCE_EXHAUSTED
    squeezed.close()
    host, port = served.address.split(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            b"\0\0\0\4\0\0\0\0\0"
            b"\xff\xff\xff\0\0\0\0\0\1" + gzip.compress(bytes(1 << 20))
        )
        raw.settimeout(5)
        try:
            while raw.recv(1 << 16):
                pass
        except OSError:
            pass
    assert served.memory() < MEMORY
    play_to_the_end(agent, served)


# ── what an attack found ────────────────────────────────────────────────────


@pytest.mark.long
def test_little_that_would_become_much(data: Path, served: Served) -> None:
    """Small messages that would inflate: padded texts, masks of empty runs, shapes with millions of sides."""
    agent = begun(served)
    session = agent.session
    texts = Action(session, 0, ["x" * 1_000_000, *[""] * 300]).pack()
    sides = field_of("Array", "dtype", b"|u1") + field_of("Array", "shape", varint(300) * 4_000_000)
    names = field_of("Mapping", "entries", field_of("Entry", "name", b"a")) * 1_000_000
    many = [field_of("Value", "array", sides), field_of("Value", "mapping", names)]
    messages = [
        texts,
        *(field_of("Package", "SerializedEntity", MAGIC + field_of("Action", "value", item)) for item in many),
    ]
    for message in messages:
        assert agent.refused("act_on_environment", message)[0] == CODE.INVALID_ARGUMENT
    padded = "0" * 20_000 + encode_labels(np.zeros(SIZE, np.uint8) + 1)[1]
    play_to_the_end(agent, served, Labels(SIZE, {1: padded}))
