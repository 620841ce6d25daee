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
from segjudge.code_upload.messages import SERVICE, Action, Labels, MessageError, Picture
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


@pytest.mark.parametrize("protocol", [2, 5])
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


def _nest(levels: int) -> bytes:
    data = b""
    for _ in range(levels):
        data = field_of("Value", "list", field_of("List", "items", data))
    return data


#: Bytes that are no message, with the sentence.
HOSTILE = {
    "nothing": (b"", NO_MESSAGE),
    "an old pickle": (package_of(b"\x80\x02."), PICKLE),
    "cut in a field": (content(b"\x0a"), CUT),
    "an endless number": (content(b"\x10" + b"\xff" * 11), CUT),
    "longer than it is": (content(b"\x0a\xff\xff\xff\xff\x0f"), CUT),
    "a group": (content(b"\x0b"), "The message has a field of a type that protobuf 3 does not have."),
    "a number for a text": (content(b"\x08\x01"), ID),
    "bytes for a number": (content(b"\x12\x01a"), "The message has Action.step, which does not have the type uint32."),
    "no UTF-8": (content(field_of("Action", "session_id", b"\xff")), "The message holds text that is not UTF-8."),
    "too many values": (content(b"\x10\x01" * (MOST_FIELDS + 1)), MANY),
    "too many sides": (array(b"\0" * MOST_FIELDS), MANY),
    "an array that is short": (array(b"\2\3", bytes(11), b"<u2"), SHORT),
    "an array without a type": (array(b"\1", b"\0", b"<u3"), "The message has an array of '<u3'."),
    "nine dimensions": (array(b"\1" * 9, b"\0"), "The message has an array of more than 8 dimensions."),
    "a large and empty array": (array(varint(2**32 - 1) * 3 + b"\0"), IMPOSSIBLE),
    "too deep": (value_of(_nest(50)), "The message is nested too deeply."),
    "object 0": (labels(b""), TWICE.format(0)),
    "an object twice": (labels(b"\x08\1", b"\x08\1"), TWICE.format(1)),
}


@pytest.mark.parametrize(("data", "sentence"), HOSTILE.values(), ids=list(HOSTILE))
def test_bytes_that_are_none_of_ours(data: bytes, sentence: str) -> None:
    with pytest.raises(MessageError, match=f"^{re.escape(sentence)}$"):
        messages.Action.read(data)


@pytest.mark.parametrize(
    ("data", "action"),
    [
        pytest.param(content(b""), Action(), id="nothing"),
        pytest.param(content(b"\x55" + bytes(4)), Action(), id="four bytes of an unknown field"),
        pytest.param(content(b"\xa0\x06\x01"), Action(), id="an unknown field"),
        pytest.param(content(_nest(12)), Action(), id="a deep unknown field"),
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


@pytest.mark.parametrize(
    ("value", "back"),
    [
        (None, None), (True, 1), ((1, 2), [1, 2]), ({"a": 1, 2: "b"}, {"a": 1, "2": "b"}),
        (np.zeros((2, 0), "<u2"), np.zeros((2, 0), "<u2")), (np.arange(3, dtype=">i4"), np.arange(3, dtype="<i4")),
        (np.array(1.5), np.array(1.5)), (np.array([True]), np.array([True])), (2**63 - 1, 2**63 - 1),
    ],
    ids=str,
)  # fmt: skip
def test_values_come_back(value: Any, back: Any) -> None:
    assert same(Action.read(Action("s", 3, value).pack()).value, back)


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
    (object(), "object cannot be sent"), ({1}, "set cannot be sent"), ([None], "NoneType cannot be sent"),
    (b"bytes", "bytes cannot be sent"), (np.zeros(2, complex), "an array of complex128 cannot be sent"),
    (np.array(["x"]), "an array of <U1 cannot be sent"), (Labels((1, 1), {-1: ""}), "Value out of range: -1"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "sentence"), UNSENDABLE, ids=[sentence for _, sentence in UNSENDABLE])
def test_values_that_cannot_be_sent(value: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(sentence)}$"):
        Action(value=value).pack()


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_an_error(data: bytes) -> None:
    for whole in (data, package_of(data), package_of(MAGIC + data), value_of(data)):
        try:
            messages.Action.read(whole)
        except MessageError:
            pass
