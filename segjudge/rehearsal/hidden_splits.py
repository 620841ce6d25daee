"""What a participant may read of a submission where some of its splits are for hosts alone.

The hosts' own script writes these files and knows nothing of visibilities.  EvalAI shows them as they are; here
everything is left out that names a hidden split, and every number that is not known to be of another one.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from .models import HOST_ONLY, ChallengePhaseSplit, Submission
from .services import Services
from .submissions import REPORTED

#: Larger files are withheld altogether.
_BYTES = 32 << 20
LEFT_OUT = "[left out: this split is for the hosts]"
WITHHELD = "[withheld: this phase has splits for the hosts alone, and what this file says cannot be told apart]"
_NUMBER = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?")
#: A number with so many decimals is a score, and could be a hidden one.
_DECIMALS = 2
#: Texts with such numbers may be scores in disguise; versions are not.
_PRECISE = re.compile(r"\d\.\d{3,}")
_DEEPEST = 200
#: An encoded mask, which holds no score; a name of so few letters stands in it by chance.
_ENCODED, _SHORT = re.compile(r"[^\s.]{64,}"), 3


@dataclass(frozen=True)
class HiddenSplits:
    """The splits of a phase that a participant sees nothing of, those that are visible, and the hidden scores."""

    names: frozenset[str]
    visible: frozenset[str]
    scores: tuple[float, ...]

    def are_named_in(self, text: str, *, is_key: bool = False) -> bool:
        """Return whether a text names one of them."""
        least = _SHORT + 1 if _ENCODED.fullmatch(text) and not is_key else 1
        for name in self.visible:
            if any(hidden in name for hidden in self.names):  # "test" is in "test-hard"
                text = text.replace(name, " ")
        return any(
            re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text, re.IGNORECASE)
            for name in self.names
            if len(name) >= least
        )

    def have_score(self, number: float, decimals: int = 12) -> bool:
        """Return whether a number, with so many decimals, is one of their scores; as a share or in percent."""
        near = 0.501 * 10.0**-decimals
        return any(abs(number - score * scale) <= near for score in self.scores for scale in (1, 100, 0.01))


def file_for_participants(services: Services, submission: int, number: str) -> str | None:
    """Return a file about a submission without what its participants may not read; None where they may read it all."""
    hidden = hidden_splits_of(services, services.submissions.get(submission))
    file = services.files.row(number)
    if hidden is None or file is None or file.kind == REPORTED:
        return None
    if file.size > _BYTES:
        return WITHHELD
    with open(services.files.path(number), "rb") as source:
        data = source.read()
    if file.kind == "submission_result_file":
        try:
            return json.dumps(_redacted(json.loads(data), hidden, known=False, depth=0))
        except (ValueError, RecursionError):
            return WITHHELD
    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    return "".join(f"{LEFT_OUT}\n" if _has_hidden_score(line, hidden) else line for line in lines)


def hidden_splits_of(services: Services, submission: Submission) -> HiddenSplits | None:
    """Return what is hidden from the participants of a submission; None where nothing is."""
    splits = services.store.splits_of(submission.phase_id)
    hidden = [split for split in splits if split.visibility == HOST_ONLY]
    if not hidden:
        return None
    visible = _names(split for split in splits if split.visibility != HOST_ONLY)
    numbers = {split.id for split in hidden}
    scores = {
        float(value)
        for row in services.submissions.all_scores(submission.id)
        if row.phase_split_id in numbers
        for value in row.result.values()
        if isinstance(value, (int, float)) and float(value) not in (0.0, 1.0, 100.0)
    }
    return HiddenSplits(_names(hidden) - visible, visible, tuple(scores))


def _names(splits: Iterable[ChallengePhaseSplit]) -> frozenset[str]:
    return frozenset(name for split in splits for name in (split.dataset_split.codename, split.dataset_split.name))


def _has_hidden_score(line: str, hidden: HiddenSplits) -> bool:
    numbers = _NUMBER.findall(line)
    if numbers and hidden.are_named_in(line):
        return True
    return any(
        len(number.partition(".")[2]) >= _DECIMALS and hidden.have_score(float(number), len(number.partition(".")[2]))
        for number in numbers
        if "e" not in number.lower()
    )


def _redacted(value: object, hidden: HiddenSplits, *, known: bool, depth: int) -> object:
    """Return part of a file; `known` where something around it says that it is of a visible split."""
    if depth > _DEEPEST:
        return WITHHELD
    if isinstance(value, dict):
        return _redacted_mapping(value, hidden, known=known, depth=depth)
    if isinstance(value, list):
        texts = [item for item in value if isinstance(item, str)]
        if len(texts) < len(value) and any(hidden.are_named_in(text) for text in texts):
            return LEFT_OUT  # a row whose cells are not named
        known = known or any(text in hidden.visible for text in texts)
        return [_redacted(item, hidden, known=known, depth=depth + 1) for item in value]
    if isinstance(value, str):
        return LEFT_OUT if hidden.are_named_in(value) or _may_hide(value, hidden, known=known) else value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if known and not hidden.have_score(float(value)) else None
    return value


def _may_hide(text: str, hidden: HiddenSplits, *, known: bool) -> bool:
    """Return whether a text may hold a hidden score."""
    return _has_hidden_score(text, hidden) or (not known and _PRECISE.search(text) is not None)


def _redacted_mapping(mapping: dict[str, object], hidden: HiddenSplits, *, known: bool, depth: int) -> object:
    if any(isinstance(value, str) and value in hidden.names for value in mapping.values()):
        return LEFT_OUT  # a row with a column that says of which split it is
    known = known or any(isinstance(value, str) and value in hidden.visible for value in mapping.values())
    kept: dict[str, object] = {}
    for key, value in mapping.items():
        if hidden.are_named_in(key, is_key=True):
            kept[key if key in hidden.names else LEFT_OUT] = LEFT_OUT
        elif _may_hide(key, hidden, known=known):
            kept[LEFT_OUT] = LEFT_OUT
        else:
            kept[key] = _redacted(value, hidden, known=known or key in hidden.visible, depth=depth + 1)
    return kept
