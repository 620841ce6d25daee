"""The messages between agent and environment: compared with protobuf, and with hostile bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from segjudge.code_upload import messages
from segjudge.code_upload.messages import (
    SERVICE,
    Action,
    Labels,
    MessageError,
    Picture,
    Reply,
)
from tests.builders import ROOT
from tests.wire import field_of

#: What the protocol has before a message of ours, and how many fields a message may hold.
MAGIC, MOST_FIELDS = b"SJ1\0", 200_000

PROTOS = ROOT / "code_upload_challenge_evaluation/protos"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Compile the file with protobuf's own compiler."""
    out = tmp_path_factory.mktemp("protos") / "set"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}", f"--descriptor_set_out={out}"]
    subprocess.run([*command, str(PROTOS / "evaluation.proto")], check=True)
    return descriptor_pb2.FileDescriptorSet.FromString(Path(out).read_bytes()).file[0]


@pytest.fixture(scope="module")
def protobuf(compiled: Any) -> Any:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(compiled)
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"evaluation.{name}"))


def test_the_table_is_the_file(compiled: Any) -> None:
    ours = messages._describe_file()
    for message in compiled.message_type:
        for field in message.field:
            field.ClearField("json_name")
    assert list(ours.message_type) == list(compiled.message_type)
    (service,) = compiled.service
    assert f"{compiled.package}.{service.name}" == SERVICE
    assert [item.name for item in service.method] == ["get_action_space", "reset", "act_on_environment"]


VALUE = {
    "integer": -5, "large": (1 << 62), "number": 0.25, "text": "grün", "flag": True, "zero": 0, "empty": "",
    "array": np.arange(6, dtype="<f4").reshape(2, 3), "picture": Picture(b"\xff\xd8"), "list": [1, [2, "3"], {}],
    "labels": Labels((4, 5), {1: "PPYo0", 255: "d0"}), "deep": {"a": {"b": []}},
}  # fmt: skip


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


def test_what_is_written_is_what_protobuf_reads(protobuf: Any) -> None:
    sent = Action("session", 70_000, VALUE)
    package = protobuf("Package").FromString(sent.pack())
    assert package.SerializedEntity[:4] == MAGIC
    action = protobuf("Action").FromString(package.SerializedEntity[4:])
    assert (action.session_id, action.step) == ("session", 70_000)
    entries = {entry.name: entry.value for entry in action.value.mapping.entries}
    assert entries["integer"].integer == -5
    assert entries["number"].number == 0.25
    assert (list(entries["array"].array.shape), entries["array"].array.dtype) == ([2, 3], "<f4")
    assert [(item.id, item.counts) for item in entries["labels"].labels.objects] == [(1, "PPYo0"), (255, "d0")]
    assert entries["zero"].WhichOneof("kind") == "integer"
    back = protobuf("Package")(SerializedEntity=MAGIC + action.SerializeToString()).SerializeToString()
    read = messages.Action.read(back)
    assert (read.session_id, read.step) == ("session", 70_000)
    assert same(read.value, VALUE)


def test_replies_come_back(protobuf: Any) -> None:
    sent = Reply("s", 3, [1], -0.5, done=True, all_complete=True, message="good", space='{"type": "labels"}')
    assert messages.Reply.read(sent.pack()) == sent
    reply = protobuf("Reply").FromString(protobuf("Package").FromString(sent.pack()).SerializedEntity[4:])
    assert (reply.reward, reply.done, reply.all_complete, reply.message) == (-0.5, True, True, "good")


def package_of(data: bytes) -> bytes:
    return field_of("Package", "SerializedEntity", data)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_is_explained(protocol: int) -> None:
    import pickle

    with pytest.raises(MessageError, match="The message is a Python pickle, which is never opened"):
        messages.Action.read(package_of(pickle.dumps({"action": 1}, protocol)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "not a message of this service", id="empty"),
        pytest.param(b'{"action": 1}', "not a message of this service", id="json"),
        pytest.param(b"LJ2\0", "not a message of this service", id="another version"),
        pytest.param(MAGIC + b"\x0a\xff\xff\xff\xff\x0f", "is cut off", id="longer than it is"),
        pytest.param(MAGIC + b"\x10" + b"\xff" * 11, "is cut off", id="endless number"),
        pytest.param(MAGIC + b"\x0b", "of a type that protobuf 3 does not have", id="group"),
        pytest.param(MAGIC + b"\x0a\x01\xff", "not UTF-8", id="text"),
        pytest.param(
            MAGIC + b"\x08\x01", "Action.session_id, which does not have the type string", id="number for text"
        ),
        pytest.param(MAGIC + b"\x12\x01a", "Action.step, which does not have the type uint32", id="bytes for number"),
    ],
)
def test_bytes_that_are_none_of_ours(data: bytes, message: str) -> None:
    with pytest.raises(MessageError, match=message):
        messages.Action.read(package_of(data))


def value_of(data: bytes) -> bytes:
    return package_of(MAGIC + field_of("Action", "value", data))


def test_the_deepest_value_that_can_be_written_can_be_read() -> None:
    value: Any = 1
    for _ in range(8):
        value = [value]
    assert Action.read(Action("s", 0, value).pack()).value == value
    with pytest.raises(TypeError, match="nested too deeply"):
        Action("s", 0, [value]).pack()


@pytest.mark.long
def test_little_bytes_make_little_memory() -> None:
    deep = b""
    for _ in range(50):
        deep = field_of("Value", "list", field_of("List", "items", deep))
    many = field_of("Value", "list", field_of("List", "items", b"") * 300_000)
    huge = field_of(
        "Value",
        "array",
        field_of("Array", "dtype", b"<f8") + field_of("Array", "shape", b"\xff" * 9 + b"\x01"),
    )
    sides = field_of("Value", "array", field_of("Array", "shape", b"\x01" * (MOST_FIELDS + 1)))
    names = field_of("Value", "mapping", field_of("Mapping", "entries", field_of("Entry", "name", b"a")) * MOST_FIELDS)
    objects = field_of("Value", "array", field_of("Array", "dtype", b"|O"))
    twice = field_of("Labels", "objects", b"\x08\x01") * 2
    ground = field_of("Labels", "objects", b"\x08\x00")
    beyond = field_of("Labels", "objects", b"\x08\x80\x02")
    for data, message in (
        (deep, "nested too deeply"),
        (many, "too many"),
        (sides, "too many"),
        (names, "too many"),
        (huge, "which does not match its shape"),
        (objects, r"array of '\|O'"),
        (field_of("Value", "labels", twice), "Object 1 of a mask is outside 1 to 255, or occurs twice"),
        (field_of("Value", "labels", ground), "Object 0 of a mask is outside 1 to 255"),
        (field_of("Value", "labels", field_of("Labels", "objects", b"")), "Object 0 of a mask is outside 1 to 255"),
        (field_of("Value", "labels", beyond), "Object 256 of a mask is outside 1 to 255"),
    ):
        with pytest.raises(MessageError, match=message):
            messages.Action.read(value_of(data))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_an_error(data: bytes) -> None:
    for whole in (data, package_of(data), package_of(MAGIC + data), value_of(data)):
        try:
            messages.Action.read(whole)
        except MessageError:
            pass


def test_what_cannot_be_sent_is_said() -> None:
    for wrong in (object(), 1 << 70, np.array(["a"]), {1}, "\ud800"):
        with pytest.raises(TypeError):
            Action(value=wrong).pack()
