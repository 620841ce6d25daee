"""The benchmarks of grey maps, as the documentation lists them."""

from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry, MemoryForm

_ARRAYS = """\
- Each image has an array (height, width) from 0 to 255; its mask may also be boolean.
"""

ENTRY = FamilyEntry(
    "Grey maps of objects",
    (
        BenchmarkEntry(
            "DUTS, COD10K, DIS5K and other salient, camouflaged or dichotomous objects", ("sod", "sod-official"),
            "PySODMetrics, by `sod-official`", "salient-objects.md",
            "folder of masks, or of `DATASET/GT/IMAGE.png`; `--subset DATASET`",
            "`IMAGE.png` or `DATASET/IMAGE.png`, grey",
        ),
    ),
    memory=(MemoryForm("grey maps", "a mapping from names to maps", "an image, `None`, its map"),),
    arrays=_ARRAYS,
)  # fmt: skip
