"""Rules shared by several of EvalAI's blocks: verdicts on values and files, and the serializers' error messages."""

from __future__ import annotations

from typing import Any, TypeGuard

from segjudge.platforms.rules.fields import (
    FLAG,
    INTEGER_LIMIT,
    JSON,
    LIST,
    MOMENT,
    SLUG,
    TRUE,
    Field,
    FieldError,
    as_written,
    validate,
)
from segjudge.platforms.rules.problems import BundleProblem, BundleProblems, warning
from segjudge.platforms.rules.rule_rows import BREAKS_LATER, CRASH, Check, RuleRow, Verdict, all_of, first_of, is_absent
from segjudge.platforms.rules.rule_rows import Entry as AnyEntry

from .fields import FILES
from .opened_bundle import Bundle, escapes

Entry = AnyEntry[Bundle]

# ── verdicts on values ──────────────────────────────────────────────────────────────────────────────────────────────

#: The sentence around the errors of the challenge's serializer.
SERIALIZER = "ERROR: Unable to serialize the challenge because of the following errors: {errors}."
#: The maximum characters of a file's path on the server, and of the temporary folder at its beginning.
_PATH_LENGTH, _TEMPORARY_FOLDER = 100, 28

BLANK, NULL, REQUIRED, NUL, EMPTY_FILE, NO_FILE, NO_PICTURE = (
    FieldError("", message, code)
    for message, code in (
        ("This field may not be blank.", "blank"),
        ("This field may not be null.", "null"),
        ("This field is required.", "required"),
        ("Null characters are not allowed.", "null_characters_not_allowed"),
        ("The submitted file is empty.", "empty"),
        ("The submitted data was not a file. Check the encoding type on the form.", "invalid"),
        ("Upload a valid image. The file you uploaded was either not an image or a corrupted image.", "invalid_image"),
    )
)


def is_empty(entry: Entry) -> Verdict:
    return not entry.value


def is_no_text(entry: Entry) -> Verdict:
    return not isinstance(entry.value, str)


def has_no_length(entry: Entry) -> Verdict:
    return not hasattr(entry.value, "__len__")


def is_no_list_of_mappings(entry: Entry) -> Verdict:
    return not is_list_of_mappings(entry.value)


def is_not_in_bundle(entry: Entry) -> Verdict:
    return escapes(entry.value) or not entry.bundle.has(entry.value)


def is_empty_file(entry: Entry) -> Verdict:
    return not entry.bundle.size(entry.value)


def lacks(*keys: str) -> Any:
    def find_missing(entry: Entry) -> Verdict:
        missing = [key for key in keys if key not in entry.item]
        return {"missing": ", ".join(missing)} if missing else None

    return find_missing


def read_text(entry: Entry) -> str | None:
    try:
        return entry.bundle.read(entry.value).decode("utf-8")
    except UnicodeDecodeError:
        return None


def is_not_utf8(entry: Entry) -> Verdict:
    return read_text(entry) is None


def is_blank_text(entry: Entry) -> Verdict:
    return not str(read_text(entry)).strip()


def holds_nul(entry: Entry) -> Verdict:
    return "\0" in str(read_text(entry))


def limit_path_length(key: str, quote: str, rule: int, *, folder: int = _TEMPORARY_FOLDER, field: str = "") -> RuleRow:
    """Return the rule that a path, with the server's temporary folder before it, is short enough."""

    def is_long(entry: Entry) -> Verdict:
        length = folder + len(str(entry.value))
        message = f"Ensure this filename has at most {_PATH_LENGTH} characters (it has {length})."
        error = FieldError(field or entry.key, message, "max_length")
        return {"length": len(str(entry.value)), "error": error} if length > _PATH_LENGTH else None

    remedy = f"Keep it to {_PATH_LENGTH - folder}"
    return RuleRow(rule, key, is_long, "names a path of {length} characters", remedy, quote)


def is_list_of_mappings(value: object) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


# ── serializers' messages ───────────────────────────────────────────────────────────────────────────────────────────

_REMEDIES_BY_CODE = {
    "null": "Give it a value, or remove the line",
    "blank": "Give it a value, or remove the line",
    "date": "Add the time, as 2026-01-01 00:00:00",
}
_REMEDIES_BY_KIND = {
    FLAG: "Write True or False",
    LIST: "Begin each item with -",
    JSON: "Use only text, numbers, lists and mappings; put a date in quotes",
    SLUG: "Remove the line: the server makes it",
}


