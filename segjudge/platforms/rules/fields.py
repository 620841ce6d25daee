"""Values in a YAML as Django's REST framework validates them on EvalAI and Codabench: as leniently, in its words."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

#: The kinds of values.
TEXT, FLAG, WHOLE, MOMENT, URL, LIST = "text", "flag", "whole number", "date and time", "URL", "list"
SLUG, JSON = "name as in an address", "list or mapping"


@dataclass(frozen=True)
class Field:
    """One key of the YAML."""

    kind: str
    about: str = ""
    required: bool = False
    #: Whether null is allowed.
    null: bool = False
    #: The maximum characters of text, or the largest number.
    limit: int = 0
    #: The smallest number.
    least: int | None = None
    choices: tuple[Any, ...] = ()
    #: Whether text may be empty; whether a list holds text.
    blank: bool = False
    holds_text: bool = False
    #: Keys of the items, for a list of mappings.
    items: dict[str, Field] | None = None
    #: The number of the violated rule, for servers that number the rules of their fields.
    rule: int = 0


@dataclass(frozen=True)
class FieldError:
    """The server's error about one field."""

    field: str
    message: str
    code: str
    #: Further messages about the same field, with their codes.
    more: tuple[tuple[str, str], ...] = ()
    #: For a list: all messages as the server prints them, by the index of the item.
    list_text: str = ""

    @property
    def text(self) -> str:
        """Return all messages about the field, as the server prints them."""
        errors = ((self.message, self.code), *self.more)
        details = ", ".join(f"ErrorDetail(string={message!r}, code={code!r})" for message, code in errors)
        return self.list_text or f"[{details}]"

    def __str__(self) -> str:
        return f"{self.field!r}: {self.text}"


TRUE = ("t", "T", "y", "Y", "yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "1", 1, True)
FALSE = ("f", "F", "n", "N", "no", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "0", 0, 0.0, False)
_FORMAT = "YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]"
#: The server's messages about a value, each with its code; empty for a valid value.
Messages = list[tuple[str, str]]
Validator = Callable[[Any, Field], Messages]
_NULL = ("This field may not be null.", "null")
_BLANK = ("This field may not be blank.", "blank")
SLUG_MESSAGE = ('Enter a valid "slug" consisting of letters, numbers, underscores or hyphens.', "invalid")
#: The largest number of a column in the server's database.
INTEGER_LIMIT = 2**31 - 1
#: Longer texts are not parsed as numbers.
_DIGITS = 1000
#: The number of shown characters of a value.
_SHOWN_CHARACTERS = 80


def validate(
    key: str, value: object, field: Field, validators: Mapping[str, Validator] | None = None
) -> FieldError | None:
    """Return the serializer's error; None for a valid value. A server may have validators of its own."""
    if field.kind == LIST and field.holds_text and value is not None:
        return _validate_list(key, value, field)
    if value is None:
        messages = [] if field.null else [_NULL]
    elif field.choices:
        is_choice = str(value) in map(str, field.choices) or (value == "" and field.blank)
        messages = [] if is_choice else [(f'"{value}" is not a valid choice.', "invalid_choice")]
    else:
        validator = (validators or VALIDATORS).get(field.kind)
        messages = validator(value, field) if validator else []
    return FieldError(key, *messages[0], more=tuple(messages[1:])) if messages else None


def as_datetime(value: object) -> datetime.datetime | None:
    """Return a value as a datetime in UTC; None for anything else."""
    if isinstance(value, str):
        value = _parse_date(value)
    if not isinstance(value, datetime.datetime):
        return None
    try:
        return (
            value.replace(tzinfo=datetime.timezone.utc)
            if value.tzinfo is None
            else value.astimezone(datetime.timezone.utc)
        )
    except OverflowError:
        return None


def as_integer(value: object) -> int | None:
    """Return the number that the server reads in a value, or None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(re.sub(r"\.0*\s*$", "", str(value)))
    except ValueError:
        return None


def as_flag(value: object) -> bool | None:
    """Return the boolean that the server reads in a flag, or None."""
    if not isinstance(value, (str, int, float)):
        return None
    return True if value in TRUE else False if value in FALSE else None


def _validate_text(value: object, field: Field) -> Messages:
    text = str(value).strip()
    if text == "":
        return [] if field.blank else [_BLANK]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return [("Not a valid string.", "invalid")]
    messages = []
    if field.limit and len(text) > field.limit:
        messages.append((f"Ensure this field has no more than {field.limit} characters.", "max_length"))
    if "\0" in text:
        messages.append(("Null characters are not allowed.", "null_characters_not_allowed"))
    return messages


def _validate_text_form(value: object, field: Field) -> Messages:
    text, messages = str(value).strip(), _validate_text(value, field)
    if field.kind == SLUG:
        is_valid, message = bool(re.fullmatch(r"[-a-zA-Z0-9_]+", text)), SLUG_MESSAGE
    else:
        is_valid, message = not text or _is_url(text), ("Enter a valid URL.", "invalid")
    codes = [code for _, code in messages]
    if "invalid" in codes:
        return [message]  # the server reports the same about other values than texts
    return messages if "blank" in codes or is_valid else [*messages, message]


_SCHEMES = ("http", "https", "ftp", "ftps")
_LETTERS = "\u00a1-\uffff"
_BYTE = r"(25[0-5]|2[0-4]\d|[0-1]?\d?\d)"
_NAME = rf"[a-z{_LETTERS}0-9]([a-z{_LETTERS}0-9-]{{0,61}}[a-z{_LETTERS}0-9])?"
_DOMAINS = rf"(\.(?!-)[a-z{_LETTERS}0-9-]{{1,63}}(?<!-))*"
_TOP = rf"\.(?!-)([a-z{_LETTERS}-]{{2,63}}|xn--[a-z0-9]{{1,59}})(?<!-)\.?"
_HOST = rf"({_BYTE}(\.{_BYTE}){{3}}|\[[0-9a-f:.]+\]|{_NAME}{_DOMAINS}{_TOP}|localhost)"
_ADDRESS = rf"[a-z0-9.+-]*://([^\s:@/]+(:[^\s:@/]*)?@)?{_HOST}(:\d{{2,5}})?([/?#]\S*)?"
_IPV6 = re.compile(r"\[(.+)\](:\d{2,5})?")
#: The maximum characters of a host name.
_HOST_LENGTH = 253


def _is_url(text: str) -> bool:
    """Return whether a value is a URL by Django's rules."""
    import ipaddress

    if text.split("://", maxsplit=1)[0].lower() not in _SCHEMES:
        return False
    try:
        parts = urlsplit(text)
        if not _is_address(text):
            name = parts.netloc.encode("idna").decode("ascii")
            return _is_address(urlunsplit(parts._replace(netloc=name))) and len(parts.netloc) <= _HOST_LENGTH
        bracketed = _IPV6.fullmatch(parts.netloc)
        if bracketed:
            ipaddress.IPv6Address(bracketed.group(1))
    except ValueError:
        return False
    return len(parts.netloc) <= _HOST_LENGTH


def _is_address(text: str) -> bool:
    return re.fullmatch(_ADDRESS, text, re.IGNORECASE) is not None  # compiled when first needed: it takes 30 ms


def _validate_integer(value: object, field: Field) -> Messages:
    if isinstance(value, str) and len(value) > _DIGITS:
        return [("String value too large.", "max_string_length")]
    number = as_integer(value)
    if number is None:
        return [("A valid integer is required.", "invalid")]
    limit = field.limit or INTEGER_LIMIT
    least = -limit - 1 if field.least is None else field.least
    if number > limit:
        return [(f"Ensure this value is less than or equal to {limit}.", "max_value")]
    return [(f"Ensure this value is greater than or equal to {least}.", "min_value")] if number < least else []


_DATE = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})\d{0,6})?)?"
    r"(?:Z|([+-]\d{2}(?::?\d{2})?))?\n?"
)


