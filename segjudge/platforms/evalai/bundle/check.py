"""`segjudge check`: all reasons why EvalAI rejects a bundle or the challenge breaks later, before it is uploaded.

Problems come in this order: EvalAI's own tests (`rules`, with its words, so that they can be searched), the pitfalls of
the YAML (below), the script (`script_rules`), and the agreement of script, YAML and truth (`agreement`).
"""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Iterable
from dataclasses import replace

from segjudge.platforms.rules.fields import Field, as_datetime, as_flag, as_integer
from segjudge.platforms.rules.problems import (
    ERROR,
    BundleProblem,
    BundleProblems,
    breaks_later,
    hashable_value,
    mappings_in,
    warning,
    with_field_errors,
)
from segjudge.platforms.rules.rule_rows import BREAKS_LATER, WARNS, RuleRow, all_of, check_each, entries, first_of

from .agreement import check_agreement, check_rescoring
from .fields import CHALLENGE, DEFAULT_IMAGE, IGNORED, ORDER, SCHEMA
from .opened_bundle import Bundle, BundleRefusedError
from .rules import CREATION, check_form_rules, check_server_rules
from .script_rules import check_script
from .secrecy import find_withdrawn
from .server_state import REFERENCES, ServerState
from .shared_rules import Entry
from .validation import PHASE_SPLITS

#: A challenge that lasts longer probably has a wrong year.
_YEARS = 30


def check(path: str, state: ServerState | None = None) -> list[BundleProblem]:
    """Return the problems of a bundle; with `state`, also the problems of an update."""
    try:
        with Bundle(path) as bundle:
            # An update is pushed without sponsors.
            unsent = "sponsors" if state and bundle.config.get("sponsors") else None
            problems = [problem for problem in check_server_rules(bundle, state) if not problem.consequence]
            problems = [problem for problem in problems if re.split(r"\W", problem.subject)[0] != unsent]
            problems += _check_pitfalls(bundle)
            problems += check_script(bundle)
            problems += check_agreement(bundle)
            problems += check_rescoring(bundle, state)
            problems += _check_kept_truths(bundle, state)
            problems += find_withdrawn(bundle.config, state)
            return [_locate(bundle, problem) for problem in problems]
    except BundleRefusedError as refused:
        return [refused.problem]


def check_web_form(path: str) -> list[BundleProblem]:
    """Return the problems for which EvalAI's web form rejects an otherwise acceptable bundle."""
    try:
        with Bundle(path) as bundle:
            return [_locate(bundle, problem) for problem in check_form_rules(bundle)]
    except BundleRefusedError:
        return []


def refusal(problems: list[BundleProblem], *, saving: bool = True) -> str:
    """Return the server's answer to a bundle, one sentence per line; "" if accepted.

    If the real server fails without a message or accepts a later failure, the problem itself is the sentence.
    Validation does not see failures of saving; then the first such problem is the whole answer.
    """
    errors = [problem for problem in problems if problem.severity == ERROR]
    refused = [problem for problem in errors if problem.rule != CREATION and not problem.accepted]
    if not refused and saving:
        refused = [problem for problem in errors if not problem.accepted][:1]
    refused = refused or [problem for problem in errors if problem.accepted]
    # The server runs the challenge's serializer only if everything before it is valid.
    has_early_errors = any(8 <= problem.rule < 23 for problem in refused)
    by_quote: dict[str, list[BundleProblem]] = {}
    for problem in refused:
        if not (has_early_errors and problem.rule == 24):
            by_quote.setdefault(problem.quote or str(problem), []).append(problem)
    return "\n".join(_quote_errors(quote, group) for quote, group in by_quote.items())


def _quote_errors(quote: str, group: list[BundleProblem]) -> str:
    """Return the server's message about problems, with their errors in the order of its serializer."""
    errors = [problem.error for problem in group if problem.error]
    errors.sort(key=lambda error: ORDER.index(error.field) if error.field in ORDER else len(ORDER))
    return with_field_errors(quote, errors) if group[0].error else quote


def _locate(bundle: Bundle, problem: BundleProblem) -> BundleProblem:
    return replace(problem, location=bundle.lines.location(problem.subject))


# ── what EvalAI accepts without a message, and breaks the challenge later ───────────────────────────────────────────


def _check_pitfalls(bundle: Bundle) -> BundleProblems:
    top = Entry(bundle, "", bundle.config)
    for path in bundle.lines.duplicate_keys:
        yield warning(path, "occurs twice; the last one counts", "Remove one")
    yield from _check_ignored_keys(bundle)
    yield from _VARIANT(top)
    if bundle.is_evaluated_elsewhere:
        for name in sorted(bundle.names):
            if name.startswith("annotations/"):
                yield warning(name, "is in a bundle, but its truth should stay on your machine", "Remove it")
    yield from _check_dates(top)
    yield from _check_directions(bundle)
    yield from _check_unused_items(bundle)
    yield from _AT_LAST(top)


