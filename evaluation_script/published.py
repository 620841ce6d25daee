"""Truth in the layouts that datasets are published in, found by what a folder or zip holds.

Masks lie in `[Annotations[_…]/][480p/]SEQUENCE/[OBJECT/]FRAME.png`; lists of
sequences in `ImageSets/…/SUBSET.txt`; facts about objects in a JSON file with
`videos` (LVOS, YouTube-VOS, MOSEv2).  `linejudge pack` reads the same way.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import numpy as np

from . import png
from .archive import open_files
from .errors import Flaw, HostError, Problems, SubmissionError, listed
from .mask_files import LabelImages, MaskFiles, ObjectFolders, Stacks
from .masks import Array, Size
from .members import Files, Limits
from .sequence_protocols import YOUTUBE_UNSEEN
from .truth import (
    VOID,
    Block,
    ObjectFacts,
    Ranges,
    Sequence,
    Split,
    Truth,
    block_bytes,
    block_stacks,
    blocks_of,
    label_order,
    ranges_of,
)

#: A host's own files are believed more than a stranger's.
HOST_LIMITS = Limits(
    members=5_000_000,
    member_bytes=1 << 30,
    total_bytes=1 << 42,
    memory_bytes=1 << 31,
    json_bytes=1 << 31,
    ratio=100_000,
    objects=65_535,
)
RESOLUTION = re.compile(r"\d+p|Full-Resolution", re.IGNORECASE)

#: LVOS annotates every fifth frame.
LVOS_STEP = 5

#: An object that never has more pixels than this may be a stray colour.
STRAY_PIXELS = 8


@dataclass(frozen=True)
class Layout:
    """How a dataset is published, where the files alone leave a choice."""

    name: str
    #: The folder of masks, where there are several.
    masks: str = "Annotations"
    #: The year in `ImageSets/YEAR/…`, where there are several.
    years: Tuple[str, ...] = ("2017", "2019", "2016", "480p")
    unseen_categories: Tuple[str, ...] = ()
    object_folders: bool = False
    #: Frames are sorted as numbers, not as text.
    numeric: bool = False


GENERIC = Layout("generic")
LAYOUTS = {
    layout.name: layout
    for layout in (
        GENERIC,
        Layout("davis2016", years=("2016", "480p", "2017")),
        Layout("davis2017"),
        Layout("davis2017-unsupervised", masks="Annotations_unsupervised", years=("2019", "2017")),
        Layout("lvos"),
        Layout("vost"),
        Layout("youtube-vos", unseen_categories=YOUTUBE_UNSEEN),
        Layout("mose"),
        Layout("mosev2", numeric=True),
        Layout("sav", masks="Annotations_6fps", object_folders=True),
    )
}


@dataclass
class Tree:
    """A dataset's files, sorted into what they are."""

    files: Files
    root: str
    #: Sequence → object ("" for label images) → frame → file.
    masks: Dict[str, Dict[str, Dict[str, str]]]
    #: Sequence → frames of its video.
    pictures: Dict[str, List[str]]
    notes: List[str] = field(default_factory=list)


def _unheard(name: str, done: int, total: int) -> None:
    """Progress that nobody asked for."""
    del name, done, total


def read(
    path: str,
    layout: Layout = GENERIC,
    subset: str = "",
    *,
    unseen: str = "",
    split: str = "",
    progress: Callable[[str, int, int], None] = _unheard,
) -> Truth:
    """Open a dataset in its published layout as a truth with one split."""
    try:
        files = open_files(path, HOST_LIMITS, trusted=True)
        tree = _tree(files, path, layout, subset)
        names, meta = _names(tree, layout, subset)
        reader = _Reader(
            tree, meta, _list(tree, "unsupervised_videos.txt"), _unseen(tree, unseen), numeric=layout.numeric
        )
        sequences = []
        for done, name in enumerate(names):
            progress(name, done, len(names))
            sequences.append(reader.sequence(name))
    except (SubmissionError, Flaw) as error:
        told = str(error)
        raise HostError(told if told.startswith(path) else f"{path}: {told}") from None
    categories = _unseen(tree, unseen) or list(layout.unseen_categories)
    notes = tree.notes + reader.notes
    tells = bool(_unseen(tree, unseen)) or (bool(categories) and reader.has_categories)
    return Truth({split or subset or "val": Split(sequences, layout.name, tells, categories)}, notes)


