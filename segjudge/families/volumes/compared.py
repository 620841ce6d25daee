"""Slices of several methods: the cases in which the second method loses most compared with the first."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import Any

from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
from segjudge.evaluation_script.families.volumes.engine import list_labels
from segjudge.evaluation_script.families.volumes.files import VolumeSubmission
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.drawing import UnitPictures
from segjudge.families.base.tools import ScoredMethod
from segjudge.report.page import PageOptions

from .diagnosis import MOST_CASES, JudgedCase, judge_case, name_costs, open_case
from .losses import weigh_losses
from .pictures import SliceDrawing
from .report import open_scans


def draw_differences(methods: Sequence[ScoredMethod], costs: Array, options: PageOptions) -> UnitPictures | None:
    """Draw the same slices of all methods, given the cost of each case (rows) for each method (columns).

    Return None if nothing is wrong in these cases.
    """
    report, scorer = methods[0].report, methods[0].inputs.scorers[methods[0].report.split]
    accumulators = [method.report.counts for method in methods]
    if not isinstance(scorer.truth, UnitTruth) or not isinstance(accumulators[0], UnitAccumulator):
        raise TypeError(f"{report.split} has no cases")
    protocol: Any = scorer.rules.protocol
    labels = list_labels(accumulators[0])
    losses = [weigh_losses(accumulator) for accumulator in accumulators if isinstance(accumulator, UnitAccumulator)]
    order = (costs[:, 0] - costs[:, 1]).argsort(kind="stable")[:MOST_CASES].tolist()
    units, names = scorer.truth.units, [method.name for method in methods]
    with ExitStack() as stack:
        scans = stack.enter_context(open_scans(options, accumulators[0].names))
        submissions = [
            stack.enter_context(
                closing(VolumeSubmission(method.inputs.results, scorer.truth, protocol, scorer.rules.limits))
            )
            for method in methods
        ]
        drawing = SliceDrawing(report.split, options, len(order), scans, names)
        for index in order:
            judged: list[JudgedCase] = []
            for submission, loss in zip(submissions, losses, strict=True):
                case = open_case(units[index], submission)
                if case is not None:
                    case = case._replace(truth=judged[0].case.truth) if judged else case
                    judged.append(judge_case(case, protocol, name_costs(protocol, labels, loss[index])))
            if len(judged) == len(methods) and any(method.is_wrong for method in judged) and not drawing.is_full:
                drawing.add(*judged)
    player = drawing.show(len(units), "component")
    if player is None:
        return None
    return UnitPictures(player, {}, len(order), len(units), drawing.streams_of_cases(), {})
