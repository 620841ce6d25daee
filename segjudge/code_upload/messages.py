"""The messages of `evaluation.proto`: conversion from plain Python values and back."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .evaluation_proto import CLASSES, DEPTH, FIELDS, MessageError, parsed

MAGIC = b"SJ1\0"

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
    #: Why there is no value: the agent's side could not send what it was given.
    problem: str = ""


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


def packed(message: Action | Reply) -> bytes:
    """Return a Package that holds a message; raises TypeError for a value that cannot be sent."""
    name = type(message).__name__
    fields = {field: getattr(message, field) for field in FIELDS[name] if field != "value"}
    try:
        body = CLASSES[name](**fields)
        if message.value is not None:
            _fill(body.value, message.value, 0)
        entity = MAGIC + body.SerializeToString()
    except ValueError as error:  # a number that is too large, or a text that is not Unicode
        raise TypeError(str(error)) from None
    package: bytes = CLASSES["Package"](SerializedEntity=entity).SerializeToString()
    return package


def read_action(package: bytes) -> Action:
    """Return the Action in a Package; raises MessageError."""
    return Action(**_read("Action", package))


def read_reply(package: bytes) -> Reply:
    """Return the Reply in a Package; raises MessageError."""
    return Reply(**_read("Reply", package))


# ── writing ─────────────────────────────────────────────────────────────────


def _fill(target: Any, value: Any, depth: int) -> None:
    """Write a value into a Value; raises TypeError for what none can hold."""
    if depth > DEPTH:
        raise TypeError("values lie too deep in each other")
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
        for one in value:
            _fill(target.list.items.add(), one, depth + 1)
    elif isinstance(value, dict):
        target.mapping.SetInParent()
        for name, one in value.items():
            _fill(target.mapping.entries.add(name=str(name)).value, one, depth + 1)
    else:
        raise TypeError(f"{type(value).__name__} cannot be sent")


def _fill_array(target: Any, value: Any) -> None:
    little = np.ascontiguousarray(value, value.dtype.newbyteorder("<")).reshape(value.shape)
    if little.dtype.str not in DTYPES:
        raise TypeError(f"an array of {value.dtype} cannot be sent")
    target.dtype, target.data = little.dtype.str, little.tobytes()
    target.shape.extend(little.shape)


# ── reading ─────────────────────────────────────────────────────────────────


def _read(name: str, package: bytes) -> dict[str, Any]:
    """Return the fields of the message in a Package."""
    message = parsed(name, _content(package))
    fields = {field: getattr(message, field) for field in FIELDS[name] if field != "value"}
    return {**fields, "value": _value(message.value) if message.HasField("value") else None}


def _content(package: bytes) -> bytes:
    """Return what a Package holds after its first four bytes, which say that it is ours."""
    content: bytes = parsed("Package", package).SerializedEntity
    if content[:4] == MAGIC:
        return content[4:]
    if content[:1] == b"\x80" and content[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise MessageError(
            "That is a Python pickle, which is never opened here since it can run code. "
            "Use segjudge.agent, or write the messages of evaluation.proto after the four bytes SJ1\\0."
        )
    raise MessageError("That is not a message of this service: a Package must hold the four bytes SJ1\\0 first.")


def _value(value: Any) -> Any:
    """Return what a Value holds; None for an empty one."""
    kind = value.WhichOneof("kind")
    if kind is None:
        return None
    held = getattr(value, kind)
    if kind == "picture":
        return Picture(held)
    if kind == "array":
        return _array(held)
    if kind == "labels":
        return _labels(held)
    if kind == "list":
        return [_value(one) for one in held.items]
    if kind == "mapping":
        return {entry.name: _value(entry.value) for entry in held.entries}
    return held


def _labels(labels: Any) -> Labels:
    objects: dict[int, str] = {}
    for one in labels.objects:
        if not 1 <= one.id <= 255 or one.id in objects:
            raise MessageError(f"Object {one.id} of a mask is not from 1 to 255, or is there twice.")
        objects[one.id] = one.counts
    return Labels((labels.height, labels.width), objects)


def _array(array: Any) -> Any:
    shape = tuple(array.shape)
    if len(shape) > DEPTH:
        raise MessageError(f"The message has an array of more than {DEPTH} dimensions.")
    if array.dtype not in DTYPES:
        raise MessageError(f"The message has an array of {array.dtype[:20]!r}.")
    if math.prod(shape) * np.dtype(array.dtype).itemsize != len(array.data):
        raise MessageError(f"The message has an array of {len(array.data)} bytes, which its shape does not give.")
    try:
        return np.frombuffer(array.data, array.dtype).reshape(shape)
    except (ValueError, OverflowError):  # nothing, in a shape that NumPy does not have
        raise MessageError("The message has an array of a shape that cannot be.") from None
