"""The benchmarks of tracks, as the documentation lists them."""

from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry, MemoryForm

_JSON = "BURST's JSON"
_ARRAYS = """\
- Pass a list of `{"track_id": …, "category_id": …, "segmentation": …, "score": …}`.
- For MOTS you may also pass a map with the numbers of its PNGs: class · 1000 + object; 10000 is ignored.
- BURST's truth is `{"annotations": […], "neg_category_ids": […], "not_exhaustive_category_ids": […]}`.
"""

ENTRY = FamilyEntry(
    "Tracks",
    (
        BenchmarkEntry(
            "MOTS20 and KITTI-MOTS", ("mots", "kitti-mots"), "TrackEval", "mots.md",
            "folder with `gt/SEQ/gt/gt.txt`, or with `instances_txt` and a seqmap", "`SEQ.txt`",
        ),
        BenchmarkEntry(
            "BURST (class-guided)", ("burst", "burst-official"), "TrackEval, by `burst-official`", "burst.md",
            _JSON, "one JSON in the same format",
        ),
        BenchmarkEntry(
            "BURST (exemplar-guided)", ("burst-exemplar-guided", "burst-exemplar-guided-official"),
            "TrackEval, by `burst-exemplar-guided-official`", "burst.md", _JSON, "one JSON in the same format",
        ),
    ),
    memory=(MemoryForm("tracks", "the frames of a video, or a mapping", "a video, a frame, its masks"),),
    arrays=_ARRAYS,
)  # fmt: skip
