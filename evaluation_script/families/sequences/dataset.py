"""Published truths of mask sequences, read sequence by sequence.

Objects are numbers in label images, folders, or expressions: as run lengths (MeViS) or label images (Ref-YouTube-VOS).
`segjudge pack` uses the same reader.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple, Union

import numpy as np

from ...files.archive import open_files, truth_error
from ...files.limits import HOST_LIMITS, Files
from ...files.problems import (
    Flaw,
    HostError,
    Problems,
    SubmissionError,
    explain_damage,
    inflect,
    name_list,
    quantity,
)
from ...masks import png
from ...masks.files import LabelImages, MaskFiles, ObjectFolders, RunLengths
from ...masks.stack import Array, FoldedStack, Size, Stack, Stacks, join_stacks, layers_of
from ..base.family import Progress, ignore_progress
from ..base.truth import AnnotationFile
from .layouts import (
    GENERIC,
    DatasetFolder,
    Layout,
    files_of_subset,
    names_and_facts,
    read_list,
    sort_dataset,
    unseen_names,
)
from .truth import (
    FOREGROUND,
    VOID,
    Block,
    ObjectFacts,
    Ranges,
    Sequence,
    Split,
    blocks_of,
    label_order,
    name_layer,
    ranges_of,
    reader_of,
)

#: LVOS annotates every fifth frame.
_LVOS_STEP = 5

#: An object that never has more pixels than this may be a stray colour.
_STRAY_PIXELS = 8


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
        if _holds_expressions(files, layout):
            videos, odd = _read_expressions(files, path, layout, subset, progress)
            return AnnotationFile({split or subset or "val": Split(videos, layout.name)}, odd)
        folder = sort_dataset(files, path, layout, subset)
        names, meta = names_and_facts(folder, layout, subset)
        unseen_listed = unseen_names(folder, unseen)
        reader = _Reader(
            folder, meta, read_list(folder, "unsupervised_videos.txt"), unseen_listed, numeric=layout.numeric
        )
        sequences = []
        for done, name in enumerate(names):
            progress(name, done, len(names))
            sequences.append(reader.sequence(name))
    except (SubmissionError, Flaw) as error:
        raise truth_error(path, error) from None
    categories = unseen_listed or list(layout.unseen_categories)
    notes = folder.notes + reader.notes
    tells_unseen = bool(unseen_listed) or (bool(categories) and reader.has_categories)
    return AnnotationFile({split or subset or "val": Split(sequences, layout.name, tells_unseen, categories)}, notes)


class _Reader:
    """A reader of a dataset's sequences that notes remarks for the host."""

    def __init__(
        self, folder: DatasetFolder, meta: Dict[str, Any], salient: List[str], unseen: List[str], *, numeric: bool
    ) -> None:
        self._folder, self._meta, self._salient, self._unseen = folder, meta, salient, unseen
        self._numeric = numeric
        self.notes: List[str] = []
        self.has_categories = False

    def sequence(self, name: str) -> Sequence:
        """Return one sequence: frames, sizes, objects, and the frames that show them."""
        members = self._folder.masks[name]
        files = self._folder.files
        images: MaskFiles
        if "" in members:
            frames = self._in_order(members[""])
            images = LabelImages(files, members[""])
        else:
            frames = self._in_order({frame for files in members.values() for frame in files})
            images = ObjectFolders(files, members, Problems())
        sizes = (self._read_size(members, frame) for frame in frames)
        masks = _read_masks(images, frames, sizes, self._folder.root)
        entries = self._object_entries(name, members)
        objects = self._describe_objects(entries or {}, members, frames, masks.visible)
        self._note_oddities(name, frames, masks)
        salient = not self._salient or name in self._salient
        unseen = name in self._unseen
        return Sequence(name, frames, masks.blocks, objects, masks.read_block, unseen, salient, entries is not None)

    def _in_order(self, frames: Iterable[str]) -> List[str]:
        numbers = self._numeric and all(frame.isdecimal() for frame in frames)
        return sorted(frames, key=int if numbers else None)

    def _read_size(self, members: Dict[str, Dict[str, str]], frame: str) -> Size:
        name = next(frames[frame] for frames in members.values() if frame in frames)
        try:
            return _size_of(self._folder.files, name)
        except Flaw as flaw:
            raise HostError(f"{self._folder.root}: {flaw.as_problem(name)}") from None

    def _object_entries(self, name: str, members: Dict[str, Dict[str, str]]) -> Optional[Dict[str, Any]]:
        """Return the entries of a sequence's objects in the meta file, else one for each folder of an object."""
        if name in self._meta and "objects" in self._meta[name]:
            entries = self._meta[name]["objects"]
            return entries if isinstance(entries, dict) else {str(label): [] for label in entries}  # as in MOSEv2
        if "" in members:
            return None
        return {label: {} for label in sorted(members, key=label_order)}

    def _describe_objects(
        self, entries: Dict[str, Any], members: Dict[str, Dict[str, str]], frames: List[str], visible: Dict[str, Array]
    ) -> Dict[str, ObjectFacts]:
        """Return the facts of all objects: those with entries first, then those only in the masks."""
        facts = {}
        for label in [*entries, *sorted(visible.keys() - entries.keys(), key=label_order)]:
            ranges = ranges_of(visible.get(label, np.zeros(len(frames), bool)))
            entry = entries.get(label)
            lifespan: Optional[Ranges] = None if entry is None else [(0, len(frames))]
            if label in members:
                lifespan = ranges_of(np.array([frame in members[label] for frame in frames]))
            if isinstance(entry, dict) and "frame_range" in entry:
                lifespan = _read_interval(entry["frame_range"], frames)
            category = entry.get("category") if isinstance(entry, dict) else None
            if category is not None:  # from its first visible frame to the end of its video
                lifespan = [(ranges[0][0], len(frames))] if ranges else []
            self.has_categories |= category is not None
            facts[label] = ObjectFacts(ranges, lifespan, category)
        return facts

    def _note_oddities(self, name: str, frames: List[str], masks: _DatasetMasks) -> None:
        """Record the oddities of a truth that a host should check before publishing."""
        sizes = {block.size for block in masks.blocks}
        for label, flags in masks.visible.items():
            if label == VOID:
                continue
            if masks.areas[label] <= _STRAY_PIXELS:
                size = quantity(masks.areas[label], "pixel")
                self.notes.append(f"{name}: object {label} never has more than {size}: a stray colour?")
            elif not flags[0]:
                self.notes.append(f"{name}: object {label} first appears in frame {frames[int(flags.argmax())]}")
            elif not flags[1:].any() and len(frames) > 1:
                self.notes.append(f"{name}: object {label} vanishes after the first frame")
        if len(sizes) > 1:
            self.notes.append(f"{name}: the size of its frames changes ({len(sizes)} sizes)")
        without = sorted(set(self._folder.pictures.get(name, frames)) - set(frames))
        if without and len(without) * 2 < len(frames):
            lack = f"{quantity(len(without), 'frame')} {inflect(len(without), 'has', 'have')}"
            self.notes.append(f"{name}: {lack} no mask: {name_list(without)}")


