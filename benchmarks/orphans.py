"""Score submissions of real size to closed benchmarks within the limits of EvalAI and Codabench.

    python -m benchmarks.orphans [PROTOCOL …] [--scale 1] [--folder FOLDER]

Truths and submissions are generated with the counts of the real ones: of COCO test-dev 20,288 images and 100 detections
of each.  Shapes repeat, counts do not.  Each submission is scored by `evaluate()` as a worker calls it, with its guard of
640 MiB, by one process.  EvalAI gives half a core and 1 GiB, so seconds there are twice the CPU seconds; Codabench's public
queue stops us after 480.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.instances import Blob, blob, segmentation, shifted
from benchmarks.keypoints import POINTS, people, poses
from benchmarks.measuring import Table, options, run, segjudge, show
from benchmarks.track_sets import PanopticVideo, coloured, pixels, save, segments, things, video_instances
from segjudge.masks.compression import grey_png, label_png

_SIZE = (480, 640)
#: The number of different shapes.
_SHAPES = 400
#: What Codabench's public queue allows, in seconds, and which share of a core EvalAI gives.
_SECONDS, _CORE = 480, 0.5

#: What a worker does: one call of `evaluate()` with a phase that takes so many records and bytes.
CODE = """
import json, sys
from dataclasses import replace
from segjudge.evaluation_script import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files import INSTANCE_LIMITS, UNIT_LIMITS, ArchiveLimits
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
truth, upload, name, limits = sys.argv[1:]
limits = {"INSTANCE": INSTANCE_LIMITS, "UNIT": UNIT_LIMITS, "SEQUENCE": ArchiveLimits()}[limits]
if limits != ArchiveLimits():
    limits = replace(limits, records=8_000_000, json_bytes=4 << 30)
