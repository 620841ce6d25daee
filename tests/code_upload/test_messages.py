"""The messages between agent and environment: compared with protobuf, and with hostile bytes."""

from __future__ import annotations

import re
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
from tests.wire import field_of, length_delimited, varint

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
    short = Reply("s", 1, 2, reward=-0.5, done=True, all_complete=True, message="m", space="{}")
    assert short.pack() == content(bytes.fromhex("0a017310011a02080421000000000000e0bf280130013a016d42027b7d"))
    reply = protobuf("Reply").FromString(protobuf("Package").FromString(sent.pack()).SerializedEntity[4:])
    assert (reply.reward, reply.done, reply.all_complete, reply.message) == (-0.5, True, True, "good")


def package_of(data: bytes) -> bytes:
    return field_of("Package", "SerializedEntity", data)


NO_MESSAGE = "This is not a message of this service: a Package must begin with the four bytes SJ1\\0 first."
PICKLE = (
    "The message is a Python pickle, which is never opened because it can run code. Use segjudge.agent, or write the messages "
    "of evaluation.proto after the four bytes SJ1\\0."
)
CUT, ID = "The message is cut off.", "The message has Action.session_id, which does not have the type string."
MANY = "The message holds too many values."
SHORT = "The message has an array of 11 bytes, which does not match its shape."
IMPOSSIBLE = "The message has an array with an impossible shape."
TWICE = "Object {} of a mask is outside 1 to 255, or occurs twice."


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_is_explained(protocol: int) -> None:
    import pickle

    with pytest.raises(MessageError, match=f"^{re.escape(PICKLE)}$"):
        messages.Action.read(package_of(pickle.dumps({"action": 1}, protocol)))


def content(data: bytes) -> bytes:
    return package_of(MAGIC + data)


def array(shape: bytes, data: bytes = b"", dtype: bytes = b"|u1") -> bytes:
    fields = field_of("Array", "dtype", dtype) + field_of("Array", "shape", shape)
    return value_of(field_of("Value", "array", fields + (field_of("Array", "data", data) if data else b"")))


def labels(*objects: bytes) -> bytes:
    return value_of(field_of("Value", "labels", b"".join(field_of("Labels", "objects", each) for each in objects)))


def value_of(data: bytes) -> bytes:
    return content(field_of("Action", "value", data))


#: Bytes that are no message, with the sentence.
HOSTILE = {
    "nothing": (b"", NO_MESSAGE),
    "no magic": (package_of(b"SJ2\0"), NO_MESSAGE),
    "JSON": (package_of(b'{"action": 1}'), NO_MESSAGE),
    "a pickle without a dot": (package_of(b"\x80\x06."), NO_MESSAGE),
    "an old pickle": (package_of(b"\x80\x02."), PICKLE),
    "cut in a field": (content(b"\x0a"), CUT),
    "cut in a number": (content(b"\x10\xff"), CUT),
    "a number that is too long": (content(b"\x10" + b"\xff" * 10 + b"\1"), CUT),
    "an endless number": (content(b"\x10" + b"\xff" * 11), CUT),
    "cut in a text": (content(b"\x0a\x05a"), CUT),
    "longer than it is": (content(b"\x0a\xff\xff\xff\xff\x0f"), CUT),
    "eight bytes that are cut": (content(b"\x29" + bytes(7)), CUT),
    "a group": (content(b"\x0b"), "The message has a field of a type that protobuf 3 does not have."),
    "a number for a text": (content(b"\x08\x01"), ID),
    "eight bytes for a text": (content(b"\x09" + bytes(8)), ID),
    "bytes for a number": (content(b"\x12\x01a"), "The message has Action.step, which does not have the type uint32."),
    "no UTF-8": (content(field_of("Action", "session_id", b"\xff")), "The message holds text that is not UTF-8."),
    "too many values": (content(b"\x10\x01" * (MOST_FIELDS + 1)), MANY),
    "too many sides": (array(b"\0" * MOST_FIELDS), MANY),
    "an array that is short": (array(b"\2\3", bytes(11), b"<u2"), SHORT),
    "an array without a type": (array(b"\1", b"\0", b"<u3"), "The message has an array of '<u3'."),
    "nine dimensions": (array(b"\1" * 9, b"\0"), "The message has an array of more than 8 dimensions."),
    "a large and empty array": (array(varint(2**32 - 1) * 3 + b"\0"), IMPOSSIBLE),
    "object 0": (labels(b""), TWICE.format(0)),
    "object 256": (labels(b"\x08" + varint(256)), TWICE.format(256)),
    "an object twice": (labels(b"\x08\1", b"\x08\1"), TWICE.format(1)),
}


@pytest.mark.parametrize(("data", "sentence"), HOSTILE.values(), ids=list(HOSTILE))
def test_bytes_that_are_none_of_ours(data: bytes, sentence: str) -> None:
    with pytest.raises(MessageError, match=f"^{re.escape(sentence)}$"):
        messages.Action.read(data)


def _nest(levels: int) -> bytes:
    data = b""
    for _ in range(levels):
        data = field_of("Value", "list", field_of("List", "items", data))
    return content(data)  # a value where an action has unknown fields


