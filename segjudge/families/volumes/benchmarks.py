"""The benchmarks of volumes, as the documentation lists them."""

from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry, MemoryForm

_TRUTH, _SUBMISSION = (
    "folder of `CASE.nii.gz`, `.mha` or `.nrrd`; `--subset labelsTs`",
    "`CASE.nii.gz`, `.mha` or `.nrrd`",
)

_ARRAYS = """\
- The truth is `{"labels": (slices, height, width), "spacing": [mm, mm, mm]}`, with the spacing in the order of the
  axes. Predictions may be plain arrays.
- Or both are images of nibabel or SimpleITK, tensors of MONAI, or `{"labels": (x, y, z), "affine": (4, 4)}`.
- [The page of volumes](benchmarks/volumes.md#in-memory) says what is compared.
"""

ENTRY = FamilyEntry(
    "Medical volumes",
    (
        BenchmarkEntry(
            "Label maps in three dimensions", ("volumes",), "surface-distance", "volumes.md", _TRUTH, _SUBMISSION
        ),
        BenchmarkEntry(
            "BraTS",
            (
                "brats-2023", "brats-2023-men", "brats-2023-met", "brats-2024-ssa", "brats-2024-gli", "brats-2024-met",
                "brats-2024-ped", "brats-2024-men", "brats-2024-men-rt",
            ),
            "BraTS-2023-Metrics and BraTS-2024-Metrics, lesion-wise", "volumes.md", _TRUTH, _SUBMISSION,
        ),
        BenchmarkEntry("KiTS 23", ("kits23",), "kits23", "volumes.md", _TRUTH, _SUBMISSION),
        BenchmarkEntry(
            "autoPET", ("autopet", "autopet-2"), "autoPET II, III and IV", "volumes.md", _TRUTH, _SUBMISSION
        ),
        BenchmarkEntry(
            "TotalSegmentator", ("totalsegmentator",), "TotalSegmentator's `evaluate.py`", "volumes.md",
            _TRUTH, _SUBMISSION,
        ),
        BenchmarkEntry("FLARE 22", ("flare22",), "FLARE 22", "volumes.md", _TRUTH, _SUBMISSION),
        BenchmarkEntry("ISLES 22", ("isles22",), "isles22", "volumes.md", _TRUTH, _SUBMISSION),
        BenchmarkEntry("HECKTOR 22", ("hecktor",), "HECKTOR 22", "volumes.md", _TRUTH, _SUBMISSION),
        BenchmarkEntry("CHAOS", ("chaos",), "CHAOS-evaluation", "volumes.md", _TRUTH, _SUBMISSION),
        BenchmarkEntry("ToothFairy 2", ("toothfairy",), "ToothFairy 2", "volumes.md", _TRUTH, _SUBMISSION),
        BenchmarkEntry("TopCoW 24", ("topcow",), "TopCoW_Eval_Metrics", "volumes.md", _TRUTH, _SUBMISSION),
        BenchmarkEntry(
            "Medical Segmentation Decathlon", ("msd",), "surface-distance", "volumes.md",
            _TRUTH, _SUBMISSION,
        ),
        BenchmarkEntry(
            "Components of label maps", ("components",), "panoptica, one to one at IoU 0.5", "volumes.md",
            _TRUTH, _SUBMISSION,
        ),
    ),
    memory=(MemoryForm("volumes", "a mapping from cases to volumes", "a case, `None`, its volume"),),
    arrays=_ARRAYS,
)  # fmt: skip
