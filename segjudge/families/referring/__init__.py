"""Referring images: losses of the mean IoU, masks in memory, new challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.evaluation_script.families.referring.protocols import GREFCOCO, REASONSEG, REFCOCO
from segjudge.evaluation_script.files.problems import quantity
from segjudge.families.base.unit_tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.reports import Report
    from segjudge.evaluation_script.families.base.units import UnitAccumulator
    from segjudge.families.base.tools import Facts, ScoringInputs
    from segjudge.report.page import PageOptions, Section

__all__ = ["TOOLS"]

#: The readable name of a sample, by form.
_SAMPLES = {REFCOCO: "expression", GREFCOCO: "expression", REASONSEG: "picture"}


class _ReferringTools(UnitTools):
    memory, painter = "ReferringInMemory", "ReferringPainter"
    groups = "queries"
    names_subsets = True
    meanings: ClassVar = {
        "oIoU": "summed intersections divided by summed unions: large objects weigh more",
        "mIoU": "mean IoU over samples: all samples weigh the same",
        "gIoU": "mean IoU over samples; a correct no-target answer is 1",
        "cIoU": "summed intersections divided by summed unions: large objects weigh more",
        "N-acc": "share of samples without a target that are answered as no target",
        "T-acc": "share of samples with a target that are not answered as no target",
    }

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Return the loss of mean IoU per sample; a sample has at most one kind of mistake.

        With LISA's rules, the sum omits the constant added to the number of samples.
        """
        import numpy as np

        from segjudge.evaluation_script.families.referring import engine

        samples = accumulator.stack("sample")
        has_pixels = samples[:, engine.TRUTH_AREA] > 0
        has_target = has_pixels | ((samples[:, engine.TARGET] > 0) & (accumulator.protocol.form != REASONSEG))
        kind = np.select(
            [
                ~has_target,
                samples[:, engine.WITHDRAWN] > 0,
                samples[:, engine.ANSWER_AREA] == 0,
                samples[:, engine.SHARED] == 0,
            ],
            [0, 1, 2, 3],
            4,
        )
        costs = (1 - engine.ious_of(samples, accumulator.protocol).astype(float)) / max(len(samples), 1)
        by_unit = np.where(kind[:, None] == np.arange(5), costs[:, None], 0.0)
        by_group = np.zeros((len(accumulator.facts["subsets"]), 5))
        np.add.at(by_group, samples[:, engine.GROUP], by_unit)
        kinds = {
            "false alarm": "a mask is predicted, but there is no target",
            "withdrawn": "no target is predicted, but there is one",
            "missed": "there is a target, but the mask is empty",
            "wrong object": "the mask shares no pixel with the target",
            "inexact": "the mask covers only a part of the target, or extends beyond it",
        }
        return UnitLosses(kinds, by_unit, by_group)

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return "mIoU" if protocol.form == REFCOCO else "gIoU", "samples"

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        from segjudge.evaluation_script.families.referring.engine import TARGET, WITHDRAWN
        from segjudge.report.page import make_list

        verdict, *sections = super().make_sections(inputs, report, options)
        if getattr(report.protocol, "form", "") != GREFCOCO:
            return [verdict, *sections]
        accumulator = self.counts_of(report)
        answers = accumulator.stack("sample")[:, [TARGET, WITHDRAWN]].tolist()
        names = {
            (1, 0): "target, found",
            (1, 1): "target, answered as none",
            (0, 0): "no target, but a mask answered",
            (0, 1): "no target, answered as none",
        }
        counts = [{"name": name, "samples": answers.count(list(answer))} for answer, name in names.items()]
        about = "Predicted and true presence of a target, as N-acc and T-acc measure it."
        return [verdict, make_list("Answers", counts, about), *sections]

    def describe_metric(self, metric: str) -> str:
        name, _, threshold = metric.partition("@")
        if not threshold:
            return super().describe_metric(metric)
        return f"Share of samples{'' if name == 'P' else ' with a target'} whose IoU is at least {threshold}"

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        facts = super().describe_truth(truths, protocol)
        total = quantity(sum(len(truth.units) for truth in truths), _SAMPLES[protocol.form])
        about = f"Find what is asked for in {total}." if protocol.form == REASONSEG else f"Find what {total} refer to."
        return {**facts, "content": total, "about": about, "form": protocol.form}


TOOLS = _ReferringTools()
