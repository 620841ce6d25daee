"""The messages of `evaluation.proto` as protobuf's runtime knows them, and a bound on untrusted bytes before it parses.

The descriptors are built here at run time, from one table that a test compares with the file: generated code would tie
the image of an agent to the release of protobuf that made it.
"""

from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

PACKAGE = "evaluation"
SERVICE = f"{PACKAGE}.Environment"

#: Message → its fields, numbered from 1, each with its type; a name in capitals is a message.
FIELDS = {
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
#: The message of which a value holds one field at the most.
ONE_OF = "Value"
#: How deep values may lie in each other, and how many fields there may be in a message.
DEPTH, MOST_FIELDS = 8, 200_000


class MessageError(ValueError):
    """Bytes that are not a message of this service; the text says why."""


def parsed(name: str, data: bytes) -> Any:
    """Parse a message, once its fields were counted; raises MessageError."""
    _check(name, memoryview(data))
    try:
        return CLASSES[name].FromString(data)
    except DecodeError:  # every field is whole and of its type, so it is what a text holds
        raise MessageError("The message holds a text that is not UTF-8.") from None


def file_descriptor() -> descriptor_pb2.FileDescriptorProto:
    """Return what protobuf's compiler makes of the messages in `evaluation.proto`."""
    file = descriptor_pb2.FileDescriptorProto(name="evaluation.proto", package=PACKAGE, syntax="proto3")
    for message, fields in FIELDS.items():
        described = file.message_type.add(name=message)
        if message == ONE_OF:
            described.oneof_decl.add(name="kind")
        for number, (name, kind) in enumerate(fields.items(), 1):
            _describe(described.field.add(name=name, number=number), kind)
            if message == ONE_OF:
                described.field[-1].oneof_index = 0
    return file


def _describe(field: Any, kind: str) -> None:
    repeated, kind = kind.startswith("repeated "), kind.removeprefix("repeated ")
    field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
    if kind in FIELDS:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
    else:
        field.type = getattr(field, f"TYPE_{kind.upper()}")


def _classes() -> dict[str, Any]:
    """Build the classes in a pool of their own, which no other generated code can clash with."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file_descriptor().SerializeToString())
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in FIELDS}


CLASSES = _classes()

# ── what protobuf would allocate for untrusted bytes ────────────────────────

#: How each type is written: as a number, in eight bytes, or as bytes with a length.
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_WIRE = {"uint32": _VARINT, "sint64": _VARINT, "bool": _VARINT, "double": _EIGHT}


def _check(name: str, data: memoryview) -> None:
    """Count all fields of a message; a field of two bytes may take protobuf forty times as many."""
    waiting, left = [(name, data, 0)], MOST_FIELDS
    while waiting:
        name, data, depth = waiting.pop()
        if depth > DEPTH + 1:
            raise MessageError("The message holds values too deep in each other.")
        for number, wire, content in _fields(data):
            field, kind = _declared(name, number)
            left -= 1
            if kind == "repeated uint32" and wire == _BYTES:
                left -= len(content)  # packed, in a byte and more each
            elif field and wire != _WIRE.get(kind.removeprefix("repeated "), _BYTES):
                raise MessageError(f"The message has {name}.{field}, which is not of the type {kind}.")
            if left < 0:
                raise MessageError("The message holds too many values.")
            inner = kind.removeprefix("repeated ")
            if inner in FIELDS:
                waiting.append((inner, content, depth + (inner == ONE_OF)))


def _declared(name: str, number: int) -> tuple[str, str]:
    """Return the name and the type of a field; nothing for one that is not known, which protobuf skips."""
    fields = list(FIELDS[name].items())
    return fields[number - 1] if 0 < number <= len(fields) else ("", "")


def _fields(data: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield the number, the wire type and the content of each field."""
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
    """Return a number that is written seven bits a byte, and where it ends."""
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
