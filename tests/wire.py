"""Protobuf's wire format by hand, for messages that no library would write."""

from __future__ import annotations

from segjudge.code_upload.messages import _FIELDS

VARINT, BYTES = 0, 2


def varint(number: int) -> bytes:
    """Return a number, seven bits a byte."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def length_delimited(number: int, data: bytes) -> bytes:
    """Return a field of bytes, of a text or of a message."""
    return varint(number << 3 | BYTES) + varint(len(data)) + data


def field_of(message: str, field: str, data: bytes) -> bytes:
    """Return a field of one of our messages."""
    return length_delimited(list(_FIELDS[message]).index(field) + 1, data)
