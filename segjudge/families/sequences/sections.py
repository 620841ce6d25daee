"""The sections on mask sequences: where the loss is, frames that one steps through, and tables of what failed how."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from markupsafe import Markup

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.base.truth import SplitTruth
from segjudge.evaluation_script.families.sequences.losses import (
    KINDS,
    SCALE,
    ObjectLosses,
    SequenceLosses,
    has_kinds,
    mean_shares,
)
from segjudge.evaluation_script.families.sequences.metrics import SequenceReport
from segjudge.evaluation_script.families.sequences.truth import VOID, Split, label_order
from segjudge.evaluation_script.masks.stream import MaskStream, in_page, width_for
from segjudge.families.base.tools import ScoringInputs
from segjudge.families.sequences.frame_pictures import AROUND, frame_pictures, posters
from segjudge.report.page import PageOptions, Section, Sections, environment, link
from segjudge.report.painting import picture_kind

from .losses import LossReader, MethodLosses
from .moments import MEANINGS, Moment, moments_of

#: Bytes of a page without masks and pictures, about.
FIXED = 250_000


def sequence_sections(inputs: ScoringInputs, report: Report, options: PageOptions) -> Sections:
    """Return the sections of a split of mask sequences, and the masks of each sequence."""
    if not isinstance(report, SequenceReport):
        raise TypeError(f"{report.split} holds no mask sequences")
    reader = LossReader(1, options)
    method = reader.read(inputs, report, "")
    worst = sorted(method.sequences, key=lambda one: (-one.loss, one.name))
    pictures = posters(options.images, worst, options.budget) if options.images else {}
    rest = replace(options, budget=options.budget - sum(map(len, pictures.values())))
    frames = frames_section(reader, [method], worst, rest)
    metric = "J&F" if "J&F-Mean" in report.protocol.metrics else "J"
    losses = loss_section(method, worst, metric, exact=has_kinds(report.protocol))
    return [losses, frames, table_section(worst, report, pictures)], reader.streams


# ── where the loss is ───────────────────────────────────────────────────────


def loss_section(method: MethodLosses, found: list[SequenceLosses], metric: str, *, exact: bool) -> Section:
    """Return what each kind costs, in total, by sequence, and by what objects are like."""
    total = method.shares
    families: dict[str, list[tuple[str, str, float]]] = {}
    for kind, share in zip(KINDS, total, strict=True):
        families.setdefault(MEANINGS[kind][0], []).append((kind, MEANINGS[kind][1], share))
    values = {
        "metric": metric,
        "exact": exact,
        "total": parts_of_bar(total),
        "lost": math.fsum(total),
        "families": families,
        "sequences": [(one.name, one.stream, parts_of_bar(one.shares), one.loss) for one in found],
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
                shares = mean_shares((row, 1.0) for row in groups[name])
                rows.append((title, name.partition(" ")[2], len(groups[name]), parts_of_bar(shares), sum(shares)))
    return rows


def _class_of(value: float, bounds: Sequence[float], names: Sequence[str]) -> str:
    place = sum(value >= bound for bound in bounds)
    return f"{place} {names[place]}"


#: Groups of objects; their names begin with what they are sorted by.
_GROUPINGS: dict[str, Callable[[SequenceLosses, ObjectLosses], str]] = {
    "size": lambda _, one: _class_of(one.area, (0.01, 0.05), ("below 1 % of the frame", "1 to 5 %", "from 5 % on")),
    "frames": lambda _, one: _class_of(len(one.score.frames), (50, 100), ("below 50", "50 to 99", "from 100 on")),
    "objects": lambda sequence, _: _class_of(
        len(sequence.objects), (2, 4), ("alone", "2 or 3 in the sequence", "4 and more")
    ),
    "absence": lambda _, one: "1 absent at times" if one.absent else "0 always there",
    "class": lambda _, one: "1 unseen" if one.score.unseen else "0 seen",
}


# ── frames ──────────────────────────────────────────────────────────────────


def frames_section(
    reader: LossReader, methods: list[MethodLosses], order: list[SequenceLosses], options: PageOptions
) -> Section:
    """Return the player of one or several methods; the sequence that comes first is open.

    Masks of the last ones are left out where there is no room, and pictures are added where there is some.
    """
    bare, names = 0, [method.name for method in methods]
    while in_page(reader.streams.values()) > options.budget and bare < len(order):
        bare += 1
        reader.leave_out(order[-bare])
    if options.images:
        room = options.budget - FIXED - in_page(reader.streams.values())
        reader.streams |= frame_pictures(options.images, order, _moments(methods), room)
    seen = {
        "of": names[:2][-1],
        "bare": bare,
        "pictures": sum("#" in name for name in reader.streams),
        "wanted": bool(options.images),
        "smaller": any(one.width > reader.width for one in order),
    }
    return player_section(methods, order, seen)


def player_section(methods: list[MethodLosses], order: list[SequenceLosses], seen: Mapping[str, object]) -> Section:
    """Return the player of sequences whose streams are in the page; `seen` says what is left out of these.

    Without methods it shows the truth alone.
    """
    lost = [{one.name: one.loss for one in method.sequences} for method in methods]
    sequences = [
        {"name": one.name, "stream": one.stream, "lost": [round(by_name[one.name], 6) for by_name in lost]}
        for one in order
    ]
    moments = [
        {**vars(moment), "number": number, "cost": round(moment.cost, 4), "family": family, "about": about}
        for number, moment in enumerate(_moments(methods))
        for family, about in [MEANINGS[moment.kind]]
    ]
    values = {
        **seen,
        "moments": moments,
        "sequences": sequences,
        "frames": sum(len(one.frames) for one in order),
        "alone": not methods,
    }
    data = {
        "methods": [method.name for method in methods],
        "sequences": sequences,
        "moments": moments,
        "kinds": [(kind, *MEANINGS[kind]) for kind in KINDS],
        "scale": SCALE,
        "around": AROUND,
        "pictures": f"image/{picture_kind()}",
    }
    return Section("frames", "Frames", values, data)


def _moments(methods: list[MethodLosses]) -> list[Moment]:
    """Return the worst moments of the second method, or of the only one."""
    return [moment for method in methods[:2][-1:] for moment in moments_of(method.sequences)]


# ── tables ──────────────────────────────────────────────────────────────────


def table_section(found: list[SequenceLosses], report: Report, pictures: Mapping[str, Markup]) -> Section:
    """Return tables of sequences and of objects: their metrics, and what each kind costs; pictures of sequences too."""
    rows = report.rows()
    metrics = [name for name in report.protocol.metrics if any(name in row for row in rows["sequences"])]
    means = {row["sequence"]: row for row in rows["sequences"]}
    values = {(row["sequence"], row["object"]): row for row in rows["objects"]}
    ends = [*metrics, "loss", "by kind", *KINDS]
    sequences = [
        [
            link(one.name, one.stream),
            *([pictures.get(one.name, "")] if pictures else []),
            len(one.objects),
            *(means[one.name][name] for name in metrics),
            *loss_cells(one.shares),
        ]
        for one in found
    ]
    objects = [
        [
            link(sequence.name, sequence.stream), one.score.name, _attributes(sequence, one), len(one.score.frames),
            one.area, _line(one),
            *(values[sequence.name, one.score.name][name] for name in metrics), *loss_cells(one.shares),
        ]
        for sequence in found
        for one in sequence.objects
    ]  # fmt: skip
    columns = ["sequence", *(["worst frame"] if pictures else []), "objects", *ends]
    names = ["sequence", "object", "attributes", "frames", "area", "J&F over time", *ends]
    return Section("tables", "Tables", {"tables": {"sequences": (columns, sequences), "objects": (names, objects)}})


def loss_cells(shares: list[float]) -> list[object]:
    """Return a loss, its kinds as a bar, and each kind."""
    bar = environment().get_template("parts.html").module.bar  # type: ignore[attr-defined]
    return [sum(shares), bar(parts_of_bar(shares)[1:], max(sum(shares), 1e-9)), *shares]


def _attributes(sequence: SequenceLosses, one: ObjectLosses) -> str:
    """Return in words what the dataset and its masks say of an object."""
    words = [sequence.categories.get(one.score.name, ""), "unseen" if one.score.unseen else ""]
    words.append("absent at times" if one.absent else "")
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


# ── the truth alone ─────────────────────────────────────────────────────────


def truth_sections(name: str, truth: SplitTruth, options: PageOptions) -> Sections:
    """Return the sections of a split, and the masks of its frames."""
    if not isinstance(truth, Split):
        raise TypeError(f"{name} holds no mask sequences")
    frames = sum(len(sequence.frames) for sequence in truth.sequences)
    width = width_for(frames, 0, options.budget, pictures=bool(options.images))
    streams, rows, shown = {}, [], []
    for sequence in truth.sequences:
        labels = sorted((label for label in sequence.objects if label != VOID), key=label_order)
        sizes = [block.size for block in sequence.blocks] or [(1, 1)]
        masks, stream = MaskStream(labels, sizes[0], width), f"{name}/{sequence.name}"
        for index, block in enumerate(sequence.blocks):
            masks.add(sequence.read_block(index), block.stop - block.start, block.size)
        streams[stream] = masks.pack({"frames": sequence.frames, "objects": labels})
        widest = max(across for _, across in sizes)
        shown.append(SequenceLosses(sequence.name, sequence.frames, [], {}, widest, stream))
        categories = sorted({facts.category for facts in sequence.objects.values() if facts.category})
        size = f"{sizes[0][1]} × {sizes[0][0]}"
        rows.append([link(sequence.name, stream), len(labels), len(sequence.frames), size, ", ".join(categories)])
    room = options.budget - in_page(streams.values())
    pictures = frame_pictures(options.images, shown, [], room) if options.images else {}
    seen = {"of": "", "bare": 0, "pictures": len(pictures), "wanted": bool(options.images)}
    player = player_section([], shown, {**seen, "smaller": any(one.width > width for one in shown)})
    columns = ["sequence", "objects", "frames", "size", "categories"]
    return [player, Section("tables", "Tables", {"tables": {"sequences": (columns, rows)}})], streams | pictures
