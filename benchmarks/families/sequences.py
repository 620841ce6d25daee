"""Generated sets of expressions that name objects of videos: MeViS and Ref-YouTube-VOS."""

from __future__ import annotations

import json
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.drawing import Lot, pixels, save, scaled, tube, write
from benchmarks.families import COMPAT, HD, Orphan, TrackSet
from benchmarks.instances import Blob, Size, blob, segmentation, shifted
from segjudge.masks.compression import grey_png, label_png

#: The number of different shapes.
_SHAPES = 400
MEVIS = f"""{COMPAT}
sys.path.insert(0, f"{{checkout}}/tools")
out = f"{{data}}/official.json"
sys.argv = ["", "--mevis_exp_path", f"{{data}}/truth/meta_expressions.json"]
sys.argv += ["--mevis_mask_path", f"{{data}}/truth/mask_dict.json"]
sys.argv += ["--mevis_pred_path", f"{{data}}/results", "--save_name", out]
runpy.run_path(f"{{checkout}}/tools/eval_mevis.py", run_name="__main__")
with open(out) as file:
    pairs = np.array(list(json.load(file).values()))
j, f = pairs.mean(0)
answer({{"J&F-Mean": (j + f) / 2, "J-Mean": j, "F-Mean": f}})
"""


def mevis(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write the 50 videos of valid_u: 80 frames and 16 expressions each."""
    videos: dict[str, Any] = {}
    masks: dict[str, Any] = {}
    for number in range(scaled(50, scale)):
        frames = int(lot.integers(40, 121))
        names = [f"{index:05d}" for index in range(frames)]
        shapes = [blob(lot, size) for _ in range(4)]
        first = len(masks)
        for shape in shapes:
            masks[str(len(masks))] = tube(lot, shape, size, frames, 0.9)
        expressions: dict[str, Any] = {}
        for record in range(16):
            chosen = sorted(int(k) for k in lot.choice(4, int(lot.integers(0, 4)), replace=False))
            expressions[str(record)] = {"exp": "moving", "obj_id": chosen, "anno_id": [first + k for k in chosen]}
            shown = chosen if lot.random() < 0.8 else [int(lot.integers(4))]
            for index, name in enumerate(names):
                union = np.zeros(size, bool)
                for k in shown:
                    union |= pixels(masks[str(first + k)][max(0, index - 1)], size)
                save(folder / "results" / f"video{number}" / str(record) / f"{name}.png", union * np.uint8(255))
        videos[f"video{number}"] = {"frames": names, "expressions": expressions}
    write(folder / "truth/meta_expressions.json", {"videos": videos})
    write(folder / "truth/mask_dict.json", masks)


def _write_expressions(folder: Path, lot: Lot, count: int, *, expressions: float, frames: int, labels: bool) -> None:
    """Write videos of 720p whose expressions name one or two objects; truths are run lengths or label images."""
    size, shown = (720, 1280), 4
    shapes: list[Blob] = [blob(lot, size) for _ in range(_SHAPES)]
    drawn = [segmentation(shape, size) for shape in shapes]
    sent = [pixels(segmentation(shifted(lot, shape, size, 4), size), size) * np.uint8(255) for shape in shapes]
    answers = [grey_png(mask, 3) for mask in sent]
    videos: dict[str, Any] = {}
    masks: dict[str, Any] = {}
    with zipfile.ZipFile(folder / "results.zip", "w") as archive:
        for video in range(count):
            names = [f"{frame:05d}" for frame in range(max(2, int(lot.poisson(frames))))]
            # Shapes of each object, by frame.
            tracks = np.arange(len(names)) // 4 + lot.integers(0, _SHAPES, (shown, 1))
            for track in tracks % _SHAPES:
                masks[str(len(masks))] = [drawn[shape] for shape in track.tolist()]
            listed: dict[str, Any] = {}
            for number in range(max(1, round(expressions * (video + 1)) - round(expressions * video))):
                chosen = lot.permutation(shown)[: 1 if labels else int(lot.integers(1, 3))].tolist()
                first = len(masks) - shown
                ids = {"obj_id": str(chosen[0] + 1)} if labels else {"anno_id": [first + k for k in chosen]}
                listed[str(number)] = {"exp": "moving", "obj_id": chosen, **ids}
                for name, shape in zip(names, (tracks[chosen[0]] % _SHAPES).tolist(), strict=True):
                    archive.writestr(f"video{video}/{number}/{name}.png", answers[shape])
            videos[f"video{video}"] = {"frames": names, "expressions": listed}
            for place, name in enumerate(names if labels else ()):
                image = np.zeros(size, np.uint8)
                for k, shape in enumerate((tracks[:, place] % _SHAPES).tolist(), 1):
                    image[sent[shape] > 0] = k
                path = folder / f"truth/valid/Annotations/video{video}/{name}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(label_png(image, 3))
    about = folder / "truth" / ("meta_expressions/valid" if labels else "")
    about.mkdir(parents=True, exist_ok=True)
    (about / "meta_expressions.json").write_text(json.dumps({"videos": videos}))
    if not labels:
        (about / "mask_dict.json").write_text(json.dumps(masks))


TRACK_SETS = {"mevis": TrackSet(mevis, HD, {"mevis-official": ("MeViS", MEVIS)}, "truth", "results")}

_MEVIS = partial(_write_expressions, expressions=2_236 / 140, frames=80, labels=False)
_REF_YOUTUBE = partial(_write_expressions, expressions=834 / 202, frames=30, labels=True)
_FIGURE = "orphans-of-expressions"
ORPHANS = {
    orphan.protocol: orphan
    for orphan in (
        Orphan("mevis-official", "MeViS v1 val, 2,236 expressions, 80 frames of 720p", 140, _MEVIS, "SEQUENCE", "mevis", _FIGURE),
        Orphan(
            "ref-youtube-vos", "Ref-YouTube-VOS val, 834 expressions, 30 frames", 202, _REF_YOUTUBE, "SEQUENCE",
            "ref-youtube-vos", _FIGURE,
        ),
    )
}  # fmt: skip
