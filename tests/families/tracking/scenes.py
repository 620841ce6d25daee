"""Writes scenes as truths and uploads of tracks, for `tests/report/test_known_faults.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.builders import written, zipped
from tests.report.known_files import OF_SEGMENTS, OF_TRACKS, Benchmark, to_json
from tests.report.known_scenes import NAMES, SIZE, Video, World


def _lines(video: Video, first: int, kinds: dict[int, int]) -> str:
    return "".join(
        f"{frame + first} {1000 * kinds[video.classes[number]] + number} {kinds[video.classes[number]]} "
        f"{SIZE[0]} {SIZE[1]} {text}\n"
        for frame, texts in enumerate(video.runs()) for number, text in texts.items()
    )  # fmt: skip


def publish_mots(world: World, folder: Path) -> Path:
    files: dict[str, Any] = {}
    for video in world:
        facts = f"[Sequence]\nseqLength={len(video.labels)}\nimWidth={SIZE[1]}\nimHeight={SIZE[0]}\n"
        files |= {f"{video.name}/gt/gt.txt": _lines(video, 1, {1: 2}), f"{video.name}/seqinfo.ini": facts}
    return written(folder, files)


def send_mots(world: World) -> bytes:
    return zipped({f"{video.name}.txt": _lines(video, 1, {1: 2}) for video in world})


def publish_kitti(world: World, folder: Path) -> Path:
    files: dict[str, Any] = {
        f"instances_txt/{index:04d}.txt": _lines(video, 0, {1: 1, 2: 2}) for index, video in enumerate(world)
    }
    files["val.seqmap"] = "".join(
        f"{index:04d} empty 000000 {len(video.labels):06d}\n" for index, video in enumerate(world)
    )
    return written(folder, files)


def send_kitti(world: World) -> bytes:
    return zipped({f"{index:04d}.txt": _lines(video, 0, {1: 1, 2: 2}) for index, video in enumerate(world)})


_BURST = {1: 4, 2: 5, 3: 13}


def _burst_sequences(world: World) -> list[dict[str, Any]]:
    return [
        {"id": index, "width": SIZE[1], "height": SIZE[0], "seq_name": video.name, "dataset": "Demo", "fps": 1,
         "annotated_image_paths": [f"{frame:05d}.jpg" for frame in range(len(video.labels))],
         "neg_category_ids": [], "not_exhaustive_category_ids": [],
         "track_category_ids": {str(number): _BURST[video.classes[number]] for number in video.numbers()},
         "segmentations": [
             {str(number): {"rle": text, "score": video.scores.get(number, 0.9)} for number, text in texts.items()}
             for texts in video.runs()
         ]}
        for index, video in enumerate(world, 1)
    ]  # fmt: skip


def publish_burst(world: World, folder: Path) -> Path:
    categories = [{"id": _BURST[number], "name": name} for number, name in NAMES.items()]
    document = {"split": "val", "sequences": _burst_sequences(world), "categories": categories}
    return written(folder, {"all_classes.json": document}) / "all_classes.json"


SCENES = {
    "mots": Benchmark(publish_mots, send_mots, frames=8, kinds=1, faults=OF_TRACKS),
    "kitti-mots": Benchmark(publish_kitti, send_kitti, frames=8, kinds=2, names={1: "car", 2: "pedestrian"}, faults=(*OF_SEGMENTS, "identities")),
    "burst": Benchmark(publish_burst, lambda world: to_json({"sequences": _burst_sequences(world)}), frames=8, faults=(*OF_SEGMENTS, "identities")),
}  # fmt: skip
