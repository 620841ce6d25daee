"""The benchmarks of phrases, as the documentation lists them."""

from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry, MemoryForm

_TRUTH = "SA-Co's JSON, or a folder with all annotators and subsets"
_ARRAYS = """\
- Each pair has a list of masks, or a mapping with `masks` and `scores` (predictions) or `iscrowd` (truth).
- The truth of several annotators is `{"annotators": [side, …]}`.
- In videos, each side is a mapping with `tracks` and `scores` or `iscrowd`. A track is a list with a mask or `None` per
  frame. For mAP, the truth's `category_id` is the phrase.
"""

ENTRY = FamilyEntry(
    "Phrases and all objects that they name",
    (
        BenchmarkEntry(
            "SA-Co Gold", ("sa-co-gold", "sa-co-gold-official"), "sam3's cgf1_eval, by `sa-co-gold-official`",
            "sa-co.md", _TRUTH, "one JSON per subset",
        ),
        BenchmarkEntry(
            "SA-Co Silver", ("sa-co-silver", "sa-co-silver-official"), "sam3's cgf1_eval, by `sa-co-silver-official`",
            "sa-co.md", _TRUTH, "one JSON per subset",
        ),
        BenchmarkEntry(
            "SA-Co/VEval", ("sa-co-veval", "sa-co-veval-official"),
            "sam3's saco_veval_evaluators, by `sa-co-veval-official`", "sa-co-veval.md",
            "SA-Co/VEval's JSON", "one JSON list of tracks",
        ),
    ),
    memory=(
        MemoryForm("phrases in images", "a mapping from pairs to their masks", "a pair, `None`, its masks"),
        MemoryForm("phrases in videos", "a mapping from pairs to their tracks", "a pair, `None`, its tracks"),
    ),
    arrays=_ARRAYS,
)  # fmt: skip