metrics = PROTOCOLS[name].metrics
main.PHASES = (Phase("test-dev", "truth.zip", (PhaseSplit("test-dev", name, metrics),), limits=limits),)
print(json.dumps(main.evaluate(truth, upload, "test-dev")["result"][0]))
"""

_Lot = np.random.Generator
#: Writes the truth and the submission into a folder; the number of images or videos is given.
_Writer = Callable[[Path, _Lot, int], None]


@dataclass(frozen=True)
class _Orphan:
    """A benchmark without a server."""

    protocol: str
    #: Of the test set, in words and as a number.
    about: str
    count: int
    write: _Writer
    limits: str = "INSTANCE"


def stream(path: Path, head: str, records: Iterator[Any], tail: str) -> None:
    """Write a list item by item, since it may not fit into memory."""
    with path.open("w") as file:
        file.write(head)
        for number, record in enumerate(records):
            file.write(("," if number else "") + json.dumps(record, separators=(",", ":")))
        file.write(tail)


def _images(count: int, categories: int, lot: _Lot | None = None) -> str:
    """Return the beginning of a truth; a generator adds the categories that each image lacks, as in LVIS."""
    listed: list[dict[str, Any]] = [
        {"id": image, "file_name": f"{image:012d}.jpg", "height": _SIZE[0], "width": _SIZE[1]}
        for image in range(1, count + 1)
    ]
    named = [{"id": number, "name": f"category {number}"} for number in range(1, categories + 1)]
    if lot is not None:
        named = [{**category, "frequency": "rcf"[int(category["id"]) % 3]} for category in named]
        for image in listed:
            image["neg_category_ids"] = lot.integers(1, categories + 1, 12).tolist()
            image["not_exhaustive_category_ids"] = []
    return f'{{"images": {json.dumps(listed)}, "categories": {json.dumps(named)}, "annotations": ['


def _write_instances(
    folder: Path, lot: _Lot, count: int, *, boxes: bool = False, each: int = 100, kinds: int = 80
) -> None:
    """Write 7 instances per image (12 if there are many categories) and their detections."""
    mean = 7.3 if kinds == 80 else 12.3
    shapes: list[Blob] = [blob(lot, _SIZE) for _ in range(_SHAPES)]
    drawn = [segmentation(shape, _SIZE) for shape in shapes]
    frayed = [segmentation(shifted(lot, shape, _SIZE, int(lot.integers(-6, 7))), _SIZE) for shape in shapes]
    areas = [sum(shape[1][1::2]) for shape in shapes]
    around = [_box(shape) for shape in shapes]
    instances = [np.add(lot.integers(0, (_SHAPES, kinds), (int(lot.poisson(mean)), 2)), (0, 1)) for _ in range(count)]

    def annotations() -> Iterator[Any]:
        number = 0
        for image, rows in enumerate(instances, 1):
            for shape, category in rows.tolist():
                number += 1
                yield {
                    "id": number, "image_id": image, "category_id": category, "iscrowd": 0, "area": areas[shape],
                    "bbox": around[shape], "segmentation": drawn[shape],
                }  # fmt: skip

    def detections() -> Iterator[Any]:
        for image, rows in enumerate(instances, 1):
            chosen = lot.integers(0, max(len(rows), 1), each)
            near, scores = lot.random(each) < 0.55 * bool(len(rows)), lot.random(each).round(4).tolist()
            others = np.add(lot.integers(0, (_SHAPES, kinds), (each, 2)), (0, 1)).tolist()
            for index, row in enumerate(chosen.tolist()):
                shape, category = rows[row].tolist() if near[index] else others[index]
                place = {"bbox": around[shape]} if boxes else {"segmentation": frayed[shape]}
                yield {"image_id": image, "category_id": category, "score": scores[index], **place}

    stream(folder / "truth.json", _images(count, kinds, None if kinds == 80 else lot), annotations(), "]}")
    stream(folder / "results.json", "[", detections(), "]")


def _box(shape: Blob) -> list[float]:
    left, spans = shape
    table = np.array(spans).reshape(-1, 2)
    top = int(table[:, 0].min())
    return [left + 0.25, top + 0.5, len(table), int((table.sum(axis=1)).max()) - top]


def _write_keypoints(folder: Path, lot: _Lot, count: int, each: int = 100) -> None:
    """Write 2.2 people per image, and detections."""
    drawn = [
        (group, list(poses(lot, group, each))) for group in (people(lot, int(lot.poisson(2.2))) for _ in range(50))
    ]
    names = [f"point {number}" for number in range(1, POINTS + 1)]
    head = _images(count, 1).replace('"name": "category 1"', f'"name": "person", "keypoints": {json.dumps(names)}')
    order = lot.integers(0, len(drawn), count).tolist()
    annotations = (
        {"image_id": image, **person} for image, number in enumerate(order, 1) for person in drawn[number][0]
    )
    stream(folder / "truth.json", head, ({"id": k, **one} for k, one in enumerate(annotations, 1)), "]}")
    stream(
        folder / "results.json",
        "[",
        ({"image_id": image, **pose} for image, number in enumerate(order, 1) for pose in drawn[number][1]),
        "]",
    )


def _write_videos(folder: Path, lot: _Lot, count: int, *, frames: int, labels: bool) -> None:
    video_instances(count, frames, labels=labels)(folder, lot, 1, (720, 1280))


def _write_expressions(folder: Path, lot: _Lot, count: int, *, expressions: float, frames: int, labels: bool) -> None:
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


def _write_panoptic(folder: Path, lot: _Lot, count: int) -> None:
    """Write pictures of 11 segments."""
    pictures = []
    for number in range(min(count, 100)):
        video = PanopticVideo(lot, _SIZE, int(lot.integers(5, 18)), 133)
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


_FEDERATED = partial(_write_instances, each=300, kinds=1203)
_SHORT_VIDEOS = partial(_write_videos, frames=36, labels=False)
_MEVIS = partial(_write_expressions, expressions=2_236 / 140, frames=80, labels=False)
_REF_YOUTUBE = partial(_write_expressions, expressions=834 / 202, frames=30, labels=True)
_LONG_VIDEOS = partial(_write_videos, frames=63, labels=True)

ORPHANS = {
    orphan.protocol: orphan
    for orphan in (
        _Orphan("coco-box", "COCO test-dev, 100 boxes each", 20_288, partial(_write_instances, boxes=True)),
        _Orphan("coco", "COCO test-dev, 100 masks each", 20_288, partial(_write_instances, boxes=False)),
        _Orphan("coco-keypoints", "COCO test-dev, 100 sets of keypoints each", 20_288, _write_keypoints),
        _Orphan("coco-panoptic", "COCO test-dev, pictures of 11 segments", 20_288, _write_panoptic, "UNIT"),
        _Orphan("lvis", "LVIS test-dev, 300 masks each", 19_822, _FEDERATED),
        _Orphan("youtube-vis-2021", "YouTube-VIS 2021 val, 36 frames of 720p", 421, _SHORT_VIDEOS),
        _Orphan("ovis", "OVIS val, 63 frames of 720p", 140, _LONG_VIDEOS),
        _Orphan("mevis-official", "MeViS v1 val, 2,236 expressions, 80 frames of 720p", 140, _MEVIS, "SEQUENCE"),
        _Orphan("ref-youtube-vos", "Ref-YouTube-VOS val, 834 expressions, 30 frames", 202, _REF_YOUTUBE, "SEQUENCE"),
    )
}


def _measure(orphan: _Orphan, folder: Path, scale: float) -> list[str]:
    """Write, pack and score a set; return its row of the table."""
    count = max(2, round(orphan.count * scale))
    folder.mkdir(parents=True, exist_ok=True)
    results, truth = folder / "results.zip", folder / "packed.zip"
    if not truth.exists():
        orphan.write(folder, np.random.default_rng(2017), count)
        layout = _LAYOUTS.get(orphan.limits, orphan.protocol.removesuffix("-official"))
        root = folder / ("truth" if orphan.limits == "SEQUENCE" else "truth.json")
        run(segjudge("pack", "--layout", layout, "--root", root, "--out", truth))
        if not results.exists():
            _zip(folder, results)
    scored = run([sys.executable, "-c", CODE, str(truth), str(results), orphan.protocol, orphan.limits])
    values = json.loads(scored.printed.splitlines()[-1])["test-dev"]
    seconds = scored.cpu / _CORE
    return [
        f"`{orphan.protocol}`", orphan.about, f"{count:,}", f"{results.stat().st_size / 1e6:,.0f}", f"{scored.cpu:.0f}",
        f"{scored.megabytes:.0f}", f"{seconds:.0f}", "yes" if scored.cpu < _SECONDS else "no",
        f"{next(iter(values.values())):.3f}",
    ]  # fmt: skip


_LAYOUTS = {"INSTANCE": "coco", "UNIT": "coco-panoptic"}


def _zip(folder: Path, out: Path) -> None:
    """Pack the submission as a participant would."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        if (folder / "results.json").exists():
            archive.write(folder / "results.json", "results.json")
            return
        for path in sorted((folder / "results").rglob("*")):
            archive.write(path, path.relative_to(folder / "results"))


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=", ".join(ORPHANS))
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the images")
    parser.add_argument("--folder", type=Path, help="keep the sets here and use them again")
    args = parser.parse_args(arguments)
    head = ["protocol", "submission", "images or videos", "MB sent", "CPU seconds", "MB of memory", "seconds on EvalAI",
            "within 480 s", "score"]  # fmt: skip
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.folder or Path(temporary)).resolve()
        rows = [_measure(ORPHANS[name], folder / name, args.scale) for name in args.protocols or ORPHANS]
    return show(Table(head, rows))


if __name__ == "__main__":
    main()
