"""Datasets whose objects are expressions: with run lengths as MeViS, or label images as Ref-YouTube-VOS."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ...files.limits import Files
from ...files.problems import HostError, Problems, counted, listed, verb
from ...masks.files import LabelImages, MaskFiles
from ...masks.json_masks import RunLengths
from ...masks.stack import Size, Stack, Stacks, joined
from ..base.progress import Progress
from .dataset_masks import SizedFiles, read_masks
from .layouts import GENERIC, Layout, fitting, recognized_dataset
from .truth import ObjectFacts, Sequence, ranges_of

#: The file of expressions begins so; beside MeViS's lie the masks.
META, MASKS = "meta_expressions", "mask_dict.json"


def holds_expressions(files: Files, layout: Layout) -> bool:
    """Return whether the objects of a dataset are expressions; without a layout, MeViS's masks say so."""
    return bool(layout.names_masks) or (layout is GENERIC and bool(_named(files, MASKS)))


def read_expressions(
    files: Files, root: str, layout: Layout, subset: str, progress: Progress
) -> Tuple[List[Sequence], List[str]]:
    """Return a sequence for each video with masks, and what is odd about the dataset."""
    name = _file_of_expressions(files, root, subset)
    key = layout.names_masks or "anno_id"
    try:
        entries = json.loads(files.read(name))["videos"].items()
        videos = [_video(video, entry, key) for video, entry in entries]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HostError(f"{root}: {name} is not a file of expressions that say their {key} ({error!r})") from None
    source = _LabelSource(files, root, layout, subset) if key == "obj_id" else _RunLengthSource(files, root, name)
    known = [video for video in videos if source.has(video)]
    notes = []
    if len(known) < len(videos):
        without = [video.name for video in videos if video not in known]
        are = verb(len(without), "has no masks and is", "have no masks and are")
        notes.append(f"{counted(len(without), 'video')} of {name} {are} left out: {listed(without)}")
    if not known:
        raise HostError(f"{root}: no video of {name} has masks")
    sequences = []
    for done, video in enumerate(known):
        progress(video.name, done, len(known))
        sequences.append(source.sequence(video))
    return sequences, notes


@dataclass(frozen=True)
class _Video:
    name: str
    frames: List[str]
    #: Each expression, and the masks that it names.
    expressions: Dict[str, Tuple[str, ...]]


def _video(name: str, entry: Dict[str, Any], key: str) -> _Video:
    def masks_of(value: object) -> Tuple[str, ...]:
        return tuple(map(str, value if isinstance(value, list) else [value]))

    expressions = {str(label): masks_of(one[key]) for label, one in entry["expressions"].items()}
    return _Video(str(name), [str(frame) for frame in entry["frames"]], expressions)


def _named(files: Files, name: str) -> List[str]:
    return [path for path in files.sizes if path.rpartition("/")[2] == name]


def _file_of_expressions(files: Files, root: str, subset: str) -> str:
    """Return the file that fits a subset: by its folder, else by its name, else the one that there is."""
    names = [name for name in files.sizes if name.rpartition("/")[2].startswith(META) and name.endswith(".json")]
    if not names:
        raise HostError(f"{root}: has no {META}.json")
    if subset:
        near = [name for name in names if subset in name.split("/")] or fitting(names, subset)
        if not near and subset not in ("val", *root.split("/")):
            raise HostError(f"{root}: has no expressions of {subset!r}, only {listed(names)}")
        names = near or names
    if len(names) > 1:
        beside = [name for name in names if name.rpartition("/")[2] == f"{META}.json"]
        names = beside if len(beside) == 1 else names
    if len(names) > 1:
        raise HostError(f"{root}: has several files of expressions ({listed(names)}); choose one with --subset")
    return names[0]


class _Expressions(MaskFiles):
    """The masks of expressions, each the union of those that it names."""

    def __init__(self, masks: MaskFiles, video: _Video) -> None:
        self._masks, self.problems, self._names = masks, masks.problems, video.expressions

    def frames(self) -> Set[str]:
        return self._masks.frames()

    def stacks(self, frames: List[str], size: Size) -> Optional[Stacks]:
        masks = self._masks.stacks(frames, size)
        if masks is None:
            return None
        unions: Dict[Tuple[str, ...], Stack] = {}
        for names in set(self._names.values()):
            unions[names] = joined([masks[name] for name in names if name in masks], len(frames), size)
        return {label: unions[names] for label, names in self._names.items() if unions[names].words.size}


def _sequence(video: _Video, masks: MaskFiles, frames: List[str], sizes: Iterator[Size], root: str) -> Sequence:
    read = read_masks(_Expressions(masks, video), frames, sizes, root)
    facts = {
        label: ObjectFacts(ranges_of(read.visible[label]) if label in read.visible else [], [(0, len(frames))])
        for label in video.expressions
    }
    return Sequence(video.name, frames, read.blocks, facts, read.read_block, lists_objects=True)


class _RunLengthSource:
    """`mask_dict.json`: for each mask its run lengths or null, frame by frame of its video's list."""

    def __init__(self, files: Files, root: str, beside: str) -> None:
        self._root = root
        names = _named(files, MASKS)
        names = [name for name in names if name.rpartition("/")[0] == beside.rpartition("/")[0]] or names
        if len(names) != 1:
            raise HostError(f"{root}: has {len(names) or 'no'} {MASKS} for {beside}; without one there is no truth")
        try:
            self._masks: Dict[str, List[Any]] = dict(json.loads(files.read(names[0])))
        except (ValueError, TypeError) as error:
            raise HostError(f"{root}: {names[0]} is not an object of run lengths ({error!r})") from None

    def has(self, video: _Video) -> bool:
        """Return whether all masks are there that a video's expressions name."""
        return self._masks.keys() >= {name for names in video.expressions.values() for name in names}

    def sequence(self, video: _Video) -> Sequence:
        """Return a video with its masks."""
        where, problems = f"{self._root}: {video.name}", Problems()
        try:
            named = dict.fromkeys(name for names in video.expressions.values() for name in names)
            objects = {name: [mask or None for mask in self._masks[name]] for name in named}
            shapes = {tuple(mask["size"]) for masks in objects.values() for mask in masks if mask}
            ((height, width),) = shapes
        except (KeyError, TypeError, ValueError):
            raise HostError(f"{where}: its masks are not run lengths of one size") from None
        masks = RunLengths(video.name, objects, video.frames, problems, overlapping=True, most=len(objects))
        if problems:
            raise HostError(f"{self._root}: {problems.text('the truth')}")
        return _sequence(video, masks, video.frames, iter([(height, width)] * len(video.frames)), self._root)


class _LabelSource:
    """Label images in the layout of YouTube-VOS; frames without one are left out."""

    def __init__(self, files: Files, root: str, layout: Layout, subset: str) -> None:
        self._files, self._root = files, root
        self._masks = recognized_dataset(files, root, layout, subset).masks

    def has(self, video: _Video) -> bool:
        """Return whether any of a video's frames has an image."""
        return any(frame in self._masks.get(video.name, {}).get("", {}) for frame in video.frames)

    def sequence(self, video: _Video) -> Sequence:
        """Return a video with its masks."""
        members, files = self._masks[video.name][""], SizedFiles(self._files)
        frames = [frame for frame in video.frames if frame in members]
        masks = LabelImages(files, members, Problems())
        return _sequence(video, masks, frames, (files.size_of(members[frame]) for frame in frames), self._root)
