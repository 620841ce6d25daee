"""Generated sets of segments: COCO's panoptic images, VIPSeg and KITTI-STEP."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.drawing import VOID, Array, Lot, Regions, coloured, save, scaled, write
from benchmarks.families import COMPAT, HD, NoisyTracks, Orphan, TrackSet
from benchmarks.instances import Size

QUALITIES = """
def qualities(results):
    groups = (("All", ""), ("Things", "-Things"), ("Stuff", "-Stuff"))
    answer({f"{one.upper()}{suffix}": results[name][one] for name, suffix in groups for one in ("pq", "sq", "rq")})
"""

PANOPTICAPI = f"""{COMPAT}{QUALITIES}
from panopticapi.evaluation import pq_compute
qualities(pq_compute(f"{{data}}/truth.json", f"{{data}}/results/results.json"))
"""

BOUNDARY_PANOPTIC = f"""{COMPAT}{QUALITIES}
from boundary_iou.coco_panoptic_api.evaluation import pq_compute
qualities(pq_compute(f"{{data}}/truth.json", f"{{data}}/results/results.json", iou_type="boundary"))
"""

VIPSEG = f"""{COMPAT}
os.chdir(f"{{checkout}}/ClipPanoFCN")
sys.path.insert(0, os.getcwd())
import eval_vpq_vspw as vpq
import eval_stq_vspw as stq
means, compute = [], vpq.vpq_compute_parallel
def kept(*given):
    means.append(compute(*given))
    return means[-1]
vpq.vpq_compute_parallel = kept
sys.argv = ["", "-i", f"{{data}}/results", "--truth_dir", f"{{data}}/truth"]
sys.argv += ["--pan_gt_json_file", f"{{data}}/truth.json"]
ends, result = {{}}, stq.numpy_stq.STQuality.result
stq.numpy_stq.STQuality.result = lambda self: ends.update(result(self)) or ends
stq.main()
sys.argv += ["--num_processes", "1"]
vpq.main()
values = {{"VPQ" + group: sum(one[at] for one in means) / 500 for at, group in enumerate(("", "-Things", "-Stuff"))}}
values.update({{f"VPQ{{frames}}": one[0] / 100 for frames, one in zip((1, 2, 4, 6, 8), means)}})
answer({{**values, **{{name: ends[name] for name in ("STQ", "AQ", "IoU")}}}})
for name in os.listdir(f"{{data}}/results"):
    if name.endswith(".txt"):
        os.remove(f"{{data}}/results/{{name}}")
"""

STEP = f"""{COMPAT}
import glob
from PIL import Image
sys.path[:0] = [f"{{checkout}}/evaluation/numpy"]
from segmentation_and_tracking_quality import STQuality
metric = STQuality(19, [11, 13], 255, 16, 1 << 24)
for path in sorted(glob.glob(f"{{data}}/truth/*/*.png")):
    sides = [np.array(Image.open(path.replace("/truth/", f"/{{side}}/"))).astype(np.int32) for side in ("truth", "results")]
    codes = [side[..., 0] << 16 | side[..., 1] << 8 | side[..., 2] for side in sides]
    metric.update_state(*codes, path.split("/")[-2])
values = metric.result()
answer({{name: values[name] for name in ("STQ", "AQ", "IoU")}})
"""


def segments(ids: Array, categories: dict[int, int], crowds: frozenset[int]) -> list[dict[str, int]]:
    """Return the segments that the JSON lists of a picture."""
    found, areas = np.unique(ids, return_counts=True)
    return [
        {"id": record, "category_id": categories[record], "area": area, "iscrowd": int(record in crowds)}
        for record, area in zip(found.tolist(), areas.tolist(), strict=True)
        if record
    ]


class PanopticVideo:
    """The ids of both sides, their categories, and the regions of each frame."""

    def __init__(self, lot: Lot, size: Size, count: int, classes: int) -> None:
        self._lot, self._regions, self._count = lot, Regions(lot, size, count), count
        self._ids = [np.append(lot.choice((1 << 24) - 1, count, replace=False) + 1, 0) for _ in range(2)]
        of_truth = lot.integers(0, classes, count)
        sent = np.where(lot.random(count) < 0.85, of_truth, lot.integers(0, classes, count))
        self.categories = [
            dict(zip(ids.tolist(), list(record.tolist()), strict=False))
            for ids, record in zip(self._ids, (of_truth, sent), strict=True)
        ]
        self.crowds = frozenset(self._ids[0][:count][lot.random(count) < 0.04].tolist())

    def frame(self, index: int) -> tuple[Array, Array]:
        """Return the ids of truth and results, each with some void or missing pixels."""
        truth = self._regions.labels(index)
        sent = self._regions.labels(index, self._lot.normal(0, 1.5, (self._count, 2)))
        truth[: truth.shape[0] // 18, : truth.shape[1] // 10] = self._count
        sent[-sent.shape[0] // 18 :, : sent.shape[1] // 20] = self._count
        return self._ids[0][truth], self._ids[1][sent]


def things(classes: int) -> list[dict[str, Any]]:
    return [{"id": k, "name": f"c{k}", "isthing": int(k < classes * 0.5)} for k in range(classes)]


def coco_panoptic(folder: Path, lot: Lot, scale: float, size: Size, counts: tuple[int, int] = (5, 18)) -> None:
    """Write val2017's 5,000 images with 11 segments each, or with other counts."""
    lists: list[list[Any]] = [[], []]
    for image in range(scaled(5000, scale)):
        video = PanopticVideo(lot, size, int(lot.integers(*counts)), 133)
        for side, ids in enumerate(video.frame(0)):
            name = f"{image:012d}.png"
            save(folder / ("truth", "results/results")[side] / name, coloured(ids))
            listed = segments(ids, video.categories[side], video.crowds if not side else frozenset())
            lists[side].append({"image_id": image, "file_name": name, "segments_info": listed})
    write(folder / "truth.json", {"images": [], "annotations": lists[0], "categories": things(133)})
    write(folder / "results/results.json", {"annotations": lists[1]})


