"""The benchmarks of cells in images, as the documentation lists them."""

from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry, MemoryForm

_ARRAYS = """\
- Each image has a map (height, width) of cell numbers; 0 is background.
"""

ENTRY = FamilyEntry(
    "Cells in images",
    (
        BenchmarkEntry(
            "Cellpose and other label maps of cells", ("cellpose-ap", "cellpose-ap-official"),
            "Cellpose's metrics, by `cellpose-ap-official`", "cellpose.md",
            "folder of `IMAGE_masks.png` or `.tif`; `--subset test`", "`IMAGE_masks.png`, `IMAGE_cp_masks.tif`",
        ),
    ),
    memory=(MemoryForm("cells in images", "a mapping from names to maps", "an image, `None`, its map"),),
    arrays=_ARRAYS,
)  # fmt: skip
