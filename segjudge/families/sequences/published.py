"""Published mask sequences: truths to read or pack, and the pictures of their frames."""

from __future__ import annotations

import os
from dataclasses import replace

from segjudge.evaluation_script.families.base.family import Progress, ignore_progress
from segjudge.evaluation_script.families.base.truth import AnnotationFile
from segjudge.evaluation_script.families.sequences import dataset, truth
from segjudge.evaluation_script.families.sequences.layouts import ALIASES, GENERIC, LAYOUTS
from segjudge.evaluation_script.files.problems import HostError, name_hint, quantity
from segjudge.evaluation_script.scoring.scorer import is_packed
from segjudge.families.base.published import PackedTruth, TruthSource
from segjudge.system.errors import UsageError
from segjudge.system.files import make_folder

#: Folders of sequences below the folder of a dataset's pictures, or that folder itself.
_PICTURE_FOLDERS = ((), ("JPEGImages",), ("JPEGImages", "480p"), ("JPEGImages_24fps",))
_PICTURE_ENDINGS = (".jpg", ".jpeg", ".png")


def open_sequences(source: TruthSource) -> AnnotationFile[truth.Split]:
    """Open mask sequences: all splits of a packed file, or one subset of a dataset."""
    return truth.read(source.path) if is_packed(source.path) else read_published(source)


def read_published(
    source: TruthSource, *, split: str = "", progress: Progress = ignore_progress
) -> AnnotationFile[truth.Split]:
    """Read a published dataset of mask sequences as one split of this name (default: its subset's)."""
    name = ALIASES.get(source.layout, source.layout)
    layout = LAYOUTS.get(name) if name else GENERIC
    if layout is None:
        hint = name_hint(source.layout, sorted({*LAYOUTS, *ALIASES}))
        raise UsageError(f"there is no layout {source.layout!r}{hint}")
    return dataset.read(source.path, layout, source.subset, unseen=source.unseen, split=split, progress=progress)


def pack(source: TruthSource, out: str, split: str = "", progress: Progress = ignore_progress) -> PackedTruth:
    """Write a published dataset as an annotation file; with `split`, add it to one under that name."""
    published = read_published(source, split=split, progress=progress)
    ((name, added),) = published.splits.items()
    splits = {name: replace(added, layout=source.layout)}
    if split and os.path.exists(out):
        splits = {**truth.read(out).splits, **splits}
    if not added.sequences:
        raise HostError(f"{source.path}: holds no sequences to pack")
    make_folder(os.path.dirname(out) or ".")
    truth.write(out, splits)
    frames = sum(len(sequence.frames) for sequence in added.sequences)
    return PackedTruth(
        name, f"{quantity(len(added.sequences), 'sequence')}, {quantity(frames, 'frame')}", published.notes
    )


def frame_images_of(folder: str, sequence: str, frames: list[str]) -> list[str]:
    """Return one picture per frame of a sequence; empty if any is missing.

    Rounds of a video, such as anno_0/VIDEO, have the video's pictures.
    """
    for name in dict.fromkeys([sequence, os.path.basename(sequence)]):
        pictures = _list_pictures(folder, name)
        if {*frames} <= pictures.keys():
            return [pictures[frame] for frame in frames]
    return []


def _list_pictures(folder: str, name: str) -> dict[str, str]:
    """Return the pictures in a sequence's folders: frame → path."""
    pictures: dict[str, str] = {}
    for subfolders in _PICTURE_FOLDERS:
        below = os.path.join(folder, *subfolders, name)
        for file in sorted(os.listdir(below)) if os.path.isdir(below) else ():
            stem, ending = os.path.splitext(file)
            if ending.lower() in _PICTURE_ENDINGS:
                pictures.setdefault(stem, os.path.join(below, file))
    return pictures
