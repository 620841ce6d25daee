"""Tracks of masks: masks in memory, what costs DetA and AssA, new challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.families.base.tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.units import UnitAccumulator

__all__ = ["TOOLS"]


class _TrackingTools(UnitTools):
    memory, painter = "TracksInMemory", "TracksPainter"
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

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return "DetA and AssA", "sequences"

    def prefers_smaller(self, metric: str) -> bool:
        return metric.startswith("IDSW")


TOOLS = _TrackingTools()
