"""Rules shared by several of Codabench's blocks: verdicts, and rules for lists, paths, texts, data and keys."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from pathlib import Path

from segjudge.platforms.rules.fields import Field
from segjudge.platforms.rules.rule_rows import WARNS, Check, Entry, RuleRow, Verdict, first_of

from . import serializer_fields as fields
from .opened_competition import ERROR_LOG, OpenedCompetition, can_be_path

CompetitionEntry = Entry[OpenedCompetition]
#: Python's texts, which are all that Codabench reports.
NOT_ITERABLE = ERROR_LOG + "'{kind}' object is not iterable"
NO_UUID = ERROR_LOG + "['“{value}” is not a valid UUID.']"


def is_written(entry: CompetitionEntry) -> Verdict:
    return entry.is_written


def is_no_list(entry: CompetitionEntry) -> Verdict:
    return not isinstance(entry.value, Iterable)


def is_empty(entry: CompetitionEntry) -> Verdict:
    return isinstance(entry.value, (list, dict, str, set)) and not entry.value


def lacks_first(entry: CompetitionEntry) -> Verdict:
    """Return the crash of an empty list of leaderboards, in Python's words."""
    texts = {"dict": "0", "str": "string index out of range", "set": "'set' object is not subscriptable"}
    return {"text": texts.get(type(entry.value).__name__, "list index out of range")} if is_empty(entry) else None


def _is_written_otherwise(entry: CompetitionEntry) -> Verdict:
    return entry.is_written and not isinstance(entry.value, str)


def is_on_site(entry: CompetitionEntry) -> bool:
    return "key" in entry.item


def list_rules(rule: int, key: str) -> Check:
    """Return the rules that a block is a list of mappings; on phases the unpacker calls a method."""

    def explain_odd_item(entry: CompetitionEntry) -> Verdict:
        odd_items = [item for item in entry.value if not isinstance(entry.value, list) or not isinstance(item, dict)]
        if not odd_items:
            return None
        kind = type(odd_items[0]).__name__
        text = {
            "str": "string indices must be integers, not 'str'",
            "list": "list indices must be integers or slices, not str",
        }.get(kind, f"'{kind}' object is not subscriptable")
        return {"text": f"'{kind}' object has no attribute 'get'" if key == "phases" else text}

    remedy = "Write a list: - key: value"
    return first_of(
        RuleRow(rule, key, is_no_list, "is not a list", remedy, NOT_ITERABLE),
        RuleRow(rule, key, explain_odd_item, "is not a list of mappings", remedy, ERROR_LOG + "{text}"),
    )


def path_rule(rule: int, key: str) -> RuleRow:
    return RuleRow(rule, key, _is_written_otherwise, "is {value!r:.60}, not the path of a file",
        "Write a path, or omit the key",
        ERROR_LOG + "join() argument must be str, bytes, or os.PathLike object, not '{kind}'")  # fmt: skip


def file_rules(rule: int, key: str, kind: str = "file", title: str = "page") -> Check:
    """Return the rules that a path names a file."""

    def name_folder(entry: CompetitionEntry) -> Verdict:
        return not os.path.isfile(entry.bundle.path(entry.value)) and {"named": entry.value or "an empty path"}

    return first_of(
        path_rule(rule, key),
        RuleRow(rule, key,
            lambda entry: not os.path.exists(entry.bundle.path(entry.value)), "{value} is not in the bundle",
            "Put it there, or correct the path", f"Unable to find {title}: {{value}}"),
        RuleRow(rule, key, name_folder, "{named} is a folder",
            f"Name a {kind}", ERROR_LOG + "[Errno 21] Is a directory: '<temporary folder>/{value}'"),
    )  # fmt: skip


def text_rules(rule: int, key: str, empty: str) -> Check:
    """Return the rules that a path names a text file."""

    def is_unreadable(entry: CompetitionEntry) -> Verdict:
        try:
            Path(entry.bundle.path(entry.value)).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            return {"fault": "is not UTF-8", "remedy": "Save it as UTF-8", "text": str(error)}
        except OSError as error:
            text = f"[Errno {error.errno}] {error.strerror}: '<temporary folder>/{entry.value}'"
            return {"fault": f"cannot be read ({error.strerror})", "remedy": "Make it readable", "text": text}
        return None

    return first_of(
        file_rules(rule, key),
        RuleRow(rule, key, is_unreadable, "{value} {fault}", "{remedy}", ERROR_LOG + "{text}"),
        RuleRow(rule, key, lambda entry: not os.path.getsize(entry.bundle.path(entry.value)), "{value} is empty",
            "Write something", empty),
    )  # fmt: skip


def nul_rule(rule: int, key: str, quote: str) -> RuleRow:
    """Return the rule that a string has no character that the serializer rejects."""

    def find_nul(entry: CompetitionEntry) -> Verdict:
        path = entry.bundle.path(entry.value) if isinstance(entry.value, str) else ""
        try:
            text = Path(path).read_bytes() if os.path.isfile(path) else b""
        except OSError:  # already reported
            return None
        return {"line": text[: text.index(0)].count(10) + 1} if b"\0" in text else None

    return RuleRow(rule, key, find_nul, "{value} holds a NUL character, in line {line}", "Remove it", quote)


def is_uuid(text: str) -> bool:
    """Return whether a string can be a key on the site."""
    try:
        return bool(uuid.UUID(text))
    except ValueError:
        return False


def data_rules(rule: int, key: str) -> Check:
    """Return the rules that a data set exists as a file or, as far as Segjudge knows, on the site."""

    def is_root(entry: CompetitionEntry) -> Verdict:
        is_path = isinstance(entry.value, str) and can_be_path(entry.value)
        return is_path and os.path.realpath(entry.bundle.path(entry.value)) == os.sep

    def is_missing(entry: CompetitionEntry) -> bool:
        return isinstance(entry.value, str) and not os.path.exists(entry.bundle.path(entry.value))

    kind = "solution" if key == "path" else key
    return first_of(
        RuleRow(rule, key, is_root, "{value} is the root folder of the site's server, which would zip all of it",
            "Name a finished zip in the bundle", ERROR_LOG),
        RuleRow(rule, key, lambda entry: is_missing(entry) and is_uuid(entry.value),
            f"is the key of a {kind} on the site, which cannot be checked here", "Check that it exists there", WARNS),
        RuleRow(rule, key, is_missing, "{value} is not in the bundle", "Build it, or correct the path",
            'Cannot find dataset: "{value}"'),
    )  # fmt: skip


#: The rules for the key of a task or a solution that already exists on the site.
SITE_KEY = first_of(
    RuleRow(21, "key", _is_written_otherwise, "is {value!r:.60}", "Write the key of a task on the site, as text",
        ERROR_LOG + "'{kind}' object is not subscriptable"),
    RuleRow(21, "key", lambda entry: entry.is_written and not is_uuid(entry.value), "{value} is not a UUID",
        "Copy the key of a task from the site, or omit the key", NO_UUID),
    RuleRow(21, "key", is_written, "is a key on the site, which cannot be checked here",
        "Make sure that it exists", WARNS),
)  # fmt: skip


def field_rules(table: dict[str, Field], prefix: str = "", **defaults: object) -> Check:
    """Return the rules of a serializer; `prefix` precedes a field's name in its messages."""
    return lambda entry: fields.check_fields(entry.path, table, {**defaults, **entry.item}, prefix)
