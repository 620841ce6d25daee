"""Report sections of mask sequences: losses by kind, frames to step through, tables."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.families.base.truth import SplitTruth
from segjudge.evaluation_script.families.sequences.engine import OpenedSequences
from segjudge.evaluation_script.families.sequences.losses import (
    KINDS,
    RIGHT,
    SCALE,
    TRACKED,
    ObjectLosses,
    ScoredSequence,
    SequenceLosses,
    kinds_sum_to_loss,
    mean_shares,
    object_group,
    pair_with_scores,
    shares_of,
    view_sequence,
)
from segjudge.evaluation_script.families.sequences.metrics import SequenceReport
from segjudge.evaluation_script.families.sequences.truth import VOID, Split, label_order
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.masks.stream import MaskStream, bytes_in_page, width_for
from segjudge.families.base.segments import find_runs
from segjudge.families.base.tools import MethodCosts, ScoredMethod, ScoringInputs
from segjudge.report import player
from segjudge.report.page import MOST_ROWS, PageOptions, Section, add_bar, make_verdict, picture_kind, templates
from segjudge.report.sentences import LITTLE, rank_kinds
from segjudge.report.tables import format_difference, format_number
from segjudge.system.errors import UsageError

from .causes import describe_causes
from .published import frame_images_of

_PACKAGE = "segjudge.families.sequences"
#: The approximate bytes of a page without masks and pictures.
_FIXED = 250_000
#: The maximum share of a page for tables, the bytes of a row, and the maximum number of sequences with a bar.
_TABLES, _ROW_BYTES, _MOST_BARS = 0.4, 1700, 100
#: The bytes of a picture; in the page it takes a third more.
_PICTURE_BYTES = 7000
#: The width of posters, and their maximum share of a page.
_POSTER_SIDE, _POSTERS = 160, 0.05
#: A part of a bar, correct or of one kind: name, share, style.
_Bar = list[tuple[str, float, str]]


def make_sections(inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
    if not isinstance(report, SequenceReport):
        raise TypeError(f"{report.split} holds no mask sequences")
    reader = _LossReader(1, options)
    method = reader.read(inputs, report, "")
    worst = sorted(method.sequences, key=lambda sequence: (-sequence.loss, sequence.name))
    posters = _make_posters(options.images, worst, options.budget) if options.images else {}
    options = replace(options, budget=options.budget - sum(map(len, posters.values())))
    most_rows = max(1, int(options.budget * _TABLES / _ROW_BYTES / 2))
    frames = _make_frames(reader, [method], worst, _reserve_tables(options, worst, most_rows))
    metric = "J&F" if "J&F-Mean" in report.protocol.metrics else "J"
    losses = make_losses(method, worst, metric, exact=kinds_sum_to_loss(report.protocol))
    return [
        write_verdict(method, worst, losses, report),
        losses,
        frames,
        make_tables(worst, report, posters, most_rows),
    ]


def _reserve_tables(options: PageOptions, sequences: list[SequenceLosses], most_rows: int) -> PageOptions:
    """Return the options for masks and pictures, less the bytes of the tables."""
    objects = sum(len(sequence.objects) for sequence in sequences)
    rows = min(len(sequences), most_rows) + min(objects, most_rows)
    return replace(options, budget=max(0, options.budget - _ROW_BYTES * rows))


def make_truth_sections(split: str, truth: SplitTruth, options: PageOptions) -> list[Section]:
    if not isinstance(truth, Split):
        raise TypeError(f"{split} holds no mask sequences")
    frames = sum(len(sequence.frames) for sequence in truth.sequences)
    width = width_for(frames, 0, options.budget, pictures=bool(options.images))
    streams, rows, sequences = {}, [], []
    for sequence in truth.sequences:
        labels = sorted((label for label in sequence.objects if label != VOID), key=label_order)
        sizes = [block.size for block in sequence.blocks] or [(1, 1)]
        masks, stream = MaskStream(labels, sizes[0], width), f"{split}/{sequence.name}"
        for index, block in enumerate(sequence.blocks):
            masks.add(sequence.read_block(index), block.stop - block.start, block.size)
        streams[stream] = masks.pack({"frames": sequence.frames, "objects": labels})
        widest = max(across for _, across in sizes)
        sequences.append(SequenceLosses(sequence.name, sequence.frames, [], {}, widest, stream))
        categories = sorted({facts.category for facts in sequence.objects.values() if facts.category})
        size = f"{sizes[0][1]} × {sizes[0][0]}"
        rows.append(
            [_link_sequence(sequence.name, stream), len(labels), len(sequence.frames), size, ", ".join(categories)]
        )
    room = options.budget - bytes_in_page(streams.values())
    folder = player.PictureFolder(options.images)
    pictures = _make_pictures(options.images, sequences, [], room, folder) if options.images else {}
    about: dict[str, object] = {"of": "", "bare": 0, "pictures": len(pictures), "wanted": bool(options.images)}
    about["note"] = folder.describe_faults()
    about["smaller"] = any(sequence.width > width for sequence in sequences)
    columns = ["sequence", "objects", "frames", "size", "categories"]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return [
        make_player([], sequences, about, streams | pictures),
        Section("tables", "Tables", {"tables": {"sequences": (columns, rows)}}),
    ]


def list_failures(inputs: ScoringInputs, report: Report) -> list[Row]:
    """Return for each scored object the parts of 1 - J&F by kind, in the report's order."""
    if not isinstance(report, SequenceReport):
        raise TypeError(f"{report.split} holds no mask sequences")
    objects = [
        losses
        for sequence in _read_scored_sequences(inputs, report)
        for losses in view_sequence(sequence, report.protocol, "", 0).losses.objects
    ]
    return [
        {"sequence": score.sequence, "object": score.name, **dict(zip(KINDS, losses.shares, strict=True))}
        for score, losses in zip(report.scores, objects, strict=True)
    ]


