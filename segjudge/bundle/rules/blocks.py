"""Leaderboards and dataset splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from segjudge.bundle.field_values import findings
from segjudge.bundle.fields import LEADERBOARD, SPLIT
from segjudge.bundle.opened_bundle import Bundle
from segjudge.bundle.problems import BundleProblem, BundleProblems, Detail, crash, items, later

_BOARD = "ERROR: The leaderboard with ID: {} has the following schema errors:\n {{errors}}"
_SPLIT = "ERROR: Dataset split {} has the following schema errors:\n {{errors}}"
Named = tuple[str, dict[str, Any]]


def entries(bundle: Bundle, key: str) -> Iterator[Named]:
    """The items of a block, each with its path in the YAML."""
    for place, item in enumerate(items(bundle.config, key)):
        yield f"{key}[{place}]", item


def shape(bundle: Bundle, key: str, empty: BundleProblem) -> BundleProblems:
    """A block is a list of mappings, and not empty."""
    block = bundle.config.get(key)
    if not block:
        yield empty
    elif not isinstance(block, list) or any(not isinstance(item, dict) for item in block):
        yield crash(key, "is not a list of mappings", "Begin each item with - and its first key", empty.rule)


def required(where: str, key: str, item: dict[str, Any], quote: str, rule: int) -> BundleProblems:
    """A key that only the serializer asks for."""
    if key not in item:
        detail = Detail(key, "This field is required.", "required")
        yield BundleProblem(f"{where}.{key}", "is missing", "Add it", quote, rule=rule, detail=detail)


def numbered(item: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of an item that its serializer gets: an id that is empty is none."""
    return {key: field for key, field in fields.items() if key != "id" or item.get("id")}


def passed(found: list[BundleProblem]) -> bool:
    """Whether the server goes on to know an item; later rules, and what an update freezes, do not count."""
    return not any(finding.detail or finding.rule in _UNKNOWN for finding in found if not finding.taken)


#: Rules of the leaderboards that come before their serializer.
_UNKNOWN = range(26, 31)


def lasting_ids(bundle: Bundle, key: str) -> BundleProblems:
    """The server keeps the last of two, and says nothing; nothing can find again what has an empty one."""
    seen: Counter[str] = Counter()
    for where, item in entries(bundle, key):
        number = item.get("id")
        if "id" in item and not number:
            found = f"is empty ({number!r:.20}): EvalAI keeps the item without a number, and can never update it"
            yield later(f"{where}.id", found, "Number it from 1")
        seen[str(number)] += 1
        if number is not None and seen[str(number)] > 1:
            yield later(f"{where}.id", f"{number} is there twice", "Give each its own: EvalAI keeps one of them")


def leaderboards(bundle: Bundle) -> BundleProblems:
    """Labels and ordering."""
    quote = "ERROR: There is no key for the leaderboard in the YAML file. Please add it and then try again!"
    yield from shape(
        bundle, "leaderboard", BundleProblem("leaderboard", "is missing or empty", "Add a leaderboard", quote, rule=25)
    )
    for where, board in entries(bundle, "leaderboard"):
        yield from leaderboard(where, board)
    yield from lasting_ids(bundle, "leaderboard")


def leaderboard(where: str, board: dict[str, Any]) -> BundleProblems:
    """One leaderboard; its serializer is asked only when all before it was right."""
    number, before = board.get("id"), []
    if "id" not in board:
        quote = "ERROR: There is no leaderboard ID for the leaderboard."
        before.append(BundleProblem(f"{where}.id", "is missing", "Number it", quote, rule=26))
    if "schema" not in board:
        quote = f"ERROR: There is no leaderboard schema for the leaderboard with ID: {number}."
        before.append(BundleProblem(f"{where}.schema", "is missing", "Add labels and default_order_by", quote, rule=27))
    else:
        before += _schema(f"{where}.schema", number, board["schema"])
    yield from before
    if not any(not finding.taken for finding in before):
        names = {"id": "config_id"}
        yield from findings(f"{where}.", board, numbered(board, LEADERBOARD), _BOARD.format(number), 31, names=names)


def _holds(holder: Any, value: Any) -> bool | None:
    """Whether the server finds a value in something; None where looking breaks it."""
    try:
        return value in holder
    except TypeError:
        return None


