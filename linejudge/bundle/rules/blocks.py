"""Leaderboards and dataset splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from linejudge.bundle.fields import LEADERBOARD, SPLIT
from linejudge.bundle.finding import Detail, Finding, Findings, crash, items
from linejudge.bundle.opened import Bundle
from linejudge.bundle.values import findings

_BOARD = "ERROR: The leaderboard with ID: {} has the following schema errors:\n {{errors}}"
_SPLIT = "ERROR: Dataset split {} has the following schema errors:\n {{errors}}"
Named = tuple[str, dict[str, Any]]


def entries(bundle: Bundle, key: str) -> Iterator[Named]:
    """The items of a block, each with its path in the YAML."""
    for place, item in enumerate(items(bundle.config, key)):
        yield f"{key}[{place}]", item


def shape(bundle: Bundle, key: str, empty: Finding) -> Findings:
    """A block is a list of mappings, and not empty."""
    block = bundle.config.get(key)
    if not block:
        yield empty
    elif not isinstance(block, list) or any(not isinstance(item, dict) for item in block):
        yield crash(key, "is no list of mappings", "Begin each item with - and its first key", empty.rule)


def required(where: str, key: str, item: dict[str, Any], quote: str, rule: int) -> Findings:
    """A key that only the serializer asks for."""
    if key not in item:
        detail = Detail(key, "This field is required.", "required")
        yield Finding(f"{where}.{key}", "is missing", "Add it", quote, rule=rule, detail=detail)


def same_id(bundle: Bundle, key: str) -> Findings:
    """The server keeps the last of two, and says nothing."""
    seen: Counter[str] = Counter()
    for where, item in entries(bundle, key):
        number = item.get("id")
        seen[str(number)] += 1
        if number is not None and seen[str(number)] > 1:
            yield Finding(f"{where}.id", f"{number} is there twice", "Give each its own: EvalAI keeps one of them")


def leaderboards(bundle: Bundle) -> Findings:
    """Labels and ordering."""
    quote = "ERROR: There is no key for the leaderboard in the YAML file. Please add it and then try again!"
    yield from shape(
        bundle, "leaderboard", Finding("leaderboard", "is missing or empty", "Add a leaderboard", quote, rule=25)
    )
    for where, board in entries(bundle, "leaderboard"):
        number = board.get("id")
        if not number:
            quote = "ERROR: There is no leaderboard ID for the leaderboard."
            yield Finding(f"{where}.id", "is missing", "Number it", quote, rule=26)
        else:
            yield from findings(
                f"{where}.", board, {"id": LEADERBOARD["id"]}, _BOARD.format(number), 31, names={"id": "config_id"}
            )
        schema = board.get("schema")
        if "schema" not in board:
            quote = f"ERROR: There is no leaderboard schema for the leaderboard with ID: {number}."
            yield Finding(f"{where}.schema", "is missing", "Add labels and default_order_by", quote, rule=27)
        elif not isinstance(schema, dict):
            yield crash(f"{where}.schema", "is no mapping", "Write labels and default_order_by into it", 27)
        else:
            yield from _schema(f"{where}.schema", number, schema)
    yield from same_id(bundle, "leaderboard")


def _schema(where: str, number: Any, schema: dict[str, Any]) -> Findings:
    labels, order = schema.get("labels"), schema.get("default_order_by")
    tail = f"in the schema for the leaderboard with ID: {number}"
    if "labels" not in schema:
        quote = f"ERROR: There is no 'labels' key {tail}."
        yield Finding(f"{where}.labels", "is missing", "List the metrics", quote, rule=28)
    elif not isinstance(labels, list) or not labels or any(not isinstance(label, str) for label in labels):
        yield Finding(f"{where}.labels", "is no list of names", 'Write ["J&F-Mean", "J-Mean"]: the page breaks')
    elif len({*labels}) < len(labels):
        yield Finding(f"{where}.labels", "names a metric twice", "Keep one: the columns are found by name")
    if "default_order_by" not in schema:
        quote = f"ERROR: There is no 'default_order_by' key {tail}."
        yield Finding(f"{where}.default_order_by", "is missing", "Name one of the labels", quote, rule=29)
    elif "labels" in schema and order not in (labels if isinstance(labels, (list, str)) else []):
        quote = (
            f"ERROR: The 'default_order_by' value '{order}' in the schema for the leaderboard with ID: {number} "
            "is not a valid label."
        )
        yield Finding(f"{where}.default_order_by", f"{order} is no label", "Name one of the labels", quote, rule=30)
    metadata = schema.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        yield Finding(f"{where}.metadata", "is no mapping", "Write label: {sort_ascending: False}")


def splits(bundle: Bundle) -> Findings:
    """Dataset splits."""
    quote = "ERROR: There is no key for dataset splits."
    yield from shape(
        bundle, "dataset_splits", Finding("dataset_splits", "is missing or empty", "Add a split", quote, rule=47)
    )
    seen: Counter[Any] = Counter()
    for where, split in entries(bundle, "dataset_splits"):
        number = split.get("id")
        if "id" not in split:
            yield crash(f"{where}.id", "is missing", "Number it", 52)
        for rule, key in ((48, "name"), (49, "codename")):
            if not split.get(key):
                quote = f"ERROR: There is no {key} for dataset split {number}."
                yield Finding(f"{where}.{key}", "is missing", "Add it", quote, rule=rule)
        codename = str(split.get("codename"))
        seen[codename] += 1
        if split.get("codename") and seen[codename] > 1:
            quote = (
                f"ERROR: Duplicate codename {codename} for dataset split {split.get('name')}. "
                "Please ensure codenames are unique."
            )
            yield Finding(f"{where}.codename", f"{codename} is there twice", "Rename one of them", quote, rule=50)
        given = {key: value for key, value in split.items() if value}
        yield from findings(f"{where}.", given, SPLIT, _SPLIT.format(number), 51, names={"id": "config_id"})
    yield from same_id(bundle, "dataset_splits")
