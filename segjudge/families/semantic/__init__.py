"""Label maps: maps in memory, what costs mIoU, new challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.evaluation_script.families.semantic.protocols import CITYSCAPES, STUFF, VIDEOS
from segjudge.families.base.tools import UnitLosses, UnitTools

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.reports import Report
    from segjudge.evaluation_script.families.base.units import UnitAccumulator
    from segjudge.evaluation_script.families.semantic.protocols import SemanticProtocol
    from segjudge.evaluation_script.masks.stack import Array
    from segjudge.families.base.drawing import UnitPictures
    from segjudge.families.base.pictures import UnitPainter
    from segjudge.families.base.tools import Content, Members
    from segjudge.report.page import Section

__all__ = ["TOOLS"]

#: What the demo and most benchmarks call void.
_VOID = 255


class _SemanticTools(UnitTools):
    memory, painter = "SemanticInMemory", "SemanticPainter"
    meanings: ClassVar = {
        "mIoU": "intersection over union, mean over the classes of the truth",
        "IoU": "intersection over union, mean over the classes that truth or prediction has",
        "iIoU": "the same of classes with objects, where each object weighs as one of average size",
        "IoU-categories": "intersection over union of groups of classes, mean over those that truth or prediction has",
        "iIoU-categories": "the same of groups with objects, where each object weighs as one of average size",
        "mIoU-super": "intersection over union of super categories, mean over those of the truth",
        "Acc-super": "share of pixels with the right super category",
        "Acc_class-super": "share of pixels with the right super category, mean over super categories",
        "fwIoU-super": "intersection over union of super categories, weighted by how frequent one is",
        "Acc": "share of pixels with the right class",
        "Acc_class": "share of pixels with the right class, mean over classes",
        "fwIoU": "intersection over union, weighted by how frequent a class is",
        "Precision": "share of the pixels predicted as a class that are of it, mean over classes: BDD100K's Acc",
        "mIoU-official": "intersection over union, mean over all 150 classes, 0 for those that the truth lacks",
        "Score": "mean of mIoU over all 150 classes and Acc, by which the challenge of 2016 ranked",
        "VC": "share of the unchanging pixels whose label does not change either",
    }

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return protocol.metrics[0], "videos" if protocol.form == VIDEOS else "images"

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """What costs the mean IoU: pixels of a class that are missed or surplus; the sum is 1 - mean."""
        import numpy as np

        from segjudge.evaluation_script.families.semantic.averages import sum_confusion

        protocol, units = accumulator.protocol, accumulator.complete_counts()
        classes = protocol.classes
        missed, surplus = (np.zeros((len(units), classes)) for _ in range(2))
        hits = np.zeros(classes)
        for index, counts in enumerate(units):
            table = sum_confusion([counts], protocol)
            right = np.diagonal(table)[:-1]
            hits += right
            missed[index] = table.sum(axis=1)[:-1] - right
            surplus[index] = table.sum(axis=0)[:-1] - right
        present = missed.sum(axis=0) + hits
        union = present + surplus.sum(axis=0)
        averaged = union if protocol.averages_predicted else present
        seen = (averaged > 0) & (np.arange(classes) < (protocol.averaged or classes))
        weight = seen / np.maximum(union, 1) / max(int(seen.sum()), 1)
        losses = np.stack((missed * weight, surplus * weight), axis=-1)
        kinds = {"missed": "pixels of a class that have another label", "surplus": "pixels that have its label wrongly"}
        return UnitLosses(kinds, losses.sum(axis=1), losses.sum(axis=0)[union > 0])

    def make_confusions(self, painter: UnitPainter, pictures: UnitPictures, noun: str, report: Report) -> list[Section]:
        """Show which classes pixels were taken for, of all videos."""
        from segjudge.evaluation_script.families.semantic.averages import describe_classes, sum_confusion
        from segjudge.report.confusion import make_confusion

        accumulator = self.counts_of(report)
        protocol = describe_classes(accumulator.protocol, accumulator.facts)
        table = sum_confusion(accumulator.complete_counts(), protocol)
        names = [*map(protocol.name_class, protocol.labels), "nothing"]
        about = f"Pixels of all {len(accumulator.names):,} {noun}."
        return [make_confusion(names, table, "pixels", about)]

    def make_sample(self, truths: list[Any], protocol: Any, share: float) -> Members:
        """Yield PNGs of classes; where the truth is void, they hold 0."""
        import numpy as np

        from segjudge.datasets.compression import label_png
        from segjudge.evaluation_script.families.semantic.averages import drop_numbers
        from segjudge.evaluation_script.masks.overlaps import LabelMap
        from segjudge.families.base.challenges import QUICK, encode_json, move_labels

        classes, records = np.array(protocol.labels), []
        for unit in [unit for truth in truths for unit in truth.units]:
            for frame in unit.load():
                pixels = frame.read()
                if pixels.labels is not None:
                    pixels = LabelMap(pixels.numbers, drop_numbers(pixels.labels, protocol))
                labels = move_labels(pixels, classes, share).astype(np.uint8)
                if protocol.form == STUFF:
                    records += _encode_records(int(unit.name), labels)
                    continue
                name = f"{unit.name}/{frame.name}" if protocol.form == VIDEOS else unit.name
                yield f"{name}.png", label_png(labels, QUICK)
        if protocol.form == STUFF:
            yield "results.json", encode_json(records)

    def make_demo(self, protocol: Any) -> Content:
        from segjudge.datasets.demo import Scene, first_scenes, images

        videos = first_scenes()
        if protocol.form != VIDEOS:
            yield from _make_stuff_demo(protocol) if protocol.form == STUFF else _make_image_demo(protocol)
            return
        yield "val.txt", "".join(f"{video.name}\n" for video in videos)
        for name, data in images(videos, Scene.truth):
            yield "data/" + name.replace("/", "/mask/"), data


def _encode_records(image: int, labels: Array) -> list[dict[str, Any]]:
    """List the labels of an image as COCO-Stuff does, with their run lengths."""
    from segjudge.masks.run_lengths import encode_labels

    return [
        {"image_id": image, "category_id": label, "segmentation": {"size": list(labels.shape), "counts": counts}}
        for label, counts in encode_labels(labels).items()
    ]


def _make_stuff_demo(protocol: SemanticProtocol) -> Content:
    """Yield frames of the demo as a JSON of COCO-Stuff, whose first labels stand for theirs."""
    import numpy as np

    from segjudge.datasets.demo import first_scenes, still_images

    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for image, labels in still_images(first_scenes()):
        images.append({"id": image, "height": labels.shape[0], "width": labels.shape[1]})
        annotations += _encode_records(
            image, np.where(labels == _VOID, 0, labels + protocol.labels[0]).astype(np.uint8)
        )
    categories = [
        {"id": label, "name": f"stuff {label}", "supercategory": f"group {label % 3 + 1}"} for label in protocol.labels
    ]
    yield "stuff_val.json", {"images": images, "annotations": annotations, "categories": categories}


def _make_image_demo(protocol: SemanticProtocol) -> Content:
    """Yield frames of the demo as images, with the benchmark's labels in the place of theirs."""
    import numpy as np

    from segjudge.datasets.compression import grey_png, label_png
    from segjudge.datasets.demo import first_scenes, still_images
    from segjudge.families.base.challenges import QUICK

    void = 0 if 0 not in protocol.labels else _VOID
    # Objects of the demo become such of the benchmark where it weighs them.
    own = np.array([protocol.labels[0], *(label for label, _ in protocol.sizes)] if protocol.sizes else protocol.labels)
    for image, labels in still_images(first_scenes()):
        classes = np.where(labels == _VOID, void, own[np.minimum(labels, len(own) - 1)])
        if protocol.form == CITYSCAPES:
            name = f"gtFine/val/demo/demo_{image:06d}_000019_gtFine"
            objects = np.where(np.isin(classes, own[1:]), 1000 * classes, classes)
            yield f"{name}_instanceIds.png", grey_png(objects, QUICK)
            yield f"{name}_labelIds.png", label_png(classes.astype(np.uint8), QUICK)
        else:
            yield f"{image:08d}.png", label_png(classes.astype(np.uint8), QUICK)


TOOLS = _SemanticTools()
