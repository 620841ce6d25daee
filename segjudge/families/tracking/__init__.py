"""Tracks of masks: masks in memory, what costs DetA and AssA, new challenges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.evaluation_script.files.problems import quantity
from segjudge.families.base.tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import ScoringRules
    from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
    from segjudge.families.base.memory import MemoryDoor
    from segjudge.families.base.pictures import UnitPainter
    from segjudge.families.base.tools import Content, Facts, Members

__all__ = ["TOOLS"]


class _TrackingTools(UnitTools):
    meanings: ClassVar = {
        "HOTA": "higher order tracking accuracy",
        "DetA": "detection accuracy",
        "AssA": "association accuracy",
        "DetRe": "detection recall",
        "DetPr": "detection precision",
        "AssRe": "association recall",
        "AssPr": "association precision",
        "LocA": "localisation accuracy",
        "OWTA": "open world tracking accuracy",
        "sMOTSA": "soft tracking accuracy of CLEAR",
        "MOTSA": "tracking accuracy of CLEAR",
        "MOTSP": "mean overlap of matched masks",
        "IDSW": "how often an object changes its track; lower is better",
        "IDF1": "F1 of identities",
        "AP": "average precision of tracks",
    }

    def open_memory(self, protocol: Any, categories: Sequence[Mapping[str, Any]], unseen: Iterable[str]) -> MemoryDoor:
        from .memory import TracksInMemory

        return TracksInMemory(protocol, categories)

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """What costs DetA, objects that are missed or surplus, then AssA, objects that are swapped.

        What categories without any match cost AssA is no sequence's.
        """
        import numpy as np

        from segjudge.evaluation_script.families.tracking.counting import HOTA_FIELDS

        units = [counts.tables for counts in accumulator.complete_counts()]
        classes = len(accumulator.protocol.classes or accumulator.facts["classes"])
        total = np.zeros((classes, *units[0]["hota"].shape[1:])) if units else np.zeros((classes, len(HOTA_FIELDS), 1))
        for tables in units:
            total[tables["classes"]] += tables["hota"]
        matched, missed, surplus, associated = (
            HOTA_FIELDS.index(name) for name in ("matched", "missed", "surplus", "AssA")
        )
        all_matches = np.maximum(1, total[:, [matched, missed, surplus]].sum(axis=1))
        by_unit, by_category = np.zeros((len(units), 3)), np.zeros((classes, 3))
        for index, tables in enumerate(units):
            classes_of_unit, hota = tables["classes"], tables["hota"]
            detected = np.maximum(1, total[classes_of_unit, matched])
            costs = (
                hota[:, missed] / all_matches[classes_of_unit],
                hota[:, surplus] / all_matches[classes_of_unit],
                (hota[:, matched] - hota[:, associated]) / detected,
            )
            losses = np.stack([cost.mean(axis=1) for cost in costs], axis=-1) / max(classes, 1)
            by_unit[index] = losses.sum(axis=0)
            by_category[classes_of_unit] += losses
        kinds = {
            "missed": "objects that nothing matches, of DetA",
            "surplus": "predictions that match nothing, of DetA",
            "swapped": "matches whose tracks are of several objects, of AssA",
        }
        return UnitLosses(kinds, by_unit, by_category)

    def open_painter(self, results: str, truth: UnitTruth, rules: ScoringRules) -> UnitPainter:
        from .pictures import TracksPainter

        return TracksPainter(results, truth, rules)

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return "DetA and AssA", "sequences"

    def prefers_smaller(self, metric: str) -> bool:
        return metric.startswith("IDSW")

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        facts = super().describe_truth(truths, protocol)
        units = sum(len(truth.units) for truth in truths)
        return {**facts, "about": f"Follow every object through {quantity(units, 'sequence')}."}

    def make_sample(self, truths: list[Any], protocol: Any, share: float) -> Members:
        from .challenges import make_sample

        return make_sample(truths, protocol, share)

    def make_demo(self, protocol: Any) -> Content:
        from .challenges import make_demo

        return make_demo(protocol)


TOOLS = _TrackingTools()
