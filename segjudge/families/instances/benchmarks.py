"""The benchmarks of instances, as the documentation lists them."""

from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry, MemoryForm

_COCO = "COCO's JSON with annotations"
_RECORDS = "a JSON list of detections with masks"
_NOTES = """\
- `coco-official` and `coco-boundary` have the cap of `coco`, `coco-keypoints-official` that of `coco-keypoints`, and
  Cityscapes none. `score --cap image|category` overrides it.
- Unless the rule says otherwise, an annotation with id 0 counts like any other; `--id-zero-quirk on|off` overrides it.
"""
_ARRAYS = """\
- Pass columns, as detection models return them: `labels`, `masks`, `scores`; in the truth also `iscrowd` and `area`;
  for boxes `boxes` with left, top, right, bottom.
- Or pass COCO's records and annotations, whose masks may be arrays. In a video, `masks` are (instances, frames, height,
  width).
- `FrameAccumulator(categories=…)` and `score_arrays(categories=…)` take COCO's list. It defaults to the categories
  present, also in predictions: to compare methods, pass it.
- Put LVIS's `neg_category_ids` and `not_exhaustive_category_ids` into the truth's mapping, beside the columns or
  beside `annotations`. If all masks are polygons, also put `height` and `width` there.
"""

ENTRY = FamilyEntry(
    "Instances and keypoints",
    (
        BenchmarkEntry(
            "Places 2017", ("places2017", "places2017-official"), "the task's script, by `places2017-official`", "",
            "COCO's JSON, or a folder of PNGs with `--categories`", _RECORDS,
        ),
        BenchmarkEntry(
            "COCO", ("coco", "coco-official", "coco-box"), "pycocotools, by `coco-official`", "", _COCO,
            "a JSON list of detections with masks; for `coco-box` with boxes",
        ),
        BenchmarkEntry(
            "COCO keypoints", ("coco-keypoints", "coco-keypoints-official"),
            "pycocotools, by `coco-keypoints-official`", "coco-keypoints.md", _COCO,
            "a JSON list of detections with keypoints",
        ),
        BenchmarkEntry(
            "Boundary AP", ("coco-boundary",), "boundary-iou-api", "coco-boundary.md", _COCO, _RECORDS,
        ),
        BenchmarkEntry(
            "Cityscapes instances", ("cityscapes-instance", "cityscapes-instance-official"),
            "cityscapesScripts, by `cityscapes-instance-official`", "cityscapes-instance.md",
            "folder with `gtFine/val`, or with `…_instanceIds.png`", "text files that list PNGs of masks",
        ),
        BenchmarkEntry(
            "LVIS", ("lvis", "lvis-boundary"), "lvis-api, boundary-iou-api", "lvis.md", "LVIS's JSON", _RECORDS,
        ),
        BenchmarkEntry(
            "YouTube-VIS", ("youtube-vis-2019", "youtube-vis-2021", "youtube-vis-2022"), "youtubevos/cocoapi",
            "youtube-vis.md", "YouTube-VIS's JSON", "a JSON list of instances, with a mask or `null` per frame",
        ),
        BenchmarkEntry(
            "OVIS", ("ovis",), "qjy981010/cocoapi", "ovis.md", "OVIS's JSON",
            "a JSON list of instances, with a mask or `null` per frame",
        ),
    ),
    (),
    {},
    _NOTES,
    (
        MemoryForm("instances in images", "a list of images, or a mapping", "an image, `None`, its instances"),
        MemoryForm("instances in videos", "a list of videos, or a mapping", "a video, `None`, its instances"),
    ),
    _ARRAYS,
)  # fmt: skip