@pytest.mark.parametrize(
    ("data", "action"),
    [
        pytest.param(content(b""), Action(), id="nothing"),
        pytest.param(content(b"\x55" + bytes(4)), Action(), id="four bytes of an unknown field"),
        pytest.param(content(b"\xa0\x06\x01"), Action(), id="an unknown field"),
        pytest.param(_nest(12), Action(), id="a deep unknown field"),
        pytest.param(array(b"\2\3", bytes(12), b"<u2"), Action(value=np.zeros((2, 3), "<u2")), id="an array"),
        pytest.param(array(b"\1" * 8, b"\0"), Action(value=np.zeros((1,) * 8, "|u1")), id="eight dimensions"),
        pytest.param(content(b"\x10\x01" * (MOST_FIELDS - 1)), Action(step=1), id="as many values as may be"),
        pytest.param(
            content(length_delimited(3, length_delimited(3, b"a") + length_delimited(5, b"b"))),
            Action(value=Picture(b"b")),
            id="two kinds: the last one counts",
        ),
    ],
)
def test_unusual_bytes_that_are_a_message(data: bytes, action: Action) -> None:
    read = messages.Action.read(data)
    assert (read.session_id, read.step, read.problem) == (action.session_id, action.step, action.problem)
    assert same(read.value, action.value)


#: Value → its bytes after those of session "s" and step 3, and what comes back if that differs.
BYTES: list[tuple[Any, str, Any]] = [
    (None, "", None),
    (True, "1a020802", 1),
    (-1, "1a020801", -1),
    (2**63 - 1, "1a0b08feffffffffffffffff01", 2**63 - 1),
    (0.5, "1a0911000000000000e03f", 0.5),
    ("text", "1a061a0474657874", "text"),
    (Picture(b"\xff\xd8"), "1a042a02ffd8", Picture(b"\xff\xd8")),
    (Labels((2, 3), {}), "1a06320408021003", Labels((2, 3), {})),
    (
        Labels((300, 1), {1: "0", 255: "ab"}),
        "1a17321508ac0210011a0508011201301a0708ff0112026162",
        Labels((300, 1), {1: "0", 255: "ab"}),
    ),
    ([], "1a023a00", []),
    ({}, "1a024200", {}),
    ([1, [2, ["x"]]], "1a173a150a0208020a0f3a0d0a0208040a073a050a031a0178", [1, [2, ["x"]]]),
    ({"a": 1, 2: "b"}, "1a1542130a070a0161120208020a080a013212031a0162", {"a": 1, "2": "b"}),
    ((1, 2), "1a0a3a080a0208020a020804", [1, 2]),
    (np.zeros((2, 0), "<u2"), "1a0b22090a033c753212020200", np.zeros((2, 0), "<u2")),
    (np.arange(3, dtype=">i4"), "1a1822160a033c69341201031a0c000000000100000002000000", np.arange(3, dtype="<i4")),
    (np.array(1.5), "1a11220f0a033c66381a08000000000000f83f", np.array(1.5)),
    (np.array([True]), "1a0d220b0a037c62311201011a0101", np.array([True])),
    (
        np.zeros((1, 2, 3), "<f2"),
        "1a1a22180a033c663212030102031a0c000000000000000000000000",
        np.zeros((1, 2, 3), "<f2"),
    ),
]


@pytest.mark.parametrize(("value", "data", "back"), BYTES, ids=[str(value) for value, _, _ in BYTES])
def test_values_have_these_bytes(value: Any, data: str, back: Any) -> None:
    packed = Action("s", 3, value).pack()
    assert packed == content(b"\x0a\x01s\x10\x03" + bytes.fromhex(data))
    assert same(Action.read(packed).value, back)


def test_numbers_of_numpy_are_sent_as_numbers_of_python() -> None:
    for value in (np.int16(-3), np.float32(0.25), np.bool_(True)):
        assert Action(value=value).pack() == Action(value=value.item()).pack()


@pytest.mark.parametrize(("wrap", "size"), [(list, 42), (dict, 82)])
def test_the_deepest_value_that_can_be_written_can_be_read(wrap: type, size: int) -> None:
    value: Any = 1
    for _ in range(8):
        value = [value] if wrap is list else {"a": value}
    assert len(Action(value=value).pack()) == size
    assert Action.read(Action("s", 0, value).pack()).value == value
    with pytest.raises(TypeError, match="^values are nested too deeply$"):
        Action("s", 0, [value] if wrap is list else {"a": value}).pack()


UNSENDABLE: list[tuple[Any, str]] = [
    (2**63, "Value out of range: 9223372036854775808"),
    ("\ud800", "'utf-8' codec can't encode character '\\ud800' in position 0: surrogates not allowed"),
    (object(), "object cannot be sent"),
    ({1}, "set cannot be sent"),
    ([None], "NoneType cannot be sent"),
    (b"bytes", "bytes cannot be sent"),
    (np.zeros(2, complex), "an array of complex128 cannot be sent"),
    (np.array(["x"]), "an array of <U1 cannot be sent"),
    (Labels((1, 1), {-1: ""}), "Value out of range: -1"),
]


@pytest.mark.parametrize(("value", "sentence"), UNSENDABLE, ids=[sentence for _, sentence in UNSENDABLE])
def test_values_that_cannot_be_sent(value: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(sentence)}$"):
        Action(value=value).pack()


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
    for data, message in (
        (deep, "The message is nested too deeply."),
        (many, MANY),
        (sides, MANY),
        (names, MANY),
        (huge, "The message has an array of 0 bytes, which does not match its shape."),
        (objects, "The message has an array of '|O'."),
    ):
        with pytest.raises(MessageError) as caught:
            messages.Action.read(value_of(data))
        assert str(caught.value) == message


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_an_error(data: bytes) -> None:
    for whole in (data, package_of(data), package_of(MAGIC + data), value_of(data)):
        try:
            messages.Action.read(whole)
        except MessageError:
            pass
