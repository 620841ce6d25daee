"""Rules for what EvalAI accepts without a message and that breaks the challenge later."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Iterable
from typing import Any

from .field_values import as_datetime
from .fields import CHALLENGE, IGNORED, SCHEMA, Field
from .opened_bundle import Bundle
from .problems import BundleProblems, breaks_later, hashable_value, mappings_in, warning
from .rules import entries
from .server_state import REFERENCES
from .variants import DEFAULT_IMAGE

#: A challenge that lasts longer has a wrong year, most likely.
_MOST_YEARS = 30


def pitfalls(bundle: Bundle) -> BundleProblems:
    """Yield the problems of an accepted bundle."""
    for path in bundle.lines.duplicate_keys:
        yield warning(path, "is there twice, and the last one counts", "Remove one")
    yield from _ignored_keys(bundle)
    yield from _missing_for_variant(bundle)
    yield from _dates(bundle)
    yield from _ordering(bundle)
    yield from _unused_items(bundle)
    if bundle.config.get("sponsors"):
        remedy = "Leave them out of pushes after the first; segjudge push does so"
        yield warning("sponsors", "make every push after the first fail on EvalAI", remedy)
    for subject, phase in entries(bundle, "challenge_phases"):
        if phase.get("max_submissions_per_day") in (0, "0"):
            yield warning(
                f"{subject}.max_submissions_per_day", "is 0", "The phase is closed; write 1 or more to open it"
            )


def _ignored_keys(bundle: Bundle) -> BundleProblems:
    yield from _unknown_keys("", bundle.config, CHALLENGE)
    blocks = {key: field.items for key, field in CHALLENGE.items() if field.items}
    for block, fields in blocks.items():
        for subject, item in entries(bundle, block):
            for key, field in fields.items():
                for index, nested in enumerate(mappings_in(item, key) if field.items else ()):
                    yield from _unknown_keys(f"{subject}.{key}[{index}].", nested, field.items or {})
            yield from _unknown_keys(f"{subject}.", item, fields)
            if block == "leaderboard" and isinstance(item.get("schema"), dict):
                yield from _unknown_keys(f"{subject}.schema.", item["schema"], SCHEMA)


def _unknown_keys(prefix: str, keys: Iterable[object], fields: dict[str, Field]) -> BundleProblems:
    for key in keys:
        if key not in fields:
            why, similar = IGNORED.get(str(key)), difflib.get_close_matches(str(key), fields, 1)
            remedy = f"Write {similar[0]}, if you mean that" if similar and not why else "Remove it"
            yield warning(f"{prefix}{key}", "is ignored by EvalAI" + (f": {why}" if why else ""), remedy)


def _missing_for_variant(bundle: Bundle) -> BundleProblems:
    """Yield what the chosen way of running a challenge needs and lacks, or has and does not need."""
    docker, static = bundle.has_flag("is_docker_based"), bundle.has_flag("is_static_dataset_code_upload")
    if static and not docker:
        fault = "is True without is_docker_based: True"
        yield breaks_later("is_static_dataset_code_upload", fault, "Set both: segjudge build --variant does")
    if str(bundle.config.get("worker_python_version", "3.9")) in ("3.7", "3.8") and not bundle.is_foreign:
        yield breaks_later("worker_python_version", "is older than the scorers' 3.9", "Write 3.9, or remove the line")
    for subject, phase in entries(bundle, "challenge_phases"):
        yield from _annotation_file(bundle, f"{subject}.test_annotation_file", phase.get("test_annotation_file"))
        if docker and not static:
            yield from _environment_image(bundle, f"{subject}.environment_image", phase.get("environment_image"))
    if bundle.evaluated_elsewhere:
        for name in sorted(bundle.names):
            if name.startswith("annotations/"):
                yield warning(name, "is in a bundle whose truth should stay with you", "Leave it out")


def _annotation_file(bundle: Bundle, subject: str, path: object) -> BundleProblems:
    if bundle.evaluated_elsewhere and path:
        fault = f"would give {path} to EvalAI, which does not need it here"
        yield warning(subject, fault, "Remove it: segjudge build --variant does")
    elif not bundle.evaluated_elsewhere and not path:
        fault = "is missing, and EvalAI's worker then dies at every start"
        yield breaks_later(subject, fault, "Name a file of annotations/")


def _environment_image(bundle: Bundle, subject: str, image: object) -> BundleProblems:
    if not image and bundle.has_flag("remote_evaluation"):  # EvalAI starts no pod, and the host's worker may need none
        yield warning(subject, "is missing", "Name the image of your environment, unless your worker does without")
    elif not image:
        yield breaks_later(subject, "is missing, so that no pod can start", "Name the image of your environment")
    elif image == DEFAULT_IMAGE:
        remedy = "Push yours: segjudge build --environment-image NAME"
        yield warning(subject, f"is {DEFAULT_IMAGE}, which no registry has", remedy)


def _dates(bundle: Bundle) -> BundleProblems:
    config, now = bundle.config, datetime.datetime.now(datetime.UTC)
    start, end = as_datetime(config.get("start_date")), as_datetime(config.get("end_date"))
    if end and end < now:
        yield warning("end_date", f"lies in the past ({end:%Y-%m-%d})", "EvalAI would take no submission")
    if start and end and end.year - start.year > _MOST_YEARS:
        fault = f"is {end.year - start.year} years after the start"
        yield warning("end_date", fault, "Write an earlier year, unless it is meant")
    phases = [(f"{subject}.", phase) for subject, phase in entries(bundle, "challenge_phases")]
    for prefix, item in [("", config), *phases]:
        for key in ("start_date", "end_date"):
            if isinstance(item.get(key), str):
                remedy = "Write it unquoted: one in quotes and one without fails"
                yield warning(f"{prefix}{key}", "is in quotes", remedy)
        pair = [key for key in ("start_date", "end_date") if isinstance(item.get(key), datetime.datetime)]
        zoned = [key for key in pair if bundle.lines.has_time_zone(f"{prefix}{key}")]
        if len(pair) == 2 and len(zoned) == 1:
            fault = "has a time zone, and the other date has none: a server with PyYAML 6 refuses the pair"
            yield warning(f"{prefix}{zoned[0]}", fault, "Write both alike, best in UTC without a zone")
    for prefix, phase in phases:
        first, last = as_datetime(phase.get("start_date")), as_datetime(phase.get("end_date"))
        if start and first and first < start:
            yield warning(f"{prefix}start_date", "is before the challenge starts", "Nobody can submit until then")
        if end and last and last > end:
            yield warning(f"{prefix}end_date", "is after the challenge ends", "Nobody can submit after that")


def _ordering(bundle: Bundle) -> BundleProblems:
    """Yield the `metadata` of leaderboards that sorts otherwise than intended: EvalAI follows it."""
    descending = {
        hashable_value(row, "leaderboard_id"): row.get("is_leaderboard_order_descending")
        for row in mappings_in(bundle.config, "challenge_phase_splits")
    }
    for subject, board in entries(bundle, "leaderboard"):
        schema = board.get("schema")
        metadata = schema.get("metadata") if isinstance(schema, dict) else None
        if isinstance(schema, dict) and isinstance(metadata, dict):
            expected = descending.get(hashable_value(board))
            yield from _sort_directions(f"{subject}.schema.metadata", schema, metadata, expected)


def _sort_directions(
    path: str, schema: dict[str, Any], metadata: dict[object, Any], descending: object
) -> BundleProblems:
    labels, order_by = schema.get("labels"), schema.get("default_order_by")
    for label, entry in metadata.items():
        subject = f"{path}.{label}"
        if isinstance(labels, list) and label not in labels:
            yield warning(subject, f"{label} is not a label", "Remove it, or correct its name")
        elif not isinstance(entry, dict) or not isinstance(entry.get("sort_ascending"), bool):
            yield breaks_later(subject, "has no sort_ascending", "Add sort_ascending: False, or EvalAI sorts upwards")
        elif label == order_by and entry["sort_ascending"] == descending:
            fault = "and is_leaderboard_order_descending of the phase split contradict each other"
            yield warning(f"{subject}.sort_ascending", fault, "Make them agree: EvalAI follows this one")


def _unused_items(bundle: Bundle) -> BundleProblems:
    rows = mappings_in(bundle.config, "challenge_phase_splits")
    for key in ("challenge_phase_id", "leaderboard_id", "dataset_split_id"):
        block = REFERENCES[key][0]
        used = {str(row.get(key)) for row in rows}
        for subject, item in entries(bundle, block):
            if item.get("id") is None or str(item["id"]) in used:
                continue
            fault = "is not in challenge_phase_splits"
            if block == "challenge_phases":
                yield breaks_later(subject, fault, "Map it, or every submission to it fails")
            else:
                yield warning(subject, fault, "Map it, or remove it: it can never be deleted once pushed")