#: The limits of a phase that close it if they are 0.
_LIMITS = (
    *("max_submissions_per_day", "max_submissions_per_month", "max_submissions"),
    "max_concurrent_submissions_allowed",
)
_AT_LAST = all_of(
    RuleRow(0, "sponsors", lambda entry: entry.value, "make every push after the first fail on EvalAI",
        "Omit them from later pushes, as segjudge push does", WARNS),
    check_each("challenge_phases", all_of(
        *(
            RuleRow(0, limit, lambda entry: entry.value in (0, "0"), "is 0, so EvalAI accepts no submissions",
                "The phase is closed; write 1 or more to open it", WARNS)
            for limit in _LIMITS
        ),
        RuleRow(0, "annotations_uploaded_using_cli", lambda entry: as_flag(entry.value) is True,
            "is True: EvalAI then keeps the phase's annotation file, and ignores those of later pushes",
            "Remove the line, unless you upload annotation files with the evalai client", WARNS),
    )),
)  # fmt: skip


def _check_kept_truths(bundle: Bundle, state: ServerState | None) -> BundleProblems:
    """Yield a warning for each annotation file that an update does not replace on the server."""
    kept_truths = state.kept_truths if state is not None else []
    for entry in entries(bundle, "challenge_phases"):
        key_entry = entry.child("test_annotation_file")
        if key_entry.value and as_integer(entry.number) in kept_truths:
            fault = "is ignored: EvalAI keeps the phase's annotation file, because of annotations_uploaded_using_cli"
            remedy = "Upload another with `evalai challenge C phase P submit --file F --annotation`"
            yield warning(key_entry.path, fault, remedy)


def _check_ignored_keys(bundle: Bundle) -> BundleProblems:
    yield from _check_known_keys("", bundle.config, CHALLENGE)
    blocks = {key: field.items for key, field in CHALLENGE.items() if field.items}
    for block, fields in blocks.items():
        for entry in entries(bundle, block):
            for key, field in fields.items():
                for index, nested in enumerate(mappings_in(entry.item, key) if field.items else ()):
                    yield from _check_known_keys(f"{entry.path}.{key}[{index}].", nested, field.items or {})
            yield from _check_known_keys(f"{entry.path}.", entry.item, fields)
            if block == "leaderboard" and isinstance(entry.item.get("schema"), dict):
                yield from _check_known_keys(f"{entry.path}.schema.", entry.item["schema"], SCHEMA)


def _check_known_keys(prefix: str, keys: Iterable[object], fields: dict[str, Field]) -> BundleProblems:
    for key in keys:
        if key not in fields:
            why, similar = IGNORED.get(str(key)), difflib.get_close_matches(str(key), fields, 1)
            remedy = f"Write {similar[0]} if you mean that" if similar and not why else "Remove it"
            yield warning(f"{prefix}{key}", "is ignored by EvalAI" + (f": {why}" if why else ""), remedy)


#: The keys that a variant lacks although it needs them, or has although it does not.
_VARIANT = all_of(
    RuleRow(0, "is_static_dataset_code_upload",
        lambda entry: entry.bundle.has_flag(entry.key) and not entry.bundle.has_flag("is_docker_based"),
        "is True without is_docker_based: True", "Set both, as segjudge build --variant does", BREAKS_LATER),
    RuleRow(0, "worker_python_version",
        lambda entry: str(entry.value) in ("3.7", "3.8") and not entry.bundle.is_foreign,
        "is older than the scorers' 3.9", "Write 3.9, or remove the line", BREAKS_LATER),
    check_each("challenge_phases", all_of(
        RuleRow(0, "test_annotation_file", lambda entry: entry.bundle.is_evaluated_elsewhere and entry.value,
            "would upload {value} to EvalAI, which does not need it", "Remove it, as segjudge build --variant does",
            WARNS),
        RuleRow(0, "test_annotation_file", lambda entry: not entry.bundle.is_evaluated_elsewhere and not entry.value,
            "is missing, so EvalAI's worker dies at every start", "Name a file of annotations/", BREAKS_LATER),
        first_of(
            # EvalAI starts no pod with `remote_evaluation`, and the host's worker may need none.
            RuleRow(0, "environment_image",
                lambda entry: not entry.value and entry.bundle.has_flag("remote_evaluation"),
                "is missing", "Name the image of your environment, unless your worker needs none", WARNS),
            RuleRow(0, "environment_image", lambda entry: not entry.value, "is missing, so no pod can start",
                "Name the image of your environment", BREAKS_LATER),
            RuleRow(0, "environment_image", lambda entry: entry.value == DEFAULT_IMAGE,
                f"is {DEFAULT_IMAGE}, which is in no registry", "Push yours: segjudge build --environment-image NAME",
                WARNS),
            unless=lambda entry: (
                entry.bundle.has_flag("is_static_dataset_code_upload") or not entry.bundle.has_flag("is_docker_based")
            ),
        ),
    )),
)  # fmt: skip