def _parse_date(text: str) -> datetime.datetime | None:
    """Return a date as the server reads it, or None."""
    match = _DATE.fullmatch(text)
    if not match:
        return None
    *parts, fraction, zone = match.groups()
    year, month, day, hour, minute, second = (int(text or 0) for text in parts)
    try:
        microsecond = int((fraction or "").ljust(6, "0"))
        return datetime.datetime(year, month, day, hour, minute, second, microsecond, _time_zone(zone))
    except ValueError:
        return None


def _time_zone(text: str | None) -> datetime.tzinfo | None:
    if text is None:
        return None  # also Z: `as_datetime` reads times without a zone as UTC
    minutes = 60 * int(text[1:3]) + (int(text[-2:]) if len(text) > 3 else 0)
    return datetime.timezone(datetime.timedelta(minutes=-minutes if text[0] == "-" else minutes))


def _validate_date(value: object, _field: Field) -> Messages:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return [("Expected a datetime but got a date.", "date")]
    date = _parse_date(value) if isinstance(value, str) else value
    if not isinstance(date, datetime.datetime):
        return [(f"Datetime has wrong format. Use one of these formats instead: {_FORMAT}.", "invalid")]
    return [] if as_datetime(date) else [("Datetime value out of range.", "overflow")]


def _validate_list(key: str, value: Any, field: Field) -> FieldError | None:
    if isinstance(value, (str, Mapping)) or not hasattr(value, "__iter__"):
        message = f'Expected a list of items but got type "{type(value).__name__}".'
        return FieldError(key, message, "not_a_list")
    item_field = Field(TEXT, "", limit=field.limit, blank=True, null=field.null)
    validated = {index: validate("", item, item_field) for index, item in enumerate(value)}
    errors = {index: error for index, error in validated.items() if error}
    if not errors:
        return None
    texts = ", ".join(f"{index}: {error.text}" for index, error in errors.items())
    earliest = next(iter(errors.values()))
    return FieldError(key, earliest.message, earliest.code, list_text=f"{{{texts}}}")


def _validate_json(value: object, _field: Field) -> Messages:
    """Return the error of a value that JSON cannot represent."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return [("Value must be valid JSON.", "invalid")]
    return []


VALIDATORS: dict[str, Validator] = {
    TEXT: _validate_text,
    FLAG: lambda value, _field: [("Must be a valid boolean.", "invalid")] if as_flag(value) is None else [],
    WHOLE: _validate_integer,
    MOMENT: _validate_date,
    URL: _validate_text_form,
    SLUG: _validate_text_form,
    JSON: _validate_json,
}


def as_written(value: object) -> str:
    """Return a value as a host would write it, shortened."""
    try:
        text = str(value) if isinstance(value, (datetime.date, datetime.datetime)) else repr(value)
    except ValueError:  # more digits than Python prints
        text = "a number with thousands of digits"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
