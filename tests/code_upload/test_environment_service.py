"""The environment's service with correct and with faulty agents."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
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
from segjudge.code_upload_challenge_evaluation.environment.__main__ import read_settings
from segjudge.evaluation_script import main
from segjudge.evaluation_script.files.problems import HostError
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


@pytest.mark.long
def test_time_for_a_frame_runs_from_the_reply_to_the_action(data: Path, served: Served) -> None:
    agent = Caller(served.address)
    agent.begin()
    time.sleep(0.5)
    agent.act(GOOD)
    for _ in range(10):
        agent.act(GOOD)
    agent.close()
    output = served.outcome()["metadata"]["seconds_per_step"]
    assert output["most"] >= 0.5
    assert output["median"] < output["most"]


def test_a_repeated_step_gets_the_same_reply(served: Served) -> None:
    agent = Caller(served.address)
    first = agent.raw("reset", Action(session_id="me").pack())
    assert agent.raw("reset", Action(session_id="me").pack()) == first
    reply = agent.begin()
    action = Action(reply.session_id, 0, GOOD).pack()
    answers = {agent.raw("act_on_environment", action) for _ in range(3)}
    assert len(answers) == 1
    assert agent.refused("act_on_environment", Action(reply.session_id, 5, GOOD).pack()) == (
        CODE.FAILED_PRECONDITION, "Step 5 is not due; step 1 is."
    )  # fmt: skip
    agent.close()


@pytest.mark.long
def test_a_foreign_session_and_a_second_reset_are_refused_until_it_idles(data: Path) -> None:
    running = Served(data, *dataset(data), "--idle-seconds", "5")
    agent, caller = Caller(running.address), Caller(running.address)
    mine = agent.begin("me").session_id
    assert caller.refused("act_on_environment", Action("0" * 32, 0, GOOD).pack())[0] == CODE.PERMISSION_DENIED
    code, message = caller.refused("reset", Action(session_id="other").pack())
    assert (code, message[:22]) == (CODE.FAILED_PRECONDITION, "A session is running; ")
    time.sleep(5.3)
    theirs = caller.begin("other").session_id
    assert theirs != mine
    assert agent.refused("act_on_environment", Action(mine, 0, GOOD).pack())[0] == CODE.PERMISSION_DENIED
    play_to_the_end(caller, running)


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
        for protocol in (2, 3, 4, 5)
    },
    "pickle 0": (b"\x0a\x04" + pickle.dumps(1, 0), CODE.INVALID_ARGUMENT, "not a message of this service"),
    "nothing": (b"", CODE.INVALID_ARGUMENT, "not a message of this service"),
    "garbage": (b"\xff" * 1000, CODE.INVALID_ARGUMENT, "is cut off"),
    "json": (b'{"session_id": ""}', CODE.INVALID_ARGUMENT, ""),
    "cut off": (Action("S", 0, GOOD).pack()[:-3], CODE.INVALID_ARGUMENT, "is cut off"),
    "no value": (Action("S", 0).pack(), CODE.INVALID_ARGUMENT, "not a two-dimensional array of whole numbers"),
    "a text": (Action("S", 0, "mask").pack(), CODE.INVALID_ARGUMENT, "not a two-dimensional array of whole numbers"),
    "a list": (Action("S", 0, [1, 2]).pack(), CODE.INVALID_ARGUMENT, "not a two-dimensional array of whole numbers"),
    "a mapping": (
        Action("S", 0, {"mask": 1}).pack(),
        CODE.INVALID_ARGUMENT,
        "not a two-dimensional array of whole numbers",
    ),
    "a picture": (
        Action("S", 0, np.zeros((3, 3, 3), np.uint8)).pack(),
        CODE.INVALID_ARGUMENT,
        "not a two-dimensional array of whole numbers",
    ),
    "floats": (
        Action("S", 0, np.zeros(SIZE)).pack(),
        CODE.INVALID_ARGUMENT,
        "not a two-dimensional array of whole numbers",
    ),
    "negative": (Action("S", 0, np.full(SIZE, -1)).pack(), CODE.INVALID_ARGUMENT, "outside 0 to 255"),
    "too small": (
        Action("S", 0, Labels((1, 1), {})).pack(),
        CODE.INVALID_ARGUMENT,
        "drift/00000: the mask is 1 x 1",
    ),
    "too large": (
        Action("S", 0, Labels((1 << 31, 1 << 31), {1: "0"})).pack(),
        CODE.INVALID_ARGUMENT,
        "the mask is",
    ),
    "two masks": (Action("S", 0, [GOOD, GOOD]).pack(), CODE.INVALID_ARGUMENT, "no more masks are due"),
    "short runs": (runs("01"), CODE.INVALID_ARGUMENT, "add up to"),
    "negative runs": (runs("O" * 10), CODE.INVALID_ARGUMENT, "the mask has counts"),
    "endless run": (runs("o" * 50), CODE.INVALID_ARGUMENT, "end too early or do not end"),
    "many runs": (runs("0" * 1_000_000), CODE.INVALID_ARGUMENT, "more than 19200 pixels can need"),
    "overlapping": (
        Action("S", 0, Labels(SIZE, dict.fromkeys(range(1, 200), encode_labels(np.ones(SIZE, np.uint8))[1]))).pack(),
        CODE.INVALID_ARGUMENT,
        "masks that overlap",
    ),
    "a foreign session": (Action("other", 0, GOOD).pack(), CODE.PERMISSION_DENIED, "not the running session"),
    "a later step": (Action("S", 9, GOOD).pack(), CODE.FAILED_PRECONDITION, "Step 9 is not due"),
    "a huge step": (Action("S", (1 << 32) - 1, GOOD).pack(), CODE.FAILED_PRECONDITION, "is not due"),
    "17 MB": (b"\x0a" + b"x" * (17 << 20), CODE.RESOURCE_EXHAUSTED, "larger than max"),
}


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


@pytest.mark.long
def test_the_other_calls_are_as_careful(served: Served) -> None:
    agent = Caller(served.address)
    for name in ("reset",):
        for message, code, _ in list(HOSTILE.values())[:8]:
            assert agent.refused(name, message)[0] == code
    assert agent.refused("shutdown", b"")[0] == CODE.UNIMPLEMENTED
    assert json.loads(_space(agent, pickle.dumps(Bomb())))["type"] == "labels", "asked with anything"
    code, text = agent.refused("act_on_environment", Action("S", 0, GOOD).pack())
    assert (code, text) == (CODE.FAILED_PRECONDITION, "There is no session: call reset first.")
    agent.close()


def _space(agent: Caller, data: bytes) -> str:
    from segjudge.code_upload.messages import Reply

    return Reply.read(agent.raw("get_action_space", data)).space


def ends(data: Path, message: str, *options: str, act: Any = None, seconds: float = 30, **variables: str) -> None:
    """Run this agent within these limits, and check that the session fails for this reason and reports it."""
    running = Served(data, *dataset(data), *options, **variables)
    agents = act(running) if act is not None else None
    output = running.outcome(seconds)
    assert output["status"] == "failed"
    assert message in output["message"], output
    assert running.process.returncode == 1
    for item in agents or []:
        item.close()


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


def alone(running: Served) -> list[Caller]:
    return [begun(running)]


@pytest.mark.long
def test_nobody_comes(data: Path) -> None:
    ends(data, "did not call reset within 1 seconds", "--begin-seconds", "1")


@pytest.mark.long
def test_an_agent_that_is_silent(data: Path) -> None:
    ends(data, "did not answer drift/00000 within 1 seconds", "--step-seconds", "1", act=alone)


@pytest.mark.long
def test_the_time_of_the_submission_is_over(data: Path) -> None:
    def slowly(running: Served) -> list[Caller]:
        agent = begun(running)

        def go() -> None:
            try:
                while True:  # The eleven steps would take longer than the limit on any machine.
                    agent.act(GOOD)
                    time.sleep(1)
            except (grpc.RpcError, ValueError):
                return

        threading.Thread(target=go, daemon=True).start()
        return [agent]

    ends(data, "The time limit of 5 seconds ended at ", act=slowly, SUBMISSION_TIME_LIMIT="5")


@pytest.mark.long
def test_an_agent_that_dies_between_two_calls(data: Path) -> None:
    def dying(running: Served) -> None:
        code = (
            "import os, sys\nfrom segjudge.agent import Environment\n"
            "environment = Environment(sys.argv[1], quiet=True)\nenvironment.reset()\nos._exit(9)\n"
        )
        assert subprocess.run([sys.executable, "-c", code, running.address], check=False).returncode == 9

    ends(data, "The agent ended before the evaluation did, at drift/00000", "--gone-seconds", "1", act=dying)


@pytest.mark.long
def test_an_agent_that_floods_ends_itself(data: Path) -> None:
    def flooding(running: Served) -> list[Caller]:
        agent = begun(running)
        for _ in range(1100):
            code, _ = agent.refused("act_on_environment", b"")
            if code == CODE.FAILED_PRECONDITION:
                break
        return [agent]

    ends(data, "More than 1000 calls of the agent were rejected", act=flooding)


@pytest.mark.long
def test_a_slow_drip_of_bytes(data: Path) -> None:
    def dripping(running: Served) -> list[socket.socket]:
        agent = begun(running)
        host, port = running.address.split(":")
        drips = [socket.create_connection((host, int(port))) for _ in range(20)]

        def drip() -> None:
            try:
                for _ in range(200):
                    for drip in drips:
                        drip.sendall(b"P")
                    time.sleep(0.05)
            except OSError:
                return

        threading.Thread(target=drip, daemon=True).start()
        agent.close()
        return drips

    ends(data, "did not answer drift/00000 within 2 seconds", "--step-seconds", "2", act=dripping)


@pytest.mark.long
def test_streams_that_never_end_their_message(data: Path) -> None:
    def hanging(running: Served) -> list[Caller]:
        agent = begun(running)

        def endless() -> Iterator[bytes]:
            yield Action("S", 0, GOOD).pack()
            time.sleep(8)

        callers = []
        for _ in range(12):
            call: Any = agent.channel.stream_unary("/evaluation.Environment/act_on_environment")
            callers.append(call.future(endless(), timeout=20))
        return [agent]

    ends(data, "did not answer drift/00000 within 3 seconds", "--step-seconds", "3", act=hanging)


@pytest.mark.long
def test_a_storm_of_connections(data: Path, served: Served) -> None:
    for _ in range(60):
        agent = Caller(served.address)
        if not agent.session and _ == 0:
            keeper = agent
            keeper.begin()
            continue
        agent.refused("reset", Action(session_id=str(_)).pack())
        agent.close()
    play_to_the_end(keeper, served)


@pytest.mark.long
def test_many_at_once(data: Path, served: Served) -> None:
    agent = begun(served)
    answers: list[Any] = []

    def call(number: int) -> None:
        caller = Caller(served.address)
        try:
            answers.append(caller.refused("reset", Action(session_id=f"storm {number}").pack())[0])
        finally:
            caller.close()

    threads = [threading.Thread(target=call, args=(k,)) for k in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) <= {CODE.FAILED_PRECONDITION, CODE.RESOURCE_EXHAUSTED, CODE.UNAVAILABLE}
    play_to_the_end(agent, served)


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


@pytest.mark.long
def test_acting_after_the_end_is_refused(data: Path) -> None:
    running = Served(data, *dataset(data))
    agent = begun(running)
    session = agent.session
    for _ in range(11):
        agent.act(GOOD)
    late = (Action(session, 11, GOOD), Action(session, 0, GOOD), Action(session_id="again"))
    try:
        results = [agent.refused("act_on_environment", item.pack(), timeout=2)[0] for item in late]
    finally:
        agent.close()
    assert set(results) <= {CODE.FAILED_PRECONDITION, CODE.UNAVAILABLE, CODE.DEADLINE_EXCEEDED, CODE.CANCELLED}
    assert running.outcome()["status"] == "finished"


@pytest.mark.long
def test_the_platform_stops_the_container(data: Path) -> None:
    def stopped(running: Served) -> list[Caller]:
        agent = begun(running)
        running.process.send_signal(signal.SIGTERM)
        return [agent]

    ends(data, "The environment was stopped before the agent had finished", act=stopped)


# ── settings ────────────────────────────────────────────────────────────────

BODY = '{"challenge_pk":"203","phase_pk":"527","submission_pk":1351,"submitted_image_uri":"it\'s:1"}'


def test_what_the_platform_tells() -> None:
    output = read_settings(["--env", "x"], {"AUTH_TOKEN": "t", "BODY": BODY, "SUBMISSION_TIME_LIMIT": "60"})
    assert output.target is not None
    assert (output.target.challenge, output.target.phase, output.target.submission) == (203, 527, 1351)
    assert (output.target.server, output.bind, output.limits.episode, output.limits.step) == (
        "https://eval.ai", "127.0.0.1", 60.0, 60.0
    )  # fmt: skip
    assert "t" not in repr(output.target).replace("target", "").replace("Target", "").split("token")[0][-1:]
    local = read_settings(["--env", "x", "--option", "draw=2", "--option", "truth=a=b"], {"LOCAL_EVALUATION": "1"})
    assert (local.target, local.options) == (None, {"draw": 2, "truth": "a=b"})


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "AUTH_TOKEN and BODY not set"),
        ({"AUTH_TOKEN": "t", "BODY": "{'a': 1}"}, "BODY is not a message of EvalAI's queue"),
        (
            {"AUTH_TOKEN": "t", "BODY": '{"challenge_pk": "x; rm", "phase_pk": 1, "submission_pk": 2}'},
            "BODY is not a message",
        ),
        ({"AUTH_TOKEN": "t", "BODY": BODY, "EVALAI_API_SERVER": "http://example.org"}, "only over https"),
        ({"LOCAL_EVALUATION": "1", "SUBMISSION_TIME_LIMIT": "soon"}, "not a number of seconds"),
        ({"LOCAL_EVALUATION": "1", "SUBMISSION_TIME_LIMIT": "-1"}, "is not between 0 and"),
    ],
    ids=str,
)
def test_what_is_wrong_in_the_environment_is_named(variables: dict[str, str], message: str) -> None:
    with pytest.raises(HostError, match=message):
        read_settings(["--env", "x"], variables)


@pytest.mark.long
def test_an_environment_that_cannot_be_made_says_why(data: Path) -> None:
    command = [sys.executable, "-m", "segjudge.code_upload_challenge_evaluation.environment", "--env"]
    environment = {**os.environ, "LOCAL_EVALUATION": "1"}
    for arguments, output in (
        (["segjudge/VideoObjectSegmentation-v0", "--option", "truth=/nowhere"], "/nowhere: there is no such truth"),
        (["Nothing-v0"], "Nothing"),
        (["CartPole-v1", "--option", "colour"], "--option colour: is not NAME=VALUE"),
    ):
        done = subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 3
        assert output in done.stderr


# ── what an attack found ────────────────────────────────────────────────────


@pytest.mark.long
def test_whoever_takes_a_session_over_goes_on_where_it_stood(data: Path) -> None:
    """Otherwise the agent could play the session twice and use what it had seen."""
    running = Served(data, *dataset(data), "--idle-seconds", "0.5")
    first, second = Caller(running.address), Caller(running.address)
    first.begin("first")
    for _ in range(4):
        first.act(GOOD)
    time.sleep(0.7)
    reply = second.begin("second")
    assert (reply.step, reply.value["new_sequence"]) == (4, 1)
    for _ in range(7):
        reply = second.act(GOOD)
    assert reply.all_complete
    first.close()
    second.close()
    assert running.outcome()["metadata"]["steps"] == 11


@pytest.mark.long
def test_repeats_hide_no_time_and_stop_no_clock(data: Path) -> None:
    running = Served(data, *dataset(data), "--step-seconds", "4")
    agent = Caller(running.address)
    session = agent.begin().session_id
    agent.act(GOOD)
    time.sleep(0.6)
    agent.raw("act_on_environment", Action(session, 0, GOOD).pack())
    agent.act(GOOD)
    until = time.monotonic() + 120
    while running.process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(grpc.RpcError):
            agent.raw("act_on_environment", Action(session, 1, GOOD).pack())
        time.sleep(0.2)
    agent.close()
    output = running.outcome()
    assert "did not answer drift/00002 within 4 seconds" in output["message"]
    assert output["metadata"]["seconds_per_step"]["most"] >= 0.6


@pytest.mark.long
def test_a_foreigner_who_knocks_does_not_keep_a_session_alive(data: Path) -> None:
    running = Served(data, *dataset(data), "--idle-seconds", "1.5")
    first, second = Caller(running.address), Caller(running.address)
    first.begin("first")
    for _ in range(120):
        try:
            second.begin("second")
            break
        except grpc.RpcError:
            time.sleep(0.3)
    else:
        raise AssertionError("it never took over")
    first.close()
    second.close()
    running.end()


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


@pytest.mark.long
def test_too_many_connections_end_it(data: Path) -> None:
    def crowding(running: Served) -> list[Any]:
        host, port = running.address.split(":")
        agent = begun(running)
        return [agent, *(socket.create_connection((host, int(port))) for _ in range(60))]

    ends(data, "more than 32 connections at once", act=crowding)


@pytest.mark.long
def test_a_port_that_is_taken_is_a_sentence(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [sys.executable, "-m", "segjudge.code_upload_challenge_evaluation.environment", *dataset(data)]
        done = subprocess.run(
            [*command, "--port", str(taken.getsockname()[1])],
            env={**os.environ, "LOCAL_EVALUATION": "1"}, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 3
    assert "is in use" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_result_that_is_no_number_is_a_failure(data: Path, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(
        "import gymnasium, numpy as np\n"
        "from gymnasium import spaces\n"
        "class Odd(gymnasium.Env):\n"
        "    action_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)\n"
        "    observation_space = spaces.Discrete(2)\n"
        "    def reset(self, *, seed=None, options=None): return 0, {}\n"
        "    def step(self, action): return 0, float(-action[0] ** 2), True, False, {}\n"
        "gymnasium.register(id='Odd-v0', entry_point=Odd)\n"
    )
    running = Served(
        data, "--env", "odd:Odd-v0", PYTHONPATH=f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    )
    agent = begun(running)
    try:
        code, message = agent.refused("act_on_environment", Action(agent.session, 0, np.array([np.inf])).pack())
        assert code in (CODE.FAILED_PRECONDITION, CODE.UNAVAILABLE), message  # the end may overtake the refusal
        output = running.outcome()
    finally:
        agent.close()
        running.end()
    assert output["status"] == "failed"
    assert output["message"].startswith("The result is not a finite number")