def _read_interval(frame_range: Dict[str, Any], frames: List[str]) -> Ranges:
    """Return the frames of an object's interval (LVOS): every fifth from `start`, `frame_nums` in all.

    It is unknown whether `end` is included; the number of frames decides.
    """
    start, count = int(frame_range["start"]), int(frame_range["frame_nums"])
    numbers = range(start, start + _LVOS_STEP * count, _LVOS_STEP)
    return ranges_of(np.array([frame.isdecimal() and int(frame) in numbers for frame in frames], bool))


#: The beginning of the name of the file with expressions, and MeViS's masks next to it.
_META, _MASKS = "meta_expressions", "mask_dict.json"


def _holds_expressions(files: Files, layout: Layout) -> bool:
    """Return whether the objects of a dataset are expressions; without a layout, judged by MeViS's mask file."""
    return bool(layout.names_masks) or (layout is GENERIC and bool(_find_files(files, _MASKS)))


def _explain(error: Exception) -> str:
    return explain_damage(error) if isinstance(error, json.JSONDecodeError) else repr(error)


def _read_expressions(
    files: Files, root: str, layout: Layout, subset: str, progress: Progress
) -> Tuple[List[Sequence], List[str]]:
    """Return a sequence per video with masks, and remarks about the dataset."""
    name = _file_of_expressions(files, root, subset)
    key = layout.names_masks or "anno_id"
    try:
        entries = json.loads(files.read(name))["videos"].items()
        videos = [_make_video(video, entry, layout._replace(names_masks=key)) for video, entry in entries]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        keys = " and ".join(filter(None, (key, layout.kind)))
        raise HostError(f"{root}: {name} is not a file of expressions with {keys} ({_explain(error)})") from None
    source: Union[_LabelSource, _RunLengthSource]
    if key == "obj_id":
        source = _LabelSource(files, root, layout, subset)
    else:
        source = _RunLengthSource(files, root, name, layout.foreground)
    masked_videos = [video for video in videos if source.has_image(video)]
    notes = []
    if len(masked_videos) < len(videos):
        without = [video.name for video in videos if video not in masked_videos]
        are = inflect(len(without), "has no masks and is", "have no masks and are")
        notes.append(f"{quantity(len(without), 'video')} of {name} {are} skipped: {name_list(without)}")
    if not masked_videos:
        raise HostError(f"{root}: no video of {name} has masks")
    sequences = []
    for done, video in enumerate(masked_videos):
        progress(video.name, done, len(masked_videos))
        sequences.append(source.sequence(video))
    return sequences, notes


