"""The benchmarks of referring images, as the documentation lists them."""

from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry, MemoryForm

_PAGE = "referring-images.md"
_ARRAYS = """\
- Each sample has a mask, `None` for no object, or `{"mask": …, "no_target": …}`. The truth of ReasonSeg may also have
  the mask `ignore`.
"""

ENTRY = FamilyEntry(
    "Referring images",
    (
        BenchmarkEntry(
            "RefCOCO, RefCOCO+ and RefCOCOg", ("refcoco", "refcoco-plus", "refcocog"),
            "LAVT's test, at picture size", _PAGE,
            "`refs(…).p` beside `instances.json`; `--subset testA`", "JSON lines with a mask",
        ),
        BenchmarkEntry(
            "gRefCOCO", ("grefcoco", "grefcoco-official"), "ReLA's evaluator, by `grefcoco-official`", _PAGE,
            "`grefs(unc).json` beside `instances.json`", "JSON lines with a mask and `no_target`",
        ),
        BenchmarkEntry(
            "ReasonSeg", ("reasonseg", "reasonseg-official"), "LISA's validation, by `reasonseg-official`", _PAGE,
            "folder of a split, with JSON and pictures", "JSON lines with a mask",
        ),
    ),
    memory=(MemoryForm("referring images", "a mapping from samples to masks", "a sample, `None`, its mask"),),
    arrays=_ARRAYS,
)  # fmt: skip
