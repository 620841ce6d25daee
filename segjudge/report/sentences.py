"""Sentences on a loss: its kinds, how many cases cause it, the worst case. Pages and terminals say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from segjudge.evaluation_script.files.problems import printable

from .tables import format_number

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.reports import Row

#: The note after the name of a split whose scores are hidden from participants, in files and pages.
HIDDEN = "is hidden from participants: publish none of its scores"
#: The loss that nothing explains, and the minimum share of a mentioned kind.
LITTLE, _MENTIONED = 0.0005, 0.1
#: The minimum number of cases among which a loss counts as spread.
_FEWEST_SPREAD = 4
#: Costs are similar if they differ by less than this factor.
_ALIKE = 1.1
#: Kinds of error as plural nouns.
_NOUNS = {
    "false alarm": "false alarms", "withdrawn": "withdrawn targets", "wrong object": "wrong objects",
    "wrong label": "wrong labels", "links": "wrong links", "grey": "wrong grey values", "absent": "absent classes",
    "too much": "surplus parts", "too little": "missing parts",
}  # fmt: skip
#: Kinds of error whose names are adjectives of objects.
_OF_OBJECTS = ("missed", "surplus", "inexact", "partial", "swapped", "split", "merged")


def _name_loss(metric: str = "") -> str:
    """Return the noun for a loss, or for a metric's loss."""
    return f"loss of {metric}" if metric else "loss"


def name_kinds(kinds: Mapping[str, float], objects: str = "objects", elements: str = "pixels") -> dict[str, float]:
    """Return the loss by kind of error, each kind as a plural noun; objects and their elements have these names."""
    nouns = dict.fromkeys(_OF_OBJECTS, objects)
    if "missing" in kinds:
        nouns |= dict.fromkeys(("missing", "surplus"), elements)
    return {_NOUNS.get(kind) or f"{kind} {nouns.get(kind, 'errors')}": cost for kind, cost in kinds.items()}


def rank_kinds(kinds: Mapping[str, float], metric: str = "") -> str:
    """Describe the kinds of error, named by `name_kinds`, that cause most of the loss or a metric's loss; "" if it
    rounds to zero.
    """
    lost = sum(max(cost, 0.0) for cost in kinds.values())
    if lost < LITTLE:
        return ""
    (costliest, largest), *following = sorted(kinds.items(), key=lambda item: -item[1])
    clauses = [
        f"{costliest[:1].upper()}{costliest[1:]} cause {_word_share(largest / lost)} of the {_name_loss(metric)}"
    ]
    clauses += [f"{kind} {_word_share(cost / lost)}" for kind, cost in following[:2] if cost >= _MENTIONED * lost]
    return f"{', and '.join([', '.join(clauses[:-1]), clauses[-1]] if len(clauses) > 1 else clauses)}."


def count_costly(costs: Sequence[float], noun: str, metric: str = "") -> str:
    """Describe how many cases cause half of the loss or a metric's loss; "" if a few cases cost about the same."""
    costs = sorted((max(cost, 0.0) for cost in costs), reverse=True)
    sums = list(accumulate(costs))
    if len(costs) < 2 or not sums[-1]:
        return ""
    total = sums[-1]
    half = total / 2 * (1 - 1e-9)  # equal costs sum to slightly more or less
    count = next(index for index, cost in enumerate(sums, 1) if cost >= half)
    share = f"{100 * sums[count - 1] / total:.0f} %"
    costly = f"{count:,} of {len(costs):,} {noun} {'causes' if count == 1 else 'cause'} {share} of"
    if len(costs) < _FEWEST_SPREAD and costs[0] < _ALIKE * costs[-1]:
        return ""
    is_spread = len(costs) >= _FEWEST_SPREAD and count > len(costs) / 3
    return f"The {_name_loss(metric)} is spread: {costly} it." if is_spread else f"{costly} the {_name_loss(metric)}."


def describe_cost(row: Row) -> str:
    """Describe the cost of a case, and its largest kind, given a row with `name`, `costs` and the kinds."""
    kinds = {key: cost for key, cost in row.items() if key not in ("name", "costs")}
    kind, cost = max(kinds.items(), key=lambda item: item[1])
    return f"at a cost of {format_number(row['costs'])} ({_word_share(cost / row['costs'])} {kind})"


def name_lowest(kind: str, values: Sequence[float | None], names: Sequence[object], metric: str) -> str:
    """Name the row of a table of this kind with the lowest value; "" if no row is below others."""
    named_values = [(value, name) for value, name in zip(values, names, strict=True) if value is not None]
    sorted_rows = sorted(named_values, key=lambda item: item[0])
    lowest = sorted_rows[0][0] if sorted_rows else 1.0
    alike = sum(value < lowest + LITTLE for value, _ in named_values)
    if alike == len(named_values):
        return ""
    rows = [f"number {name}" if str(name).isdecimal() else printable(name) for _, name in sorted_rows[:2]]
    named = {1: f"{rows[0]} has", 2: f"{' and '.join(rows)} have"}.get(alike, f"{rows[0]} and {alike - 1:,} more have")
    return f"Of {len(named_values):,} {kind}, {named} the lowest {metric}, {format_number(lowest)}."


def _word_share(share: float) -> str:
    bounds = ((0.995, "all"), (0.53, ""), (0.47, "half"))
    return next((word for least, word in bounds if share >= least), "") or f"{100 * share:.0f} %"
