"""New challenges of tracks: samples, and a synthetic truth."""

from __future__ import annotations

from segjudge.evaluation_script.families.base.units import Rows, TruthFrame, UnitTruth
from segjudge.evaluation_script.families.tracking.files import CATEGORY, IGNORED, MASK, TRACK_ID
from segjudge.evaluation_script.families.tracking.protocols import TracksProtocol
from segjudge.evaluation_script.masks.run_lengths import compress_many
from segjudge.families.base.challenges import encode_json, move_runs
from segjudge.families.base.tools import Content, Members
from segjudge.masks.demo import NAMES, Scene, first_scenes, label_frames, object_numbers
from segjudge.masks.demo import VOID as SCENE_VOID
from segjudge.masks.photographs import photograph_videos
from segjudge.masks.run_lengths import encode_labels

#: The categories of BURST for the demo's shapes: one of them is not common.
_BURST = {1: 4, 2: 5, 3: 13}
#: The factor of the class in a track's id.
_IDS = 1000


def make_sample(truths: list[UnitTruth], protocol: TracksProtocol, share: float) -> Members:
    """Yield a text file for each sequence, or one JSON in BURST's form."""
    units = [(unit.name, unit.load()) for truth in truths for unit in truth.units]
    if protocol.burst:
        yield (
            "results.json",
            encode_json({"sequences": [_make_burst_entry(name, frames, share) for name, frames in units]}),
        )
        return
    for name, frames in units:
        lines = [
            f"{frame.name} {row[TRACK_ID]} {row[CATEGORY]} {frame.size[0]} {frame.size[1]} {row[MASK]}\n"
            for frame in frames
            for row in _move_rows(frame, share)
            if row[CATEGORY] != IGNORED
        ]
        yield f"{name}.txt", "".join(lines).encode()


def _move_rows(frame: TruthFrame, share: float) -> Rows:
    """Move the masks of a frame, and return those still inside."""
    runs = [move_runs(row[MASK], frame.size, 1, share)[0] for row in frame.rows]
    masks = zip(frame.rows, compress_many(runs), runs, strict=True)
    return [[row[TRACK_ID], row[CATEGORY], mask] for row, mask, mask_runs in masks if len(mask_runs) > 1]


def _make_burst_entry(name: str, frames: list[TruthFrame], share: float) -> dict[str, object]:
    dataset, _, sequence = name.partition("/")
    rows = [_move_rows(frame, share) for frame in frames]
    return {
        "dataset": dataset,
        "seq_name": sequence,
        "annotated_image_paths": [frame.name for frame in frames],
        "track_category_ids": {str(row[TRACK_ID]): row[CATEGORY] for of_frame in rows for row in of_frame},
        "segmentations": [
            {str(row[TRACK_ID]): {"rle": row[MASK], "score": round(1 - share, 3)} for row in of_frame}
            for of_frame in rows
        ],
    }


def make_demo(protocol: TracksProtocol) -> Content:
    videos = first_scenes()
    return (
        _publish_burst(videos)
        if protocol.burst
        else _publish_kitti(videos)
        if len(protocol.classes) > 1
        else _publish_mots(videos)
    )


def _write_lines(video: Scene, first_frame: int, classes: tuple[int, ...]) -> str:
    """Return the text of tracks: frames are numbered from `first_frame`, objects take these classes in turn."""
    lines = []
    for frame in range(video.frames):
        for number, counts in encode_labels(video.truth(frame)).items():
            kind = 10 if number == SCENE_VOID else classes[number % len(classes)]
            track = 10_000 if number == SCENE_VOID else kind * _IDS + number
            lines.append(f"{frame + first_frame} {track} {kind} {video.size[0]} {video.size[1]} {counts}\n")
    return "".join(lines)


def _publish_mots(videos: list[Scene]) -> Content:
    for video in videos:
        yield f"{video.name}/gt/gt.txt", _write_lines(video, 1, (2,))
        facts = {"seqLength": video.frames, "imHeight": video.size[0], "imWidth": video.size[1]}
        yield (
            f"{video.name}/seqinfo.ini",
            "".join(["[Sequence]\n", *(f"{key}={value}\n" for key, value in facts.items())]),
        )


def _publish_kitti(videos: list[Scene]) -> Content:
    for number, video in enumerate(videos):
        yield f"instances_txt/{number:04d}.txt", _write_lines(video, 0, (1, 2))
    yield (
        "val.seqmap",
        "".join(f"{number:04d} empty 000000 {video.frames:06d}\n" for number, video in enumerate(videos)),
    )


def _publish_burst(videos: list[Scene]) -> Content:
    sequences = [
        {
            "id": index, "width": video.size[1], "height": video.size[0], "seq_name": video.name, "dataset": "Demo",
            "annotated_image_paths": [f"{name}.jpg" for name, _ in label_frames(video)],
            "neg_category_ids": [], "not_exhaustive_category_ids": [],
            "track_category_ids": {str(number): _BURST[number] for number in object_numbers(video)},
            "segmentations": [
                {str(number): {"rle": counts} for number, counts in encode_labels(labels).items()}
                for _, labels in label_frames(video)
            ],
        }
        for index, video in enumerate(videos, 1)
    ]  # fmt: skip
    categories = [{"id": _BURST[number], "name": name} for number, name in NAMES.items()]
    yield "all_classes.json", {"split": "val", "sequences": sequences, "categories": categories}


def make_demo_pictures(protocol: TracksProtocol) -> Members:
    for number, (video, frames) in enumerate(photograph_videos()):
        for index, (name, data) in enumerate(frames):
            if protocol.burst:
                yield f"Demo/{video.name}/{name}.jpg", data
            elif len(protocol.classes) > 1:
                yield f"{number:04d}/{index:06d}.jpg", data
            else:
                yield f"{video.name}/img1/{index + 1:06d}.jpg", data
