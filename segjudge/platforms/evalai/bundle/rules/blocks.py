"""Rules of leaderboards and dataset splits, and what the rules of all blocks share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeGuard

from segjudge.platforms.evalai.bundle.field_values import field_problems
from segjudge.platforms.evalai.bundle.fields import LEADERBOARD, SPLIT
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.problems import (
    BundleProblem,
    BundleProblems,
    FieldError,
    breaks_later,
    crash,
    mappings_in,
)

#: The rules of leaderboards that the server tests before it runs the serializer.
_BEFORE_SERIALIZER = range(26, 31)


def entries(bundle: Bundle, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the items of a block, each with its path in the YAML."""
    for index, item in enumerate(mappings_in(bundle.config, key)):
        yield f"{key}[{index}]", item


def block_shape(bundle: Bundle, key: str, remedy: str, quote: str, rule: int) -> BundleProblems:
    """Yield the problem of a block that is empty or not a list of mappings."""
    block = bundle.config.get(key)
    if not block:
        yield BundleProblem(key, "is empty" if key in bundle.config else "is missing", remedy, quote, rule)
    elif not is_list_of_mappings(block):
        yield crash(key, "is not a list of mappings", "Begin each item with - and its first key", rule)


def is_list_of_mappings(value: object) -> TypeGuard[list[dict[str, Any]]]:
    """Return whether a value of the YAML is a list of mappings."""
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def missing_key(where: str, item: dict[str, Any], remedy: str, quote: str, rule: int) -> BundleProblems:
    """Yield the problem of the key at the end of a path when its item lacks it."""
    if where.rpartition(".")[2] not in item:
        yield BundleProblem(where, "is missing", remedy, quote, rule)


def missing_field(where: str, key: str, item: dict[str, Any], quote: str, rule: int) -> BundleProblems:
    """Yield the problem of a missing key that only the serializer demands."""
    if key not in item:
        detail = FieldError(key, "This field is required.", "required")
        yield BundleProblem(f"{where}.{key}", "is missing", "Add it", quote, rule, error=detail)


def known_to_server(problems: list[BundleProblem]) -> bool:
    """Return whether an item with these problems gets through its serializer, so that others may name its id."""
    return not any(problem.error or problem.rule in _BEFORE_SERIALIZER for problem in problems if not problem.accepted)


def id_problems(bundle: Bundle, key: str) -> BundleProblems:
    """Yield ids that are empty, whose items cannot be updated, and duplicate ones, of which the last item is kept."""
    seen: Counter[str] = Counter()
    for where, item in entries(bundle, key):
        number = item.get("id")
        if "id" in item and not number:
            found = f"is empty ({number!r:.20}): EvalAI keeps the item without a number, and can never update it"
            yield breaks_later(f"{where}.id", found, "Number it from 1")
        seen[str(number)] += 1
        if number is not None and seen[str(number)] > 1:
            yield breaks_later(f"{where}.id", f"{number} is there twice", "Give each its own: EvalAI keeps one of them")


def leaderboards(bundle: Bundle) -> BundleProblems:
    """Yield the problems of all leaderboards."""
    quote = "ERROR: There is no key for the leaderboard in the YAML file. Please add it and then try again!"
    yield from block_shape(bundle, "leaderboard", "Add a leaderboard", quote, 25)
    for where, board in entries(bundle, "leaderboard"):
        yield from leaderboard(where, board)
    yield from id_problems(bundle, "leaderboard")


def leaderboard(where: str, board: dict[str, Any]) -> BundleProblems:
    """Yield the problems of one leaderboard; its serializer runs only when all before it was right."""
    number, quote = board.get("id"), "ERROR: There is no leaderboard ID for the leaderboard."
    before = [*missing_key(f"{where}.id", board, "Number it", quote, 26)]
    quote = f"ERROR: There is no leaderboard schema for the leaderboard with ID: {number}."
    before += missing_key(f"{where}.schema", board, "Add labels and default_order_by", quote, 27)
    if "schema" in board:
        before += _schema(f"{where}.schema", number, board["schema"])
    yield from before
    if not any(not problem.accepted for problem in before):
        quote = f"ERROR: The leaderboard with ID: {number} has the following schema errors:\n {{errors}}"
        yield from field_problems(f"{where}.", board, LEADERBOARD, quote, 31)


