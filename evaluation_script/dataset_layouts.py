"""A dataset's files in the layout it is published in, sorted into masks, lists and facts.

Masks lie in `[Annotations[_…]/][480p/]SEQUENCE/[OBJECT/]FRAME.png`; lists of
sequences in `ImageSets/…/SUBSET.txt`; facts about objects in a JSON file with
`videos` (LVOS, YouTube-VOS, MOSEv2).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Tuple

from .archive_limits import ArchiveLimits, Files
from .errors import HostError, listed
from .sequence_protocols import YOUTUBE_UNSEEN

#: A host's own files are believed more than a participant's.
HOST_LIMITS = ArchiveLimits(
    members=5_000_000,
    member_bytes=1 << 30,
    total_bytes=1 << 42,
    memory_bytes=1 << 31,
    json_bytes=1 << 31,
    ratio=100_000,
    objects=65_535,
    links=True,
    send="Name the folder or the zip of a dataset",
    smaller="Leave it out",
)
RESOLUTION = re.compile(r"\d+p|Full-Resolution", re.IGNORECASE)


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
class DatasetFolder:
    """A dataset's files, sorted into what they are."""

    files: Files
    root: str
    #: Sequence → object ("" for label images) → frame → file.
    masks: Dict[str, Dict[str, Dict[str, str]]]
    #: Sequence → frames of its video.
    pictures: Dict[str, List[str]]
    notes: List[str] = field(default_factory=list)


def recognized_dataset(files: Files, root: str, layout: Layout, subset: str) -> DatasetFolder:
    """Sort a dataset's files into masks by sequence, object and frame, and pictures."""
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
    tree = DatasetFolder(files, root, _sorted_masks(homes[home], 3 if layout.object_folders else 2), pictures)
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


def listed_in(tree: DatasetFolder, file: str) -> List[str]:
    """The lines of a list that lies anywhere in the dataset."""
    for name in sorted(tree.files.sizes, key=len):
        if name == file or name.endswith("/" + file):
            return tree.files.read(name).decode("utf-8").split()
    return []


def unseen_names(tree: DatasetFolder, path: str) -> List[str]:
    """Unseen sequences or categories: of the file named, else of the dataset's own list."""
    if not path:
        return listed_in(tree, "unseen_videos.txt")
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().split()
    except (OSError, UnicodeError) as error:
        raise HostError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def names_and_facts(tree: DatasetFolder, layout: Layout, subset: str) -> Tuple[List[str], Dict[str, Any]]:
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


def _lists(tree: DatasetFolder, layout: Layout) -> Dict[str, List[str]]:
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


def _metas(tree: DatasetFolder) -> Dict[str, Dict[str, Any]]:
    """JSON files with facts about videos."""
    metas = {}
    for name in tree.files.sizes:
        if name.lower().endswith(".json") and "meta" in name.lower().rpartition("/")[2]:
            try:
                document = json.loads(tree.files.read(name))
                metas[name] = dict(document["videos"])
            except (ValueError, KeyError, TypeError) as error:
                tree.notes.append(f"{name} is not read: it is not a JSON object with videos ({error!r})")
    return metas


def _fits(metas: Dict[str, Dict[str, Any]], subset: str) -> List[str]:
    return [name for name in metas if subset in name or (subset == "val" and "valid" in name)]


def _meta(metas: Dict[str, Dict[str, Any]], subset: str) -> Dict[str, Any]:
    fitting = _fits(metas, subset) if subset else list(metas)
    if len(metas) > 1 and len(fitting) != 1:
        raise HostError(f"there are several meta files ({listed(list(metas))}); choose one with --subset")
    return metas[fitting[0]] if fitting else (next(iter(metas.values())) if len(metas) == 1 else {})
