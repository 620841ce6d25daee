"""What EvalAI takes without a word, and what then goes wrong."""

from __future__ import annotations

import datetime
import difflib
from collections import Counter
from typing import Any

from segjudge.bundle.rules.blocks import entries

from .field_values import moment
from .fields import CHALLENGE, IGNORED, SCHEMA, Field
from .opened_bundle import Bundle
from .problems import BundleProblems, items, later, name_of, warning
from .variants import DEFAULT_IMAGE

_MOST_YEARS = 30


def pitfalls(bundle: Bundle) -> BundleProblems:
    """Everything of this file."""
    for path in bundle.lines.twice():
        yield warning(path, "is there twice, and the last one counts", "Remove one")
    yield from _ignored(bundle)
    yield from _kind(bundle)
    yield from _dates(bundle)
    yield from _ordering(bundle)
    yield from _unused(bundle)
    if bundle.config.get("sponsors"):
        remedy = "Leave them out of pushes after the first; segjudge push does so"
        yield warning("sponsors", "make every push after the first fail on EvalAI", remedy)
    for where, phase in entries(bundle, "challenge_phases"):
        if phase.get("max_submissions_per_day") in (0, "0"):
            yield warning(f"{where}.max_submissions_per_day", "is 0", "The phase is closed; write 1 or more to open it")


def _ignored(bundle: Bundle) -> BundleProblems:
    yield from _unknown("", bundle.config, CHALLENGE)
    nested = {key: field.items for key, field in CHALLENGE.items() if field.items}
    for block, fields in nested.items():
        for where, item in entries(bundle, block):
            for key, field in fields.items():
                for place, one in enumerate(items(item, key) if field.items else ()):
                    yield from _unknown(f"{where}.{key}[{place}].", one, field.items or {})
            yield from _unknown(f"{where}.", item, fields)
            if block == "leaderboard" and isinstance(item.get("schema"), dict):
                yield from _unknown(f"{where}.schema.", item["schema"], SCHEMA)


def _unknown(prefix: str, holder: dict[str, Any], fields: dict[str, Field]) -> BundleProblems:
    for key in holder:
        if key in fields:
            continue
        why, near = IGNORED.get(str(key)), difflib.get_close_matches(str(key), fields, 1)
        found = "is ignored by EvalAI" + (f": {why}" if why else "")
        yield warning(
            f"{prefix}{key}", found, f"Write {near[0]}, if you mean that" if near and not why else "Remove it"
        )


def _kind(bundle: Bundle) -> BundleProblems:
    """Whether each way of running a challenge has what it needs."""
    config = bundle.config
    docker, static = bundle.says("is_docker_based"), bundle.says("is_static_dataset_code_upload")
    if static and not docker:
        found = "is True without is_docker_based: True"
        yield later("is_static_dataset_code_upload", found, "Set both: segjudge build --variant does")
    if str(config.get("worker_python_version", "3.9")) in ("3.7", "3.8"):
        yield later("worker_python_version", "is older than the scorers' 3.9", "Write 3.9, or remove the line")
    for where, phase in entries(bundle, "challenge_phases"):
        path = phase.get("test_annotation_file")
        if bundle.scored_elsewhere and path:
            found = f"would give {path} to EvalAI, which does not need it here"
            yield warning(f"{where}.test_annotation_file", found, "Remove it: segjudge build --variant does")
        elif not bundle.scored_elsewhere and not path:
            found = "is missing, and EvalAI's worker then dies at every start"
            yield later(f"{where}.test_annotation_file", found, "Name a file of annotations/")
        if docker and not static and not phase.get("environment_image"):
            found = "is missing, so that no pod can start"
            yield later(f"{where}.environment_image", found, "Name the image of your environment")
        elif docker and not static and phase.get("environment_image") == DEFAULT_IMAGE:
            found = f"is {DEFAULT_IMAGE}, which no registry has"
            yield warning(f"{where}.environment_image", found, "Push yours: segjudge build --environment-image NAME")
    if bundle.scored_elsewhere:
        for name in sorted(bundle.names):
            if name.startswith("annotations/"):
                yield warning(name, "is in a bundle whose truth should stay with you", "Leave it out")


def _dates(bundle: Bundle) -> BundleProblems:
    config, now = bundle.config, datetime.datetime.now(datetime.UTC)
    start, end = moment(config.get("start_date")), moment(config.get("end_date"))
    if end and end < now:
        yield warning("end_date", f"lies in the past ({end:%Y-%m-%d})", "EvalAI would take no submission")
    if start and end and end.year - start.year > _MOST_YEARS:
        yield warning(
            "end_date", f"is {end.year - start.year} years after the start", "Write an earlier year, unless it is meant"
        )
    holders = [("", config), *((f"{where}.", phase) for where, phase in entries(bundle, "challenge_phases"))]
    for prefix, holder in holders:
        for key in ("start_date", "end_date"):
            if isinstance(holder.get(key), str):
                yield warning(
                    f"{prefix}{key}", "is in quotes", "Write it unquoted: one in quotes and one without fails"
                )
    for prefix, phase in holders[1:]:
        first, last = moment(phase.get("start_date")), moment(phase.get("end_date"))
        if start and first and first < start:
            yield warning(f"{prefix}start_date", "is before the challenge starts", "Nobody can submit until then")
        if end and last and last > end:
            yield warning(f"{prefix}end_date", "is after the challenge ends", "Nobody can submit after that")


def _ordering(bundle: Bundle) -> BundleProblems:
    """An entry of `metadata` decides about the direction, even when it does not speak of it."""
    told = {
        name_of(row, "leaderboard_id"): row.get("is_leaderboard_order_descending")
        for _, row in entries(bundle, "challenge_phase_splits")
    }
    for where, board in entries(bundle, "leaderboard"):
        schema = board.get("schema")
        metadata = schema.get("metadata") if isinstance(schema, dict) else None
        if not isinstance(schema, dict) or not isinstance(metadata, dict):
            continue
        labels = schema.get("labels")
        for label, entry in metadata.items():
            here = f"{where}.schema.metadata.{label}"
            if isinstance(labels, list) and label not in labels:
                yield warning(here, f"{label} is not a label", "Remove it, or correct its name")
            elif not isinstance(entry, dict) or not isinstance(entry.get("sort_ascending"), bool):
                yield later(here, "has no sort_ascending", "Add sort_ascending: False, or EvalAI sorts upwards")
            elif (
                label == schema.get("default_order_by")
                and name_of(board) in told
                and entry["sort_ascending"] == told[name_of(board)]
            ):
                found = "and is_leaderboard_order_descending of the phase split contradict each other"
                yield warning(f"{here}.sort_ascending", found, "Make them agree: EvalAI follows this one")


def _unused(bundle: Bundle) -> BundleProblems:
    rows = items(bundle.config, "challenge_phase_splits")
    for key, block, effect in (
        ("challenge_phase_id", "challenge_phases", "Map it, or every submission to it fails"),
        ("leaderboard_id", "leaderboard", "Map it, or remove it: it can never be deleted once pushed"),
        ("dataset_split_id", "dataset_splits", "Map it, or remove it: it can never be deleted once pushed"),
    ):
        used = Counter(str(row.get(key)) for row in rows)
        for where, item in entries(bundle, block):
            if item.get("id") is not None and not used[str(item["id"])]:
                finding = later if block == "challenge_phases" else warning
                yield finding(where, "is not in challenge_phase_splits", effect)
