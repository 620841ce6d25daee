"""The truth of instances in videos, as YouTube-VIS and OVIS publish it, in the form of images as wide as all frames."""

from __future__ import annotations

from typing import Any, Dict, List

import numpy as np

from ...files.problems import Flaw, counted
from .columns import UNUSUAL, tubes_of
from .flaws import check_tube
from .tubes import hidden


def as_images(document: Dict[str, Any], notes: List[str]) -> Dict[str, Any]:
    """Return a document of videos as one of images; a Flaw or KeyError where it cannot be one."""
    if document["annotations"] is None:
        raise Flaw("holds no annotations (null), as the files of a test set that is not published", "Take another file")
    videos = {video["id"]: video for video in document["videos"]}
    images = [
        {**video, "width": video["width"] * video["length"], "frames": video["length"]} for video in videos.values()
    ]
    if len(images) < len(document["videos"]):
        raise Flaw("holds videos with the same id", "Give each its own")
    empty = [image["id"] for image in images if image["width"] < 1 or image["height"] < 1]
    if empty:
        raise Flaw(f"holds videos without pixels: {empty}", "Remove them")
    annotations = _annotations(document["annotations"], videos)
    unseen = sum(not annotation["area"] for annotation in annotations)
    if unseen:
        notes.append(f"{counted(unseen, 'annotation')} without area in any frame, which no prediction can find")
    unlabelled = sum(annotation["hidden"] < 0 for annotation in annotations)
    if 0 < unlabelled < len(annotations):
        notes.append(f"{counted(unlabelled, 'annotation')} without occlusion: of no range of occlusions")
    return {**document, "images": images, "annotations": annotations}


def _annotations(annotations: List[Dict[str, Any]], videos: Dict[int, Any]) -> List[Dict[str, Any]]:
    """Return annotations of videos as those of images."""
    try:
        listed = [videos[annotation["video_id"]] for annotation in annotations]
        wide = [[video["height"], video["width"] * video["length"]] for video in listed]
        frames = np.array([video["length"] for video in listed], np.int64)
        masks = [annotation["segmentations"] for annotation in annotations]
        tubes = tubes_of(masks, np.array(wide, np.int64).reshape(-1, 2), frames)
    except UNUSUAL:
        for annotation in annotations:
            _explain(annotation, videos)
        raise
    return [
        {
            "id": annotation["id"],
            "image_id": annotation["video_id"],
            "category_id": annotation["category_id"],
            "iscrowd": annotation.get("iscrowd", 0),
            "area": _area(annotation, float(tubes.mean_area[index])),
            "segmentation": {"size": wide[index], "counts": tubes.masks[index]},
            "hidden": hidden(annotation.get("occlusion")),
        }
        for index, annotation in enumerate(annotations)
    ]


def _explain(annotation: Dict[str, Any], videos: Dict[int, Any]) -> None:
    """Raise a Flaw where an annotation is unusual."""
    video = videos.get(annotation["video_id"])
    if video is None:
        found = f"annotation {annotation['id']} is of the video {annotation['video_id']}, which is not listed"
        raise Flaw(found, "List it")
    try:
        check_tube(annotation["segmentations"], (video["height"], video["width"]), video["length"])
    except Flaw as flaw:
        raise Flaw(f"annotation {annotation['id']} {flaw.found}", flaw.remedy) from None


def _area(annotation: Dict[str, Any], shown: float) -> float:
    """Return the mean area as written, not as the masks are, like in the original; as shown where none is written."""
    areas = [area for area in annotation.get("areas") or [] if area]
    return float(np.mean(areas)) if areas else 0.0 if "areas" in annotation else shown
