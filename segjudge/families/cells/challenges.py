"""New challenges of cells: samples, and a synthetic truth."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.cells.files import LABEL, PARENT
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.challenges import move_image
from segjudge.families.base.tools import Content, Members
from segjudge.masks.demo import first_scenes
from segjudge.masks.photographs import photograph_videos
from segjudge.masks.tiff import encode_tiff

#: Every third frame of the demo has outlines.
_OUTLINED = 3


def write_tracks(tracks: list[list[int]]) -> str:
    return "".join(f"{' '.join(map(str, row))}\n" for row in tracks)


def follow_labels(frames: list[Array], parents: dict[int, int]) -> list[list[int]]:
    """Return the tracks of label maps; a label that reappears becomes its own child."""
    present: dict[int, list[int]] = {}
    for index, labels in enumerate(frames):
        for label in np.unique(labels[labels > 0]).tolist():
            present.setdefault(label, []).append(index)
    free = max(present, default=0)
    tracks, last_parts = [], {}
    for label, seen_frames in sorted(present.items()):
        starts = [
            0,
            *(index for index, (before, after) in enumerate(pairwise(seen_frames), 1) if after > before + 1),
            len(seen_frames),
        ]
        name, parent = label, 0
        for start, stop in pairwise(starts):
            if start:
                free += 1
                name, parent = free, name
                for index in seen_frames[start:stop]:
                    frames[index][frames[index] == label] = name
            tracks.append([name, seen_frames[start], seen_frames[stop - 1], parent])
        last_parts[label] = tracks[-1]
    for row in tracks:
        mother = last_parts.get(parents.get(row[LABEL], 0))
        if not row[PARENT] and mother is not None and mother[2] < row[1]:
            row[PARENT] = mother[LABEL]
    return tracks


def make_sample(truths: list[Any], _protocol: Any, share: float) -> Members:
    """Yield the markers of the truth, moved to the right, with their tracks."""
    for unit in [unit for truth in truths for unit in truth.units]:
        slices, frames = unit.facts["slices"], []
        for frame in unit.load()[: unit.cost]:
            pixels = frame.read()
            moved = pixels._replace(numbers=move_image(pixels.numbers, share))
            frames.append(moved.image.astype(np.uint16))
        tracks = follow_labels(frames, {row[LABEL]: row[PARENT] for row in unit.facts["tracks"]})
        for index, labels in enumerate(frames):
            yield f"{unit.name}_RES/mask{index:03d}.tif", encode_tiff(labels.reshape(slices, -1, labels.shape[1]))
        yield f"{unit.name}_RES/res_track.txt", write_tracks(tracks).encode()


def make_demo(_protocol: Any) -> Content:
    """Yield the demo's videos in the challenge's layout; the first object divides, and so does a child."""
    for number, video in enumerate(first_scenes(), 1):
        frames = [video.labels(index).astype(np.uint16) for index in range(video.frames)]
        parents: dict[int, int] = {}
        for parent, start in ((1, video.frames // 2), (len(video.shapes) + 1, 3 * video.frames // 4)):
            children = [len(video.shapes) + len(parents) + step for step in (1, 2)]
            for labels in frames[start:]:
                columns = np.flatnonzero((labels == parent).any(axis=0))
                right = np.arange(labels.shape[1]) > (columns.mean() if len(columns) else 0)
                labels[:] = np.where(labels == parent, np.where(right, children[1], children[0]), labels)
            parents |= dict.fromkeys(children, parent)
        tracks = follow_labels(frames, parents)
        folder = f"{number:02d}_GT"
        for index, labels in enumerate(frames):
            data = encode_tiff(labels[None])
            yield f"{folder}/TRA/man_track{index:03d}.tif", data
            if index % _OUTLINED == 0:
                yield f"{folder}/SEG/man_seg{index:03d}.tif", data
        yield f"{folder}/TRA/man_track.txt", write_tracks(tracks)


def make_demo_pictures(_protocol: Any) -> Members:
    for number, (_, frames) in enumerate(photograph_videos(), 1):
        yield from ((f"{number:02d}/{index:03d}.jpg", data) for index, (_, data) in enumerate(frames))