def _tree(files: Files, root: str, layout: Layout, subset: str) -> Tree:
    homes: Dict[str, List[Tuple[List[str], str]]] = {}
    pictures: Dict[str, List[str]] = {}
    for name in files.sizes:
        parts = name.split("/")
        if len(parts) > 1 and any(part.startswith("JPEGImages") for part in parts):
            pictures.setdefault(parts[-2], []).append(parts[-1].rpartition(".")[0])
        elif parts[-1].lower().endswith(".png"):
            home, rest = _home(parts)
            homes.setdefault(home, []).append((rest, name))
    if not homes:
        raise HostError(f"{root}: holds no PNG masks")
    home = _chosen(sorted(homes), layout, subset)
    tree = Tree(files, root, _sorted_masks(homes[home], 3 if layout.object_folders else 2), pictures)
    others = [other for other in homes if other != home]
    if others:
        tree.notes.append(f"masks are read from {home or root}, not from {listed(others)}")
    return tree


def _home(parts: List[str]) -> Tuple[str, List[str]]:
    """The folder of masks, and the path below it."""
    at = max((i for i, part in enumerate(parts[:-1]) if part.startswith("Annotations")), default=-1)
    if 0 <= at < len(parts) - 3 and RESOLUTION.fullmatch(parts[at + 1]):
        at += 1
    return "/".join(parts[: at + 1]), parts[at + 1 :]


def _chosen(homes: List[str], layout: Layout, subset: str) -> str:
    """The folder of masks that suits subset and layout best; 480p before other resolutions."""
    subsets = {subset, "valid" if subset == "val" else subset}

    def fit(home: str) -> Tuple[bool, bool, bool, bool, str]:
        parts = home.split("/")
        fits = subsets.isdisjoint(parts), layout.masks not in parts, "Annotations" not in parts, parts[-1] != "480p"
        return (*fits, home)

    return min(homes, key=fit)


def _sorted_masks(found: List[Tuple[List[str], str]], depth: int) -> Dict[str, Dict[str, Dict[str, str]]]:
    """Cut off wrapping folders, then sort by sequence, object and frame."""
    paths = [rest for rest, _ in found]
    shared = 0
    while all(len(path) > shared + depth and path[shared] == paths[0][shared] for path in paths):
        shared += 1
    masks: Dict[str, Dict[str, Dict[str, str]]] = {}
    for path, name in zip(paths, (name for _, name in found)):
        rest = path[shared:]
        if len(rest) == 1:
            rest = ["", *rest]
        sequence, label = rest[0], "/".join(rest[1:-1])
        masks.setdefault(sequence, {}).setdefault(label, {})[rest[-1].rpartition(".")[0]] = name
    return masks


def _list(tree: Tree, file: str) -> List[str]:
    """The lines of a list that lies anywhere in the dataset."""
    for name in sorted(tree.files.sizes, key=len):
        if name == file or name.endswith("/" + file):
            return tree.files.read(name).decode("utf-8").split()
    return []


def _unseen(tree: Tree, path: str) -> List[str]:
    if not path:
        return _list(tree, "unseen_videos.txt")
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().split()
    except (OSError, UnicodeError) as error:
        raise HostError(f"{path}: cannot be read ({error})") from None


def _names(tree: Tree, layout: Layout, subset: str) -> Tuple[List[str], Dict[str, Any]]:
    """The sequences to score, in the order of their list, and the facts of the meta file."""
    lists = _lists(tree, layout)
    metas = _metas(tree)
    wanted = subset or ("val" if "val" in lists else next(iter(lists)) if len(lists) == 1 else "")
    meta = _meta(metas, wanted)
    if wanted in lists:
        names = lists[wanted]
    elif subset and not (meta and _fits(metas, subset)):
        raise HostError(
            f"{tree.root}: has no list of sequences for {subset!r}; found {listed(sorted(lists)) or 'none'}"
        )
    elif lists and not subset and not meta:
        raise HostError(
            f"{tree.root}: has several lists of sequences; choose one with --subset: {listed(sorted(lists))}"
        )
    else:
        names = [name for name in meta if name in tree.masks] if meta else sorted(tree.masks)
    absent = [name for name in names if name not in tree.masks]
    if absent:
        raise HostError(f"{tree.root}: its list names sequences without masks: {listed(absent)}")
    return names, meta


