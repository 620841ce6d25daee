"""The messages between agent and environment, `evaluation.proto`: written, and read from untrusted bytes.

protobuf's descriptors are built at run time from one table, which a test compares with the file: generated code would
tie an agent's image to one release of protobuf. Fields are counted before protobuf parses anything.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from segjudge.system.python310 import Self

_PACKAGE = "evaluation"
SERVICE = f"{_PACKAGE}.Environment"

#: Message → its fields, numbered from 1, each with its type; a name in capitals is a message.
_FIELDS = {
    "Package": {"SerializedEntity": "bytes"},
    "Action": {"session_id": "string", "step": "uint32", "value": "Value", "problem": "string"},
    "Reply": {
        "session_id": "string", "step": "uint32", "value": "Value", "reward": "double", "done": "bool",
        "all_complete": "bool", "message": "string", "space": "string",
    },
    "Value": {
        "integer": "sint64", "number": "double", "text": "string", "array": "Array", "picture": "bytes",
        "labels": "Labels", "list": "List", "mapping": "Mapping",
    },
    "Array": {"dtype": "string", "shape": "repeated uint32", "data": "bytes"},
    "Labels": {"height": "uint32", "width": "uint32", "objects": "repeated Object"},
    "Object": {"id": "uint32", "counts": "string"},
    "List": {"items": "repeated Value"},
    "Mapping": {"entries": "repeated Entry"},
    "Entry": {"name": "string", "value": "Value"},
}  # fmt: skip
#: The message whose values have at most one field.
_ONE_OF = "Value"
#: The maximum depth of nested values, and the maximum number of fields in a message.
_DEPTH, _MOST_FIELDS = 8, 200_000
_MAGIC = b"SJ1\0"

#: The types of numbers in an array.
_DTYPES = ("|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8")


class MessageError(ValueError):
    """Bytes that are not a message of this service; the text says why."""


@dataclass(frozen=True)
class Picture:
    """A frame as the dataset has it: the bytes of a JPEG or PNG."""

    data: bytes


@dataclass(frozen=True)
class Labels:
    """A mask: object id → compressed run lengths, in a frame of this size (height, width)."""

    size: tuple[int, int]
    objects: dict[int, str]


@dataclass(frozen=True)
class _Message:
    """A message between both sides: the fields that both kinds share."""

    session_id: str = ""
    step: int = 0
    value: Any = None

    def pack(self) -> bytes:
        """Encode the message as a Package; raises TypeError for a value that cannot be sent."""
        name = type(self).__name__
        fields = {field: getattr(self, field) for field in _FIELDS[name] if field != "value"}
        try:
            body = _CLASSES[name](**fields)
            if self.value is not None:
                _fill(body.value, self.value, 0)
            entity = _MAGIC + body.SerializeToString()
        except ValueError as error:  # a number that is too large, or text that is not Unicode
            raise TypeError(str(error)) from None
        package: bytes = _CLASSES["Package"](SerializedEntity=entity).SerializeToString()
        return package

    @classmethod
    def read(cls, package: bytes) -> Self:
        """Read the message in a Package; raises MessageError."""
        return cls(**_read(cls.__name__, package))


@dataclass(frozen=True)
class Action(_Message):
    """The message that an agent sends."""

    #: The reason why there is no value, if the agent's side could not send it.
    problem: str = ""


@dataclass(frozen=True)
class Reply(_Message):
    """The message that an environment answers with."""

    reward: float = 0.0
    done: bool = False
    all_complete: bool = False
    message: str = ""
    space: str = ""


# ── writing ─────────────────────────────────────────────────────────────────


def _fill(target: Any, value: Any, depth: int) -> None:
    """Write a value into a Value; raises TypeError for an unsupported type."""
    if depth > _DEPTH:
        raise TypeError("values are nested too deeply")
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        target.integer = int(value)
    elif isinstance(value, (float, np.floating)):
        target.number = float(value)
    elif isinstance(value, str):
        target.text = value
    elif isinstance(value, Picture):
        target.picture = value.data
    elif isinstance(value, Labels):
        target.labels.height, target.labels.width = value.size
        for number, counts in value.objects.items():
            target.labels.objects.add(id=number, counts=counts)
    elif isinstance(value, np.ndarray):
        _fill_array(target.array, value)
    elif isinstance(value, (list, tuple)):
        target.list.SetInParent()
        for item in value:
            _fill(target.list.items.add(), item, depth + 1)
    elif isinstance(value, dict):
        target.mapping.SetInParent()
        for name, item in value.items():
            _fill(target.mapping.entries.add(name=str(name)).value, item, depth + 1)
    else:
        raise TypeError(f"{type(value).__name__} cannot be sent")


def _fill_array(target: Any, value: Any) -> None:
    little = np.ascontiguousarray(value, value.dtype.newbyteorder("<")).reshape(value.shape)
    if little.dtype.str not in _DTYPES:
        raise TypeError(f"an array of {value.dtype} cannot be sent")
    target.dtype, target.data = little.dtype.str, little.tobytes()
    target.shape.extend(little.shape)


# ── reading ─────────────────────────────────────────────────────────────────


def _read(name: str, package: bytes) -> dict[str, Any]:
    message = _parse(name, _content(package))
    fields = {field: getattr(message, field) for field in _FIELDS[name] if field != "value"}
    return {**fields, "value": _read_value(message.value) if message.HasField("value") else None}


def _content(package: bytes) -> bytes:
    """Return the content of a Package after the four bytes that identify it."""
    content: bytes = _parse("Package", package).SerializedEntity
    if content[:4] == _MAGIC:
        return content[4:]
    if content[:1] == b"\x80" and content[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise MessageError(
            "The message is a Python pickle, which is never opened because it can run code. "
            "Use segjudge.agent, or write the messages of evaluation.proto after the four bytes SJ1\\0."
        )
    raise MessageError("This is not a message of this service: a Package must begin with the four bytes SJ1\\0 first.")


def _read_value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind is None:
        return None
    content = getattr(value, kind)
    if kind == "picture":
        return Picture(content)
    if kind == "array":
        return _read_array(content)
    if kind == "labels":
        return _read_labels(content)
    if kind == "list":
        return [_read_value(item) for item in content.items]
    if kind == "mapping":
        return {entry.name: _read_value(entry.value) for entry in content.entries}
    return content


def _read_labels(labels: Any) -> Labels:
    objects: dict[int, str] = {}
    for entry in labels.objects:
        if not 1 <= entry.id <= 255 or entry.id in objects:
            raise MessageError(f"Object {entry.id} of a mask is outside 1 to 255, or occurs twice.")
        objects[entry.id] = entry.counts
    return Labels((labels.height, labels.width), objects)


def _read_array(array: Any) -> Any:
    shape = tuple(array.shape)
    if len(shape) > _DEPTH:
        raise MessageError(f"The message has an array of more than {_DEPTH} dimensions.")
    if array.dtype not in _DTYPES:
        raise MessageError(f"The message has an array of {array.dtype[:20]!r}.")
    if math.prod(shape) * np.dtype(array.dtype).itemsize != len(array.data):
        raise MessageError(f"The message has an array of {len(array.data)} bytes, which does not match its shape.")
    try:
        return np.frombuffer(array.data, array.dtype).reshape(shape)
    except (ValueError, OverflowError):  # empty, in a shape that NumPy lacks
        raise MessageError("The message has an array with an impossible shape.") from None


def _parse(name: str, data: bytes) -> Any:
    """Parse a message after counting its fields; raises MessageError."""
    _check(name, memoryview(data))
    try:
        return _CLASSES[name].FromString(data)
    except DecodeError:  # all fields are complete and valid, so it is a string's content
        raise MessageError("The message holds text that is not UTF-8.") from None


# ── protobuf's description of the messages ──────────────────────────────────


def _describe_file() -> descriptor_pb2.FileDescriptorProto:
    """Return the descriptor that protobuf's compiler makes from `evaluation.proto`."""
    file = descriptor_pb2.FileDescriptorProto(name="evaluation.proto", package=_PACKAGE, syntax="proto3")
    for message, fields in _FIELDS.items():
        message_type = file.message_type.add(name=message)
        if message == _ONE_OF:
            message_type.oneof_decl.add(name="kind")
        for number, (name, kind) in enumerate(fields.items(), 1):
            _describe(message_type.field.add(name=name, number=number), kind)
            if message == _ONE_OF:
                message_type.field[-1].oneof_index = 0
    return file