def check_fields(entry: Entry, fields: dict[str, Field], quote: str, rule: int) -> BundleProblems:
    """Yield a serializer's errors about an item; other rules cover missing keys and files."""
    for key, field in fields.items():
        key_entry = entry.child(key)
        if not key_entry.is_written or field.kind in FILES or (key == "id" and not key_entry.value):
            continue  # the serializer does not get an empty id
        error = validate("config_id" if key == "id" else key, key_entry.value, field)
        if error:
            fault, remedy = _word_error(key_entry.value, field, error)
            message = quote.format(number=entry.number, errors="{errors}")
            yield BundleProblem(key_entry.path, fault, remedy, message, rule, error=error)
        elif field.kind == FLAG and not isinstance(key_entry.value, bool):
            value = key_entry.value in TRUE
            yield warning(key_entry.path, f"is {key_entry.value!r}, which EvalAI reads as {value}", f"Write {value}")


def _word_error(value: object, field: Field, error: FieldError) -> tuple[str, str]:
    """Return fault and remedy in words for the host."""
    if error.code == "max_length":
        longest = max(map(len, map(str, value))) if isinstance(value, (list, set, tuple)) else len(str(value))
        return f"has {longest} characters", f"Shorten it to {field.limit}"
    if error.code == "min_value":
        return f"is {value!r}", f"Write {field.least or 0} or more"
    if error.code == "max_value":
        return f"is {as_written(value)}", f"Write {field.limit or INTEGER_LIMIT} or less"
    remedy = _REMEDIES_BY_CODE.get(error.code, _REMEDIES_BY_KIND.get(field.kind, f"Write a {field.kind}"))
    if field.choices:
        remedy = f"Use one of {', '.join(map(str, field.choices))}"
    elif field.kind == MOMENT and error.code == "invalid":
        remedy = "Write it unquoted, as 2026-01-01 00:00:00"
    return "is empty" if error.code in ("null", "blank") else f"is {as_written(value)}", remedy


# ── rules that several blocks have ──────────────────────────────────────────────────────────────────────────────────


def require_list(key: str, remedy: str, quote: str, rule: int) -> Check:
    """Return the rules that a block exists and is a list of mappings."""
    return first_of(
        RuleRow(rule, key, lambda entry: not entry.value and entry.is_written, "is empty", remedy, quote),
        RuleRow(rule, key, is_empty, "is missing", remedy, quote),
        RuleRow(rule, key, is_no_list_of_mappings, "is not a list of mappings",
            "Begin each item with - and its first key", CRASH),
    )  # fmt: skip


def require_key(key: str, quote: str, rule: int) -> RuleRow:
    """Return the rule that a key exists that only the serializer requires."""
    return RuleRow(rule, key, is_absent, "is missing", "Add it", quote, REQUIRED)


#: Items without a number cannot be updated; of two with the same number, the last is kept.
ID_RULES = all_of(
    RuleRow(0, "id", lambda entry: entry.is_written and not entry.value,
        "is empty ({value!r:.20}): EvalAI stores the item without a number and cannot update it", "Number it from 1",
        BREAKS_LATER),
    RuleRow(0, "id",
        lambda entry: entry.value is not None and str(entry.value) in [str(item.get("id")) for item in entry.earlier],
        "{value} occurs twice", "Make each unique: EvalAI keeps only one of them", BREAKS_LATER),
)  # fmt: skip


def check_dates(of_phase: str, missing: int, late: int, kinds: int) -> Check:
    """Return the rules of start and end, which the server compares before it validates them."""

    def compare(entry: Entry) -> bool | None:
        try:
            return bool(entry.value > entry.item["end_date"])
        except TypeError:
            return None

    def have_two_kinds(entry: Entry) -> Verdict:
        return {"end": as_written(entry.item["end_date"])} if compare(entry) is None else None

    quote, remedy = f"ERROR: Please add the start_date and end_date{of_phase}.", "Write it as 2026-01-01 00:00:00"
    order = f"ERROR: Start date cannot be greater than end date{of_phase}."
    return first_of(
        RuleRow(missing, "start_date", is_empty, "is missing", remedy, quote),
        RuleRow(missing, "end_date", is_empty, "is missing", remedy, quote),
        RuleRow(kinds, "start_date", have_two_kinds, "and end_date have different types ({written} and {end})",
            "Write both unquoted, as 2026-01-01 00:00:00", CRASH),
        RuleRow(late, "start_date", compare, "is after end_date", "Correct one", order),
    )  # fmt: skip