def sum_failures(inputs: ScoringInputs, report: Report) -> dict[str, float]:
    """Return the loss of a split by kind; empty if kinds do not fit its metric."""
    if not isinstance(report, SequenceReport) or not kinds_sum_to_loss(report.protocol):
        return {}
    return dict(zip(KINDS, _LossReader(1, None).read(inputs, report, "").shares, strict=True))


def explain_failures(inputs: ScoringInputs, report: Report) -> tuple[dict[str, float], str]:
    """Return the loss of a split by kind as `sum_failures`, and the sentence on its causes."""
    if not isinstance(report, SequenceReport) or not kinds_sum_to_loss(report.protocol):
        return {}, ""
    method = _LossReader(1, None).read(inputs, report, "")
    return dict(zip(KINDS, method.shares, strict=True)), describe_causes(method.sequences)


def _read_scored_sequences(inputs: ScoringInputs, report: SequenceReport) -> Iterator[ScoredSequence]:
    with closing(inputs.scorers[report.split].open(inputs.results)) as opened:
        if not isinstance(opened, OpenedSequences):
            raise UsageError(f"failures of {report.protocol.name} have no kinds")
        yield from pair_with_scores(opened.pairs, report)


# ── several methods ─────────────────────────────────────────────────────────


def compare_failures(methods: Sequence[ScoredMethod], options: PageOptions | None) -> MethodCosts:
    """Return the costs of failures by method, and for a page the differing sequences and frames."""
    reader = _LossReader(len(methods), options)
    for method in methods:
        if not isinstance(method.report, SequenceReport):
            raise TypeError(f"{method.report.split} holds no mask sequences")
        reader.read(method.inputs, method.report, method.name)
    shares = {method.name: method.shares for method in reader.methods}
    costs = {name: dict(zip(KINDS, values, strict=True)) for name, values in shares.items()}
    if options is None:
        return MethodCosts(costs)
    by_name = {method.name: {losses.name: losses for losses in method.sequences} for method in reader.methods}
    base, second = list(by_name.values())[:2]
    regressions = sorted(second.values(), key=lambda losses: (base[losses.name].loss - losses.loss, losses.name))
    frames = _make_frames(reader, reader.methods, regressions, options)
    return MethodCosts(
        costs,
        ["loss", "by kind", *KINDS],
        {name: _format_loss(values) for name, values in shares.items()},
        {name: make_bar(values) for name, values in shares.items()},
        [(losses.name, losses.stream, 1 - base[losses.name].loss, 1 - losses.loss) for losses in second.values()],
        {method.name: describe_causes(method.sequences) for method in reader.methods},
        [_list_differences(by_name, regressions), frames],
        _PACKAGE,
    )


