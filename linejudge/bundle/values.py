"""A value of the YAML against its field, as the server's serializers judge it: as lenient, and in their words."""

from __future__ import annotations

import datetime
import re
from typing import Any

from .fields import FILES, FLAG, LIST, MOMENT, TEXT, URL, WHOLE, Field
from .finding import Detail, Finding, Findings, warning

TRUE = ("t", "T", "y", "Y", "yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "1", 1, True)
FALSE = ("f", "F", "n", "N", "no", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "0", 0, 0.0, False)
FORMAT = "YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]"
_HOST = r"(localhost|\d{1,3}(\.\d{1,3}){3}|\[[0-9a-f:.]+\]|([^\W_]([\w-]{0,61}[^\W_])?\.)+[^\W\d_][\w-]*[^\W_])"
_URL = re.compile(rf"(https?|ftps?)://(\S+@)?{_HOST}\.?(:\d{{1,5}})?([/?#]\S*)?", re.IGNORECASE)


def findings(
    where: str,
    holder: dict[str, Any],
    fields: dict[str, Field],
    quote: str,
    rule: int,
    *,
    names: dict[str, str] | None = None,
) -> Findings:
    """What the serializer would say of a mapping; files, and what other rules ask for, are not its business here.

    `names` are keys that the server names otherwise than the YAML.
    """
    for key, field in fields.items():
        if key not in holder or field.kind in FILES:
            continue
        wrong = judged((names or {}).get(key, key), holder[key], field)
        if wrong:
            found, remedy = _explained(holder[key], field, wrong)
            yield Finding(f"{where}{key}", found, remedy, quote, rule=rule, detail=wrong)
        elif field.kind == FLAG and not isinstance(holder[key], bool):
            taken = holder[key] in TRUE
            yield warning(f"{where}{key}", f"is {holder[key]!r}, which EvalAI takes for {taken}", f"Write {taken}")


def judged(key: str, value: Any, field: Field) -> Detail | None:
    """The serializer's complaint, if any."""
    if value is None:
        return None if field.null else Detail(key, "This field may not be null.", "null")
    if field.choices:
        known = not isinstance(value, bool) and str(value) in map(str, field.choices)
        words, code = _GOOD if known else (f'"{value}" is not a valid choice.', "invalid_choice")
    else:
        words, code = _JUDGES.get(field.kind, _anything)(value, field)
    return Detail(key, words, code) if code else None


def moment(value: Any) -> datetime.datetime | None:
    """A date with its time in UTC, however it is written; None for anything else."""
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime.datetime):
        return None
    try:
        return value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value.astimezone(datetime.UTC)
    except OverflowError:
        return None


_GOOD = ("", "")
_NULL = ("This field may not be null.", "null")
#: Of a column in the server's database.
_INTEGER = 2**31 - 1


def _anything(_value: Any, _field: Field) -> tuple[str, str]:
    return _GOOD


def _text(value: Any, field: Field) -> tuple[str, str]:
    if value == "" and field.blank:
        return _GOOD
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return "Not a valid string.", "invalid"
    text = str(value).strip()
    if not text and not field.null:
        return "This field may not be blank.", "blank"
    if "\0" in text:
        return "Null characters are not allowed.", "null_characters_not_allowed"
    if field.most and len(text) > field.most:
        return f"Ensure this field has no more than {field.most} characters.", "max_length"
    return _GOOD


def _flag(value: Any, _field: Field) -> tuple[str, str]:
    known = isinstance(value, (str, int, float)) and value in (*TRUE, *FALSE)
    return _GOOD if known else ("Must be a valid boolean.", "invalid")


def _whole(value: Any, field: Field) -> tuple[str, str]:
    if isinstance(value, bool) or not re.fullmatch(r"[+-]?\d{1,1000}(\.0*)?", str(value).strip()):
        return "A valid integer is required.", "invalid"
    if abs(float(value)) > (field.most or _INTEGER):
        return f"Ensure this value is less than or equal to {field.most or _INTEGER}.", "max_value"
    if field.least is not None and float(value) < field.least:
        return f"Ensure this value is greater than or equal to {field.least}.", "min_value"
    return _GOOD


def _moment(value: Any, _field: Field) -> tuple[str, str]:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return "Expected a datetime but got a date.", "date"
    if moment(value) is None:
        return f"Datetime has wrong format. Use one of these formats instead: {FORMAT}.", "invalid"
    return _GOOD


def _url(value: Any, field: Field) -> tuple[str, str]:
    if value == "" and field.null:
        return _GOOD
    return _text(value, field) if _URL.fullmatch(str(value)) else ("Enter a valid URL.", "invalid")


def _list(value: Any, field: Field) -> tuple[str, str]:
    if field.items is not None or not field.words:
        return _GOOD  # judged by rules of its own
    if not isinstance(value, list):
        return f'Expected a list of items but got type "{type(value).__name__}".', "not_a_list"
    for one in value:
        words, code = _text(one, Field(TEXT, "", most=field.most)) if one is not None else _NULL
        if code:
            return words, code
    return _GOOD


_JUDGES = {LIST: _list, TEXT: _text, FLAG: _flag, WHOLE: _whole, MOMENT: _moment, URL: _url}

_REMEDIES = {
    "null": "Give it a value, or remove the line",
    "blank": "Give it a value, or remove the line",
    "date": "Add the time, as 2026-01-01 00:00:00",
}


def _explained(value: Any, field: Field, wrong: Detail) -> tuple[str, str]:
    if wrong.code == "max_length":
        return f"has {len(str(value))} characters", f"Shorten it to {field.most}"
    if wrong.code == "min_value":
        return f"is {value!r}", f"Write {field.least} or more"
    remedy = _REMEDIES.get(wrong.code, _WANTED.get(field.kind, f"Write a {field.kind}"))
    if wrong.code == "max_value":
        return f"is {value!r}", f"Write {field.most or _INTEGER} or less"
    if field.choices:
        remedy = f"Use one of {', '.join(map(str, field.choices))}"
    elif field.kind == MOMENT and wrong.code == "invalid":
        remedy = "Write it unquoted, as 2026-01-01 00:00:00"
    empty = wrong.code in ("null", "blank")
    return "is empty" if empty else f"is {as_written(value)}", remedy


_WANTED = {FLAG: "Write True or False", LIST: "Begin each item with -"}


def as_written(value: Any) -> str:
    """As a host would write it, dates included."""
    return str(value) if isinstance(value, (datetime.date, datetime.datetime)) else repr(value)