class _Video(NamedTuple):
    name: str
    frames: List[str]
    #: The masks that each expression names.
    expressions: Dict[str, Tuple[str, ...]]
    #: The kind of each expression, if the dataset has it.
    kinds: Dict[str, str]


def _make_video(name: str, entry: Dict[str, Any], layout: Layout) -> _Video:
    def masks_of(value: object) -> Tuple[str, ...]:
        return tuple(map(str, value if isinstance(value, list) else [value]))

    entries = entry["expressions"].items()
    expressions = {str(label): masks_of(expression[layout.names_masks]) for label, expression in entries}
    spelling = dict(layout.kinds)
    kinds = {str(label): str(expression[layout.kind]) for label, expression in entries} if layout.kind else {}
    kinds = {label: spelling.get(kind, kind) for label, kind in kinds.items()}
    return _Video(str(name), [str(frame) for frame in entry["frames"]], expressions, kinds)


def _find_files(files: Files, name: str) -> List[str]:
    return [path for path in files.sizes if path.rpartition("/")[2] == name]


def _file_of_expressions(files: Files, root: str, subset: str) -> str:
    """Return the expressions file of a subset: by its folder, its name, or as the only one."""
    names = [name for name in files.sizes if name.rpartition("/")[2].startswith(_META) and name.endswith(".json")]
    if not names:
        raise HostError(f"{root}: has no {_META}.json")
    if subset:
        near = [name for name in names if subset in name.split("/")] or files_of_subset(names, subset)
        if not near and subset not in ("val", *root.split("/")):
            raise HostError(f"{root}: has no expressions of {subset!r}, only {name_list(names)}")
        names = near or names
    if len(names) > 1:
        beside = [name for name in names if name.rpartition("/")[2] == f"{_META}.json"]
        names = beside if len(beside) == 1 else names
    if len(names) > 1:
        raise HostError(f"{root}: has several files of expressions ({name_list(names)}); choose one with --subset")
    return names[0]


