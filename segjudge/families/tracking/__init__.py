"""Tracks of masks: masks in memory, what costs DetA and AssA, new challenges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.evaluation_script.files.problems import quantity
from segjudge.families.base.tools import Content, Facts, Members, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.units import UnitAccumulator
    from segjudge.families.base.memory import MemoryDoor
    from segjudge.families.base.units import UnitLosses

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
        del unseen
        from .memory import TracksInMemory

        return TracksInMemory(protocol, categories)

    def split_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        from .losses import split_losses

        return split_losses(accumulator)

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        del protocol
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
