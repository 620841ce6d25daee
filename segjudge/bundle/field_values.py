"""A value of the YAML against its field, as the server's serializers judge it: as lenient, and in their words."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from typing import Any

from .fields import ANY, FILES, FLAG, JSON, LIST, MOMENT, SLUG, TEXT, URL, WHOLE, Field
from .problems import BundleProblem, BundleProblems, Detail, warning
from .urls import is_url

TRUE = ("t", "T", "y", "Y", "yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "1", 1, True)
FALSE = ("f", "F", "n", "N", "no", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "0", 0, 0.0, False)
FORMAT = "YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]"
#: What is wrong with a value, in the server's words, with its code for them; nothing when all is well.
Wrongs = list[tuple[str, str]]
_SLUG = re.compile(r"[-a-zA-Z0-9_]+")
#: Longer texts are not read as numbers.
_DIGITS = 1000


def findings(
    where: str,
    holder: dict[str, Any],
    fields: dict[str, Field],
    quote: str,
    rule: int,
    *,
    names: dict[str, str] | None = None,
) -> BundleProblems:
    """What the serializer would say of a mapping; files, and what other rules ask for, are not its business here.

    `names` are keys that the server names otherwise than the YAML.
    """
    for key, field in fields.items():
        if key not in holder or field.kind in FILES:
            continue
        wrong = judged((names or {}).get(key, key), holder[key], field)
        if wrong:
            found, remedy = _explained(holder[key], field, wrong)
            yield BundleProblem(f"{where}{key}", found, remedy, quote, rule=rule, detail=wrong)
        elif field.kind == FLAG and not isinstance(holder[key], bool):
            taken = holder[key] in TRUE
            yield warning(f"{where}{key}", f"is {holder[key]!r}, which EvalAI takes for {taken}", f"Write {taken}")


def judged(key: str, value: Any, field: Field) -> Detail | None:
    """The serializer's complaint, if any."""
    if field.kind == LIST and field.words and value is not None:
        return _list(key, value, field)
    if value is None:
        wrongs = [] if field.null else [_NULL]
    elif field.choices:
        known = str(value) in map(str, field.choices) or (value == "" and field.blank)
        wrongs = [] if known else [(f'"{value}" is not a valid choice.', "invalid_choice")]
    else:
        wrongs = _JUDGES.get(field.kind, _anything)(value, field)
    return _detail(key, wrongs)


def _detail(key: str, wrongs: Wrongs) -> Detail | None:
    return Detail(key, *wrongs[0], also=tuple(wrongs[1:])) if wrongs else None


def moment(value: Any) -> datetime.datetime | None:
    """A date with its time in UTC, however it is written; None for anything else."""
    if isinstance(value, str):
        value = _read(value)
    if not isinstance(value, datetime.datetime):
        return None
    try:
        return value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value.astimezone(datetime.UTC)
    except OverflowError:
        return None


def whole(value: Any) -> int | None:
    """The number that the server reads in a value; None where it reads none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(re.sub(r"\.0*\s*$", "", str(value)))
    except ValueError:
        return None


def flag(value: Any) -> bool | None:
    """What the server reads in a flag; None where it reads neither."""
    if not isinstance(value, (str, int, float)):
        return None
    return True if value in TRUE else False if value in FALSE else None


def is_json(value: Any) -> bool:
    """Whether a value of the YAML can be kept as JSON, which has no dates, sets, bytes or NaN."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


_NULL = ("This field may not be null.", "null")
_BLANK = ("This field may not be blank.", "blank")
#: Of a column in the server's database.
_INTEGER = 2**31 - 1


def _anything(_value: Any, _field: Field) -> Wrongs:
    return []


def _text(value: Any, field: Field) -> Wrongs:
    if str(value).strip() == "":
        return [] if field.blank else [_BLANK]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return [("Not a valid string.", "invalid")]
    text, wrongs = str(value).strip(), []
    if field.most and len(text) > field.most:
        wrongs.append((f"Ensure this field has no more than {field.most} characters.", "max_length"))
    if "\0" in text:
        wrongs.append(("Null characters are not allowed.", "null_characters_not_allowed"))
    return wrongs


def _slug(value: Any, field: Field) -> Wrongs:
    wrongs = _text(value, field)
    if [code for _, code in wrongs if code in ("invalid", "blank")] or _SLUG.fullmatch(str(value).strip()):
        return wrongs
    return [*wrongs, ('Enter a valid "slug" consisting of letters, numbers, underscores or hyphens.', "invalid")]


def _flag(value: Any, _field: Field) -> Wrongs:
    return [("Must be a valid boolean.", "invalid")] if flag(value) is None else []


def _whole(value: Any, field: Field) -> Wrongs:
    if isinstance(value, str) and len(value) > _DIGITS:
        return [("String value too large.", "max_string_length")]
    number = whole(value)
    if number is None:
        return [("A valid integer is required.", "invalid")]
    most = field.most or _INTEGER
    least = -most - 1 if field.least is None else field.least
    if number > most:
        return [(f"Ensure this value is less than or equal to {most}.", "max_value")]
    return [(f"Ensure this value is greater than or equal to {least}.", "min_value")] if number < least else []


