"""Several methods of mask sequences: the sequences in which they differ, and their frames side by side."""

from __future__ import annotations

from collections.abc import Mapping

from segjudge.analysis.comparison import ComparedMethods, difference_of_kinds, methods_section
from segjudge.evaluation_script.families.sequences.losses import KINDS, SequenceLosses
from segjudge.report.overview import origins
from segjudge.report.page import PageOptions, Section, link

from .losses import LossReader
from .sections import frames_section, loss_cells, parts_of_bar


def sequence_comparison(
    found: ComparedMethods, reader: LossReader, options: PageOptions, provenance: Mapping[str, object]
) -> list[Section]:
    """Return the sections of several methods of mask sequences."""
    methods, counts = reader.methods, found.sums.counts
    shares = {one.name: one.shares for one in methods}
    by_name = {method.name: {one.name: one for one in method.sequences} for method in methods}
    base, second = list(by_name.values())[:2]
    regressions = sorted(second.values(), key=lambda one: (base[one.name].lost - one.lost, one.name))
    about = (
        f"{len(counts)} sequences, {int(counts.sum())} objects. Places and verdicts hold "
        "for all pairs together (sign flips by sequence, adjusted by Holm)."
    )
    section = methods_section(
        found,
        about,
        ["loss", "by kind", *KINDS],
        {name: loss_cells(mine) for name, mine in shares.items()},
        points=[(one.name, one.stream, 1 - base[one.name].lost, 1 - one.lost) for one in second.values()],
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
                link(one.name, one.stream), len(one.objects), *(1 - method.lost for method in found),
                *(found[0].lost - method.lost for method in found[1:]), difference_of_kinds(second, base),
            ]
        )  # fmt: skip
    first, *others = by_name
    changes = [*(f"{name} − {first}" for name in others), f"why {others[0]} loses"]
    columns = ["sequence", "objects", first, *others, *changes]
    return Section("tables", "Sequences", {"tables": {"sequences": (columns, rows)}})
