"""The data of semantic for the tests of all families; `tests/families/contract.py` defines each name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import numpy as np

from segjudge.evaluation_script.families.semantic.protocols import SEMANTIC_PROTOCOLS
from tests import published
from tests.builders import png, written, zipped
from tests.families.slips import MIRRORED, NO_CLASS, Slip, pictures, turn_runs
from tests.published import SIZE, frames, rle


def vspw(folder: Path) -> Path:
    """Write maps of the classes 5, 6 and 7 with void at the top, and a video of another split."""
    files: dict[str, Any] = {
        "val.txt": "\n".join(published.VIDEOS),
        "data/other/mask/00000000.png": png(np.zeros(SIZE, np.uint8)),
    }
    for name, k in frames():
        classes = published.labels(name, k) + np.uint8(5)
        classes[:4] = 255
        files[f"data/{name}/mask/{k:08d}.png"] = png(classes)
    return written(folder / "VSPW_480p", files)


def label_maps(folder: Path) -> Path:
    """Return frames of both videos as images, with labels that every benchmark of images has."""
    maps = {f"masks/val/{name}-{k}.png": png(np.clip(published.labels(name, k), 1, 2)) for name, k in frames()}
    return written(folder / "labels", maps)


def cityscapes(folder: Path) -> Path:
    """Return both videos as cities, with and without the numbers of objects."""
    maps = {}
    for name, k in frames():
        ids, stem = published.streets(name, k), f"gtFine/val/{name}/{name}_{k:06d}_000019_gtFine"
        maps[f"{stem}_labelIds.png"] = png(ids.astype(np.uint8))
        maps[f"{stem}_instanceIds.png"] = png(np.where(ids > 7, 1000 * ids, ids).astype(np.uint16))
    return written(folder / "cityscapes", maps)


def stuff_records() -> list[dict[str, Any]]:
    return [
        {"image_id": image, "category_id": 92 + item, "segmentation": rle(published.labels(*place) == item)}
        for image, place in enumerate(frames())
        for item in np.unique(published.labels(*place)).tolist()
    ]


def coco_stuff(folder: Path) -> Path:
    """Return both videos as images of COCO-Stuff: grass with a tree and a wall."""
    sizes = [{"id": image, "height": SIZE[0], "width": SIZE[1]} for image in range(len(frames()))]
    categories = [
        {"id": label, "name": f"stuff {label}", "supercategory": f"group {label % 2}"} for label in range(92, 184)
    ]
    document = {"images": sizes, "annotations": stuff_records(), "categories": categories}
    return written(folder, {"stuff_val2017.json": document}) / "stuff_val2017.json"


def send_vspw(_truth: Path) -> bytes:
    return zipped(
        {f"result_submission/{name}/{k:08d}.png": png(published.labels(name, k) + np.uint8(5)) for name, k in frames()}
    )


def send_label_maps(_truth: Path) -> bytes:
    return zipped({f"{name}-{k}.png": png(np.clip(published.labels(name, k), 1, 2)) for name, k in frames()})


def send_cityscapes(_truth: Path) -> bytes:
    """Return maps of ids, with the names of their pictures."""
    return zipped({
        f"results/{name}_{k:06d}_000019_leftImg8bit.png": png(published.streets(name, k).astype(np.uint8))
        for name, k in frames()
    })  # fmt: skip


def send_coco_stuff(_truth: Path) -> bytes:
    return json.dumps(stuff_records()).encode()


_PUBLISHED: dict[str, Callable[[Path], Path]] = {
    "ade20k": label_maps, "cityscapes": cityscapes, "coco-stuff": coco_stuff, "coco-stuff-official": coco_stuff,
    "bdd100k": label_maps, "bdd100k-drivable": label_maps, "bdd100k-drivable-official": label_maps,
}  # fmt: skip
PUBLISHED = {name: _PUBLISHED.get(name, vspw) for name in SEMANTIC_PROTOCOLS}
UPLOADS: dict[str, tuple[Callable[[Path], bytes], dict[str, float]]] = {
    "vspw": (send_vspw, {"mIoU": 1, "VC8": 1}),
    "ade20k": (send_label_maps, {"mIoU": 1, "Acc": 1}),
    "cityscapes": (send_cityscapes, {"IoU": 1, "iIoU": 1, "iIoU-categories": 1}),
    "coco-stuff": (send_coco_stuff, {"mIoU": 1, "fwIoU-super": 1}),
    "coco-stuff-official": (send_coco_stuff, {"mIoU": 1, "Acc-super": 1}),
    "bdd100k": (send_label_maps, {"mIoU": 1, "Precision": 1}),
    "bdd100k-drivable": (send_label_maps, {"mIoU": 1}),
    "bdd100k-drivable-official": (send_label_maps, {"mIoU": 1}),
}
UPLOAD_OF_OTHERS = "vspw"
REFUSALS = {
    **dict.fromkeys(UPLOADS, "Send one zip with a PNG for each image, named as its truth"),
    "vspw": "Send one zip with a folder of PNGs for each video",
    **dict.fromkeys(
        ("coco-stuff", "coco-stuff-official"), "Send one JSON with the run lengths of each label of each image"
    ),
}


SLIPS: dict[str, tuple[str, Slip, str]] = {
    "no class, ade20k": ("ade20k", NO_CLASS, "all places of the maps have the same value (200)"),
    "no class, bdd100k": ("bdd100k", NO_CLASS, "all places of the maps have the same value (200)"),
    "no label, bdd100k": ("bdd100k", pictures(lambda labels: labels * 0 + np.uint8(255)), "all places of the maps have the same value (255)"),
    "from 0, ade20k": ("ade20k", pictures(lambda labels: labels - np.uint8(1)), "labels look 1 too low: corrected, mIoU would be 1.00"),
    "shifted, cityscapes": ("cityscapes", pictures(lambda labels: labels - np.uint8(1)), "labels look 1 too low: corrected, IoU would be 1.00"),
    "mirrored videos, vspw": ("vspw", MIRRORED, "maps look mirrored, with left and right exchanged: corrected, mIoU would be 1.00"),
    "rows, coco-stuff": ("coco-stuff", turn_runs, "run lengths look as if written row by row: corrected, mIoU would be 1.00"),
}  # fmt: skip
OTHER_UNITS: dict[str, list[str]] = {"vspw": ["data/solo", "data/late-guest"]}
BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "vspw": (lambda root: (root / "data/goat/mask/00000002.png").write_bytes(b"GIF"), "data/goat/mask/00000002.png: "),
    "semantic": (lambda root: (root / "val.txt").write_text("swan\nduck\n"), "has no frames of duck"),
}
LOSSES = {"vspw": "mIoU"}
SHARED_LOSSES = {"vspw": ("vspw/truth", "vspw/submission", "mIoU")}
SAVED_MASKS: dict[str, tuple[Any, list[dict[str, Any]]]] = {"vspw": ({"a": published.LABEL_FRAMES}, [])}
JSON_TRUTHS = {"coco-stuff": "stuff_val2017.json"}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "sharing": ("vspw",),
    "promises": ("cityscapes", "coco-stuff"),
    "pages": ("vspw", "cityscapes", "coco-stuff"),
    "pages shown whole": ("vspw",),
    "mounts": ("vspw", "ade20k", "coco-stuff"),
    "any names": ("vspw",),
    "folders": ("vspw",),
    "lists": ("vspw",),
    "surplus": ("vspw", "coco-stuff"),
    "samples": ("vspw",),
    "rankings": ("vspw",),
    "records": ("coco-stuff",),
    "painted": ("vspw",),
    "machines": ("cityscapes",),
    "subsets": ("vspw",),
    "chosen units": ("vspw",),
    "wrong roots": ("vspw",),
    "hosts": ("vspw",),
}
SAMPLE_SCORES = {
    "vspw": (0.9393616590181311, 0.6252020399995286),
    "vspw-official": (0.9393616590181311, 0.6252020399995286),
    "semantic": (0.9393616590181311, 0.6252020399995286),
    "ade20k": (0.9359750555871893, 0.6167777672886964),
    "bdd100k": (0.9359750555871893, 0.6167777672886964),
    "bdd100k-drivable": (0.9539016893846419, 0.7293358565292775),
    "bdd100k-drivable-official": (0.9669348970672482, 0.7810926419895561),
    "coco-stuff": (0.9359750555871893, 0.6167777672886964),
    "coco-stuff-official": (0.9359750555871893, 0.6167777672886964),
    "cityscapes": (0.24843396181441135, 0.2379749464438232),
}
