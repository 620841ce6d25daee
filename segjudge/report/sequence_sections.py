"""The sections on mask sequences: where the loss is, frames that one steps through, and tables of what failed how."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from segjudge.evaluation_script.answer import Report, SequenceReport
from segjudge.failure_kinds import KINDS, TRACKED
from segjudge.failures import LossCounter, ObjectLosses, ScoredSequence, compared_blocks, kinds_known, opened_sequences

from .mask_stream import MaskStream
from .moments import moments_of
from .page import Section, environment

if TYPE_CHECKING:
    from segjudge.prepared import PreparedScoring

#: What each kind is called, and the family whose colour it has.
MEANINGS = {
    "ghost": ("time", "shown though absent"),
    "late": ("time", "found late after its return"),
    "miss": ("place", "not shown"),
    "swap": ("place", "on another object"),
    "drift": ("place", "lost on the background"),
    "confused": ("shape", "mixed with a neighbour"),
    "part": ("shape", "a part is missing"),
    "leak": ("shape", "spilled over"),
    "edge": ("shape", "inexact edge"),
}
#: Pixels that masks of the page are wide at most.
WIDTH = 480
#: Values in a stream are whole numbers of thousandths.
SCALE = 1000


@dataclass(frozen=True)
class SequenceLosses:
    """What the objects of a sequence lost, and the stream of its masks."""

    scored: ScoredSequence
    objects: list[ObjectLosses]
    stream: str

    @property
    def name(self) -> str:
        """The sequence."""
        return self.scored.truth.name

    @property
    def shares(self) -> list[float]:
        """The loss by kind, as the mean over the objects."""
        return _mean([(one.shares, 1.0) for one in self.objects])


def _mean(weighted: Iterable[tuple[list[float], float]]) -> list[float]:
    rows = list(weighted)
    total = math.fsum(weight for _, weight in rows) or 1.0
    return [math.fsum(shares[kind] * weight for shares, weight in rows) / total for kind in range(len(KINDS))]


def sequence_sections(job: PreparedScoring, report: Report) -> tuple[list[Section], dict[str, bytes]]:
    """Return the sections of a split of mask sequences, and the masks of each sequence."""
    if not isinstance(report, SequenceReport):
        raise TypeError(report)
    found, streams = [], {}
    for number, scored in enumerate(opened_sequences(job, report)):
        name = f"{report.split}/{number}"
        counter = LossCounter(scored, report.protocol)
        sizes = [block.size for block in scored.truth.blocks]
        masks = MaskStream([score.name for score in scored.scores], sizes[0] if sizes else (1, 1), WIDTH)
        for block in compared_blocks(scored, report.protocol):
            counter.add(block)
            masks.add(block)
        losses = counter.losses()
        streams[name] = masks.packed(_header(scored, losses))
        found.append(SequenceLosses(scored, losses, name))
    found.sort(key=lambda one: (-sum(one.shares), one.name))
    return [_loss_section(found, report), _frames_section(found), _table_section(found, report)], streams


def _header(scored: ScoredSequence, losses: list[ObjectLosses]) -> dict[str, object]:
    """Return what a page shows of a sequence's frames, beside the masks."""
    places = {frame: place for place, frame in enumerate(scored.truth.frames)}
    objects = [
        {
            "name": one.score.name,
            "at": [places[frame] for frame in one.score.frames],
            "j": _thousandths(one.score.j),
            "f": _thousandths(one.score.f),
            "kinds": [KINDS.index(kind) if kind in KINDS else -1 for kind in one.kinds],
            "parts": _thousandths(one.parts[[kind == TRACKED for kind in one.kinds]][:, -4:].reshape(-1)),
        }
        for one in losses
    ]
    return {"frames": scored.truth.frames, "objects": objects}


def _thousandths(values: np.ndarray) -> list[int]:
    numbers: list[int] = np.round(values * SCALE).astype(int).tolist()
    return numbers


# ── where the loss is ───────────────────────────────────────────────────────


def weights_of(found: list[SequenceLosses], report: SequenceReport) -> dict[int, float]:
    """Return how much each object counts in the protocol's mean, by the identity of its score."""
    scores = [one.score for sequence in found for one in sequence.objects if one.score.frames]
    groups = {unseen: sum(score.unseen is unseen for score in scores) for unseen in (False, True)}
    if not report.protocol.by_class:
        return {id(score): 1 / len(scores) for score in scores}
    shown = sum(count > 0 for count in groups.values())
    return {id(score): 1 / groups[score.unseen] / shown for score in scores}


def _loss_section(found: list[SequenceLosses], report: SequenceReport) -> Section:
    weights = weights_of(found, report)
    objects = [(one, weights.get(id(one.score), 0.0)) for sequence in found for one in sequence.objects]
    total = _mean((one.shares, weight) for one, weight in objects)
    families: dict[str, list[tuple[str, str, float]]] = {}
    for kind, share in zip(KINDS, total, strict=True):
        families.setdefault(MEANINGS[kind][0], []).append((kind, MEANINGS[kind][1], share))
    values = {
        "metric": "J&F" if "J&F-Mean" in report.protocol.metrics else "J",
        "exact": kinds_known(report.protocol),
        "total": parts_of_bar(total),
        "lost": math.fsum(total),
        "families": families,
        "sequences": [(one.name, one.stream, parts_of_bar(one.shares), sum(one.shares)) for one in found],
        "subsets": _subsets(found),
    }
    return Section("losses", "Where the loss is", values)


