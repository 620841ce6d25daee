"""Several methods of mask sequences: the sequences in which they differ, and their frames side by side."""

from __future__ import annotations

from collections.abc import Mapping

from segjudge.analysis.comparison import ComparedMethods, difference_of_kinds, methods_section
from segjudge.analysis.score_tables import AlgorithmScores, sums_of
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.sequences.losses import KINDS, SequenceLosses
from segjudge.evaluation_script.families.sequences.metrics import SequenceReport
from segjudge.evaluation_script.families.sequences.protocols import SequenceProtocol
from segjudge.families.base.tools import ScoringInputs
from segjudge.report.overview import origins
from segjudge.report.page import PageOptions, Section, Sections, link

from .failures import check_kinds
from .losses import LossReader
from .sections import frames_section, loss_cells, parts_of_bar


class ComparedSequences:
    """Several methods on the same sequences; their masks are read again where their losses are asked for."""

    def __init__(
        self, protocol: SequenceProtocol, count: int, options: PageOptions | None, *, with_losses: bool
    ) -> None:
        self._protocol, self._with_losses = protocol, with_losses
        self._reader, self._scores = LossReader(count, options), list[AlgorithmScores]()

    def add(self, inputs: ScoringInputs, report: Report, name: str) -> None:
        """Add a method."""
        if self._with_losses:
            check_kinds(self._protocol)
        self._scores.append(AlgorithmScores(name, self._protocol.name, report.values, report.rows()["objects"]))
        if self._with_losses and isinstance(report, SequenceReport):
            self._reader.read(inputs, report, name)

    def compare(self, metric: str) -> ComparedMethods:
        """Return how the methods compare in a metric that is a mean over objects."""
        sums, names = sums_of(self._scores, metric)
        kinds = {method.name: dict(zip(KINDS, method.shares, strict=True)) for method in self._reader.methods}
        return ComparedMethods(metric, sums, names, kinds)

    def make_sections(
        self, comparison: ComparedMethods, options: PageOptions, provenance: Mapping[str, object]
    ) -> Sections:
        """Return what a page shows of them, and the streams that its scripts read."""
        return _sections(comparison, self._reader, options, provenance), self._reader.streams


def _sections(
    found: ComparedMethods, reader: LossReader, options: PageOptions, provenance: Mapping[str, object]
) -> list[Section]:
    methods, counts = reader.methods, found.sums.counts
    shares = {one.name: one.shares for one in methods}
    by_name = {method.name: {one.name: one for one in method.sequences} for method in methods}
    base, second = list(by_name.values())[:2]
    regressions = sorted(second.values(), key=lambda one: (base[one.name].loss - one.loss, one.name))
    about = (
        f"{len(counts)} sequences, {int(counts.sum())} objects. Places and verdicts hold "
        "for all pairs together (sign flips by sequence, adjusted by Holm)."
    )
    section = methods_section(
        found,
        about,
        ["loss", "by kind", *KINDS],
        {name: loss_cells(mine) for name, mine in shares.items()},
        points=[(one.name, one.stream, 1 - base[one.name].loss, 1 - one.loss) for one in second.values()],
        axes=[method.name for method in methods[:2]],
        bars=[(row.name, parts_of_bar(shares[row.name]), sum(shares[row.name])) for row in found.means],
    )
    frames = frames_section(reader, methods, regressions, options)
    return [section, _sequences(by_name, regressions), frames, origins([], provenance)]


def _sequences(by_name: dict[str, dict[str, SequenceLosses]], order: list[SequenceLosses]) -> Section:
    rows = []
    for one in order:
        found = [method[one.name] for method in by_name.values()]
        base, second = (dict(zip(KINDS, method.shares, strict=True)) for method in found[:2])
        rows.append(
            [
                link(one.name, one.stream), len(one.objects), *(1 - method.loss for method in found),
                *(found[0].loss - method.loss for method in found[1:]), difference_of_kinds(second, base),
            ]
        )  # fmt: skip
    first, *others = by_name
    changes = [*(f"{name} − {first}" for name in others), f"why {others[0]} loses"]
    columns = ["sequence", "objects", first, *others, *changes]
    return Section("tables", "Sequences", {"tables": {"sequences": (columns, rows)}})
