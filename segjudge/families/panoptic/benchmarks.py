"""The benchmarks of panoptic segments, as the documentation lists them."""

from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry, MemoryForm

_STEP = "folder of `SEQUENCE/FRAME.png` in RGB, or with `panoptic_maps/val`"
_NOTES = """\
- Ids in RGB are red + 256 × green + 65,536 × blue; 0 is void.
"""
_ARRAYS = """\
- Pass the id of each pixel, and a mapping from id to category or COCO's `segments_info`. `categories` with `id`, `name`
  and `isthing` are required.
- For STEP, pass a map of classes, in which 255 is void, and a map of object numbers. Its categories are built in.
"""

ENTRY = FamilyEntry(
    "Panoptic segments",
    (
        BenchmarkEntry(
            "COCO panoptic", ("coco-panoptic", "coco-panoptic-boundary"), "panopticapi, boundary-iou-api",
            "coco-panoptic.md", "JSON, beside its folder of PNGs", "one JSON, RGB PNGs",
        ),
        BenchmarkEntry(
            "VIPSeg", ("vipseg", "vipseg-official"), "VIPSeg's scripts, by `vipseg-official`", "vipseg.md",
            "JSON, beside `VIDEO/FRAME.png` in RGB", "one JSON, `VIDEO/FRAME.png` in RGB",
        ),
        BenchmarkEntry(
            "KITTI-STEP", ("kitti-step", "kitti-step-official"), "deeplab2, by `kitti-step-official`", "step.md",
            _STEP, "`SEQUENCE/FRAME.png` in RGB",
        ),
        BenchmarkEntry(
            "MOTChallenge-STEP", ("motchallenge-step", "motchallenge-step-official"),
            "deeplab2, by `motchallenge-step-official`", "step.md", _STEP, "`SEQUENCE/FRAME.png` in RGB",
        ),
        BenchmarkEntry(
            "Cityscapes panoptic", ("cityscapes-panoptic",), "cityscapesScripts", "coco-panoptic.md#cityscapes",
            "JSON, beside its folder of PNGs", "one JSON, RGB PNGs",
        ),
    ),
    notes=_NOTES,
    memory=(
        MemoryForm("panoptic images", "a list of images, or a mapping", "an image, `None`, `(ids, segments)`"),
        MemoryForm("panoptic videos", "the frames of a video, or a mapping", "a video, a frame, `(ids, segments)`"),
        MemoryForm("STEP", "the frames of a video, or a mapping", "a video, a frame, `(classes, numbers)`"),
    ),
    arrays=_ARRAYS,
)  # fmt: skip