def _describe(field: Any, kind: str) -> None:
    repeated, kind = kind.startswith("repeated "), kind.removeprefix("repeated ")
    field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
    if kind in _FIELDS:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    else:
        field.type = getattr(field, f"TYPE_{kind.upper()}")


def _classes() -> dict[str, Any]:
    """Return the classes, built in a separate pool so that they clash with no others."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(_describe_file().SerializeToString())
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _FIELDS}


_CLASSES = _classes()


# ── protobuf's memory for untrusted bytes ───────────────────────────────────

#: The wire types: a number, eight bytes, bytes with a length, four bytes.
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_WIRE = {"uint32": _VARINT, "sint64": _VARINT, "bool": _VARINT, "double": _EIGHT}


def _check(name: str, data: memoryview) -> None:
    """Limit the fields of a message, since two bytes may cost protobuf forty times as much."""
    waiting, allowance = [(name, data, 0)], _MOST_FIELDS
    while waiting:
        name, data, depth = waiting.pop()
        if depth > _DEPTH + 1:
            raise MessageError("The message is nested too deeply.")
        for number, wire, content in _fields(data):
            field, kind = _field_of(name, number)
            allowance -= 1
            if kind == "repeated uint32" and wire == _BYTES:
                allowance -= len(content)  # packed, in a byte and more each
            elif field and wire != _WIRE.get(kind.removeprefix("repeated "), _BYTES):
                raise MessageError(f"The message has {name}.{field}, which does not have the type {kind}.")
            if allowance < 0:
                raise MessageError("The message holds too many values.")
            inner = kind.removeprefix("repeated ")
            if inner in _FIELDS:
                waiting.append((inner, content, depth + (inner == _ONE_OF)))


def _field_of(name: str, number: int) -> tuple[str, str]:
    fields = list(_FIELDS[name].items())
    return fields[number - 1] if 0 < number <= len(fields) else ("", "")


def _fields(data: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    index = 0
    while index < len(data):
        key, index = _varint(data, index)
        start, wire = index, key & 7
        if wire == _VARINT:
            _, index = _varint(data, index)
        elif wire == _BYTES:
            size, start = _varint(data, index)
            index = start + size
        elif wire in (_EIGHT, _FOUR):
            index += 8 if wire == _EIGHT else 4
        else:
            raise MessageError("The message has a field of a type that protobuf 3 does not have.")
        if index > len(data):
            raise MessageError("The message is cut off.")
        yield key >> 3, wire, data[start:index]


def _varint(data: memoryview, index: int) -> tuple[int, int]:
    """Return a varint and the position after it."""
    number = 0
    for shift in range(0, 70, 7):
        if index >= len(data):
            break
        byte = data[index]
        index += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, index
    raise MessageError("The message is cut off.")
