"""Tables and files of mask sequence scores: J and F per frame, and the official tools' CSV."""

from __future__ import annotations

import numpy as np

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore, SequenceReport
from segjudge.evaluation_script.families.sequences.truth import is_number
from segjudge.families.base.tools import Columns
from segjudge.report.tables import format_cell, format_csv

#: Columns of the file on sequences, among the protocol's metrics.
_METRICS = ("J-Mean", "F-Mean", "V-Mean", "J_last-Mean")
#: Protocols of tools that write `results.csv`, in percent.
_VOS_BENCHMARK = ("vos-benchmark", "vos-benchmark-all-frames", "sav")


def list_frames(report: Report) -> Columns:
    """List J and F of each scored object in each frame that counts."""
    scores = report.scores if isinstance(report, SequenceReport) else []
    lengths = [len(score.frames) for score in scores]
    return {
        "sequence": np.repeat([score.sequence for score in scores], lengths),
        "object": np.repeat([score.name for score in scores], lengths),
        "frame": [frame for score in scores for frame in score.frames],
        "j": np.concatenate([np.zeros(0), *(score.j for score in scores)]),
        "f": np.concatenate([np.zeros(0), *(score.f for score in scores)]),
    }


def make_files(report: SequenceReport) -> dict[str, str]:
    """Write the CSV files of a split; file names start with the given stem.

    Objects are named `sequence_k`, numbered within each sequence in the order of matched proposals.
    """
    columns = [metric for metric in _METRICS if metric in report.protocol.metrics]
    rows = [
        [f"{sequence}_{number}", *(format_cell(score.values[metric]) for metric in columns)]
        for sequence, scores in _by_sequence(report.scores).items()
        for number, score in enumerate(sorted(scores, key=lambda score: score.proposal), 1)
    ]
    files = {"per-sequence_results": format_csv(["Sequence", *columns], rows)}
    if report.protocol.name in _VOS_BENCHMARK:
        files["results"] = _format_vos_benchmark(report)
    return files


def _by_sequence(scores: list[ObjectScore]) -> dict[str, list[ObjectScore]]:
    groups: dict[str, list[ObjectScore]] = {}
    for score in scores:
        groups.setdefault(score.sequence, []).append(score)
    return groups


def _format_vos_benchmark(report: SequenceReport) -> str:
    """Return vos-benchmark's table: padded columns, percent with one decimal, averaged in percent."""
    width = max([len("Global score"), *(len(score.sequence) for score in report.scores)])
    scores = [score for objects in _by_sequence(report.scores).values() for score in _in_set_order(objects)]
    j, f = (np.array([100 * (score.values[name] or 0.0) for score in scores]) for name in ("J-Mean", "F-Mean"))
    total = (float("nan"),) * 3 if not scores else ((j.mean() + f.mean()) / 2, j.mean(), f.mean())
    lines = [
        f"{'sequence':<{width}},{'obj':>3}, {'J&F':>4}, {'J':>4}, {'F':>4}",
        f"{'Global score':<{width}},   , {', '.join(f'{number:.1f}' for number in total)}",
    ]
    for score, region, boundary in zip(scores, j, f, strict=True):
        numbers = ", ".join(f"{number:>4.1f}" for number in ((region + boundary) / 2, region, boundary))
        lines.append(f"{score.sequence:<{width}},{score.name:0>3}, {numbers}")
    return "\n".join(lines) + "\n"


def _in_set_order(scores: list[ObjectScore]) -> list[ObjectScore]:
    """Return a sequence's objects in the order of a Python set, as in that tool."""
    by_name = {score.name: score for score in scores}
    if not all(is_number(name) for name in by_name):
        return scores
    return [by_name[str(number)] for number in {int(name) for name in by_name}]
