"""The only module that decides which scores are hidden, from YAML visibility and `phases.py`.

A split is hidden from participants if its visibility is not 3, if its phase does not map it, or if `phases.py` says
`hidden=True`. Scores are unpublished if their split is hidden, or if their phase or leaderboard is not public. All code
that builds, checks, pushes, scores or shows uses this module; `BundleSource.phases()` has its answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.rules.fields import as_integer, validate
from segjudge.platforms.rules.problems import BundleProblem, BundleProblems, mappings_in, publishes_hidden, warning

from .fields import MAPPING
from .phase_splits import has_public_board, is_published, is_seen_by_all, splits_of
from .server_state import REFERENCES, ServerState

if TYPE_CHECKING:
    from segjudge.evaluation_script.scoring.phase import Phase

#: The visibility of a split that everybody sees. EvalAI shows splits for "owner and host" only to hosts.
_PUBLIC = "3"
_ROWS = "challenge_phase_splits"


def is_visible(visibility: object) -> bool:
    """Return whether participants see a split of this visibility."""
    return str(visibility) == _PUBLIC


def find_hidden_splits(config: dict[str, Any], codename: str, phase: Phase | None = None) -> frozenset[str]:
    """Return the splits of a phase that are hidden from participants; a host's own scorers have no `phases.py`."""
    shown, hidden = _list_shown(config, codename)
    if phase is None:
        return hidden
    return phase.hidden | hidden | ({split.codename for split in phase.splits} - shown)


def find_unpublished(config: dict[str, Any], codename: str, phase: Phase | None = None) -> frozenset[str]:
    """Return the splits of a phase whose scores are hidden from anonymous visitors."""
    if all(map(is_published, _rows(config, codename))):
        return find_withheld_splits(config, codename, phase)
    return _find_splits(config, codename, phase)


def find_withheld_splits(config: dict[str, Any], codename: str, phase: Phase | None = None) -> frozenset[str]:
    """Return the splits of a phase whose scores no leaderboard shows to participants, published or not."""
    if all(map(has_public_board, _rows(config, codename))):
        return find_hidden_splits(config, codename, phase)
    return _find_splits(config, codename, phase)


def explain_withheld_phase(configured: dict[str, Any]) -> tuple[str, str]:
    """Return why all splits of a phase are withheld, and the remedy."""
    if not has_public_board(configured):
        return "its leaderboard is not public", "Set leaderboard_public: True"
    return "all of its splits are hidden", f"Set visibility: {_PUBLIC} and remove hidden=True for one of them"


def list_published(config: dict[str, Any], phases: Iterable[Phase]) -> list[str]:
    """Return the splits whose scores anonymous visitors see, as PHASE/SPLIT."""
    return [
        f"{phase.codename}/{split.codename}"
        for phase in phases
        for split in phase.splits
        if split.codename not in find_unpublished(config, phase.codename, phase)
    ]


def find_withdrawn(config: dict[str, Any], state: ServerState | None) -> BundleProblems:
    """Yield a warning for each split that the server publishes and the YAML no longer does."""
    if state is None:
        return
    published = {tuple(row[:3]) for row in state.rows if is_visible(row[3])}
    phases = {as_integer(phase.get("id")): phase for phase in mappings_in(config, "challenge_phases")}
    splits = {as_integer(split.get("id")): split.get("codename") for split in mappings_in(config, "dataset_splits")}
    rows = config.get(_ROWS)
    for index, row in enumerate(rows if isinstance(rows, list) else []):
        ids = tuple(as_integer(row.get(key)) for key in REFERENCES) if isinstance(row, dict) else ()
        if ids not in published or ids[1] not in phases:
            continue
        phase, split = phases[ids[1]], splits.get(ids[2])
        name = f"{split} of {phase.get('codename')}"
        if not is_visible(row.get("visibility")):
            if row.get("visibility") is not None and _find_fault(row):
                continue  # EvalAI rejects the value
            if state.approved:
                fault = f"hides {name}, which stays public on EvalAI, because the challenge is approved"
                remedy = "Ask EvalAI's staff to change the visibility"
            else:
                fault = f"hides {name}, which is public on EvalAI; teams keep its scores in their earlier results"
                remedy = "Regard these scores as published; for secret scores, add a phase with another truth"
            yield warning(f"{_ROWS}[{index}].visibility", fault, remedy)
        elif ids[1] in state.published and not is_seen_by_all(phase):
            fault = f"hides {name} on EvalAI's pages only; its API still shows the public submissions to everybody"
            remedy = f"Set visibility: 1 in {_ROWS}[{index}], and hidden=True in phases.py"
            yield warning(f"the phase {phase.get('codename')}", fault, remedy)