def _lists(tree: Tree, layout: Layout) -> Dict[str, List[str]]:
    """Lists of sequences by subset; the year that suits the layout wins."""
    found: Dict[str, Tuple[int, str]] = {}
    for name in tree.files.sizes:
        parts = name.split("/")
        in_sets = "ImageSets" in parts
        if not name.endswith(".txt") or not (in_sets or parts[-1].startswith("sav_")):
            continue
        subset = parts[-1][:-4].replace("sav_", "")
        year = layout.years.index(parts[-2]) if parts[-2:-1] and parts[-2] in layout.years else len(layout.years)
        if subset not in found or year < found[subset][0]:
            found[subset] = (year, name)
    return {subset: _listed_names(tree.files.read(name)) for subset, (_, name) in found.items()}


def _listed_names(data: bytes) -> List[str]:
    """Names in their order, once each; DAVIS-2016 lists pairs of files instead."""
    names = [line.split()[0] for line in data.decode("utf-8").splitlines() if line.strip()]
    return list(dict.fromkeys(name.split("/")[-2] if "/" in name else name for name in names))


def _metas(tree: Tree) -> Dict[str, Dict[str, Any]]:
    """JSON files with facts about videos."""
    metas = {}
    for name in tree.files.sizes:
        if name.lower().endswith(".json") and "meta" in name.lower().rpartition("/")[2]:
            try:
                document = json.loads(tree.files.read(name))
                metas[name] = dict(document["videos"])
            except (ValueError, KeyError, TypeError) as error:
                tree.notes.append(f"{name} is not read: it is no JSON object with videos ({error!r})")
    return metas


def _fits(metas: Dict[str, Dict[str, Any]], subset: str) -> List[str]:
    return [name for name in metas if subset in name or (subset == "val" and "valid" in name)]


def _meta(metas: Dict[str, Dict[str, Any]], subset: str) -> Dict[str, Any]:
    fitting = _fits(metas, subset) if subset else list(metas)
    if len(metas) > 1 and len(fitting) != 1:
        raise HostError(f"there are several meta files ({listed(list(metas))}); choose one with --subset")
    return metas[fitting[0]] if fitting else (next(iter(metas.values())) if len(metas) == 1 else {})