_DATE = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})\d{0,6})?)?"
    r"(Z|[+-]\d{2}(?::?\d{2})?)?"
)


def _read(text: str) -> datetime.datetime | None:
    """A date in a text, as the server reads it."""
    found = _DATE.fullmatch(text)
    if not found:
        return None
    *parts, fraction, zone = found.groups()
    year, month, day, hour, minute, second = (int(part or 0) for part in parts)
    try:
        micro = int((fraction or "").ljust(6, "0"))
        return datetime.datetime(year, month, day, hour, minute, second, micro, _zone(zone))
    except ValueError:
        return None


def _zone(text: str | None) -> datetime.tzinfo | None:
    if text is None:
        return None
    if text == "Z":
        return datetime.UTC
    minutes = 60 * int(text[1:3]) + (int(text[-2:]) if len(text) > 3 else 0)
    return datetime.timezone(datetime.timedelta(minutes=-minutes if text[0] == "-" else minutes))


def _moment(value: Any, _field: Field) -> Wrongs:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return [("Expected a datetime but got a date.", "date")]
    told = _read(value) if isinstance(value, str) else value
    if not isinstance(told, datetime.datetime):
        return [(f"Datetime has wrong format. Use one of these formats instead: {FORMAT}.", "invalid")]
    return [] if moment(told) else [("Datetime value out of range.", "overflow")]


def _url(value: Any, field: Field) -> Wrongs:
    wrongs = _text(value, field)
    text = str(value).strip()
    if [code for _, code in wrongs if code in ("invalid", "blank")] or not text or is_url(text):
        return wrongs
    return [*wrongs, ("Enter a valid URL.", "invalid")]


def _json(value: Any, _field: Field) -> Wrongs:
    return [] if is_json(value) else [("Value must be valid JSON.", "invalid")]


def _list(key: str, value: Any, field: Field) -> Detail | None:
    if isinstance(value, (str, Mapping)) or not hasattr(value, "__iter__"):
        told = f'Expected a list of items but got type "{type(value).__name__}".'
        return Detail(key, told, "not_a_list")
    one = Field(TEXT, "", most=field.most, blank=True, null=field.null)
    wrongs = {k: _detail("", [] if item is None and one.null else _item(item, one)) for k, item in enumerate(value)}
    wrong = {k: detail for k, detail in wrongs.items() if detail}
    if not wrong:
        return None
    first = next(iter(wrong.values()))
    printed = ", ".join(f"{k}: {detail.printed}" for k, detail in wrong.items())
    return Detail(key, first.words, first.code, listed=f"{{{printed}}}")


def _item(value: Any, field: Field) -> Wrongs:
    return [_NULL] if value is None else _text(value, field)


_JUDGES = {
    TEXT: _text,
    FLAG: _flag,
    WHOLE: _whole,
    MOMENT: _moment,
    URL: _url,
    SLUG: _slug,
    JSON: _json,
    ANY: _anything,
}

_REMEDIES = {
    "null": "Give it a value, or remove the line",
    "blank": "Give it a value, or remove the line",
    "date": "Add the time, as 2026-01-01 00:00:00",
}


def _explained(value: Any, field: Field, wrong: Detail) -> tuple[str, str]:
    if wrong.code == "max_length":
        longest = max(map(len, map(str, value))) if isinstance(value, (list, set, tuple)) else len(str(value))
        return f"has {longest} characters", f"Shorten it to {field.most}"
    if wrong.code == "min_value":
        return f"is {value!r}", f"Write {field.least or 0} or more"
    remedy = _REMEDIES.get(wrong.code, _WANTED.get(field.kind, f"Write a {field.kind}"))
    if wrong.code == "max_value":
        return f"is {as_written(value)}", f"Write {field.most or _INTEGER} or less"
    if field.choices:
        remedy = f"Use one of {', '.join(map(str, field.choices))}"
    elif field.kind == MOMENT and wrong.code == "invalid":
        remedy = "Write it unquoted, as 2026-01-01 00:00:00"
    empty = wrong.code in ("null", "blank")
    return "is empty" if empty else f"is {as_written(value)}", remedy


_WANTED = {
    FLAG: "Write True or False",
    LIST: "Begin each item with -",
    JSON: "Keep to texts, numbers, lists and mappings; put a date in quotes",
    SLUG: "Remove the line: the server makes it",
}
#: Characters of a value that are shown.
_SHOWN = 80


def as_written(value: Any) -> str:
    """As a host would write it, dates included."""
    told = str(value) if isinstance(value, (datetime.date, datetime.datetime)) else _printed(value)
    return told if len(told) <= _SHOWN else f"{told[:_SHOWN]}…"


def _printed(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # more digits than Python prints
        return "a number of thousands of digits"
