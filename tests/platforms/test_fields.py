"""The errors of the servers' serializers about single fields, by the whole text, and the values that they read."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from segjudge.platforms.rules.fields import (
    FLAG,
    JSON,
    LIST,
    MOMENT,
    SLUG,
    TEXT,
    URL,
    WHOLE,
    Field,
    as_datetime,
    as_flag,
    as_integer,
    as_written,
    validate,
)

NAMES = Field(LIST, "", limit=3, holds_text=True)
DATE = "Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]."
SLUG_FORM = 'Enter a valid "slug" consisting of letters, numbers, underscores or hyphens.'
NULL = "\0"
ERRORS: list[tuple[Field, Any, str]] = [
    (NAMES, 3, 'Expected a list of items but got type "int".'),
    (NAMES, "abc", 'Expected a list of items but got type "str".'),
    (NAMES, {"a": 1}, 'Expected a list of items but got type "dict".'),
    (NAMES, None, "This field may not be null."),
    (NAMES, ["abc"], ""),
    (NAMES, ["abc", "abcd"], "Ensure this field has no more than 3 characters."),
    (NAMES, [[]], "Not a valid string."),
    (Field(TEXT, ""), None, "This field may not be null."),
    (Field(TEXT, "", null=True), None, ""),
    (Field(TEXT, ""), " ", "This field may not be blank."),
    (Field(TEXT, "", blank=True), " ", ""),
    (Field(TEXT, ""), True, "Not a valid string."),
    (Field(TEXT, ""), 1.5, ""),
    (Field(TEXT, "", limit=2), "abc", "Ensure this field has no more than 2 characters."),
    (Field(TEXT, "", limit=2), "ab", ""),
    (Field(TEXT, ""), f"a{NULL}", "Null characters are not allowed."),
    (Field(TEXT, "", choices=("a", 1)), "b", '"b" is not a valid choice.'),
    (Field(TEXT, "", choices=("a", 1)), "1", ""),
    (Field(TEXT, "", choices=("a", 1)), "", '"" is not a valid choice.'),
    (Field(TEXT, "", choices=("a", 1), blank=True), "", ""),
    (Field(SLUG, ""), "a b", SLUG_FORM),
    (Field(SLUG, ""), [], SLUG_FORM),
    (Field(SLUG, ""), "", "This field may not be blank."),
    (Field(SLUG, ""), "a-b_1", ""),
    (Field(URL, ""), "a.b", "Enter a valid URL."),
    (Field(URL, ""), "gopher://a.org", "Enter a valid URL."),
    (Field(URL, ""), "http://[::1", "Enter a valid URL."),
    (Field(URL, ""), f"http://{'a.' * 126}org", "Enter a valid URL."),
    (Field(URL, ""), f"http://{'a.' * 124}org", ""),
    (Field(URL, ""), "http://[::1]:80/x", ""),
    (Field(FLAG, ""), "maybe", "Must be a valid boolean."),
    (Field(FLAG, ""), [], "Must be a valid boolean."),
    (Field(FLAG, ""), "off", ""),
    (Field(WHOLE, ""), "1.5", "A valid integer is required."),
    (Field(WHOLE, ""), True, "A valid integer is required."),
    (Field(WHOLE, ""), "1" * 1001, "String value too large."),
    (Field(WHOLE, ""), "0" * 1000, ""),
    (Field(WHOLE, ""), 2**31, "Ensure this value is less than or equal to 2147483647."),
    (Field(WHOLE, ""), 2**31 - 1, ""),
    (Field(WHOLE, ""), -(2**31) - 1, "Ensure this value is greater than or equal to -2147483648."),
    (Field(WHOLE, ""), -(2**31), ""),
    (Field(WHOLE, "", least=0), -1, "Ensure this value is greater than or equal to 0."),
    (Field(WHOLE, "", least=0), 0, ""),
    (Field(MOMENT, ""), datetime.date(2026, 1, 1), "Expected a datetime but got a date."),
    (Field(MOMENT, ""), "2026-01-01", DATE),
    (Field(MOMENT, ""), "2026-02-30 10:00", DATE),
    (Field(MOMENT, ""), 3, DATE),
    (Field(MOMENT, ""), "0001-01-01 00:00+02:00", "Datetime value out of range."),
    (Field(MOMENT, ""), "2026-01-01T10:00", ""),
    (Field(JSON, ""), float("nan"), "Value must be valid JSON."),
    (Field(JSON, ""), {1, 2}, "Value must be valid JSON."),
    (Field(JSON, ""), {"a": [1]}, ""),
]


@pytest.mark.parametrize(("field", "value", "message"), ERRORS, ids=lambda item: getattr(item, "kind", repr(item)[:30]))
def test_a_field_is_refused_as_by_the_server(field: Field, value: Any, message: str) -> None:
    error = validate("key", value, field)
    assert (error.message if error else "") == message
    assert error is None or error.field == "key"


def test_errors_are_printed_as_the_server_prints_them() -> None:
    error = validate("key", f"abc{NULL}", Field(TEXT, "", limit=2))
    details = [
        "ErrorDetail(string='Ensure this field has no more than 2 characters.', code='max_length')",
        "ErrorDetail(string='Null characters are not allowed.', code='null_characters_not_allowed')",
    ]
    assert str(error) == f"'key': [{', '.join(details)}]"
    assert str(validate("key", ["a", [], "abcd"], NAMES)) == (
        "'key': {1: [ErrorDetail(string='Not a valid string.', code='invalid')], "
        "2: [ErrorDetail(string='Ensure this field has no more than 3 characters.', code='max_length')]}"
    )


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-01-02 03:04", "2026-01-02T03:04:00+00:00"),
        ("2026-01-02T03:04:05.12Z", "2026-01-02T03:04:05.120000+00:00"),
        ("2026-01-02T03:04:05.1234567", "2026-01-02T03:04:05.123456+00:00"),
        ("2026-01-02T03:04+02", "2026-01-02T01:04:00+00:00"),
        ("2026-01-02T03:04-0230", "2026-01-02T05:34:00+00:00"),
        ("2026-01-02T03:04+02:30", "2026-01-02T00:34:00+00:00"),
        (datetime.datetime(2026, 1, 2, 3), "2026-01-02T03:00:00+00:00"),
        ("2026-13-02 03:04", None),
        (datetime.date(2026, 1, 2), None),
        (3, None),
    ],
)
def test_moments_are_read_as_utc(value: object, moment: str | None) -> None:
    read = as_datetime(value)
    assert (read and read.isoformat()) == moment


def test_numbers_and_flags_are_read_as_the_server_reads_them() -> None:
    assert [as_integer(value) for value in (3, True, "3.00 ", "3.5", 3.0, None, "x")] == [
        3,
        None,
        3,
        None,
        3,
        None,
        None,
    ]
    flags = (True, "on", 1, False, "off", 0, 0.0, "x", 2, [], None)
    assert [as_flag(value) for value in flags] == [True] * 3 + [False] * 4 + [None] * 4


def test_values_are_shown_shortened() -> None:
    assert as_written("a" * 78) == f"'{'a' * 78}'"
    assert as_written("a" * 79) == f"'{'a' * 79}…"
    assert as_written(datetime.date(2026, 1, 2)) == "2026-01-02"
    assert as_written(10**5000) == "a number with thousands of digits"