class _ExpressionMasks(MaskFiles):
    """The masks of expressions, each a union of masks, with their overlap layers if requested."""

    def __init__(self, masks: MaskFiles, video: _Video, *, layered: bool) -> None:
        self._masks, self._names, self._layered = masks, video.expressions, layered

    def frames(self) -> Set[str]:
        return self._masks.frames()

    def read_stacks(self, frames: List[str], size: Size, problems: Problems) -> Optional[Stacks]:
        masks = self._masks.read_stacks(frames, size, problems)
        if masks is None:
            return None
        unions: Dict[Tuple[str, ...], List[Stack]] = {}
        for names in set(self._names.values()):
            stacks = [masks[name] for name in names if name in masks]
            join = layers_of if self._layered else _join
            unions[names] = join(stacks, len(frames), size)
        named = {label: unions[names] for label, names in self._names.items() if unions[names]}
        layers = {
            name_layer(label, number): stack
            for label, stacks in named.items()
            for number, stack in enumerate(stacks, 1)
            if number > 1 or label == FOREGROUND
        }
        return {**{label: stacks[0] for label, stacks in named.items() if label != FOREGROUND}, **layers}


def _join(stacks: List[Stack], frames: int, size: Size) -> List[Stack]:
    union = join_stacks(stacks, frames, size)
    return [union] if union.words.size else []


def _make_sequence(
    video: _Video,
    masks: MaskFiles,
    frames: List[str],
    sizes: Iterator[Size],
    root: str,
    foreground: Optional[Tuple[str, ...]] = None,
) -> Sequence:
    """Return a video; with a foreground, its masks and layers are kept separately."""
    named = video if foreground is None else video._replace(expressions={**video.expressions, FOREGROUND: foreground})
    read = _read_masks(_ExpressionMasks(masks, named, layered=foreground is not None), frames, sizes, root)
    facts = {
        label: ObjectFacts(
            ranges_of(read.visible[label]) if label in read.visible else [], [(0, len(frames))], video.kinds.get(label)
        )
        for label in video.expressions
    }
    if foreground is None:
        return Sequence(video.name, frames, read.blocks, facts, read.read_block, lists_objects=True)
    aside = tuple(sorted({name_layer(FOREGROUND, 1), *read.visible} - facts.keys()))
    reader, beside = reader_of(read.read_block, facts.keys()), reader_of(read.read_block, aside)
    return Sequence(
        video.name, frames, read.blocks, facts, reader, lists_objects=True, aside=aside, read_aside=beside
    )  # fmt: skip


class _RunLengthSource:
    """`mask_dict.json`: the run lengths or null of each mask, by frame of its video's list."""

    def __init__(self, files: Files, root: str, beside: str, foreground: str) -> None:
        self._root = root
        self._masks = _read_beside(files, root, beside, _MASKS)
        #: For each video, the masks of all candidate objects, if the dataset has them.
        self._foreground = _read_beside(files, root, beside, foreground) if foreground else None

    def has_image(self, video: _Video) -> bool:
        """Return whether a video has all masks of its expressions, and a foreground if any video has one."""
        named = {name for names in video.expressions.values() for name in names}
        return self._masks.keys() >= named and (self._foreground is None or video.name in self._foreground)

    def sequence(self, video: _Video) -> Sequence:
        """Return a video with its masks."""
        video_path, problems = f"{self._root}: {video.name}", Problems()
        try:
            named = dict.fromkeys(name for names in video.expressions.values() for name in names)
            objects = {name: [mask or None for mask in self._masks[name]] for name in named}
            foreground = None if self._foreground is None else _foreground_of(self._foreground[video.name])
            objects.update(foreground or {})
            shapes = {tuple(mask["size"]) for masks in objects.values() for mask in masks if mask}
            if not shapes:
                raise HostError(f"{video_path}: has no mask, so its size is unknown; write a frame as an empty mask")
            ((height, width),) = shapes
        except (KeyError, TypeError, ValueError):
            raise HostError(f"{video_path}: its masks are not run lengths of the same size") from None
        masks = RunLengths(video.name, objects, video.frames, problems, overlapping=True, limit=len(objects))
        if problems:
            raise HostError(f"{self._root}: {problems.text('the truth')}")
        sizes = iter([(height, width)] * len(video.frames))
        names = None if foreground is None else tuple(foreground)
        return _make_sequence(video, masks, video.frames, sizes, self._root, names)


