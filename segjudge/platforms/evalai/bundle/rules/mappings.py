"""Rules of the phase splits: which phase shows which split on which leaderboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from segjudge.platforms.evalai.bundle.field_values import field_problems
from segjudge.platforms.evalai.bundle.fields import MAPPING, UNKEPT_OF_MAPPING
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.problems import BundleProblem, BundleProblems, breaks_later, crash, mappings_in
from segjudge.platforms.evalai.bundle.server_state import REFERENCES, SPLIT_SETTINGS

from .blocks import block_shape, dataset_split, entries, known_to_server, leaderboard
from .phases import phase

_DUPLICATES = (
    "ERROR: Duplicate combinations of leaderboard_id {}, challenge_phase_id {} and dataset_split_id {} "
    "found in challenge phase splits."
)


def mappings(bundle: Bundle) -> BundleProblems:
    """Yield the problems of `challenge_phase_splits`."""
    key = "challenge_phase_splits"
    block = bundle.config.get(key)
    if not block and not isinstance(block, (str, list, dict)):
        yield crash(key, "is missing", "Map each phase to its splits", 55)
        return
    quote = "ERROR: There is no key for challenge phase splits."
    yield from block_shape(bundle, key, "Map each phase to its splits", quote, 55)
    yield from _duplicates(bundle)
    known, number = {key: ids_known_to_server(bundle, key) for key in REFERENCES}, 1
    for where, row in entries(bundle, key):
        yield from _row(bundle, where, number, row, known)
        # The server counts only rows that have every key.
        number += {*REFERENCES, *SPLIT_SETTINGS} <= row.keys()
    yield from _shown_twice(bundle)


def items_known_to_server(bundle: Bundle, key: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the items that a key of the rows may name: those that get through the rules of their own block."""
    rules: dict[str, Callable[[str, dict[str, Any]], BundleProblems]] = {
        "leaderboard_id": leaderboard,
        "challenge_phase_id": lambda where, item: phase(bundle, where, item),
        "dataset_split_id": dataset_split,
    }
    items = entries(bundle, REFERENCES[key][0])
    return [(where, item) for where, item in items if known_to_server(list(rules[key](where, item)))]


def ids_known_to_server(bundle: Bundle, key: str) -> list[Any]:
    """Return the ids that a key of the rows may name."""
    return [item.get("id") for _, item in items_known_to_server(bundle, key)]


def _row(bundle: Bundle, where: str, number: int, row: dict[str, Any], known: dict[str, list[Any]]) -> BundleProblems:
    missing = [key for key in REFERENCES if key not in row]
    if missing:
        yield crash(where, f"lacks {', '.join(missing)}", "Add it", 55)
    missing = [key for key in SPLIT_SETTINGS if key not in row]
    if missing:
        quote = (
            "ERROR: The following keys are missing in the challenge phase splits of YAML file "
            f"(phase_split: {number}): {', '.join(missing)}"
        )
        yield BundleProblem(where, f"lacks {', '.join(missing)}", "Add them: none has a default here", quote, 57)
        return
    for key in REFERENCES:
        if key in row:
            yield from _reference(bundle, where, number, row, key, known[key])
    fields = {**{key: MAPPING[key] for key in SPLIT_SETTINGS}, **UNKEPT_OF_MAPPING}
    quote = f"ERROR: Challenge phase split {number} has the following schema errors:\n {{errors}}"
    yield from field_problems(f"{where}.", row, fields, quote, 59)


def _reference(
    bundle: Bundle, where: str, number: int, row: dict[str, Any], key: str, known: list[Any]
) -> BundleProblems:
    (block, word), where, value = REFERENCES[key], f"{where}.{key}", row[key]
    written = [item.get("id") for item in mappings_in(bundle.config, block)]
    remedy = "Write an id of that block"
    if python_integer(value) is None:
        yield crash(where, f"is {value!r:.60}, not a number", remedy, 58)
    elif value not in known:
        # An id and the same id in quotes are two for the server, and so for Python.
        quote = f"ERROR: Invalid {word} id {value} found in challenge phase split {number}."
        quoted = any(str(value) == str(written_id) for written_id in written)
        found = f"{value!r} is not an id of {block}" if value not in written else f"points at what is wrong in {block}"
        remedy = "Remove the quotes" if quoted else remedy
        yield BundleProblem(where, found, remedy, quote, 58, consequence=value in written)


def python_integer(value: Any) -> int | None:
    """Return the number that `int` makes of a value, as the server tries; None where that raises an error."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _duplicates(bundle: Bundle) -> BundleProblems:
    rows = [row for row in mappings_in(bundle.config, "challenge_phase_splits") if REFERENCES.keys() <= row.keys()]
    values = [[row[key] for key in REFERENCES] for row in rows]
    triples = [tuple(repr(one) if isinstance(one, (list, dict, set)) else one for one in triple) for triple in values]
    repeated = [triple for k, triple in enumerate(triples) if triple in triples[:k]]
    if not repeated:
        return
    quote = "\n".join([_DUPLICATES, *(_DUPLICATES.format(*triple) for triple in repeated)])
    for triple in dict.fromkeys(repeated):
        found = "maps leaderboard {}, phase {} and split {} twice".format(*triple)
        yield BundleProblem("challenge_phase_splits", found, "Remove one of them", quote, 56)


def _shown_twice(bundle: Bundle) -> BundleProblems:
    rows = mappings_in(bundle.config, "challenge_phase_splits")
    triples = Counter(tuple(str(row.get(key)) for key in REFERENCES) for row in rows)
    pairs = Counter((str(row.get("challenge_phase_id")), str(row.get("dataset_split_id"))) for row in rows)
    if any(count > 1 for count in triples.values()):
        return
    for number, split in [pair for pair, count in pairs.items() if count > 1]:
        found = f"shows split {split} of phase {number} twice"
        remedy = "Keep one: EvalAI's worker fails on two, with every submission"
        yield breaks_later("challenge_phase_splits", found, remedy)
