"""The benchmarks of instances, as the documentation lists them."""

from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry, MemoryForm

_COCO = "COCO's JSON with annotations"
_RECORDS = "a JSON list of detections with masks"
_BY_CATEGORY = "100 masks per image and category"
_USUAL, _UNMATCHED = "counts like any other", "cannot match"
_OF_VIDEOS = ("100 instances per video and category", _UNMATCHED)
_OF_LVIS = ("300 masks per image, over all categories", _UNMATCHED)
_OF_STREETS = ("none: text files list the PNGs of masks", _USUAL)
_NOTES = """\
- In `./run.sh score`, `--cap image|category` and `--id-zero-quirk on|off` override the last two columns.
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
    ("cap", "annotation with id 0"),
    {
        "places2017": ("255 masks per image, over all categories (the task's text)", _USUAL),
        "places2017-official": ("255 masks per image and category (its script)", _UNMATCHED),
        "coco": (_BY_CATEGORY, _USUAL),
        "coco-official": (_BY_CATEGORY, _UNMATCHED),
        "coco-box": ("100 boxes per image and category", _USUAL),
        "coco-boundary": (_BY_CATEGORY, _USUAL),
        "coco-keypoints": ("20 sets of keypoints per image and category", _USUAL),
        "coco-keypoints-official": ("20 sets of keypoints per image and category", _UNMATCHED),
        "lvis": _OF_LVIS,
        "lvis-boundary": _OF_LVIS,
        "cityscapes-instance": _OF_STREETS,
        "cityscapes-instance-official": _OF_STREETS,
        "youtube-vis-2019": _OF_VIDEOS,
        "youtube-vis-2021": _OF_VIDEOS,
        "youtube-vis-2022": _OF_VIDEOS,
        "ovis": _OF_VIDEOS,
    },
    _NOTES,
    (
        MemoryForm("instances in images", "a list of images, or a mapping", "an image, `None`, its instances"),
        MemoryForm("instances in videos", "a list of videos, or a mapping", "a video, `None`, its instances"),
    ),
    _ARRAYS,
)  # fmt: skip
