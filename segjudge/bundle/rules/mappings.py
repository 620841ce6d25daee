"""Which phase shows which split on which leaderboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from segjudge.bundle.field_values import findings
from segjudge.bundle.fields import MAPPING, UNKEPT_OF_MAPPING
from segjudge.bundle.opened_bundle import Bundle
from segjudge.bundle.problems import BundleProblem, BundleProblems, crash, items, later
from segjudge.bundle.server_state import SHOWN

from .blocks import dataset_split, entries, leaderboard, passed, shape
from .phases import phase

#: Key → block with the ids, and how the server says that there is none.
POINTERS = {
    "leaderboard_id": ("leaderboard", "leaderboard"),
    "challenge_phase_id": ("challenge_phases", "phased"),
    "dataset_split_id": ("dataset_splits", "dataset split"),
}
_ROW = "ERROR: Challenge phase split {} has the following schema errors:\n {{errors}}"
_TWICE = (
    "ERROR: Duplicate combinations of leaderboard_id {}, challenge_phase_id {} and dataset_split_id {} "
    "found in challenge phase splits."
)


def mappings(bundle: Bundle) -> BundleProblems:
    """The rows of `challenge_phase_splits`."""
    key = "challenge_phase_splits"
    block = bundle.config.get(key)
    if not block and not isinstance(block, (str, list, dict)):
        yield crash(key, "is missing", "Map each phase to its splits", 55)
        return
    quote = "ERROR: There is no key for challenge phase splits."
    yield from shape(bundle, key, BundleProblem(key, "is empty", "Map each phase to its splits", quote, rule=55))
    yield from _twice(bundle)
    known, number = known_ids(bundle), 1
    for where, row in entries(bundle, key):
        yield from _row(bundle, where, number, row, known)
        # The server counts only rows that it could read.
        number += not any(one not in row for one in (*POINTERS, *SHOWN))
    yield from _shown_twice(bundle)


def known_ids(bundle: Bundle) -> dict[str, list[Any]]:
    """Ids by the key that points at them; the server knows an item when its own block was right."""
    judges: dict[str, Callable[[str, dict[str, Any]], BundleProblems]] = {
        "leaderboard_id": leaderboard,
        "challenge_phase_id": lambda where, item: phase(bundle, where, item),
        "dataset_split_id": dataset_split,
    }
    return {
        key: [item.get("id") for where, item in entries(bundle, POINTERS[key][0]) if passed(list(judge(where, item)))]
        for key, judge in judges.items()
    }


def _row(bundle: Bundle, where: str, number: int, row: dict[str, Any], known: dict[str, list[Any]]) -> BundleProblems:
    lost = [key for key in POINTERS if key not in row]
    if lost:
        yield crash(where, f"lacks {', '.join(lost)}", "Add it", 55)
    missing = [key for key in SHOWN if key not in row]
    if missing:
        quote = (
            "ERROR: The following keys are missing in the challenge phase splits of YAML file "
            f"(phase_split: {number}): {', '.join(missing)}"
        )
        yield BundleProblem(where, f"lacks {', '.join(missing)}", "Add them: none has a default here", quote, rule=57)
        return
    for key in POINTERS:
        if key in row:
            yield from _pointer(bundle, f"{where}.{key}", number, row[key], (key, known[key]))
    fields = {**{key: MAPPING[key] for key in SHOWN}, **UNKEPT_OF_MAPPING}
    yield from findings(f"{where}.", row, fields, _ROW.format(number), 59)


def _pointer(bundle: Bundle, where: str, number: int, value: Any, known: tuple[str, list[Any]]) -> BundleProblems:
    key, ids = known
    block, word = POINTERS[key]
    told = [item.get("id") for item in items(bundle.config, block)]
    remedy = "Write an id of that block"
    if counted(value) is None:
        yield crash(where, f"is {value!r:.60}, not a number", remedy, 58)
    elif value not in ids:
        # An id and the same id in quotes are two for the server, and so for Python.
        quote = f"ERROR: Invalid {word} id {value} found in challenge phase split {number}."
        quoted = any(str(value) == str(one) for one in told)
        found = f"{value!r} is not an id of {block}" if value not in told else f"points at what is wrong in {block}"
        remedy = "Remove the quotes" if quoted else remedy
        yield BundleProblem(where, found, remedy, quote, rule=58, follows=value in told)


def counted(value: Any) -> int | None:
    """The number that Python makes of a value, which the server tries; None where that breaks it."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _twice(bundle: Bundle) -> BundleProblems:
    rows = [row for row in items(bundle.config, "challenge_phase_splits") if all(key in row for key in POINTERS)]
    triples = [tuple(_same(row[key]) for key in POINTERS) for row in rows]
    again = [triple for k, triple in enumerate(triples) if triple in triples[:k]]
    if not again:
        return
    said = "\n".join([_TWICE, *(_TWICE.format(*triple) for triple in again)])
    for triple in dict.fromkeys(again):
        found = "maps leaderboard {}, phase {} and split {} twice".format(*triple)
        yield BundleProblem("challenge_phase_splits", found, "Remove one of them", said, rule=56)


def _same(value: Any) -> Any:
    return repr(value) if isinstance(value, (list, dict, set)) else value


def _shown_twice(bundle: Bundle) -> BundleProblems:
    rows = items(bundle.config, "challenge_phase_splits")
    triples = Counter(tuple(str(row.get(key)) for key in POINTERS) for row in rows)
    pairs = Counter((str(row.get("challenge_phase_id")), str(row.get("dataset_split_id"))) for row in rows)
    if any(count > 1 for count in triples.values()):
        return
    for number, split in [pair for pair, count in pairs.items() if count > 1]:
        found = f"shows split {split} of phase {number} twice"
        remedy = "Keep one: EvalAI's worker fails on two, with every submission"
        yield later("challenge_phase_splits", found, remedy)
