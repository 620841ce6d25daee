"""Protobuf's wire format: numbers, and bytes with a length; read no further than what arrived."""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5


class MessageError(ValueError):
    """Bytes that are no message of ours; says what they are."""


def varint(number: int) -> bytes:
    """A number, seven bits a byte."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Number and content of each field; raises MessageError where bytes break off."""
    place = 0
    while place < len(data):
        key, place = read_varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value: int | memoryview
            value, place = read_varint(data, place)
        elif kind in (BYTES, EIGHT, FOUR):
            size = 8 if kind == EIGHT else 4
            if kind == BYTES:
                size, place = read_varint(data, place)
            if size > len(data) - place:
                raise MessageError("The message breaks off.")
            value, place = data[place : place + size], place + size
        else:
            raise MessageError("The message has a field of a kind that protobuf does not have.")
        yield number, value


def read_varint(data: memoryview, place: int) -> tuple[int, int]:
    """A number, and where it ends."""
    number = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise MessageError("The message breaks off.")
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number & (1 << 64) - 1, place


def whole(told: int | memoryview) -> int:
    """A field that is a number."""
    if not isinstance(told, int):
        raise MessageError("The message has bytes where a number should be.")
    return told


def part_of(told: int | memoryview) -> memoryview:
    """A field that is bytes."""
    if isinstance(told, int):
        raise MessageError("The message has a number where bytes should be.")
    return told


def double(data: memoryview) -> float:
    """Eight bytes as a number."""
    if len(data) != 8:
        raise MessageError("The message has a number of another length than 8 bytes.")
    return float(struct.unpack("<d", data)[0])


def text_of(data: memoryview) -> str:
    """Bytes as a text."""
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise MessageError("The message has a text that is no UTF-8.") from None
