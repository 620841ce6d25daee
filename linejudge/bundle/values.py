"""A value of the YAML against its field, as the server's serializers judge it: as lenient, and in their words."""

from __future__ import annotations

import datetime
import re
from typing import Any

from .fields import FILES, FLAG, MOMENT, TEXT, URL, WHOLE, Field
from .finding import Detail, Finding, Findings, warning

TRUE = ("t", "T", "y", "Y", "yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "1", 1, True)
FALSE = ("f", "F", "n", "N", "no", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "0", 0, 0.0, False)
FORMAT = "YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]"
_URL = re.compile(r"(https?|ftps?)://([a-z0-9-]+\.)*[a-z0-9-]+(:\d+)?([/?#]\S*)?", re.IGNORECASE)


def findings(where: str, holder: dict[str, Any], fields: dict[str, Field], quote: str, rule: int) -> Findings:
    """What the serializer would say of a mapping; files, and what other rules ask for, are not its business here."""
    for key, field in fields.items():
        if key not in holder or field.kind in FILES:
            continue
        wrong = judged(key, holder[key], field)
        if wrong:
            found, remedy = _explained(holder[key], field, wrong)
            yield Finding(f"{where}{key}", found, remedy, quote, rule=rule, detail=wrong)
        elif field.kind == FLAG and not isinstance(holder[key], bool):
            yield warning(f"{where}{key}", f"is {holder[key]!r}, which EvalAI takes for a flag", "Write True or False")


def judged(key: str, value: Any, field: Field) -> Detail | None:
    """The serializer's complaint, if any."""
    if value is None:
        return None if field.null else Detail(key, "This field may not be null.", "null")
    words, code = _JUDGES.get(field.kind, _anything)(value, field)
    if not code and field.choices and str(value) not in map(str, field.choices):
        words, code = f'"{value}" is not a valid choice.', "invalid_choice"
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
    return value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value.astimezone(datetime.UTC)


_GOOD = ("", "")


def _anything(_value: Any, _field: Field) -> tuple[str, str]:
    return _GOOD


def _text(value: Any, field: Field) -> tuple[str, str]:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return "Not a valid string.", "invalid"
    text = str(value).strip()
    if not text and not field.null:
        return "This field may not be blank.", "blank"
    if field.most and len(text) > field.most:
        return f"Ensure this field has no more than {field.most} characters.", "max_length"
    return _GOOD


def _flag(value: Any, _field: Field) -> tuple[str, str]:
    known = isinstance(value, (str, int, float)) and value in (*TRUE, *FALSE)
    return _GOOD if known else ("Must be a valid boolean.", "invalid")


def _whole(value: Any, field: Field) -> tuple[str, str]:
    if isinstance(value, bool) or not re.fullmatch(r"[+-]?\d{1,18}(\.0*)?", str(value).strip()):
        return "A valid integer is required.", "invalid"
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


_JUDGES = {TEXT: _text, FLAG: _flag, WHOLE: _whole, MOMENT: _moment, URL: _url}

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
    remedy = _REMEDIES.get(wrong.code, f"Write a {field.kind}")
    if field.choices:
        remedy = f"Use one of {', '.join(map(str, field.choices))}"
    elif field.kind == MOMENT and wrong.code == "invalid":
        remedy = "Write it unquoted, as 2026-01-01 00:00:00"
    empty = wrong.code in ("null", "blank")
    return "is empty" if empty else f"is {value!r}", remedy
