"""The data of phrases for the tests of all families; `tests/families/contract.py` defines each name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

from segjudge.evaluation_script.families.phrases.protocols import PHRASE_PROTOCOLS
from tests import published
from tests.builders import written
from tests.families.slips import Slip, mirrored, records, turned
from tests.published import FRAMES, SIZE, frames, rle


def phrases(folder: Path) -> Path:
    """Return two annotators of phrases for both objects of each frame and an absent one, as SA-Co publishes them."""
    pairs = [(name, k, number) for name, k in frames() for number in (1, 2, 9)]
    images = [
        {
            "id": 10_000_000 + number, "height": SIZE[0], "width": SIZE[1], "file_name": f"{name}-{k}.jpg",
            "text_input": f"object {item}", "is_instance_exhaustive": 1, "is_pixel_exhaustive": 1,
        }
        for number, (name, k, item) in enumerate(pairs)
    ]  # fmt: skip
    annotations = [
        {
            "id": number + 1, "image_id": 10_000_000 + number, "category_id": 1, "iscrowd": 0,
            "segmentation": rle(published.labels(name, k) == item),
        }
        for number, (name, k, item) in enumerate(pairs)
        if (published.labels(name, k) == item).any()
    ]  # fmt: skip
    document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "object"}]}
    return written(folder / "SA-Co", {f"gold_toy_merged_{item}_release_test.json": document for item in "ab"})


def video_phrases(folder: Path) -> Path:
    """Write phrases for one object of each video, both, and an absent one, as SA-Co/VEval publishes them."""
    named = {1: (1,), 2: (1, 2), 9: ()}
    videos = [
        {
            "id": video, "height": SIZE[0], "width": SIZE[1], "video_name": name,
            "file_names": [f"{name}/{frame:05d}.jpg" for frame in range(FRAMES)], "length": FRAMES,
        }
        for video, name in enumerate(published.VIDEOS)
    ]  # fmt: skip
    asked = [(video, category) for video in range(len(videos)) for category in named]
    pairs = [
        {"id": k, "video_id": video, "category_id": category, "noun_phrase": f"object {category}"}
        for k, (video, category) in enumerate(asked)
    ]
    tracks = [(pair, item) for pair in asked for item in named[pair[1]]]
    annotations = [
        {
            "id": k, "video_id": video, "category_id": category, "iscrowd": 0,
            "segmentations": [rle(published.labels(videos[video]["video_name"], frame) == item) for frame in range(FRAMES)],
        }
        for k, ((video, category), item) in enumerate(tracks, 1)
    ]  # fmt: skip
    document = {
        "videos": videos, "annotations": annotations, "video_np_pairs": pairs,
        "categories": [{"id": category, "name": f"object {category}"} for category in named],
    }  # fmt: skip
    return written(folder, {"saco_veval_toy_test.json": document}) / "saco_veval_toy_test.json"


#: The upload for a benchmark, and its score.
def send_phrases(truth: Path) -> bytes:
    """Return COCO's results with the boxes that SA-Co's script reads."""
    document = json.loads((truth / "gold_toy_merged_a_release_test.json").read_text())
    return json.dumps([
        {**{key: item[key] for key in ("image_id", "category_id", "segmentation")}, "score": 0.9, "bbox": [0, 0, 1, 1]}
        for item in document["annotations"]
    ]).encode()  # fmt: skip


def send_video_phrases(truth: Path) -> bytes:
    """Return a list of tracks, with the boxes and areas that SA-Co/VEval's script trusts."""
    document = json.loads(truth.read_text())
    return json.dumps([
        {
            **{key: item[key] for key in ("video_id", "category_id", "segmentations")}, "score": 0.9,
            "bboxes": [[0, 0, 1, 1]] * FRAMES, "areas": [1] * FRAMES,
        }
        for item in document["annotations"]
    ]).encode()  # fmt: skip


_PUBLISHED: dict[str, Callable[[Path], Path]] = {"sa-co-veval": video_phrases, "sa-co-veval-official": video_phrases}
PUBLISHED = {name: _PUBLISHED.get(name, phrases) for name in PHRASE_PROTOCOLS}
UPLOADS: dict[str, tuple[Callable[[Path], bytes], dict[str, float]]] = {
    "sa-co-gold": (send_phrases, {"cgF1": 1, "pmF1": 1, "IL_MCC": 1}),
    "sa-co-veval": (send_video_phrases, {"cgF1": 1, "pHOTA": 1, "phrase_AP": 1, "mAP": 1}),
    "sa-co-veval-official": (send_video_phrases, {"pHOTA": 1, "mAP": 1, "TETA": 1}),
}
UPLOAD_OF_OTHERS = "sa-co-gold"
REFUSALS = dict.fromkeys(UPLOADS, "Send one JSON with a list of records")
RESULTS_FROM_TRUTH = True


def turn_runs(record: dict[str, Any]) -> None:
    """Write run lengths along the rows."""
    mask = record["segmentation"]
    record["segmentation"] = {**mask, "counts": turned(mask["counts"])}


def mirror_track(record: dict[str, Any]) -> None:
    """Exchange left and right in each frame of a track."""
    record["segmentations"] = [
        mask and {**mask, "counts": mirrored(mask["counts"])} for mask in record["segmentations"]
    ]


def twice(data: bytes) -> bytes:
    """Send all records twice."""
    return json.dumps(json.loads(data) * 2).encode()


SLIPS: dict[str, tuple[str, Slip, str]] = {
    "percent of phrases": ("sa-co-gold", records(lambda record: record.update(score=90)), "as percentages do"),
    "phrases twice": ("sa-co-gold", twice, "masks tried coincide with another one of their pair: send each once"),
    "tracks of phrases twice": ("sa-co-veval", twice, "masks tried coincide with another one of their pair: send each once"),
    "mirrored tracks of phrases": ("sa-co-veval", records(mirror_track), "masks look mirrored"),
    "rows of phrases": ("sa-co-gold", records(turn_runs), "run lengths look as if written row by row"),
}  # fmt: skip
JSON_TRUTHS = {"sa-co-veval": "saco_veval_toy_test.json"}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "sharing": ("sa-co-gold", "sa-co-veval"),
    "pages": ("sa-co-gold", "sa-co-veval"),
    "mounts": ("sa-co-gold", "sa-co-veval"),
    "surplus": ("sa-co-gold", "sa-co-veval"),
    "records": ("sa-co-gold", "sa-co-veval"),
    "painted": ("sa-co-gold",),
    "painted questions": ("sa-co-gold",),
    "painted beside": ("sa-co-gold",),
}
SAMPLE_SCORES = {
    "sa-co-gold": (1.0, 0.2208333333333333),
    "sa-co-gold-official": (0.9999458341145626, 0.2208074170503859),
    "sa-co-silver": (0.8416666666666666, 0.09583333333333334),
    "sa-co-silver-official": (0.8416181607340054, 0.09581793729064028),
    "sa-co-veval": (0.8666666666666666, 0.09999999999999999),
    "sa-co-veval-official": (0.8666144308311055, 0.09998416819615262),
}