def hide_splits(config: dict[str, Any], phases: Iterable[Phase]) -> tuple[Phase, ...]:
    """Return the phases of `phases.py`, hiding each split that `phases.py` or the YAML hides."""
    return tuple(_hide_splits(phase, find_hidden_splits(config, phase.codename, phase)) for phase in phases)


def find_disagreements(config: dict[str, Any], phase: Phase) -> BundleProblems:
    """Yield disagreements on hidden splits: EvalAI knows only the YAML, its worker only `phases.py`."""
    subject = f"phases.py, {phase.codename}"
    shown, hidden = _list_shown(config, phase.codename)
    for split in phase.splits:
        if split.codename in hidden and not split.hidden:
            fault = f"shows the scores of {split.codename}, but the visibility in the YAML hides them from participants"
            remedy = f'Write PhaseSplit("{split.codename}", …, hidden=True), or set visibility: 3'
            yield publishes_hidden(subject, fault, remedy)
        elif split.codename in shown and split.hidden:
            fault = f"hides the scores of {split.codename}, but visibility: 3 in the YAML shows them to everybody"
            yield publishes_hidden(subject, fault, "Set visibility: 1 in the YAML, or remove hidden=True")


def check_secrecy(config: dict[str, Any], phases: Iterable[Phase]) -> None:
    """Raise `HostError` for unknown visibilities, and if the YAML and `phases.py` disagree on hidden splits."""
    for find in (_find_unknown, find_disagreements):
        if problems := [str(problem) for phase in phases for problem in find(config, phase)]:
            raise HostError("\n".join(problems))


def _find_unknown(config: dict[str, Any], phase: Phase) -> BundleProblems:
    """Yield the visibilities that are missing or unknown, which EvalAI's rules name by their rows."""
    for row in _rows(config, phase.codename):
        for split in splits_of(config, row):
            value = split.row.get("visibility")
            if _find_fault(split.row):
                fault = "has no visibility" if value is None else f"has the visibility {value!r}"
                remedy = "Write visibility: 1 to hide its scores from participants, or 3 to show them to everybody"
                yield BundleProblem(f"the split {split.codename} of {phase.codename}", f"{fault} in the YAML", remedy)


def _find_fault(row: dict[str, Any]) -> object:
    """Return EvalAI's error about the visibility of a row; None for a valid one."""
    return validate("visibility", row.get("visibility"), MAPPING["visibility"])


def _hide_splits(phase: Phase, hidden: frozenset[str]) -> Phase:
    splits = tuple(replace(split, hidden=split.codename in hidden) for split in phase.splits)
    return replace(phase, splits=splits)


def _find_splits(config: dict[str, Any], codename: str, phase: Phase | None) -> frozenset[str]:
    """Return all splits of a phase, in the YAML or in `phases.py`."""
    return frozenset().union(
        *_list_shown(config, codename), [split.codename for split in phase.splits] if phase else []
    )


def _list_shown(config: dict[str, Any], codename: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the public and the hidden splits of a phase in the YAML."""
    mapped = [split for row in _rows(config, codename) for split in splits_of(config, row)]
    hidden = frozenset(split.codename for split in mapped if not is_visible(split.row.get("visibility")))
    return frozenset(split.codename for split in mapped) - hidden, hidden


def _rows(config: dict[str, Any], codename: str) -> list[dict[str, Any]]:
    return [row for row in mappings_in(config, "challenge_phases") if str(row.get("codename")) == codename]
