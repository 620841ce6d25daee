"""Label maps: maps in memory, what costs mIoU, new challenges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.families.base.tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import ScoringRules
    from segjudge.evaluation_script.families.base.reports import Report
    from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
    from segjudge.families.base.memory import MemoryDoor
    from segjudge.families.base.pictures import UnitPainter, UnitPictures
    from segjudge.families.base.tools import Content, Members
    from segjudge.report.page import Section

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

    def open_painter(self, results: str, truth: UnitTruth, rules: ScoringRules) -> UnitPainter:
        from .pictures import SemanticPainter

        return SemanticPainter(results, truth, rules)

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        del protocol
        return "mIoU", "videos"

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """What costs mIoU: pixels of a class that are missed or surplus; the sum is 1 - mIoU."""
        import numpy as np

        from segjudge.evaluation_script.masks.overlaps import SHIFT

        classes, units = accumulator.protocol.classes, accumulator.complete_counts()
        missed, surplus = (np.zeros((len(units), classes)) for _ in range(2))
        hits = np.zeros(classes)
        for index, counts in enumerate(units):
            keys, pixels = counts.tables["cells"]
            truth, prediction = keys >> SHIFT, keys & ((1 << SHIFT) - 1)
            right = truth == prediction
            hits += np.bincount(truth[right], pixels[right], classes)
            missed[index] = np.bincount(truth[~right], pixels[~right], classes)
            surplus[index] = np.bincount(prediction[~right], pixels[~right], classes)
        present = missed.sum(axis=0) + hits
        union = present + surplus.sum(axis=0)
        seen = present > 0
        weight = seen / np.maximum(union, 1) / max(int(seen.sum()), 1)
        losses = np.stack((missed * weight, surplus * weight), axis=-1)
        kinds = {"missed": "pixels of a class that have another label", "surplus": "pixels that have its label wrongly"}
        return UnitLosses(kinds, losses.sum(axis=1), losses.sum(axis=0)[union > 0])

    def make_confusions(self, painter: UnitPainter, pictures: UnitPictures, noun: str, report: Report) -> list[Section]:
        """Show which classes pixels were taken for, of all videos."""
        del painter, pictures
        import numpy as np

        from segjudge.evaluation_script.masks.overlaps import SHIFT
        from segjudge.report.confusion import make_confusion

        accumulator, _ = self._measure_report(report)
        classes = accumulator.protocol.classes
        table = np.zeros((classes + 1, classes + 1), np.int64)
        for counts in accumulator.complete_counts():
            keys, pixels = counts.tables["cells"]
            np.add.at(table, (keys >> SHIFT, np.minimum(keys & ((1 << SHIFT) - 1), classes)), pixels)
        names = [*(f"class {label}" for label in range(classes)), "nothing"]
        about = f"Pixels of all {len(accumulator.names):,} {noun}."
        return [make_confusion(names, table, "pixels", about)]

    def make_sample(self, truths: list[Any], protocol: Any, share: float) -> Members:
        """Yield PNGs of classes; where the truth is void, they hold 0."""
        import numpy as np

        from segjudge.datasets.compression import label_png
        from segjudge.families.base.challenges import QUICK, move_labels

        classes = np.arange(protocol.classes)
        for unit in [unit for truth in truths for unit in truth.units]:
            for frame in unit.load():
                labels = move_labels(frame.read(), classes, share).astype(np.uint8)
                yield f"{unit.name}/{frame.name}.png", label_png(labels, QUICK)

    def make_demo(self, protocol: Any) -> Content:
        del protocol
        from segjudge.datasets.demo import Scene, first_scenes, images

        videos = first_scenes()
        yield "val.txt", "".join(f"{video.name}\n" for video in videos)
        for name, data in images(videos, Scene.truth):
            yield "data/" + name.replace("/", "/mask/"), data


TOOLS = _SemanticTools()
