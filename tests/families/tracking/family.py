"""The data of tracking for the tests of all families; `tests/families/contract.py` defines each name."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any, Callable

import numpy as np

from segjudge.evaluation_script.families.tracking.protocols import TRACKS_PROTOCOLS
from tests import published
from tests.builders import written, zipped
from tests.families.slips import Slip, cornered, mirrored, moved, texts, turned
from tests.published import FRAMES, SIZE, disk, rle


def lines(name: str, first: int, kinds: tuple[int, int]) -> str:
    rows = [
        f"{k + first} {1000 * kind + number} {kind} {SIZE[0]} {SIZE[1]} {rle(published.labels(name, k) == number)['counts']}\n"
        for k in range(FRAMES) for number, kind in zip((1, 2), kinds)
    ]  # fmt: skip
    return "".join([*rows, f"{first} 10000 10 {SIZE[0]} {SIZE[1]} {rle(disk(4, 4))['counts']}\n"])


def mots(folder: Path) -> Path:
    """Write folders in the layout of MOTS20."""
    facts = f"[Sequence]\nseqLength={FRAMES}\nimWidth={SIZE[1]}\nimHeight={SIZE[0]}\n"
    texts = {f"MOTS20-{name}/gt/gt.txt": lines(name, 1, (2, 2)) for name in published.VIDEOS}
    return written(folder / "train", {**texts, **{f"MOTS20-{name}/seqinfo.ini": facts for name in published.VIDEOS}})


def kitti_mots(folder: Path) -> Path:
    """Return a zip of texts and the list of sequences."""
    texts = {f"instances_txt/{k:04d}.txt": lines(name, 0, (1, 2)) for k, name in enumerate(published.VIDEOS)}
    listing = "".join(f"{k:04d} empty 000000 {FRAMES:06d}\n" for k in range(len(published.VIDEOS)))
    (folder / "kitti.zip").write_bytes(zipped({**texts, "val.seqmap": listing}))
    return folder / "kitti.zip"


def burst(folder: Path) -> Path:
    sequences = [
        {
            "id": k, "width": SIZE[1], "height": SIZE[0], "seq_name": name, "dataset": "YFCC100M", "fps": 1,
            "annotated_image_paths": [f"{frame:05d}.jpg" for frame in range(FRAMES)], "neg_category_ids": [9],
            "not_exhaustive_category_ids": [], "track_category_ids": {"1": 805, "2": 1},
            "segmentations": [
                {str(number): {"rle": rle(published.labels(name, frame) == number)["counts"]} for number in (1, 2)}
                for frame in range(FRAMES)
            ],
        }
        for k, name in enumerate(published.VIDEOS)
    ]  # fmt: skip
    categories = [{"id": 805, "name": "person"}, {"id": 1, "name": "acorn"}]
    document = {"split": "val", "sequences": sequences, "categories": categories}
    return written(folder, {"all_classes.json": document}) / "all_classes.json"


def send_mots(_truth: Path) -> bytes:
    """Return a text for each sequence, without ignored regions."""
    texts = {f"MOTS20-{name}.txt": lines(name, 1, (2, 2)) for name in published.VIDEOS}
    return zipped({name: text[: text.index("1 10000 10 ")] for name, text in texts.items()})


def send_kitti_mots(_truth: Path) -> bytes:
    texts = {f"{k:04d}.txt": lines(name, 0, (1, 2)) for k, name in enumerate(published.VIDEOS)}
    return zipped({name: text[: text.index("0 10000 10 ")] for name, text in texts.items()})


def send_burst(truth: Path) -> bytes:
    """Return one JSON, with a score for each mask."""
    sequences = json.loads(truth.read_text())["sequences"]
    for sequence in sequences:
        for mask in [mask for masks in sequence["segmentations"] for mask in masks.values()]:
            mask["score"] = 0.9
    return json.dumps({"split": "val", "sequences": sequences}).encode()


_PUBLISHED: dict[str, Callable[[Path], Path]] = {"mots": mots, "kitti-mots": kitti_mots}
PUBLISHED = {name: _PUBLISHED.get(name, burst) for name in TRACKS_PROTOCOLS}
UPLOADS: dict[str, tuple[Callable[[Path], bytes], dict[str, float]]] = {
    "mots": (send_mots, {"HOTA": 1, "sMOTSA": 1, "IDF1": 1}),
    "kitti-mots": (send_kitti_mots, {"HOTA-car": 1, "HOTA-pedestrian": 1}),
    "burst": (send_burst, {"HOTA": 1, "AP": 1, "HOTA-common": 1}),
}
UPLOAD_OF_OTHERS = "burst"
REFUSALS = {
    **dict.fromkeys(UPLOADS, "Send one zip with a text file SEQUENCE.txt for each"),
    "burst": "Send one JSON file",
}
RESULTS_FROM_TRUTH = True


def burst_scores(data: bytes) -> bytes:
    return data.replace(b'"score": 0.9', b'"score": 90')


def with_runs_turned(line: list[str]) -> list[str]:
    return [*line[:-1], turned(line[-1])]


def mirrored_line(line: list[str]) -> list[str]:
    return [*line[:-1], mirrored(line[-1])]


def renumbered(line: list[str]) -> list[str]:
    """Return a line of a track with another number in each frame."""
    return [line[0], str(1000 * int(line[2]) + 100 + 10 * int(line[0]) + int(line[1]) % 10), *line[2:]]


def exchange_classes(line: list[str]) -> list[str]:
    """Return the line of a car as one of a pedestrian, or the reverse."""
    kind = 3 - int(line[2])
    return [line[0], str(1000 * kind + int(line[1]) % 1000), str(kind), *line[3:]]


def late_lines(data: bytes) -> bytes:
    """Move the masks of each frame to the next one, and leave out those of the last frame."""
    late = texts(lambda line: [str(int(line[0]) + 1), *line[1:]])(data)
    with zipfile.ZipFile(io.BytesIO(late)) as archive:
        lines = {name: archive.read(name).decode().splitlines(keepends=True) for name in archive.namelist()}
    return zipped(
        {
            name: "".join(line for line in own if int(line.split(" ")[0]) < published.FRAMES)
            for name, own in lines.items()
        }
    )


SLIPS: dict[str, tuple[str, Slip, str]] = {
    "percent of tracks": ("burst", burst_scores, "as percentages do"),
    "numbers anew": ("kitti-mots", texts(renumbered), "objects have other numbers in each frame: corrected, the mean IoU of tracks would be 1.00 instead of 0.17"),
    "mirrored tracks": ("kitti-mots", texts(mirrored_line), "masks look mirrored"),
    "padded tracks": ("kitti-mots", texts(lambda line: [*line[:5], cornered(line[5])]), "had been padded to squares at one side: corrected, the IoU over all pixels would be 0.9"),
    "one class": ("kitti-mots", texts(lambda line: [line[0], str(2000 + int(line[1]) % 1000), "2", *line[3:]]), "all masks have the label 2, though the truth has 2"),
    "one frame late": ("kitti-mots", late_lines, "each frame of the masks looks as if it belonged to the frame before its own: corrected"),
    "exchanged classes": ("kitti-mots", texts(exchange_classes), "category ids look exchanged, such as 2 for 1, 1 for 2"),
    "masks elsewhere": ("kitti-mots", texts(lambda line: [*line[:5], moved(line[5])]), "masks look moved by 20 along x"),
    "rows": ("kitti-mots", texts(with_runs_turned), "run lengths look as if written row by row"),
}  # fmt: skip
BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "mots": (
        lambda root: published.replaced(root / "MOTS20-swan/gt/gt.txt", "2001", "car"),
        "line 1 is not `frame id class",
    ),
    "burst": (
        lambda path: published.replaced(path, '"rle"', '"mask"'),
        "YFCC100M/swan: cannot be read (KeyError('rle'))",
    ),
}
LOSSES = {"mots": "DetA and AssA", "burst": "DetA and AssA"}
SHARED_LOSSES = {
    "mots": ("mots/gt", "mots/trackers/ours/data", "DetA and AssA"),
    "burst": ("burst/truth.json", "burst/class-guided.json", "DetA and AssA"),
}
UNFIT: dict[str, list[tuple[str, str]]] = {"burst": [("mots", "mots")]}
BURST_TRACKS = [
    [{"track_id": 1, "category_id": 3, "segmentation": frame == 1, "score": -1.0}] for frame in published.LABEL_FRAMES
]
SAVED_MASKS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "mots": ({"a": np.where(published.LABEL_FRAMES == 1, 2001, 0)}, []),
    "burst": ({"a": BURST_TRACKS}, [{"id": 3, "name": "cat"}]),
}
DAMAGED_FACTS: dict[str, list[dict[str, Any]]] = {
    "burst": [{"classes": [["cat"]]}, {"classes": [[{}, 3]]}, {"classes": []}]
}
BOARD_LABELS: dict[str, tuple[str, ...]] = {
    "mots": ("HOTA", "DetA", "AssA", "DetRe", "DetPr", "AssRe", "AssPr"),
    "burst": ("HOTA", "DetA", "AssA", "AP", "HOTA-common", "HOTA-uncommon"),
}
JSON_TRUTHS = {"burst": "all_classes.json"}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "no label maps": ("burst",),
    "first screens": ("mots",),
    "sharing": ("mots", "burst"),
    "pages": ("mots", "burst"),
    "mounts": ("mots", "burst"),
    "any names": ("mots", "burst"),
    "surplus": ("mots", "burst"),
    "samples": ("mots", "kitti-mots", "burst"),
    "rankings": ("mots", "burst"),
    "painted": ("mots", "burst"),
    "painted beside": ("mots",),
    "machines": ("mots",),
    "subsets": ("mots", "burst"),
    "chosen units": ("mots", "burst"),
    "wrong roots": ("mots",),
    "hosts": ("mots", "kitti-mots", "burst"),
}
SAMPLE_SCORES = {
    "mots": (0.91530376341558, 0.46730759553061263),
    "kitti-mots": (0.9187324175458675, 0.46525866476393607),
    "burst": (0.9232234774981896, 0.4753180061047311),
    "burst-official": (0.9654237702657098, 0.6332310513636927),
    "burst-exemplar-guided": (0.9232234774981896, 0.4753180061047311),
    "burst-exemplar-guided-official": (0.9654237702657098, 0.6332310513636927),
}