def _check_dates(top: Entry) -> BundleProblems:
    start, end = (as_datetime(top.item.get(key)) for key in ("start_date", "end_date"))
    phases = [*entries(top.bundle, "challenge_phases")]
    if end and end < datetime.datetime.now(datetime.timezone.utc):
        yield warning("end_date", f"lies in the past ({end:%Y-%m-%d})", "EvalAI would accept no submissions")
    if start and end and end.year - start.year > _YEARS:
        fault = f"is {end.year - start.year} years after the start"
        yield warning("end_date", fault, "Write an earlier year, unless this is intended")
    for entry in (top, *phases):
        dates = [entry.child(key) for key in ("start_date", "end_date")]
        for key_entry in [key_entry for key_entry in dates if isinstance(key_entry.value, str)]:
            yield warning(
                key_entry.path, "is in quotes", "Write it unquoted: a quoted and an unquoted date together fail"
            )
        pair = [key_entry.path for key_entry in dates if isinstance(key_entry.value, datetime.datetime)]
        zoned = [path for path in pair if top.bundle.lines.has_time_zone(path)]
        if len(pair) == 2 and len(zoned) == 1:
            fault = "has a time zone, but the other date has none: a server with PyYAML 6 rejects the pair"
            yield warning(zoned[0], fault, "Write both the same way, preferably in UTC without a zone")
    for entry in phases:
        opening, closing = (as_datetime(entry.item.get(key)) for key in ("start_date", "end_date"))
        if start and opening and opening < start:
            subject, fault = f"{entry.path}.start_date", "is before the challenge starts"
            yield warning(subject, fault, "Nobody can submit until then")
        if end and closing and closing > end:
            subject, fault = f"{entry.path}.end_date", "is after the challenge ends"
            yield warning(subject, fault, "Nobody can submit after that")


def _check_directions(bundle: Bundle) -> BundleProblems:
    """Yield the `metadata` of leaderboards that sorts differently than intended: EvalAI follows it."""
    descending = {
        hashable_value(row, "leaderboard_id"): row.get("is_leaderboard_order_descending")
        for row in mappings_in(bundle.config, PHASE_SPLITS)
    }
    for board in entries(bundle, "leaderboard"):
        schema = board.item.get("schema")
        metadata = schema.get("metadata") if isinstance(schema, dict) else None
        if not isinstance(schema, dict) or not isinstance(metadata, dict):
            continue
        labels, expected = schema.get("labels"), descending.get(hashable_value(board.item))
        for label, column in metadata.items():
            path = f"{board.path}.schema.metadata.{label}"
            if isinstance(labels, list) and label not in labels:
                yield warning(path, f"{label} is not a label", "Remove it, or correct its name")
            elif column is not None and not isinstance(column, dict):
                fault = "is not a mapping: if EvalAI sorts by it, the leaderboard is an error 500"
                yield breaks_later(path, fault, "Write {sort_ascending: False}")
            elif column is None or not isinstance(column.get("sort_ascending"), bool):
                remedy = "Add sort_ascending: False, or EvalAI sorts in ascending order"
                yield breaks_later(path, "has no sort_ascending", remedy)
            elif label == schema.get("default_order_by") and column["sort_ascending"] == expected:
                fault = "and is_leaderboard_order_descending of the phase split contradict each other"
                yield warning(f"{path}.sort_ascending", fault, "Make them agree: EvalAI follows this one")


def _check_unused_items(bundle: Bundle) -> BundleProblems:
    rows = mappings_in(bundle.config, PHASE_SPLITS)
    for key in ("challenge_phase_id", "leaderboard_id", "dataset_split_id"):
        used, fault = {str(row.get(key)) for row in rows}, "is not in challenge_phase_splits"
        for entry in entries(bundle, REFERENCES[key][0]):
            if entry.number is None or str(entry.number) in used:
                continue
            if key == "challenge_phase_id":
                yield breaks_later(entry.path, fault, "Map it, or every submission to it fails")
            else:
                yield warning(entry.path, fault, "Map it, or remove it: it can never be deleted once pushed")