def _list_differences(by_name: dict[str, dict[str, SequenceLosses]], order: list[SequenceLosses]) -> Section:
    rows = []
    for sequence in order[:MOST_ROWS]:
        losses = [method[sequence.name] for method in by_name.values()]
        base, second = (dict(zip(KINDS, method.shares, strict=True)) for method in losses[:2])
        rows.append(
            [
                _link_sequence(sequence.name, sequence.stream), len(sequence.objects),
                *(1 - method.loss for method in losses),
                *(losses[0].loss - method.loss for method in losses[1:]), format_difference(second, base),
            ]
        )  # fmt: skip
    names = list(by_name)
    changes = [*(f"{name} − {names[0]}" for name in names[1:]), f"loss by kind: {names[1]} − {names[0]}"]
    tables = {"sequences": (["sequence", "objects", *names, *changes], rows)}
    return Section("tables", "Sequences", {"tables": tables, "counts": {"sequences": len(order)}})


# ── losses of methods ───────────────────────────────────────────────────────


@dataclass(frozen=True)
class MethodLosses:
    """The losses of a method per sequence."""

    name: str
    sequences: list[SequenceLosses]
    #: The loss by kind, weighted as in the protocol's mean.
    shares: list[float]


class _LossReader:
    """Reads the losses of methods on one truth; with page options, also packs their masks into a page's streams."""

    def __init__(self, methods: int, options: PageOptions | None) -> None:
        self._count, self._options = methods, options
        #: The width of the masks in the page.
        self.width = 0
        self.methods: list[MethodLosses] = []
        #: zlib streams by name, and without their masks.
        self.streams: dict[str, bytes] = {}
        self._bare: dict[str, bytes] = {}

    def read(self, inputs: ScoringInputs, report: SequenceReport, name: str) -> MethodLosses:
        truth = inputs.scorers[report.split].truth
        if self._options is not None and isinstance(truth, Split):
            frames = sum(len(sequence.frames) for sequence in truth.sequences)
            pictures = bool(self._options.images)
            self.width = width_for(frames, self._count, self._options.budget, pictures=pictures)
        sequences = []
        for sequence in _read_scored_sequences(inputs, report):
            stream = f"{report.split}/{sequence.truth.name}"
            new = stream not in self.streams
            view = view_sequence(sequence, report.protocol, stream, self.width, with_truth=new)
            for bare, streams in ((False, self.streams), (True, self._bare)) if self.width else ():
                streams[f"{stream}/{len(self.methods)}"] = view.prediction_stream(bare=bare)
                if new:
                    streams[stream] = view.truth_stream(bare=bare)
            if view.losses.objects:
                sequences.append(view.losses)
        objects = [
            (losses.shares, object_group(losses.score, report.protocol))
            for sequence in sequences
            for losses in sequence.objects
            if losses.score.frames
        ]
        self.methods.append(MethodLosses(name, sequences, shares_of(objects, report.protocol)))
        return self.methods[-1]

    def leave_out_masks(self, order: list[SequenceLosses], budget: int) -> int:
        """Drop the masks of the last sequences until the page fits; return the number dropped."""
        count = 0
        while bytes_in_page(self.streams.values()) > budget and count < len(order):
            count += 1
            stream = order[-count].stream
            for name in self.streams:
                if name == stream or name.rpartition("/")[0] == stream:
                    self.streams[name] = self._bare[name]
        return count

    def add_pictures(self, pictures: Mapping[str, bytes]) -> None:
        self.streams |= pictures


# ── worst moments ───────────────────────────────────────────────────────────


