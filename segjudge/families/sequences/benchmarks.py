"""The benchmarks of masks in videos, as the documentation lists them."""

from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry, MemoryForm

_MASKS = "`SEQUENCE/FRAME.png`, or one JSON file of run lengths"
_DAVIS = "folder with `Annotations/480p` and `ImageSets`, or plain `SEQUENCE/FRAME.png`"
_EXPRESSIONS = "`VIDEO/EXPRESSION/FRAME.png`, or one JSON file of run lengths"
_BACKGROUND, _OBJECT, _IGNORED = "background", "an object", "ignored"
_OF_EXPRESSIONS = ("the expressions", _OBJECT)
_NOTES = """\
- `lvos` reads the unseen sequences from `unseen_videos.txt` in the dataset's root, or from `--unseen FILE`.
- `youtube-vos` has its 26 unseen categories built in; `--unseen FILE` replaces them.
"""
_ARRAYS = """\
- Pass labels (frames, height, width) of whole numbers: 0 is background, 255 follows the protocol.
- Or pass a mapping from object to booleans (frames, height, width) or to a list with one entry per frame: a boolean
  array, run lengths (`{"size": [height, width], "counts": …}`, as in pycocotools) or `None`.
- For `update`, omit the frame axis.
- Protocols of videos with expressions score only files.
"""

ENTRY = FamilyEntry(
    "Masks of objects in videos",
    (
        BenchmarkEntry(
            "DAVIS 2016 and 2017", ("davis2016", "davis2017", "davis2017-unsupervised"), "davis2017-evaluation", "",
            _DAVIS, _MASKS,
        ),
        BenchmarkEntry(
            "LVOS", ("lvos", "lvos-unsupervised", "lvos-unsupervised-single"), "lvos-evaluation", "",
            "folder with `Annotations` and the meta file", _MASKS,
        ),
        BenchmarkEntry("VOST", ("vost",), "its fork of davis2017-evaluation", "", "folder with `Annotations`", _MASKS),
        BenchmarkEntry(
            "vos-benchmark", ("vos-benchmark", "vos-benchmark-all-frames"), "vos-benchmark", "",
            "folder of `SEQUENCE/FRAME.png`", _MASKS,
        ),
        BenchmarkEntry(
            "SA-V", ("sav",), "sam2's sav_evaluator", "", "folder with `Annotations_6fps/SEQUENCE/OBJECT/FRAME.png`",
            "`SEQUENCE/OBJECT/FRAME.png`, `SEQUENCE/FRAME.png`, or one JSON file of run lengths",
        ),
        BenchmarkEntry("MOSEv2", ("mosev2",), "the organisers' scorer", "", "folder with `Annotations`", _MASKS),
        BenchmarkEntry(
            "MOSE and YouTube-VOS", ("mose", "youtube-vos"), "assumptions: none is public", "",
            "folder with `Annotations`; for YouTube-VOS also `meta.json`", _MASKS,
        ),
        BenchmarkEntry(
            "MeViS", ("mevis", "mevis-official"), "eval_mevis, by `mevis-official`", "mevis.md",
            "folder with `meta_expressions.json` and `mask_dict.json`", _EXPRESSIONS,
        ),
        BenchmarkEntry(
            "MeViS v2", ("mevis-v2",), "an assumption: none is public", "mevis.md",
            "folder with `meta_expressions.json` and `mask_dict.json`", _EXPRESSIONS,
        ),
        BenchmarkEntry(
            "Ref-YouTube-VOS", ("ref-youtube-vos",), "an assumption: none is public", "ref-youtube-vos.md",
            "folder with `meta_expressions` and label images `valid/Annotations/VIDEO/FRAME.png`", _EXPRESSIONS,
        ),
        BenchmarkEntry(
            "Long-RVOS", ("long-rvos", "long-rvos-official"), "the authors' eval_long_rvos, by `long-rvos-official`",
            "long-rvos.md", "folder with `meta_expressions.json` and `Annotations/VIDEO/OBJECT/FRAME.png`",
            _EXPRESSIONS,
        ),
        BenchmarkEntry(
            "ReVOS", ("revos", "revos-official"), "VISA's eval_revos, by `revos-official`", "revos.md",
            "folder with `meta_expressions_valid_.json`, `mask_dict.json` and `mask_dict_foreground.json`",
            _EXPRESSIONS,
        ),
        BenchmarkEntry(
            "Ref-DAVIS17", ("ref-davis17", "ref-davis17-strict"), "ReferFormer's eval_davis, by `ref-davis17`",
            "ref-davis17.md", "DAVIS 2017 with `Annotations_unsupervised`",
            "`anno_0/VIDEO/FRAME.png` to `anno_3/VIDEO/FRAME.png`, or one JSON file",
        ),
    ),
    ("objects", "255 in the truth"),
    {
        "davis2016": ("every label but 0, as one object", "foreground"),
        "davis2017": ("1 to the largest number of the first frame", _BACKGROUND),
        "davis2017-unsupervised": ("as `davis2017`; at most 20 proposals, matched", _IGNORED),
        "lvos": ("objects of the meta file", _BACKGROUND),
        "lvos-unsupervised": ("at most 20 proposals, matched", _BACKGROUND),
        "lvos-unsupervised-single": ("each against one salient mask", _BACKGROUND),
        "vost": ("as `davis2017`", _BACKGROUND),
        "vos-benchmark": ("all present", _OBJECT),
        "vos-benchmark-all-frames": ("all present", _OBJECT),
        "sav": ("the object folders", _OBJECT),
        "mosev2": ("objects of the first frame", _BACKGROUND),
        "mose": ("objects of the first frame", _BACKGROUND),
        "youtube-vos": ("objects of the meta file", _BACKGROUND),
        "mevis": _OF_EXPRESSIONS,
        "mevis-official": _OF_EXPRESSIONS,
        "mevis-v2": _OF_EXPRESSIONS,
        "ref-youtube-vos": _OF_EXPRESSIONS,
        "long-rvos": _OF_EXPRESSIONS,
        "long-rvos-official": _OF_EXPRESSIONS,
        "revos": _OF_EXPRESSIONS,
        "revos-official": _OF_EXPRESSIONS,
        "ref-davis17": ("as `davis2017-unsupervised`", _IGNORED),
        "ref-davis17-strict": ("1 to the largest number of the first frame", _IGNORED),
    },
    _NOTES,
    (MemoryForm("masks in videos", "a video, or a mapping from names to videos", "a sequence, a frame, its masks"),),
    _ARRAYS,
)  # fmt: skip
