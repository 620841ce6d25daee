"""Truth in the layouts that datasets are published in, read sequence by sequence.

`segjudge pack` reads the same way as a plain annotation file is read.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional

import numpy as np

from ...files.archive import open_files, unreadable
from ...files.problems import Flaw, HostError, Problems, SubmissionError, counted, listed, verb
from ...masks.files import LabelImages, MaskFiles, ObjectFolders
from ...masks.stack import Array, Size
from ..base.progress import Progress, ignore_progress
from ..base.truth import AnnotationFile
from .dataset_masks import DatasetMasks, SizedFiles, read_masks
from .expressions import holds_expressions, read_expressions
from .layouts import (
    GENERIC,
    HOST_LIMITS,
    LAYOUTS,
    DatasetFolder,
    Layout,
    layout_of,
    listed_in,
    names_and_facts,
    recognized_dataset,
    unseen_names,
)
from .truth import VOID, ObjectFacts, Ranges, Sequence, Split, label_order, ranges_of

__all__ = ["GENERIC", "LAYOUTS", "layout_of", "read"]

#: LVOS annotates every fifth frame.
LVOS_STEP = 5

#: An object that never has more pixels than this may be a stray colour.
STRAY_PIXELS = 8


def read(
    path: str,
    layout: Layout = GENERIC,
    subset: str = "",
    *,
    unseen: str = "",
    split: str = "",
    progress: Progress = ignore_progress,
) -> AnnotationFile[Split]:
    """Open a dataset in its published layout as a truth with one split."""
    try:
        files = open_files(path, HOST_LIMITS)
        if holds_expressions(files, layout):
            videos, odd = read_expressions(files, path, layout, subset, progress)
            return AnnotationFile({split or subset or "val": Split(videos, layout.name)}, odd)
        folder = recognized_dataset(files, path, layout, subset)
        names, meta = names_and_facts(folder, layout, subset)
        unseen_listed = unseen_names(folder, unseen)
        reader = _Reader(
            folder, meta, listed_in(folder, "unsupervised_videos.txt"), unseen_listed, numeric=layout.numeric
        )
        sequences = []
        for done, name in enumerate(names):
            progress(name, done, len(names))
            sequences.append(reader.sequence(name))
    except (SubmissionError, Flaw) as error:
        raise unreadable(path, error) from None
    categories = unseen_listed or list(layout.unseen_categories)
    notes = folder.notes + reader.notes
    unseen_known = bool(unseen_listed) or (bool(categories) and reader.has_categories)
    return AnnotationFile({split or subset or "val": Split(sequences, layout.name, unseen_known, categories)}, notes)


class _Reader:
    """Reads the sequences of a dataset, and notes what a host should look at."""

    def __init__(
        self, folder: DatasetFolder, meta: Dict[str, Any], salient: List[str], unseen: List[str], *, numeric: bool
    ) -> None:
        self._folder, self._meta, self._salient, self._unseen = folder, meta, salient, unseen
        self._numeric = numeric
        self.notes: List[str] = []
        self.has_categories = False

    def sequence(self, name: str) -> Sequence:
        """Return one sequence: its frames, sizes, objects, and where each is visible."""
        members, problems = self._folder.masks[name], Problems()
        files = SizedFiles(self._folder.files)
        images: MaskFiles
        if "" in members:
            frames = self._in_order(members[""])
            images = LabelImages(files, members[""], problems)
        else:
            frames = self._in_order({frame for files in members.values() for frame in files})
            images = ObjectFolders(files, members, problems)
        sizes = (self._size(files, members, frame) for frame in frames)
        masks = read_masks(images, frames, sizes, self._folder.root)
        entries = self._object_entries(name, members)
        objects = self._objects(entries or {}, members, frames, masks.visible)
        self._note_oddities(name, frames, masks)
        salient = not self._salient or name in self._salient
        unseen = name in self._unseen
        return Sequence(name, frames, masks.blocks, objects, masks.read_block, unseen, salient, entries is not None)

    def _in_order(self, frames: Iterable[str]) -> List[str]:
        numbers = self._numeric and all(frame.isdecimal() for frame in frames)
        return sorted(frames, key=int if numbers else None)

    def _size(self, files: SizedFiles, members: Dict[str, Dict[str, str]], frame: str) -> Size:
        name = next(frames[frame] for frames in members.values() if frame in frames)
        try:
            return files.size_of(name)
        except Flaw as flaw:
            raise HostError(f"{self._folder.root}: {flaw.at(name)}") from None

    def _object_entries(self, name: str, members: Dict[str, Dict[str, str]]) -> Optional[Dict[str, Any]]:
        """Return the entries of a sequence's objects in the meta file, else one for each folder of an object."""
        if name in self._meta and "objects" in self._meta[name]:
            entries = self._meta[name]["objects"]
            return entries if isinstance(entries, dict) else {str(label): [] for label in entries}  # as in MOSEv2
        if "" in members:
            return None
        return {label: {} for label in sorted(members, key=label_order)}

    def _objects(
        self,
        entries: Dict[str, Any],
        members: Dict[str, Dict[str, str]],
        frames: List[str],
        visible: Dict[str, Array],
    ) -> Dict[str, ObjectFacts]:
        """Return the facts of all objects: those with entries in their order, then those in the masks alone."""
        facts = {}
        for label in [*entries, *sorted(visible.keys() - entries.keys(), key=label_order)]:
            ranges = ranges_of(visible.get(label, np.zeros(len(frames), bool)))
            entry = entries.get(label)
            lifespan: Optional[Ranges] = None if entry is None else [(0, len(frames))]
            if label in members:
                lifespan = ranges_of(np.array([frame in members[label] for frame in frames]))
            if isinstance(entry, dict) and "frame_range" in entry:
                lifespan = _interval(entry["frame_range"], frames)
            category = entry.get("category") if isinstance(entry, dict) else None
            if category is not None:  # from where it is first visible to the end of its video
                lifespan = [(ranges[0][0], len(frames))] if ranges else []
            self.has_categories |= category is not None
            facts[label] = ObjectFacts(ranges, lifespan, category)
        return facts

    def _note_oddities(self, name: str, frames: List[str], masks: DatasetMasks) -> None:
        """Note what a host should look at before publishing a truth."""
        sizes = {block.size for block in masks.blocks}
        for label, flags in masks.visible.items():
            if label == VOID:
                continue
            if masks.areas[label] <= STRAY_PIXELS:
                most = counted(masks.areas[label], "pixel")
                self.notes.append(f"{name}: object {label} never has more than {most}: a stray colour?")
            elif not flags[0]:
                self.notes.append(f"{name}: object {label} first appears in frame {frames[int(flags.argmax())]}")
            elif not flags[1:].any() and len(frames) > 1:
                self.notes.append(f"{name}: object {label} vanishes after the first frame")
        if len(sizes) > 1:
            self.notes.append(f"{name}: the size of its frames changes ({len(sizes)} sizes)")
        without = sorted(set(self._folder.pictures.get(name, frames)) - set(frames))
        if without and len(without) * 2 < len(frames):
            lack = f"{counted(len(without), 'frame')} {verb(len(without), 'has', 'have')}"
            self.notes.append(f"{name}: {lack} no mask: {listed(without)}")


def _interval(frame_range: Dict[str, Any], frames: List[str]) -> Ranges:
    """Return the frames of an object's own interval (LVOS): every fifth from `start`, as many as `frame_nums` says.

    Whether `end` is meant to be included is not known; the count decides.
    """
    start, count = int(frame_range["start"]), int(frame_range["frame_nums"])
    numbers = range(start, start + LVOS_STEP * count, LVOS_STEP)
    return ranges_of(np.array([frame.isdecimal() and int(frame) in numbers for frame in frames], bool))
