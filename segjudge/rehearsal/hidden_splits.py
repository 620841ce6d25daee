"""What a participant may read of a submission where some of its splits are for hosts alone.

The hosts' own script writes these files and knows nothing of visibilities.  EvalAI hands them on as they are; here
everything goes that speaks of a hidden split, and every number that is not known to be of another one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .challenges import HOST_ONLY, Challenges
from .submissions import Submissions

#: Larger files are withheld whole.
_BYTES = 32 << 20
LEFT_OUT = "[left out: this split is for the hosts]"
WITHHELD = "[withheld: this phase has splits for the hosts alone, and what this file says cannot be told apart]"
_NUMBER = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?")
#: A number with so many decimals is a score, and could be a hidden one.
_DECIMALS = 2
#: Texts with such numbers may be scores in disguise; versions are not.
_PRECISE = re.compile(r"\d\.\d{3,}")
_DEEPEST = 200


@dataclass(frozen=True)
class HiddenSplits:
    """The splits of a phase that a participant sees nothing of, those that are seen, and what was scored."""

    names: frozenset[str]
    seen: frozenset[str]
    values: tuple[float, ...]

    def named(self, text: str) -> bool:
        """Whether a text names one of them."""
        for name in self.seen:
            if any(one in name for one in self.names):  # "test" is in "test-hard"
                text = text.replace(name, " ")
        return any(
            re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text, re.IGNORECASE) for name in self.names
        )

    def told(self, number: float, decimals: int = 12) -> bool:
        """Whether a number, with so many decimals, is one of their scores; as a share or in percent."""
        near = 0.501 * 10.0**-decimals
        return any(abs(number - value * scale) <= near for value in self.values for scale in (1, 100, 0.01))


def hidden_of(challenges: Challenges, submissions: Submissions, row: Any) -> HiddenSplits | None:
    """What is hidden from the participant of a submission; None where nothing is."""
    splits = challenges.splits_of(row["phase_id"])
    closed = [one for one in splits if one["visibility"] == HOST_ONLY]
    if not closed:
        return None
    seen = _names(one for one in splits if one["visibility"] != HOST_ONLY)
    numbers = {one["id"] for one in closed}
    values = {
        float(value)
        for split, scores in submissions.all_results(row["id"])
        if split in numbers
        for value in scores.values()
        if isinstance(value, (int, float)) and float(value) not in (0.0, 1.0, 100.0)
    }
    return HiddenSplits(_names(closed) - seen, seen, tuple(values))


def _names(splits: Iterable[Any]) -> frozenset[str]:
    return frozenset(str(one[key]) for one in splits for key in ("split_codename", "split_name"))


def result_without(data: bytes, hidden: HiddenSplits) -> str:
    """A result file in JSON without what is hidden."""
    if len(data) > _BYTES:
        return WITHHELD
    try:
        return json.dumps(_without(json.loads(data), hidden, known=False, depth=0))
    except (ValueError, RecursionError):
        return WITHHELD


def text_without(data: bytes, hidden: HiddenSplits) -> str:
    """A stream without the lines that hold scores of a hidden split."""
    if len(data) > _BYTES:
        return WITHHELD
    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    return "".join(f"{LEFT_OUT}\n" if _tells(line, hidden) else line for line in lines)


def _tells(line: str, hidden: HiddenSplits) -> bool:
    found = _NUMBER.findall(line)
    if found and hidden.named(line):
        return True
    return any(
        len(told.partition(".")[2]) >= _DECIMALS and hidden.told(float(told), len(told.partition(".")[2]))
        for told in found
        if "e" not in told.lower()
    )


def _without(value: Any, hidden: HiddenSplits, *, known: bool, depth: int) -> Any:
    """Part of a file; `known` where something around it says that it is of a split that may be seen."""
    if depth > _DEEPEST:
        return WITHHELD
    if isinstance(value, dict):
        return _mapping_without(value, hidden, known=known, depth=depth)
    if isinstance(value, list):
        texts = [one for one in value if isinstance(one, str)]
        if len(texts) < len(value) and any(hidden.named(one) for one in texts):
            return LEFT_OUT  # a row whose cells are not named
        known = known or any(one in hidden.seen for one in texts)
        return [_without(one, hidden, known=known, depth=depth + 1) for one in value]
    if isinstance(value, str):
        return LEFT_OUT if hidden.named(value) or _hides(value, hidden, known=known) else value
    if isinstance(value, bool) or value is None:
        return value
    return value if known and not hidden.told(float(value)) else None


def _hides(text: str, hidden: HiddenSplits, *, known: bool) -> bool:
    """Whether a text may hold a hidden score."""
    return _tells(text, hidden) or (not known and _PRECISE.search(text) is not None)


def _mapping_without(value: dict[str, Any], hidden: HiddenSplits, *, known: bool, depth: int) -> Any:
    if any(isinstance(one, str) and one in hidden.names for one in value.values()):
        return LEFT_OUT  # a row with a column that says of which split it is
    known = known or any(isinstance(one, str) and one in hidden.seen for one in value.values())
    kept = {}
    for key, one in value.items():
        if hidden.named(key):
            kept[key if key in hidden.names else LEFT_OUT] = LEFT_OUT
        elif _hides(key, hidden, known=known):
            kept[LEFT_OUT] = LEFT_OUT
        else:
            kept[key] = _without(one, hidden, known=known or key in hidden.seen, depth=depth + 1)
    return kept
