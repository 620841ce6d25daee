"""The messages of `evaluation.proto`, written and read; whatever a stranger sends, no more is allocated than arrived.

There are two dozen fields, and protobuf's own runtime ties an agent's image to the release that made its code.  So
they are read here, by the field numbers of one table, which a test compares with the file.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .protobuf import BYTES, EIGHT, VARINT, MessageError, double, fields, part_of, read_varint, text_of, varint, whole

MAGIC = b"LJ1\0"
SERVICE = "evaluation.Environment"
PORT = 8085
#: Where the environment is: in the same pod, in compose under its own name, or as `ADDRESS` says.
ADDRESS, LOCAL = "LINEJUDGE_ENVIRONMENT", "LOCAL_EVALUATION"

#: Message → field → number.
FIELDS = {
    "Package": {"SerializedEntity": 1},
    "Action": {"session_id": 1, "step": 2, "value": 3},
    "Reply": {
        "session_id": 1, "step": 2, "value": 3, "reward": 4, "done": 5, "all_complete": 6, "message": 7, "space": 8
    },
    "Value": {
        "integer": 1, "number": 2, "text": 3, "array": 4, "picture": 5, "labels": 6, "list": 7, "mapping": 8
    },
    "Array": {"dtype": 1, "shape": 2, "data": 3},
    "Labels": {"height": 1, "width": 2, "objects": 3},
    "Object": {"id": 1, "counts": 2},
    "List": {"items": 1},
    "Mapping": {"entries": 1},
    "Entry": {"name": 1, "value": 2},
}  # fmt: skip
_NAMES = {message: {number: name for name, number in held.items()} for message, held in FIELDS.items()}
#: How deep values may lie in each other, and how many there may be in a message.
DEPTH, VALUES = 8, 200_000
#: Kinds of numbers that an array may hold.
DTYPES = ("|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8")


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
class Action:
    """What an agent sends."""

    session_id: str = ""
    step: int = 0
    value: Any = None


@dataclass(frozen=True)
class Reply:
    """What an environment answers."""

    session_id: str = ""
    step: int = 0
    value: Any = None
    reward: float = 0.0
    done: bool = False
    all_complete: bool = False
    message: str = ""
    space: str = ""


# ── packages ────────────────────────────────────────────────────────────────


def packed(message: Action | Reply) -> bytes:
    """A Package that holds a message."""
    body = b"".join(
        _field(type(message).__name__, name, getattr(message, name)) for name in FIELDS[type(message).__name__]
    )
    return _bytes("Package", "SerializedEntity", MAGIC + body)


def read_action(package: bytes) -> Action:
    """The Action in a Package; raises MessageError."""
    return Action(**_read("Action", _inside(package)))


def read_reply(package: bytes) -> Reply:
    """The Reply in a Package; raises MessageError."""
    return Reply(**_read("Reply", _inside(package)))


def _inside(package: bytes) -> memoryview:
    """What a Package holds, if it is ours."""
    held = memoryview(b"")
    for name, value in _named("Package", memoryview(package)):
        if name == "SerializedEntity" and isinstance(value, memoryview):
            held = value
    start = bytes(held[:4])
    if start == MAGIC:
        return held[4:]
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise MessageError(
            "That is a Python pickle, which is never opened here since it can run code. "
            "Use linejudge.agent, or write the messages of evaluation.proto after the four bytes LJ1\\0."
        )
    raise MessageError("That is no message of this service: what a Package holds begins with the four bytes LJ1\\0.")


# ── writing ─────────────────────────────────────────────────────────────────


def _key(message: str, name: str, kind: int) -> bytes:
    return varint(FIELDS[message][name] << 3 | kind)


def _bytes(message: str, name: str, data: bytes) -> bytes:
    return _key(message, name, BYTES) + varint(len(data)) + data


def _field(message: str, name: str, value: Any) -> bytes:
    """One field; what is empty is left out."""
    if value is None or (not isinstance(value, (dict, list, np.ndarray)) and name != "value" and not value):
        return b""
    if name == "value":
        return _bytes(message, name, _value(value, 0))
    if isinstance(value, str):
        return _bytes(message, name, value.encode())
    if isinstance(value, float):
        return _key(message, name, EIGHT) + struct.pack("<d", value)
    return _key(message, name, VARINT) + varint(int(value))


def _value(value: Any, depth: int) -> bytes:
    """A Value; raises TypeError for what none can hold."""
    if depth > DEPTH:
        raise TypeError("values lie too deep in each other")
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        number = int(value)
        if not -(1 << 63) <= number < 1 << 63:
            raise TypeError(f"{number} is too large")
        return _key("Value", "integer", VARINT) + varint(number << 1 if number >= 0 else ((-number) << 1) - 1)
    if isinstance(value, (float, np.floating)):
        return _key("Value", "number", EIGHT) + struct.pack("<d", float(value))
    if isinstance(value, str):
        return _bytes("Value", "text", value.encode())
    if isinstance(value, Picture):
        return _bytes("Value", "picture", value.data)
    if isinstance(value, Labels):
        return _bytes("Value", "labels", _labels(value))
    if isinstance(value, np.ndarray):
        return _bytes("Value", "array", _array(value))
    if isinstance(value, (list, tuple)):
        return _bytes("Value", "list", b"".join(_bytes("List", "items", _value(one, depth + 1)) for one in value))
    if isinstance(value, dict):
        entries = (
            _bytes("Entry", "name", str(name).encode()) + _bytes("Entry", "value", _value(one, depth + 1))
            for name, one in value.items()
        )
        return _bytes("Value", "mapping", b"".join(_bytes("Mapping", "entries", entry) for entry in entries))
    raise TypeError(f"{type(value).__name__} cannot be sent")


def _labels(value: Labels) -> bytes:
    objects = (
        _field("Object", "id", one) + _bytes("Object", "counts", counts.encode())
        for one, counts in value.objects.items()
    )
    size = _field("Labels", "height", value.size[0]) + _field("Labels", "width", value.size[1])
    return size + b"".join(_bytes("Labels", "objects", one) for one in objects)


def _array(value: Any) -> bytes:
    little = np.ascontiguousarray(value, value.dtype.newbyteorder("<")).reshape(value.shape)
    if little.dtype.str not in DTYPES:
        raise TypeError(f"an array of {value.dtype} cannot be sent")
    shape = b"".join(varint(side) for side in little.shape)
    return (
        _bytes("Array", "dtype", little.dtype.str.encode())
        + _bytes("Array", "shape", shape)
        + _bytes("Array", "data", little.tobytes())
    )


# ── reading ─────────────────────────────────────────────────────────────────


def _named(message: str, data: memoryview) -> Iterator[tuple[str, int | memoryview]]:
    """Fields that are known by name; others are skipped, as protobuf does."""
    for number, value in fields(data):
        if number in _NAMES[message]:
            yield _NAMES[message][number], value


class _Reader:
    """Reads one message, and counts what it makes."""

    def __init__(self) -> None:
        self._left = VALUES

    def value(self, data: memoryview, depth: int) -> Any:
        """What a Value holds; None for an empty one."""
        self._count()
        if depth > DEPTH:
            raise MessageError("The message holds values too deep in each other.")
        found = None
        for name, told in _named("Value", data):
            self._count()
            found = self._kind(name, told, depth)
        return found

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise MessageError("The message holds too many values.")

    def _kind(self, name: str, told: int | memoryview, depth: int) -> Any:
        if name == "integer":
            number = whole(told)
            return number >> 1 if not number & 1 else -((number + 1) >> 1)
        data = part_of(told)
        if name == "number":
            return double(data)
        if name == "text":
            return text_of(data)
        if name == "picture":
            return Picture(bytes(data))
        if name == "array":
            return _read_array(data)
        if name == "labels":
            return self._labels(data)
        if name == "list":
            return [self.value(part_of(one), depth + 1) for _, one in _named("List", data)]
        return dict(self._entry(part_of(one), depth) for _, one in _named("Mapping", data))

    def _entry(self, data: memoryview, depth: int) -> tuple[str, Any]:
        name, value = "", None
        self._count()
        for field, told in _named("Entry", data):
            if field == "name":
                name = text_of(part_of(told))
            else:
                value = self.value(part_of(told), depth + 1)
        return name, value

    def _labels(self, data: memoryview) -> Labels:
        size, objects = {"height": 0, "width": 0}, {}
        for name, told in _named("Labels", data):
            if name != "objects":
                size[name] = whole(told)
                continue
            self._count()
            number, counts = 0, ""
            for field, content in _named("Object", part_of(told)):
                if field == "id":
                    number = whole(content)
                else:
                    counts = text_of(part_of(content))
            if not 1 <= number <= 255 or number in objects:
                raise MessageError(f"Object {number} of a mask is not from 1 to 255, or is there twice.")
            objects[number] = counts
        return Labels((size["height"], size["width"]), objects)


def _read(message: str, data: memoryview) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, told in _named(message, data):
        if name == "value":
            found[name] = _Reader().value(part_of(told), 0)
        elif name in ("session_id", "message", "space"):
            found[name] = text_of(part_of(told))
        elif name == "reward":
            found[name] = double(part_of(told))
        elif name == "step":
            found[name] = whole(told)
        else:
            found[name] = bool(whole(told))
    return found


def _read_array(data: memoryview) -> Any:
    dtype, shape, content = "", [], memoryview(b"")
    for name, told in _named("Array", data):
        if name == "dtype":
            dtype = text_of(part_of(told))
        elif name == "data":
            content = part_of(told)
        elif isinstance(told, int):
            shape.append(told)
        else:
            place = 0
            while place < len(told) and len(shape) <= DEPTH:
                side, place = read_varint(told, place)
                shape.append(side)
        if len(shape) > DEPTH:
            raise MessageError(f"The message has an array of more than {DEPTH} dimensions.")
    if dtype not in DTYPES:
        raise MessageError(f"The message has an array of {dtype[:20]!r}.")
    if math.prod(shape) * np.dtype(dtype).itemsize != len(content):
        raise MessageError(f"The message has an array of {len(content)} bytes, which its shape does not give.")
    try:
        return np.frombuffer(content, dtype).reshape(shape)
    except (ValueError, OverflowError):  # nothing, in a shape that NumPy does not have
        raise MessageError("The message has an array of a shape that cannot be.") from None
