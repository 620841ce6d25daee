"""Which phase shows which split on which leaderboard."""

from __future__ import annotations

from collections import Counter
from typing import Any

from linejudge.bundle.fields import MAPPING
from linejudge.bundle.finding import Finding, Findings, crash, items
from linejudge.bundle.opened import Bundle
from linejudge.bundle.state import SHOWN
from linejudge.bundle.values import findings

from .blocks import entries, shape

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


def mappings(bundle: Bundle) -> Findings:
    """The rows of `challenge_phase_splits`."""
    key = "challenge_phase_splits"
    if bundle.config.get(key) is None:
        yield crash(key, "is missing", "Map each phase to its splits", 55)
        return
    quote = "ERROR: There is no key for challenge phase splits."
    yield from shape(bundle, key, Finding(key, "is empty", "Map each phase to its splits", quote, rule=55))
    known = {
        pointer: [item.get("id") for item in items(bundle.config, block)] for pointer, (block, _) in POINTERS.items()
    }
    number = 1
    for where, row in entries(bundle, key):
        found = list(_row(where, number, row, known))
        yield from found
        # The server counts only rows that it could read.
        number += not any(finding.rule in (55, 57) for finding in found)
    yield from _twice(bundle)


def _row(where: str, number: int, row: dict[str, Any], known: dict[str, list[Any]]) -> Findings:
    lost = [key for key in POINTERS if key not in row]
    if lost:
        yield crash(where, f"lacks {', '.join(lost)}", "Add it", 55)
    missing = [key for key in SHOWN if key not in row]
    if missing:
        quote = (
            "ERROR: The following keys are missing in the challenge phase splits of YAML file "
            f"(phase_split: {number}): {', '.join(missing)}"
        )
        yield Finding(where, f"lacks {', '.join(missing)}", "Add them: none has a default here", quote, rule=57)
    for key, (block, word) in POINTERS.items():
        # An id and the same id in quotes are two for the server, and so for Python.
        if key in row and row[key] not in known[key]:
            quote = f"ERROR: Invalid {word} id {row[key]} found in challenge phase split {number}."
            quoted = any(str(row[key]) == str(one) for one in known[key])
            remedy = "Remove the quotes" if quoted else "Mend the id"
            yield Finding(f"{where}.{key}", f"{row[key]!r} is no id of {block}", remedy, quote, rule=58)
    fields = {key: MAPPING[key] for key in SHOWN}
    yield from findings(f"{where}.", row, fields, _ROW.format(number), 59)


def _twice(bundle: Bundle) -> Findings:
    rows = items(bundle.config, "challenge_phase_splits")
    triples = Counter(tuple(str(row.get(key)) for key in POINTERS) for row in rows)
    pairs = Counter((str(row.get("challenge_phase_id")), str(row.get("dataset_split_id"))) for row in rows)
    where = "challenge_phase_splits"
    for triple in [triple for triple, count in triples.items() if count > 1]:
        found = "maps leaderboard {}, phase {} and split {} twice".format(*triple)
        yield Finding(where, found, "Remove one of them", f"{_TWICE}\n{_TWICE.format(*triple)}", rule=56)
    if not any(count > 1 for count in triples.values()):
        for phase, split in [pair for pair, count in pairs.items() if count > 1]:
            found = f"shows split {split} of phase {phase} twice"
            yield Finding(where, found, "Keep one: EvalAI's worker fails on two, with every submission")
