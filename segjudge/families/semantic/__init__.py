"""Label maps: maps in memory, what costs mIoU, new challenges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.families.base.tools import Content, Members, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.units import UnitAccumulator
    from segjudge.families.base.memory import MemoryDoor
    from segjudge.families.base.units import UnitLosses

__all__ = ["TOOLS"]


class _SemanticTools(UnitTools):
    meanings: ClassVar = {
        "mIoU": "intersection over union, mean over the classes of the truth",
        "Acc": "share of pixels with the right class",
        "Acc_class": "share of pixels with the right class, mean over classes",
        "fwIoU": "intersection over union, weighted by how frequent a class is",
        "VC": "share of the unchanging pixels whose label does not change either",
    }

    def open_memory(self, protocol: Any, categories: Sequence[Mapping[str, Any]], unseen: Iterable[str]) -> MemoryDoor:
        del categories, unseen
        from .memory import SemanticInMemory

        return SemanticInMemory(protocol)

    def split_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        from .losses import split_losses

        return split_losses(accumulator)

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        del protocol
        return "mIoU", "videos"

    def make_sample(self, truths: list[Any], protocol: Any, share: float) -> Members:
        from .challenges import make_sample

        return make_sample(truths, protocol, share)

    def make_demo(self, protocol: Any) -> Content:
        del protocol
        from .challenges import make_demo

        return make_demo()


TOOLS = _SemanticTools()