def _read_beside(files: Files, root: str, beside: str, file: str) -> Dict[str, Any]:
    """Return the masks of the file with this name, preferably from the expressions' folder."""
    names = _find_files(files, file)
    names = [name for name in names if name.rpartition("/")[0] == beside.rpartition("/")[0]] or names
    if len(names) != 1:
        raise HostError(f"{root}: has {len(names) or 'no'} {file} for {beside}; add the one that holds its masks")
    try:
        masks = json.loads(files.read(names[0]))
    except ValueError as error:
        raise HostError(f"{root}: {names[0]} is not valid JSON ({explain_damage(error)})") from None
    if not isinstance(masks, dict):
        raise HostError(f"{root}: {names[0]} is not an object of run lengths")
    return masks


def _foreground_of(entry: Dict[str, Any]) -> Dict[str, List[Any]]:
    """Return the foreground masks of a video by frame; a frame may have one, several or none."""
    rows = [masks if isinstance(masks, list) else [masks] for masks in entry["masks_rle"]]
    count = max(map(len, rows), default=0)
    return {
        f"foreground {number}": [row[number] or None if number < len(row) else None for row in rows]
        for number in range(count)
    }


class _LabelSource:
    """Label images as in YouTube-VOS: frames may lack one, and an object may have a folder of its own."""

    def __init__(self, files: Files, root: str, layout: Layout, subset: str) -> None:
        self._files, self._root = files, root
        self._masks = sort_dataset(files, root, layout, subset).masks

    def has_image(self, video: _Video) -> bool:
        """Return whether any of a video's frames has an image."""
        folders = self._masks.get(video.name, {}).values()
        return any(frame in members for members in folders for frame in video.frames)

    def sequence(self, video: _Video) -> Sequence:
        """Return a video with its masks."""
        folders, files = self._masks[video.name], self._files
        if "" not in folders:
            objects = ObjectFolders(files, folders, Problems(), limit=len(folders), many_values=True)
            size = _size_of(files, next(name for members in folders.values() for name in members.values()))
            return _make_sequence(video, objects, video.frames, iter([size] * len(video.frames)), self._root)
        members = folders[""]
        frames = [frame for frame in video.frames if frame in members]
        masks = LabelImages(files, members)
        sizes = (_size_of(files, members[frame]) for frame in frames)
        return _make_sequence(video, masks, frames, sizes, self._root)


class _DatasetMasks(NamedTuple):
    """The masks of one sequence."""

    blocks: List[Block]
    #: The frames in which each object is visible, and its maximum number of pixels.
    visible: Dict[str, Array]
    areas: Dict[str, int]
    read_block: Callable[[int], Stacks]


def _read_masks(images: MaskFiles, frames: List[str], sizes: Iterable[Size], root: str) -> _DatasetMasks:
    """Read the masks of a sequence whose frames have these sizes; raises HostError if one cannot be read."""
    blocks: List[Block] = []
    visible: Dict[str, Array] = {}
    areas: Dict[str, int] = {}
    folded: List[Dict[str, FoldedStack]] = []
    for block in blocks_of(sizes):
        problems = Problems()
        stacks = images.read_stacks(frames[block.start : block.stop], block.size, problems)
        if stacks is None:
            raise HostError(f"{root}: {problems.text('the truth')}")
        for label, stack in stacks.items():
            area = stack.area
            visible.setdefault(label, np.zeros(len(frames), bool))[block.start : block.stop] = area > 0
            areas[label] = max(areas.get(label, 0), int(area.max()))
        folded.append({label: FoldedStack(stack) for label, stack in stacks.items()})
        blocks.append(block)

    def read_block(index: int) -> Stacks:
        return {label: stack.unfold() for label, stack in folded[index].items()}

    return _DatasetMasks(blocks, visible, areas, read_block)


def _size_of(files: Files, name: str) -> Size:
    """Return the (height, width) of a PNG."""
    return png.size_of(files.read(name))
