"""New challenges of mask sequences: texts, samples, and a synthetic truth."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.sequences.layouts import layout_of
from segjudge.evaluation_script.families.sequences.protocols import MissingRule, ObjectRule, SequenceProtocol
from segjudge.evaluation_script.families.sequences.truth import Sequence, Split
from segjudge.evaluation_script.files.problems import quantity
from segjudge.evaluation_script.masks.run_lengths import compress_many
from segjudge.families.base.challenges import QUICK, encode_json, move_image, move_runs
from segjudge.families.base.tools import Content, Facts, Members
from segjudge.families.sequences.comparison import VOID, ids_of, labels_of
from segjudge.masks.compression import label_png
from segjudge.masks.demo import (
    NAMES,
    Scene,
    davis_files,
    first_scenes,
    images,
    label_frames,
    mask_records,
    object_numbers,
    png_of,
)
from segjudge.masks.photographs import photograph_frames

from .compression import CompressedMask, run_lengths_of

#: The maximum number of proposals in protocols that match them.
_MOST_PROPOSALS = 20


def describe_truth(truths: list[Split], protocol: SequenceProtocol) -> Facts:
    sequences = [sequence for truth in truths for sequence in truth.sequences]
    frames = quantity(sum(len(sequence.frames) for sequence in sequences), "frame")
    videos = quantity(len(sequences), "video")
    within = f"{protocol.rounds[0]}/" if protocol.rounds else ""
    # Only if objects are expressions, each needs an answer.
    referring = bool(protocol.rounds) or protocol.missing_object is not MissingRule.EMPTY
    return {
        "content": f"{videos} with {frames}",
        "about": f"Segment the objects of expressions in {videos}."
        if referring
        else f"Segment the objects of {videos}.",
        "referring": referring,
        "examples": [
            f"{within}{sequence.name}/{folder}{frame}.png"
            for sequence in sequences[:2]
            for folder in [f"{next(iter(sequence.objects), '1')}/" if protocol.overlapping else ""]
            for frame in sequence.frames[:2]
        ],
    }


def make_sample(truths: list[Split], protocol: SequenceProtocol, share: float) -> Members:
    """Yield PNGs of labels, or one JSON of run lengths if objects may overlap."""
    sequences = [sequence for truth in truths for sequence in truth.sequences]
    if protocol.overlapping:
        yield "results.json", encode_json({sequence.name: _move_objects(sequence, share) for sequence in sequences})
        return
    for sequence in sequences:
        yield from _draw_label_pngs(sequence, protocol, share)


def _move_objects(sequence: Sequence, share: float) -> dict[str, list[CompressedMask | None]]:
    """Move the masks of each object, frame by frame."""
    objects = run_lengths_of(sequence)
    for masks in objects.values():
        visible_masks = [mask for mask in masks if mask]
        shifted = [move_runs(mask["counts"], mask["size"], 1, share)[0] for mask in visible_masks]
        for mask, counts in zip(visible_masks, compress_many(shifted), strict=True):
            mask["counts"] = counts
    return objects


def _draw_label_pngs(sequence: Sequence, protocol: SequenceProtocol, share: float) -> Members:
    ids = ids_of(sequence)
    for index, block in enumerate(sequence.blocks):
        labels = labels_of(sequence.read_block(index), block, ids)
        if protocol.salient or protocol.objects is ObjectRule.FOREGROUND:
            labels = (labels > 0).astype(np.uint8)
        labels[labels > (_MOST_PROPOSALS if protocol.proposals else VOID - 1)] = 0
        for frame, image in zip(sequence.frames[block.start : block.stop], labels, strict=True):
            data = label_png(move_image(image, share), QUICK)
            for folder in protocol.rounds or ("",):
                yield f"{folder}/{sequence.name}/{frame}.png".lstrip("/"), data


def make_demo(protocol: SequenceProtocol) -> Content:
    videos = first_scenes()
    layouts = {
        "sav": _publish_sav,
        "mevis": _publish_mevis,
        "revos": _publish_revos,
        "ref-youtube-vos": _publish_ref_youtube_vos,
        "long-rvos": _publish_long_rvos,
    }
    return layouts.get(layout_of(protocol.name).name, davis_files)(videos)


def _publish_sav(videos: list[Scene]) -> Content:
    for video in videos:
        for number in object_numbers(video):
            for frame, labels in label_frames(video):
                mask = (labels == number).astype(np.uint8)
                yield f"Annotations_6fps/{video.name}/{number - 1:03d}/{frame}.png", png_of(mask)


def _publish_mevis(videos: list[Scene]) -> Content:
    masks: dict[str, Any] = {}
    listing = {}
    for video in videos:
        start = len(masks)
        masks.update({str(start + index): mask for index, mask in enumerate(mask_records(video).values())})
        one_by_one = [[number] for number in range(start, len(masks))]
        ids = [*one_by_one, list(range(start, len(masks))), []]  # each, all and none
        expressions = {
            str(index): {"exp": "…", "obj_id": object_ids, "anno_id": object_ids}
            for index, object_ids in enumerate(ids)
        }
        listing[video.name] = {"expressions": expressions, "frames": [name for name, _ in label_frames(video)]}
    yield "meta_expressions.json", {"videos": listing}
    yield "mask_dict.json", masks


def _publish_revos(videos: list[Scene]) -> Content:
    (_, listing), (_, masks) = _publish_mevis(videos)
    foreground = {}
    for name, video in listing["videos"].items():
        ids = {str(number) for expression in video["expressions"].values() for number in expression["anno_id"]}
        for expression in video["expressions"].values():
            expression["type_id"] = {0: 2, 1: 0}.get(len(expression["anno_id"]), 1)
        frames = zip(*(masks[number] for number in sorted(ids)), strict=True)
        foreground[name] = {"masks_rle": [[mask for mask in of_frame if mask] for of_frame in frames]}
    yield "meta_expressions_valid_.json", listing
    yield "mask_dict.json", masks
    yield "mask_dict_foreground.json", foreground


def _publish_ref_youtube_vos(videos: list[Scene]) -> Content:
    listing = {}
    for video in videos:
        expressions = {
            str(number - 1): {"exp": f"a {NAMES[number]}", "obj_id": str(number)} for number in object_numbers(video)
        }
        listing[video.name] = {"expressions": expressions, "frames": [name for name, _ in label_frames(video)]}
    yield "meta_expressions/valid/meta_expressions.json", {"videos": listing}
    yield from ((f"valid/Annotations/{name}", data) for name, data in images(videos, Scene.labels))


def _publish_long_rvos(videos: list[Scene]) -> Content:
    listing = {}
    kinds = itertools.cycle(("static", "dynamic", "static+dynamic"))
    for video in videos:
        expressions = {
            str(number - 1): {"exp": f"a {NAMES[number]}", "obj_id": number, "type": next(kinds)}
            for number in object_numbers(video)
        }
        listing[video.name] = {"expressions": expressions, "frames": [name for name, _ in label_frames(video)]}
        for number, (frame, labels) in itertools.product(object_numbers(video), label_frames(video)):
            if (labels == number).any():
                data = png_of((labels == number).astype(np.uint8))
                yield f"Annotations/{video.name}/{number}/{frame}.png", data
    yield "meta_expressions.json", {"videos": listing}


def make_demo_pictures(_protocol: SequenceProtocol) -> Members:
    return photograph_frames()