def vipseg(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write val's 343 videos with 24 frames each."""
    videos: list[Any] = []
    lists: list[list[Any]] = [[], []]
    for number in range(scaled(343, scale)):
        name, video = f"v{number}", PanopticVideo(lot, size, 22, 124)
        frames: list[list[Any]] = [[], []]
        for index in range(int(lot.integers(18, 31))):
            for side, ids in enumerate(video.frame(index)):
                file = f"{index:08d}.png"
                save(folder / ("truth", "results/pan_pred")[side] / name / file, coloured(ids))
                listed = segments(ids, video.categories[side], frozenset())
                frames[side].append({"image_id": f"{index:08d}", "file_name": file, "segments_info": listed})
        for side in (0, 1):
            lists[side].append({"video_id": name, "annotations": frames[side]})
        pictures = [
            {"id": record["image_id"], "file_name": record["file_name"], "height": size[0], "width": size[1]}
            for record in frames[0]
        ]
        videos.append({"video_id": name, "images": pictures})
    write(folder / "truth.json", {"videos": videos, "annotations": lists[0], "categories": things(124)})
    write(folder / "results/pred.json", {"annotations": lists[1]})


def kitti_step(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write nine sequences of 2,981 frames in all: 19 classes, and 12 objects."""
    for number in range(9):
        regions = Regions(lot, size, 32)
        classes = np.append(np.arange(20), lot.choice([11, 13], 12))
        classes[19] = VOID
        truth = classes | np.where(np.isin(classes, [11, 13]), np.arange(32) % 20, 0) << 16
        switched = np.where(lot.random(32) < 0.2, truth + (40 << 16), truth)
        sent = np.where(truth == VOID, 0, switched)
        for index in range(scaled(331, scale)):
            off = lot.normal(0, 1.5, (32, 2))
            for side, pixels in (
                ("truth", truth[regions.labels(index)]),
                ("results", sent[regions.labels(index, off)]),
            ):
                save(folder / side / f"{number:04d}" / f"{index:06d}.png", coloured(pixels))


def write_large(folder: Path, lot: Lot, count: int) -> None:
    """Write so many images of 11 segments, whose pictures repeat."""
    pictures = []
    for number in range(min(count, 100)):
        video = PanopticVideo(lot, (480, 640), int(lot.integers(5, 18)), 133)
        for side, ids in enumerate(video.frame(0)):
            save(folder / f"drawn/{number}-{side}.png", coloured(ids))
            crowds = video.crowds if not side else frozenset()
            pictures.append(segments(ids, video.categories[side], crowds))
    lists: list[list[Any]] = [[], []]
    for side, place in enumerate(("truth", "results/results")):
        (folder / place).mkdir(parents=True)
        for image in range(count):
            number, name = image % (len(pictures) // 2), f"{image:012d}.png"
            (folder / place / name).hardlink_to(folder / f"drawn/{number}-{side}.png")
            lists[side].append({"image_id": image, "file_name": name, "segments_info": pictures[2 * number + side]})
    truth = {"images": [], "annotations": lists[0], "categories": things(133)}
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "results/results.json").write_text(json.dumps({"annotations": lists[1]}))


TRACK_SETS = {
    "coco-panoptic": TrackSet(
        coco_panoptic, (480, 640),
        {"coco-panoptic": ("panopticapi", PANOPTICAPI), "coco-panoptic-boundary": ("boundary-iou-api", BOUNDARY_PANOPTIC)},
        results="results", figure="small-sets", shared=0.2,
    ),
    "vipseg": TrackSet(vipseg, HD, {"vipseg-official": ("VIPSeg", VIPSEG)}, results="results"),
    "kitti-step": TrackSet(kitti_step, (375, 1242), {"kitti-step-official": ("deeplab2", STEP)}, "truth", "results"),
}  # fmt: skip
NOISY_SETS = {
    "panoptic": NoisyTracks("coco-panoptic", "coco-panoptic", 20),
    "many-segments": NoisyTracks("coco-panoptic", "coco-panoptic", 8, partial(coco_panoptic, counts=(100, 140))),
    "step": NoisyTracks("kitti-step", "kitti-step-official", 20),
}
ORPHANS = {
    "coco-panoptic": Orphan(
        "coco-panoptic", "COCO test-dev, pictures of 11 segments", 20_288, write_large, "UNIT", "coco-panoptic"
    ),
}