def _contains(container: Any, value: object) -> bool | None:
    """Return whether the server finds a value in a container; None where `in` raises an error."""
    try:
        return value in container
    except TypeError:
        return None


def _schema(where: str, number: object, schema: Any) -> BundleProblems:
    has_labels, has_order = _contains(schema, "labels"), _contains(schema, "default_order_by")
    if has_labels is None or (has_order and not isinstance(schema, dict)):
        yield crash(where, "is not a mapping", "Write labels and default_order_by into it", 27)
        return
    tail = f"in the schema for the leaderboard with ID: {number}"
    if not has_labels:
        quote = f"ERROR: There is no 'labels' key {tail}."
        yield BundleProblem(f"{where}.labels", "is missing", "List the metrics", quote, 28)
    if not has_order:
        quote = f"ERROR: There is no 'default_order_by' key {tail}."
        yield BundleProblem(f"{where}.default_order_by", "is missing", "Name one of the labels", quote, 29)
    elif has_labels:
        path, order, remedy = f"{where}.default_order_by", schema["default_order_by"], "Name one of the labels"
        is_label = _contains(schema["labels"], order)
        if is_label is None:
            yield crash(path, f"cannot be looked up in labels ({order!r:.60})", remedy, 30)
        elif not is_label:
            quote = f"ERROR: The 'default_order_by' value '{order}' {tail} is not a valid label."
            yield BundleProblem(path, f"{order} is not a label", remedy, quote, 30)
    if has_labels and isinstance(schema, dict):
        yield from _broken_page(where, schema)


def _broken_page(where: str, schema: dict[str, Any]) -> BundleProblems:
    """Yield what the server accepts and its pages cannot show."""
    labels, metadata = schema["labels"], schema.get("metadata")
    if not isinstance(labels, list) or not labels or any(not isinstance(label, str) for label in labels):
        remedy = 'Write ["J&F-Mean", "J-Mean"]: the page breaks'
        yield breaks_later(f"{where}.labels", "is not a list of names", remedy)
    elif len({*labels}) < len(labels):
        yield breaks_later(f"{where}.labels", "names a metric twice", "Keep one: the columns are found by name")
    if metadata is not None and not isinstance(metadata, dict):
        yield breaks_later(f"{where}.metadata", "is not a mapping", "Write label: {sort_ascending: False}")


def splits(bundle: Bundle) -> BundleProblems:
    """Yield the problems of all dataset splits, over which the server goes twice."""
    quote = "ERROR: There is no key for dataset splits."
    yield from block_shape(bundle, "dataset_splits", "Add a split", quote, 47)
    seen: list[Any] = []
    for where, split in entries(bundle, "dataset_splits"):
        yield from _split_names(where, split, seen)
    for where, split in entries(bundle, "dataset_splits"):
        yield from dataset_split(where, split)
    yield from id_problems(bundle, "dataset_splits")


def _split_names(where: str, split: dict[str, Any], seen: list[Any]) -> BundleProblems:
    number, codename = split.get("id"), split.get("codename")
    if not split.get("name"):
        quote = f"ERROR: There is no name for dataset split {number}."
        yield BundleProblem(f"{where}.name", "is missing", "Add it", quote, 48)
    quote = f"ERROR: There is no codename for dataset split {number}."
    yield from missing_key(f"{where}.codename", split, "Add it", quote, 49)
    if codename in seen and "codename" in split:
        found, remedy = f"{codename} is there twice", "Rename one of them"
        quote = f"ERROR: Duplicate codename {codename} for dataset split {split.get('name')}. "
        quote += "Please ensure codenames are unique."
        problem = BundleProblem(f"{where}.codename", found, remedy, quote, 50)
        yield problem if "name" in split else crash(problem.where, found, remedy, 50)
    elif "codename" in split:
        seen.append(codename)


def dataset_split(where: str, split: dict[str, Any]) -> BundleProblems:
    """Yield what the serializer says of one split."""
    if "id" not in split:
        yield crash(f"{where}.id", "is missing", "Number it", 52)
        return
    quote = f"ERROR: Dataset split {split['id']} has the following schema errors:\n {{errors}}"
    for key in ("name", "codename"):
        yield from missing_field(where, key, split, quote, 51)
    yield from field_problems(f"{where}.", split, SPLIT, quote, 51)
