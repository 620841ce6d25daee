"""The benchmarks of cells that move and divide, as the documentation lists them."""

from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry, MemoryForm

_ARRAYS = """\
- A sequence is `{"masks": (frames, height, width), "tracks": [[1, 0, 1, 0], …]}`; masks of a volume are (frames,
  slices, height, width).
- The truth also has outlines: `"cells": {frame: (height, width)}`.
"""

ENTRY = FamilyEntry(
    "Cells in videos",
    (
        BenchmarkEntry(
            "Cell Tracking Challenge", ("ctc", "ctc-official"), "py-ctcmetrics, by `ctc-official`", "ctc.md",
            "folder with `01_GT/TRA` and `01_GT/SEG`, or with several data sets",
            "`01_RES/mask000.tif`, `01_RES/res_track.txt`",
        ),
    ),
    memory=(MemoryForm("sequences of cells", "a mapping from names to sequences", "a sequence, `None`, its masks"),),
    arrays=_ARRAYS,
)  # fmt: skip
