"""The benchmarks of LiDAR scans, as the documentation lists them."""

from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry, MemoryForm

_PAGE = "semantic-kitti.md"
_TRUTH = "folder with `sequences/08/labels`; `--subset train`"
_SCAN = "`sequences/08/predictions/SCAN.label`"
_ARRAYS = """\
- Each scan, named like `08/000000`, has a whole number per point: the label plus 65,536 times the object's number.
"""

ENTRY = FamilyEntry(
    "Labels of LiDAR points",
    (
        BenchmarkEntry(
            "SemanticKITTI classes", ("semantic-kitti", "semantic-kitti-official"),
            "semantic-kitti-api, by `semantic-kitti-official`", _PAGE, _TRUTH, _SCAN,
        ),
        BenchmarkEntry(
            "SemanticKITTI objects", ("semantic-kitti-panoptic", "semantic-kitti-panoptic-official"),
            "semantic-kitti-api, by `semantic-kitti-panoptic-official`", _PAGE, _TRUTH, _SCAN,
        ),
        BenchmarkEntry(
            "SemanticKITTI motion", ("semantic-kitti-moving",), "semantic-kitti-api", _PAGE, _TRUTH, _SCAN,
        ),
    ),
    memory=(MemoryForm("scans", "a mapping from names to scans", "a scan, `None`, its labels"),),
    arrays=_ARRAYS,
)  # fmt: skip