def _schema(where: str, number: Any, schema: Any) -> BundleProblems:
    has_labels, has_order = _holds(schema, "labels"), _holds(schema, "default_order_by")
    if has_labels is None or (has_order and not isinstance(schema, dict)):
        yield crash(where, "is not a mapping", "Write labels and default_order_by into it", 27)
        return
    tail = f"in the schema for the leaderboard with ID: {number}"
    if not has_labels:
        quote = f"ERROR: There is no 'labels' key {tail}."
        yield BundleProblem(f"{where}.labels", "is missing", "List the metrics", quote, rule=28)
    if not has_order:
        quote = f"ERROR: There is no 'default_order_by' key {tail}."
        yield BundleProblem(f"{where}.default_order_by", "is missing", "Name one of the labels", quote, rule=29)
    elif has_labels:
        yield from _order(f"{where}.default_order_by", number, schema)
    if has_labels and isinstance(schema, dict):
        yield from _unsound(where, schema)


def _order(where: str, number: Any, schema: dict[str, Any]) -> BundleProblems:
    order = schema["default_order_by"]
    known = _holds(schema["labels"], order)
    if known is None:
        yield crash(where, f"cannot be looked up in labels ({order!r:.60})", "Name one of the labels", 30)
    elif not known:
        quote = (
            f"ERROR: The 'default_order_by' value '{order}' in the schema for the leaderboard with ID: {number} "
            "is not a valid label."
        )
        yield BundleProblem(where, f"{order} is not a label", "Name one of the labels", quote, rule=30)


def _unsound(where: str, schema: dict[str, Any]) -> BundleProblems:
    """What the server takes, and its pages do not."""
    labels, metadata = schema["labels"], schema.get("metadata")
    if not isinstance(labels, list) or not labels or any(not isinstance(label, str) for label in labels):
        remedy = 'Write ["J&F-Mean", "J-Mean"]: the page breaks'
        yield later(f"{where}.labels", "is not a list of names", remedy)
    elif len({*labels}) < len(labels):
        yield later(f"{where}.labels", "names a metric twice", "Keep one: the columns are found by name")
    if metadata is not None and not isinstance(metadata, dict):
        yield later(f"{where}.metadata", "is not a mapping", "Write label: {sort_ascending: False}")


def splits(bundle: Bundle) -> BundleProblems:
    """Dataset splits: the server goes through them twice."""
    quote = "ERROR: There is no key for dataset splits."
    yield from shape(
        bundle, "dataset_splits", BundleProblem("dataset_splits", "is missing or empty", "Add a split", quote, rule=47)
    )
    seen: list[Any] = []
    for where, split in entries(bundle, "dataset_splits"):
        yield from _names(where, split, seen)
    for where, split in entries(bundle, "dataset_splits"):
        yield from dataset_split(where, split)
    yield from lasting_ids(bundle, "dataset_splits")


def _names(where: str, split: dict[str, Any], seen: list[Any]) -> BundleProblems:
    number, codename = split.get("id"), split.get("codename")
    if not split.get("name"):
        quote = f"ERROR: There is no name for dataset split {number}."
        yield BundleProblem(f"{where}.name", "is missing", "Add it", quote, rule=48)
    if "codename" not in split:
        quote = f"ERROR: There is no codename for dataset split {number}."
        yield BundleProblem(f"{where}.codename", "is missing", "Add it", quote, rule=49)
    elif codename in seen and "name" not in split:
        yield crash(f"{where}.codename", f"{codename} is there twice", "Rename one of them", 50)
    elif codename in seen:
        quote = (
            f"ERROR: Duplicate codename {codename} for dataset split {split.get('name')}. "
            "Please ensure codenames are unique."
        )
        yield BundleProblem(f"{where}.codename", f"{codename} is there twice", "Rename one of them", quote, rule=50)
    else:
        seen.append(codename)


def dataset_split(where: str, split: dict[str, Any]) -> BundleProblems:
    """What the serializer says of one split."""
    if "id" not in split:
        yield crash(f"{where}.id", "is missing", "Number it", 52)
        return
    quote = _SPLIT.format(split["id"])
    for key in ("name", "codename"):
        yield from required(where, key, split, quote, 51)
    yield from findings(f"{where}.", split, numbered(split, SPLIT), quote, 51, names={"id": "config_id"})