class _Reader:
    """Reads sequences of a tree, and notes what is odd in them."""

    def __init__(
        self, tree: Tree, meta: Dict[str, Any], salient: List[str], unseen: List[str], *, numeric: bool
    ) -> None:
        self._tree, self._meta, self._salient, self._unseen = tree, meta, salient, unseen
        self._numeric = numeric
        self.notes: List[str] = []
        self.has_categories = False

    def sequence(self, name: str) -> Sequence:
        """One sequence: its frames, sizes, objects, and where each is visible."""
        members, problems = self._tree.masks[name], Problems()
        images: MaskFiles
        if "" in members:
            frames = self._in_order(members[""])
            images = LabelImages(self._tree.files, members[""], problems)
        else:
            frames = self._in_order({frame for held in members.values() for frame in held})
            images = ObjectFolders(self._tree.files, members, problems)
        sizes = [self._size(members, frame) for frame in frames]
        blocks: List[Block] = blocks_of(sizes)
        labels: List[str] = []
        shown: Dict[str, Array] = {}
        areas: Dict[str, int] = {}
        kept = []
        for block in blocks:
            stacks = images.stacks(frames[block.start : block.stop], block.size)
            if stacks is None:
                raise HostError(f"{self._tree.root}: {problems.text()}")
            for label, stack in stacks.items():
                area = stack.area
                shown.setdefault(label, np.zeros(len(frames), bool))[block.start : block.stop] = area > 0
                areas[label] = max(areas.get(label, 0), int(area.max()))
            labels += [label for label in stacks if label not in labels]
            kept.append(zlib.compress(block_bytes(stacks, labels), 1))

        def read_block(index: int) -> Stacks:
            return block_stacks(zlib.decompress(kept[index]), blocks[index], labels)

        told = self._told(name, members)
        objects = self._objects(told, members, frames, shown)
        self._note_oddities(name, frames, sizes, shown, areas)
        salient = not self._salient or name in self._salient
        unseen = name in self._unseen
        return Sequence(name, frames, blocks, objects, read_block, unseen, salient, told is not None)

    def _in_order(self, frames: Iterable[str]) -> List[str]:
        numbers = self._numeric and all(frame.isdecimal() for frame in frames)
        return sorted(frames, key=int if numbers else None)

    def _size(self, members: Dict[str, Dict[str, str]], frame: str) -> Size:
        name = next(held[frame] for held in members.values() if frame in held)
        try:
            return png.size_of(self._tree.files.read(name))
        except Flaw as flaw:
            raise HostError(f"{self._tree.root}: {flaw.at(name)}") from None

    def _told(self, name: str, members: Dict[str, Dict[str, str]]) -> Optional[Dict[str, Any]]:
        """What the meta file, or else the folders of objects, say of a sequence's objects."""
        if name in self._meta and "objects" in self._meta[name]:
            told = self._meta[name]["objects"]
            return told if isinstance(told, dict) else {str(label): [] for label in told}  # MOSEv2: numbers alone
        if "" in members:
            return None
        return {label: {} for label in sorted(members, key=label_order)}

    def _objects(
        self,
        told: Optional[Dict[str, Any]],
        members: Dict[str, Dict[str, str]],
        frames: List[str],
        shown: Dict[str, Array],
    ) -> Dict[str, ObjectFacts]:
        """Facts from the masks, and what was told."""
        facts = {}
        for label in [*(told or {}), *sorted(set(shown) - set(told or {}), key=label_order)]:
            visible = ranges_of(shown.get(label, np.zeros(len(frames), bool)))
            entry = (told or {}).get(label)
            own: Optional[Ranges] = None if entry is None else [(0, len(frames))]
            if label in members:
                own = ranges_of(np.array([frame in members[label] for frame in frames]))
            if isinstance(entry, dict) and "frame_range" in entry:
                own = _interval(entry["frame_range"], frames)
            category = entry.get("category") if isinstance(entry, dict) else None
            if isinstance(entry, dict) and category is not None:
                own = _first_to_last(visible, len(frames))
            self.has_categories |= category is not None
            facts[label] = ObjectFacts(visible, own, category)
        return facts

    def _note_oddities(
        self, name: str, frames: List[str], sizes: List[Size], shown: Dict[str, Array], areas: Dict[str, int]
    ) -> None:
        """What a host should look at before publishing a truth."""
        for label, visible in shown.items():
            if label == VOID:
                continue
            if areas[label] <= STRAY_PIXELS:
                self.notes.append(f"{name}: object {label} never has more than {areas[label]} pixels: a stray colour?")
            elif not visible[0]:
                self.notes.append(f"{name}: object {label} first appears in frame {frames[int(visible.argmax())]}")
            elif not visible[1:].any() and len(frames) > 1:
                self.notes.append(f"{name}: object {label} vanishes after the first frame")
        if len(set(sizes)) > 1:
            self.notes.append(f"{name}: the size of its frames changes ({len(set(sizes))} sizes)")
        without = sorted(set(self._tree.pictures.get(name, frames)) - set(frames))
        if without and len(without) * 2 < len(frames):
            self.notes.append(f"{name}: {len(without)} frames have no mask: {listed(without)}")


def _interval(frame_range: Dict[str, Any], frames: List[str]) -> Ranges:
    """The frames of an object's own interval (LVOS): every fifth from `start`, as many as `frame_nums` says.

    Whether `end` is meant to be included is not known; the count decides.
    """
    start, count = int(frame_range["start"]), int(frame_range["frame_nums"])
    wanted = range(start, start + LVOS_STEP * count, LVOS_STEP)
    return ranges_of(np.array([frame.isdecimal() and int(frame) in wanted for frame in frames], bool))


def _first_to_last(visible: Ranges, count: int) -> Ranges:
    """From where an object is first visible to the end of its video."""
    return [(visible[0][0], count)] if visible else []