#: The maximum number of selectable moments, and of those with a filmstrip per sequence.
_MOST_MOMENTS, _MOMENTS_OF_SEQUENCE = 200, 2
#: The number of frames for which a returned object counts as just reappeared.
_AFTER = 5
#: The aspect in which each kind fails, which determines its colour, and its name.
_MEANINGS = {
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
#: The kinds as plural nouns.
_NOUNS = {
    "ghost": "masks of absent objects", "late": "masks missed after a return", "miss": "missed masks",
    "swap": "masks on another object", "drift": "masks on the background", "confused": "pixels of a neighbour",
    "part": "missing parts", "leak": "spilled pixels", "edge": "inexact edges",
}  # fmt: skip


@dataclass(frozen=True)
class _Moment:
    """A moment: consecutive frames in which an object fails in one way."""

    sequence: str
    label: str
    #: The costliest kind, and its share of the object's loss here.
    kind: str
    cost: float
    start: str
    end: str
    #: The frame with the greatest loss.
    worst: str
    #: The object's size as text, and whether it has just reappeared.
    size: str
    time: str


def _find_moments(sequences: list[SequenceLosses]) -> list[_Moment]:
    moments = [
        moment
        for sequence in sequences
        for losses in sequence.objects
        for moment in _list_moments(sequence.name, losses)
    ]
    moments.sort(key=lambda moment: (-moment.cost, moment.sequence, moment.label, moment.start))
    worst: list[_Moment] = []
    for moment in moments:
        if sum(chosen_moment.sequence == moment.sequence for chosen_moment in worst) < _MOMENTS_OF_SEQUENCE:
            worst.append(moment)
    del worst[player.FILMS :]
    further = [moment for moment in moments if moment not in worst]
    return [*worst, *further][:_MOST_MOMENTS]


def _list_moments(sequence: str, losses: ObjectLosses) -> Iterator[_Moment]:
    costs = losses.parts.sum(axis=1)
    usual = float(costs.mean()) if len(costs) else 0.0
    # A tracked object always loses a little at its edge: only an unusual loss, or the same in all frames, is a moment.
    threshold = -1.0 if usual > LITTLE and costs.max() < usual + LITTLE else usual
    aspects = [
        "" if kind == RIGHT or (kind == TRACKED and cost <= threshold) else _MEANINGS.get(kind, ("shape",))[0]
        for kind, cost in zip(losses.kinds, costs.tolist(), strict=True)
    ]
    for start, stop in find_runs(aspects, range(len(aspects))):
        shares = losses.parts[start:stop].sum(axis=0)
        worst = start + int(costs[start:stop].argmax())
        yield _Moment(
            sequence,
            losses.score.name,
            KINDS[int(shares.argmax())],
            float(shares.sum() / len(aspects)),
            losses.score.frames[start],
            losses.score.frames[stop - 1],
            losses.score.frames[worst],
            _name_class(losses.area, *_SIZES)[2:],
            "after an absence" if _is_back(losses, start, stop) else "",
        )


def _is_back(losses: ObjectLosses, start: int, stop: int) -> bool:
    """Return whether an object reappeared during or shortly before these frames."""
    before = losses.kinds[max(0, start - _AFTER) : start]
    return "late" in losses.kinds[start:stop] or (losses.absent and not {RIGHT, "ghost"}.isdisjoint(before))


# ── where the loss is ───────────────────────────────────────────────────────


def rank_shares(kinds: Mapping[str, float]) -> str:
    """Describe the kinds that cause most of the loss."""
    return rank_kinds({f"{_NOUNS[kind]} ({kind})": share for kind, share in kinds.items()})


def write_verdict(method: MethodLosses, sequences: list[SequenceLosses], losses: Section, report: Report) -> Section:
    """Return the verdict: the most costly kinds, the number of sequences, the worst moment of the worst sequence."""
    costs = [math.fsum(sum(losses.shares) for losses in sequence.objects) for sequence in sequences]
    worst = next(iter(_find_moments(sequences[:1]) or _find_moments(sequences)), None)
    sentence: Markup | str = ""
    if worst is not None:
        stream = next(sequence.stream for sequence in sequences if sequence.name == worst.sequence)
        head = "Worst" if worst.sequence == sequences[0].name else "Worst moment"
        sentence = Markup('{}: <a href="#frames" data-open="{}" data-frame="{}">{} from frame {}</a>, {}.').format(
            head, stream, worst.worst, worst.sequence, worst.start, _MEANINGS[worst.kind][1]
        )
    causes = [describe_causes(sequences), rank_shares(dict(zip(KINDS, method.shares, strict=True)))]
    verdict = make_verdict(report, report.protocol.metrics[0], causes, costs, "sequences", sentence)
    subject = (
        str(losses.values["metric"]) if losses.values["exact"] else f"{losses.values['metric']} as a mean over frames"
    )
    return add_bar(verdict, subject, make_bar(method.shares), {kind: _MEANINGS[kind][1] for kind in KINDS})


def make_losses(method: MethodLosses, sequences: list[SequenceLosses], metric: str, *, exact: bool) -> Section:
    """Return the sections of losses: in total, by sequence, and by object properties."""
    aspects: dict[str, list[tuple[str, str, float]]] = {}
    for kind, share in zip(KINDS, method.shares, strict=True):
        aspects.setdefault(_MEANINGS[kind][0], []).append((kind, _MEANINGS[kind][1], share))
    values = {
        "metric": metric,
        "exact": exact,
        "total": make_bar(method.shares),
        "lost": math.fsum(method.shares),
        "families": aspects,
        "sequences": [
            (sequence.name, sequence.stream, make_bar(sequence.shares), sequence.loss)
            for sequence in sequences[:_MOST_BARS]
        ],
        "all_sequences": len(sequences),
        "subsets": _list_subsets(sequences),
    }
    return Section("losses", "Where the loss is", values, package=_PACKAGE)


def make_bar(shares: list[float]) -> _Bar:
    right = max(0.0, 1 - math.fsum(shares))
    lost = [(kind, share, f"kind {_MEANINGS[kind][0]} {kind}") for kind, share in zip(KINDS, shares, strict=True)]
    return [("kept", right, "kept"), *lost]


def _list_subsets(sequences: list[SequenceLosses]) -> list[tuple[str, str, int, _Bar, float]]:
    """Return the mean losses of groups of similar objects: property, number, bar."""
    rows = []
    for title, group_of in _GROUPINGS.items():
        groups: dict[str, list[list[float]]] = {}
        for sequence in sequences:
            for losses in sequence.objects:
                groups.setdefault(group_of(sequence, losses), []).append(losses.shares)
        if len(groups) > 1:
            for name in sorted(groups):
                shares = mean_shares((row, 1.0) for row in groups[name])
                rows.append((title, name.partition(" ")[2], len(groups[name]), make_bar(shares), sum(shares)))
    return rows


def _name_class(value: float, bounds: Sequence[float], names: Sequence[str]) -> str:
    index = sum(value >= bound for bound in bounds)
    return f"{index} {names[index]}"


#: The limits of small and medium shares of the frame, and the names of sizes.
_SIZES = (0.01, 0.05), ("smaller than 1 %", "1 to 5 %", "from 5 % on")
#: Groups of objects; their names begin with the property that orders them.
_GROUPINGS: dict[str, Callable[[SequenceLosses, ObjectLosses], str]] = {
    "size": lambda _, losses: _name_class(losses.area, *_SIZES),
    "frames": lambda _, losses: _name_class(
        len(losses.score.frames), (50, 100), ("below 50", "50 to 99", "from 100 on")
    ),
    "objects": lambda sequence, _: _name_class(
        len(sequence.objects), (2, 4), ("alone", "2 or 3 in the sequence", "4 and more")
    ),
    "absence": lambda _, losses: "1 absent at times" if losses.absent else "0 always there",
    "kind": lambda _, losses: f"0 {losses.score.kind}",
    "class": lambda _, losses: "1 unseen" if losses.score.unseen else "0 seen",
}


# ── frames ──────────────────────────────────────────────────────────────────


def _make_frames(
    reader: _LossReader, methods: list[MethodLosses], order: list[SequenceLosses], options: PageOptions
) -> Section:
    """Return the player of one or several methods; the first sequence is open.

    If space is short, the last masks are omitted; spare space is filled with pictures.
    """
    bare, names = reader.leave_out_masks(order, options.budget), [method.name for method in methods]
    folder = player.PictureFolder(options.images)
    if options.images:
        room = options.budget - _FIXED - bytes_in_page(reader.streams.values())
        moments = _find_shown_moments(methods)[: player.FILMS]
        reader.add_pictures(_make_pictures(options.images, order, moments, room, folder))
    about = {
        "of": names[:2][-1],
        "bare": bare,
        "pictures": sum("#" in name for name in reader.streams),
        "wanted": bool(options.images),
        "note": folder.describe_faults(),
        "smaller": any(sequence.width > reader.width for sequence in order),
    }
    return make_player(methods, order, about, reader.streams)


def make_player(
    methods: list[MethodLosses], order: list[SequenceLosses], about: Mapping[str, object], streams: Mapping[str, bytes]
) -> Section:
    """Return the player of the streams in the page; `about` describes omissions.

    Without methods it shows only the truth.
    """
    losses_by_name = [{sequence.name: sequence.loss for sequence in method.sequences} for method in methods]
    sequences = [
        {
            "name": sequence.name,
            "stream": sequence.stream,
            "lost": [round(by_name[sequence.name], 6) for by_name in losses_by_name],
        }
        for sequence in order
    ]
    moments = [_describe_moment(moment) for moment in _find_shown_moments(methods)]
    values = {**about, "frames": sum(len(sequence.frames) for sequence in order)}
    form = {"form": "objects", "kinds": [(kind, *_MEANINGS[kind]) for kind in KINDS], "scale": SCALE}
    return player.make_player(sequences, moments, form, values, streams, [method.name for method in methods])


def _describe_moment(moment: _Moment) -> dict[str, object]:
    aspect, about = _MEANINGS[moment.kind]
    facets = [("kind", moment.kind), ("size", moment.size)]
    return {
        "sequence": moment.sequence,
        "label": moment.label,
        "kind": moment.kind,
        "style": f"kind {aspect} {moment.kind}",
        "cost": round(moment.cost, 4),
        "worst": moment.worst,
        "subject": f", object {moment.label}, {player.describe_frames(moment.start, moment.end)}",
        "text": f"{about}, {format_number(moment.cost)} of the object's score",
        "words": [*facets, *([("time", moment.time)] if moment.time else [])],
    }


def _find_shown_moments(methods: list[MethodLosses]) -> list[_Moment]:
    """Return the moments of the second (or only) method, the worst first."""
    return [moment for method in methods[:2][-1:] for moment in _find_moments(method.sequences)]


# ── tables ──────────────────────────────────────────────────────────────────


def make_tables(
    sequences: list[SequenceLosses], report: Report, posters: Mapping[str, Markup], most_rows: int = MOST_ROWS
) -> Section:
    """Return the tables of sequences and objects, as many as fit: metrics, losses by kind, posters."""
    rows = report.rows()
    metrics = [name for name in report.protocol.metrics if any(name in row for row in rows["sequences"])]
    means = {row["sequence"]: row for row in rows["sequences"]}
    values = {(row["sequence"], row["object"]): row for row in rows["objects"]}
    last_columns = [*metrics, "loss", "by kind", *KINDS]
    sequence_rows = [
        [
            _link_sequence(sequence.name, sequence.stream),
            *([posters.get(sequence.name, "")] if posters else []),
            len(sequence.objects),
            *(means[sequence.name][name] for name in metrics),
            *_format_loss(sequence.shares),
        ]
        for sequence in sequences[:most_rows]
    ]
    objects = [(sequence, losses) for sequence in sequences for losses in sequence.objects]
    object_rows = [
        [
            _link_sequence(sequence.name, sequence.stream), losses.score.name, _describe_object(sequence, losses),
            len(losses.score.frames), losses.area, _draw_line(losses),
            *(values[sequence.name, losses.score.name][name] for name in metrics), *_format_loss(losses.shares),
        ]
        for sequence, losses in objects[:most_rows]
    ]  # fmt: skip
    columns = ["sequence", *(["worst frame"] if posters else []), "objects", *last_columns]
    names = ["sequence", "object", "attributes", "frames", "area", "score over time", *last_columns]
    tables = {"sequences": (columns, sequence_rows), "objects": (names, object_rows)}
    counts = {"sequences": len(sequences), "objects": len(objects)}
    return Section("tables", "Tables", {"tables": tables, "counts": counts})


def _link_sequence(name: str, stream: str) -> Markup:
    """Return the name of a sequence as a link that opens it."""
    return Markup('<a href="#frames" data-open="{}">{}</a>').format(stream, name)


def _format_loss(shares: list[float]) -> list[object]:
    """Return the cells of a loss: total, bar, and each kind."""
    bar = templates().get_template("parts.html").module.bar  # type: ignore[attr-defined]
    return [sum(shares), bar(make_bar(shares)[1:], max(sum(shares), 1e-9)), *shares]


def _describe_object(sequence: SequenceLosses, losses: ObjectLosses) -> str:
    """Return the description of an object from the dataset and its masks."""
    facets = [sequence.categories.get(losses.score.name, ""), "unseen" if losses.score.unseen else ""]
    facets.append("absent at times" if losses.absent else "")
    return ", ".join(word for word in facets if word)


def _draw_line(losses: ObjectLosses) -> Markup:
    """Return the score over time as a small picture."""
    values = (losses.score.j + losses.score.f) / 2
    steps = values[:: max(1, len(values) // 60)]
    points = " ".join(f"{x},{20 - 20 * y:.0f}" for x, y in enumerate(steps.tolist()))
    return Markup(
        '<svg class="line" viewBox="0 -1 {} 22" preserveAspectRatio="none" aria-hidden="true">'
        '<polyline points="{}"/></svg>'
    ).format(max(1, len(steps) - 1), points)


# ── pictures ────────────────────────────────────────────────────────────────


def _make_pictures(
    path: str, sequences: list[SequenceLosses], moments: list[_Moment], room: int, folder: player.PictureFolder
) -> dict[str, bytes]:
    """Return pictures of the first frames by stream name, as many as fit."""
    by_name = {sequence.name: sequence for sequence in sequences}
    paths = _find_pictures(path, sequences)
    pictures: dict[str, bytes] = {}
    for name, frame in _rank_pictures([sequence for sequence in sequences if paths[sequence.name]], moments):
        if room < _PICTURE_BYTES * 4 / 3:
            break
        stream = f"{by_name[name].stream}#{frame}"
        if stream not in pictures and (data := folder.shrink(paths[name][frame])):
            pictures[stream] = data
            room -= bytes_in_page([data])
    return pictures


def _make_posters(folder: str, sequences: list[SequenceLosses], budget: int) -> dict[str, Markup]:
    """Return a small picture of each sequence's worst frame by name, as many as fit."""
    room, posters, pictures = budget * _POSTERS, dict[str, Markup](), player.PictureFolder(folder)
    paths = _find_pictures(folder, sequences)
    for sequence in sequences:
        if not paths[sequence.name] or room < 0:
            continue
        frame = _sort_frames(sequence)[-1]
        data = base64.b64encode(pictures.shrink(paths[sequence.name][frame], _POSTER_SIDE)).decode("ascii")
        if not data:
            continue
        room -= len(data)
        posters[sequence.name] = Markup('<img class="poster" alt="frame {}" src="data:image/{};base64,{}">').format(
            sequence.frames[frame], picture_kind(), data
        )
    return posters


def _find_pictures(folder: str, sequences: list[SequenceLosses]) -> dict[str, list[str]]:
    """Return the pictures of each sequence's frames (empty if any is missing); raises for an empty folder."""
    paths = {sequence.name: frame_images_of(folder, sequence.name, sequence.frames) for sequence in sequences}
    if not any(paths.values()):
        names = ", ".join(list(paths)[:3])
        raise HostError(f"{folder}: has no pictures of all frames of any sequence; expected folders such as {names}")
    return paths


def _rank_pictures(sequences: list[SequenceLosses], moments: list[_Moment]) -> Iterator[tuple[str, int]]:
    """Yield sequences and frames by priority: worst, median, around moments, then the rest."""
    by_name = {sequence.name: sequence for sequence in sequences}
    for share in (1.0, 0.5):
        for sequence in sequences:
            order = _sort_frames(sequence)
            yield sequence.name, order[round(share * (len(order) - 1))]
    for moment in moments:
        if moment.sequence in by_name:
            frames = by_name[moment.sequence].frames
            worst = frames.index(moment.worst)
            for frame in range(max(0, worst - player.AROUND), min(len(frames), worst + player.AROUND + 1)):
                yield moment.sequence, frame
    longest = max((len(sequence.frames) for sequence in sequences), default=0)
    step = 1 << max(longest, 1).bit_length()
    while step:
        for sequence in sequences:
            for frame in range(0, len(sequence.frames), step):
                yield sequence.name, frame
        step //= 2


def _sort_frames(sequence: SequenceLosses) -> list[int]:
    """Return the frames of a sequence by rising loss, as the page's script orders them."""
    frame_losses = np.full((len(sequence.objects), len(sequence.frames)), np.nan)
    columns = {frame: column for column, frame in enumerate(sequence.frames)}
    for row, losses in enumerate(sequence.objects):
        frame_losses[row, [columns[frame] for frame in losses.score.frames]] = losses.parts.sum(axis=1)
    compared = np.flatnonzero(~np.isnan(frame_losses).all(axis=0))
    means = np.nanmean(frame_losses[:, compared], axis=0)
    return [int(frame) for frame in compared[np.lexsort((-compared, means))]] or [0]
