"""Tracks of masks: masks in memory, losses of DetA and AssA, new challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.families.base.unit_tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.units import UnitAccumulator
    from segjudge.evaluation_script.masks.stack import Array

__all__ = ["TOOLS"]

_KINDS = {
    "missed": "objects without a match, counted per frame",
    "surplus": "predictions that match nothing",
    "inexact": "matches whose overlap is too small for the higher thresholds",
    "swapped": "frames in which the object has another track, or the track another object",
}


def _compute_losses(counts: Array, total: Array) -> Array:
    """Return the loss of DetA and AssA per category of a sequence, as kinds x categories x alphas.

    `counts` are the sequence's counts, `total` those of all sequences; both have the axes categories, fields, alphas.
    """
    import numpy as np

    from segjudge.evaluation_script.families.tracking.counting import HOTA_FIELDS

    fields = dict(zip(HOTA_FIELDS, np.moveaxis(counts, 1, 0), strict=True))
    totals = dict(zip(HOTA_FIELDS, np.moveaxis(total, 1, 0), strict=True))
    detections = np.maximum(1, totals["matched"] + totals["missed"] + totals["surplus"])
    # The lowest alpha matches every pair that any alpha matches.
    missed, surplus = fields["missed"][:, :1], fields["surplus"][:, :1]
    inexact = fields["missed"] - missed + fields["surplus"] - surplus
    of_detection = np.stack(np.broadcast_arrays(missed, surplus, inexact, 0.0)) / detections
    lost = fields["matched"] - fields["AssA"]
    switches = fields["gaps"], fields["excess"], fields["swapped"]
    of_association = np.stack([switches[0], switches[1], lost - sum(switches), switches[2]]) / np.maximum(
        1, totals["matched"]
    )
    without_match = totals["matched"] == 0
    losses: Array = of_detection + np.where(without_match, of_detection, of_association)
    return losses


class _TrackingTools(UnitTools):
    nouns = "masks", "pixels"
    label_groups = (
        ("DetRe", "DetPr", "AssRe", "AssPr"),
        *((f"{name}-common", f"{name}-uncommon") for name in ("HOTA", "DetA", "AssA", "AP")),
    )
    memory, painter, several_losses = "TracksInMemory", "TracksPainter", True
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
        "IDSW": "number of identity switches",
        "IDF1": "F1 of identities",
        "AP": "average precision of tracks",
    }

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Measure the loss of DetA and AssA by sequence, category and kind.

        An object without a match at the smallest alpha is missed; an object that loses its match at a larger alpha is
        inexact. Sequences share the loss of an alpha without matches in proportion to their unmatched masks. Categories
        without truth and predictions cost nothing.
        """
        import numpy as np

        from segjudge.evaluation_script.families.tracking.counting import ALPHAS, HOTA_FIELDS

        units = [counts.tables for counts in accumulator.complete_counts()]
        classes = len(accumulator.protocol.classes or accumulator.facts["classes"])
        total = np.zeros((classes, len(HOTA_FIELDS), len(ALPHAS)))
        for tables in units:
            total[tables["classes"]] += tables["hota"]
        by_unit, by_category = np.zeros((len(units), len(_KINDS))), np.zeros((classes, len(_KINDS)))
        for index, tables in enumerate(units):
            categories = tables["classes"]
            losses = _compute_losses(tables["hota"], total[categories]).mean(axis=2).T / max(classes, 1)
            by_unit[index] = losses.sum(axis=0)
            by_category[categories] += losses
        return UnitLosses(_KINDS, by_unit, by_category)

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return "DetA and AssA", "sequences"

    def prefers_smaller(self, metric: str) -> bool:
        return metric.startswith("IDSW")

    def bounds_of(self, metric: str) -> tuple[float | None, float | None]:
        if metric.startswith("IDSW"):
            return 0.0, None
        return (None, 1.0) if metric.startswith(("MOTSA", "sMOTSA")) else super().bounds_of(metric)


TOOLS = _TrackingTools()
