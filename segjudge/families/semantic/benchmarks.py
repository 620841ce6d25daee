"""The benchmarks of label maps, as the documentation lists them."""

from segjudge.families.base.benchmarks import BenchmarkEntry, FamilyEntry, MemoryForm

ENTRY = FamilyEntry(
    "Semantic labels of pixels",
    (
        BenchmarkEntry(
            "VSPW and any label maps", ("vspw", "vspw-official", "semantic"), "VSPW's scripts, by `vspw-official`",
            "vspw.md", "folder with `val.txt` and `data`; for `semantic` a folder of `VIDEO/FRAME.png`",
            "`VIDEO/FRAME.png`, labels 0 to 123; for `semantic` 0 to 254",
        ),
        BenchmarkEntry(
            "ADE20K", ("ade20k",), "sceneparsing, semantic-segmentation-pytorch", "label-maps.md",
            "folder with `annotations/validation`, or of PNGs", "`IMAGE.png`, labels 1 to 150",
        ),
        BenchmarkEntry(
            "BDD100K", ("bdd100k", "bdd100k-drivable", "bdd100k-drivable-official"),
            "bdd100k's eval/seg.py, by `bdd100k` and `bdd100k-drivable-official`", "label-maps.md",
            "folder of masks", "`IMAGE.png`, labels from 0",
        ),
        BenchmarkEntry(
            "COCO-Stuff", ("coco-stuff", "coco-stuff-official"), "cocostuffapi, by `coco-stuff-official`",
            "label-maps.md#coco-stuff", "`stuff_val2017.json`", "one JSON of run lengths, labels 92 to 183",
        ),
        BenchmarkEntry(
            "Cityscapes pixels", ("cityscapes",), "cityscapesScripts", "label-maps.md#cityscapes",
            "folder with `gtFine/val`, or with `…_instanceIds.png`", "`CITY_SEQUENCE_FRAME….png`, ids from 0 to 33",
        ),
    ),
    memory=(MemoryForm("semantic maps", "the frames of a video, or a mapping", "a video, a frame, labels"),),
)  # fmt: skip
