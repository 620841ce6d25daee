"""The truth of instances in videos, as YouTube-VIS and OVIS publish it, in the form of images as wide as all frames."""

from __future__ import annotations

from typing import Any, Dict, List

import numpy as np

from .errors import Flaw, counted
from .instance_columns import UNUSUAL, tubes_of
from .instance_flaws import check_tube
from .instance_tubes import hidden


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
    annotations = [_annotation(annotation, videos) for annotation in document["annotations"]]
    unseen = sum(not annotation["area"] for annotation in annotations)
    if unseen:
        notes.append(f"{counted(unseen, 'annotation')} without area in any frame, which no prediction can find")
    unlabelled = sum(annotation["hidden"] < 0 for annotation in annotations)
    if 0 < unlabelled < len(annotations):
        notes.append(f"{counted(unlabelled, 'annotation')} without occlusion: of no range of occlusions")
    return {**document, "images": images, "annotations": annotations}


def _annotation(annotation: Dict[str, Any], videos: Dict[int, Any]) -> Dict[str, Any]:
    """Return an annotation of a video as one of an image."""
    video, masks = videos.get(annotation["video_id"]), annotation["segmentations"]
    if video is None:
        found = f"annotation {annotation['id']} is of the video {annotation['video_id']}, which is not listed"
        raise Flaw(found, "List it")
    size, frames = (video["height"], video["width"]), video["length"]
    wide = np.array([[size[0], size[1] * frames]])
    try:
        tubes = tubes_of([masks], wide, np.array([frames]))
    except UNUSUAL:
        try:
            check_tube(masks, size, frames)
        except Flaw as flaw:
            raise Flaw(f"annotation {annotation['id']} {flaw.found}", flaw.remedy) from None
        raise
    areas = [area for area in annotation.get("areas") or [] if area]
    return {
        "id": annotation["id"],
        "image_id": annotation["video_id"],
        "category_id": annotation["category_id"],
        "iscrowd": annotation.get("iscrowd", 0),
        # As written, not as the masks are, like in the original.
        "area": float(np.mean(areas)) if areas else 0.0 if "areas" in annotation else float(tubes.mean_area[0]),
        "segmentation": {"size": wide[0].tolist(), "counts": tubes.texts[0]},
        "hidden": hidden(annotation.get("occlusion")),
    }