def parts_of_bar(shares: list[float]) -> list[tuple[str, float, str]]:
    """Return what is kept and what each kind takes, as a bar shows it."""
    kept = max(0.0, 1 - math.fsum(shares))
    lost = [(kind, share, f"kind {MEANINGS[kind][0]} {kind}") for kind, share in zip(KINDS, shares, strict=True)]
    return [("kept", kept, "kept"), *lost]


def _subsets(found: list[SequenceLosses]) -> list[tuple[str, str, int, list[tuple[str, float, str]], float]]:
    """Return the mean loss of objects alike: what they are alike in, how many there are, and their bar."""
    rows = []
    for title, group_of in _GROUPINGS.items():
        groups: dict[str, list[list[float]]] = {}
        for sequence in found:
            for one in sequence.objects:
                groups.setdefault(group_of(sequence, one), []).append(one.shares)
        if len(groups) > 1:
            for name in sorted(groups):
                shares = _mean((row, 1.0) for row in groups[name])
                rows.append((title, name.partition(" ")[2], len(groups[name]), parts_of_bar(shares), sum(shares)))
    return rows


def _class_of(value: float, bounds: Sequence[float], names: Sequence[str]) -> str:
    place = sum(value >= bound for bound in bounds)
    return f"{place} {names[place]}"


#: Groups of objects; their names begin with what they are sorted by.
_GROUPINGS: dict[str, Callable[[SequenceLosses, ObjectLosses], str]] = {
    "size": lambda _, one: _class_of(_area(one), (0.01, 0.05), ("below 1 % of the frame", "1 to 5 %", "from 5 % on")),
    "frames": lambda _, one: _class_of(len(one.kinds), (50, 100), ("below 50", "50 to 99", "from 100 on")),
    "objects": lambda sequence, _: _class_of(
        len(sequence.objects), (2, 4), ("alone", "2 or 3 in the sequence", "4 and more")
    ),
    "absence": lambda _, one: "1 absent at times" if _absent(one) else "0 always there",
    "class": lambda _, one: "1 unseen" if one.score.unseen else "0 seen",
}


def _area(one: ObjectLosses) -> float:
    """Return the mean share of the frame that an object takes where it is there."""
    visible = one.areas[one.areas > 0]
    return float(visible.mean()) if len(visible) else 0.0


def _absent(one: ObjectLosses) -> bool:
    return bool((one.areas == 0).any())


# ── frames ──────────────────────────────────────────────────────────────────


def _frames_section(found: list[SequenceLosses]) -> Section:
    sequences = [
        {"name": one.name, "stream": one.stream, "loss": round(sum(one.shares), 4)} for one in found if one.objects
    ]
    losses = [(one.name, one.objects) for one in found]
    moments = [moment.entry(place) for place, moment in enumerate(moments_of(losses))]
    kinds = [(kind, *MEANINGS[kind]) for kind in KINDS]
    data = {"sequences": sequences, "moments": moments, "kinds": kinds, "scale": SCALE}
    return Section("frames", "Frames", {"moments": moments, "sequences": sequences}, data)


# ── tables ──────────────────────────────────────────────────────────────────


def _table_section(found: list[SequenceLosses], report: SequenceReport) -> Section:
    metrics = [name for name in report.metrics if name in report.protocol.metrics]
    rows = report.rows()
    means = {row["sequence"]: row for row in rows["sequences"]}
    values = {(row["sequence"], row["object"]): row for row in rows["objects"]}
    ends = [*metrics, "loss", "by kind", *KINDS]
    sequences = [
        [_link(one), len(one.objects), *(means[one.name][name] for name in metrics), *_loss_cells(one.shares)]
        for one in found
        if one.objects
    ]
    objects = [
        [
            _link(sequence), one.score.name, _attributes(sequence, one), len(one.kinds), _area(one), _line(one),
            *(values[sequence.name, one.score.name][name] for name in metrics), *_loss_cells(one.shares),
        ]
        for sequence in found
        for one in sequence.objects
    ]  # fmt: skip
    names = ["sequence", "object", "attributes", "frames", "area", "J&F over time", *ends]
    tables = {
        "sequences": {"columns": ["sequence", "objects", *ends], "rows": sequences},
        "objects": {"columns": names, "rows": objects},
    }
    return Section("tables", "Tables", {"tables": tables})


def _loss_cells(shares: list[float]) -> list[object]:
    bar = environment().get_template("parts.html").module.bar  # type: ignore[attr-defined]
    return [sum(shares), bar(parts_of_bar(shares)[1:], max(sum(shares), 1e-9)), *shares]


def _link(one: SequenceLosses) -> Markup:
    return Markup('<a href="#frames" data-open="{}">{}</a>').format(one.stream, one.name)


def _attributes(sequence: SequenceLosses, one: ObjectLosses) -> str:
    """Return in words what the dataset and its masks say of an object."""
    facts = sequence.scored.truth.objects.get(one.score.name)
    words = [facts.category if facts and facts.category else "", "unseen" if one.score.unseen else ""]
    words.append("absent at times" if _absent(one) else "")
    return ", ".join(word for word in words if word)


def _line(one: ObjectLosses) -> Markup:
    """Return J&F over time as a small picture."""
    values = (one.score.j + one.score.f) / 2
    steps = values[:: max(1, len(values) // 60)]
    points = " ".join(f"{x},{20 - 20 * y:.0f}" for x, y in enumerate(steps.tolist()))
    return Markup(
        '<svg class="line" viewBox="0 -1 {} 22" preserveAspectRatio="none" aria-hidden="true">'
        '<polyline points="{}"/></svg>'
    ).format(max(1, len(steps) - 1), points)
