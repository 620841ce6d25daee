"""The files of a published dataset, sorted into masks, lists and facts.

Masks lie in `[Annotations[_…]/][480p/]SEQUENCE/[OBJECT/]FRAME.png`; lists of
sequences in `ImageSets/…/SUBSET.txt`; facts about objects in a JSON file with
`videos` (LVOS, YouTube-VOS, MOSEv2).
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Tuple

from ...files.limits import Files
from ...files.problems import HostError, name_list
from ..base.truth import TruthNames
from .protocols import YOUTUBE_UNSEEN

_RESOLUTION = r"(?i:\d+p|Full-Resolution)"


class Layout(NamedTuple):
    """The layout of a dataset, where its files allow several readings."""

    name: str
    #: The folder of masks, if there are several.
    masks: str = "Annotations"
    #: The year in `ImageSets/YEAR/…`, if there are several.
    years: Tuple[str, ...] = ("2017", "2019", "2016", "480p")
    unseen_categories: Tuple[str, ...] = ()
    object_folders: bool = False
    #: Frames are sorted as numbers, not as text.
    numeric: bool = False
    #: The key of an expression's masks, if objects are expressions: each is the union of these masks.
    names_masks: str = ""
    #: The key of an expression's kind, and the kinds that have another name there.
    kind: str = ""
    kinds: Tuple[Tuple[str, str], ...] = ()
    #: The file with the masks of all candidate objects, if R is divided by them.
    foreground: str = ""


GENERIC = Layout("generic")
_UNSUPERVISED = Layout("davis2017-unsupervised", masks="Annotations_unsupervised", years=("2019", "2017"))
LAYOUTS = {
    layout.name: layout
    for layout in (
        GENERIC,
        Layout("davis2016", years=("2016", "480p", "2017")),
        Layout("davis2017"),
        _UNSUPERVISED,
        _UNSUPERVISED._replace(name="ref-davis17"),
        Layout("mevis", names_masks="anno_id"),
        Layout("ref-youtube-vos", names_masks="obj_id"),
        Layout(
            "long-rvos", names_masks="obj_id", object_folders=True, kind="type", kinds=(("static+dynamic", "hybrid"),)
        ),
        Layout(
            "revos",
            names_masks="anno_id",
            kind="type_id",
            kinds=(("0", "referring"), ("1", "reasoning"), ("2", "no-target")),
            foreground="mask_dict_foreground.json",
        ),
        Layout("lvos"),
        Layout("vost"),
        Layout("youtube-vos", unseen_categories=YOUTUBE_UNSEEN),
        Layout("mose"),
        Layout("mosev2", numeric=True),
        Layout("sav", masks="Annotations_6fps", object_folders=True),
    )
}

#: Protocols whose truth has another protocol's layout.
ALIASES = {
    "lvos-unsupervised": "lvos", "lvos-unsupervised-single": "lvos", "mevis-official": "mevis", "mevis-v2": "mevis",
    "revos-official": "revos", "long-rvos-official": "long-rvos",
    "ref-davis17-strict": "ref-davis17",
}  # fmt: skip


def layout_of(protocol: str) -> Layout:
    """Return the layout of a protocol's truth."""
    return LAYOUTS.get(ALIASES.get(protocol, protocol), GENERIC)


#: Sequence → object ("" for label images) → frame → file.
_Masks = Dict[str, Dict[str, Dict[str, str]]]
#: The facts of the meta file, by sequence.
_Facts = Dict[str, Any]


class DatasetFolder(NamedTuple):
    """The files of a dataset, sorted by what they hold."""

    files: Files
    root: str
    masks: _Masks
    #: Sequence → frames of its video.
    pictures: Dict[str, List[str]]
    notes: List[str]


def sort_dataset(files: Files, root: str, layout: Layout, subset: str) -> DatasetFolder:
    """Return a dataset's files sorted into masks, by sequence, object and frame, and pictures."""
    mask_folders: Dict[str, List[Tuple[List[str], str]]] = {}
    pictures: Dict[str, List[str]] = {}
    for name in files.sizes:
        parts = name.split("/")
        if len(parts) > 1 and any(name_part.startswith("JPEGImages") for name_part in parts):
            pictures.setdefault(parts[-2], []).append(parts[-1].rpartition(".")[0])
        elif parts[-1].lower().endswith(".png"):
            home, below = _cut_at_mask_folder(parts)
            mask_folders.setdefault(home, []).append((below, name))
    if not mask_folders:
        raise HostError(f"{root}: holds no PNG masks")
    home = _choose_mask_folder(sorted(mask_folders), layout, subset)
    folder = DatasetFolder(
        files, root, _sort_masks(mask_folders[home], 3 if layout.object_folders else 2), pictures, []
    )
    if files.hidden_folders:
        hidden = name_list(sorted(files.hidden_folders))
        folder.notes.append(
            f"folders whose names begin with a dot are not read: {hidden}; rename folders that hold masks"
        )
    other_folders = {name: files for name, files in mask_folders.items() if name != home}
    loose = {below[0] if below[1:] else f"the top of {root}" for below, _ in other_folders.pop("", [])}
    if other_folders or loose:
        unread_folders = [*other_folders, *sorted(loose)]
        folder.notes.append(f"masks are read from {home or root}, not from {name_list(unread_folders)}")
    return folder


def _cut_at_mask_folder(parts: List[str]) -> Tuple[str, List[str]]:
    """Return the mask folder in a path and the path below it; a folder without subfolders is a sequence."""
    stop = max((index for index, folder in enumerate(parts[:-2], 1) if folder.startswith("Annotations")), default=0)
    if 0 < stop < len(parts) - 2 and re.fullmatch(_RESOLUTION, parts[stop]):
        stop += 1
    return "/".join(parts[:stop]), parts[stop:]


def _choose_mask_folder(mask_folders: List[str], layout: Layout, subset: str) -> str:
    """Return the mask folder that best fits subset and layout; 480p before other resolutions.

    PNGs outside any mask folder (home "") are the last resort.
    """
    subsets = {subset, "valid" if subset == "val" else subset}

    def misfits(home: str) -> Tuple[bool, ...]:
        parts = home.split("/")
        other_subset = bool(subset) and subsets.isdisjoint(parts)
        return not home, other_subset, layout.masks not in parts, "Annotations" not in parts, parts[-1] != "480p"

    return min(mask_folders, key=misfits)


def _sort_masks(files: List[Tuple[List[str], str]], depth: int) -> _Masks:
    """Return masks (relative path and name) by sequence, object and frame."""
    first_folders, wrapping = files[0][0], 0
    while all(len(path) > wrapping + depth and path[wrapping] == first_folders[wrapping] for path, _ in files):
        wrapping += 1
    masks: _Masks = {}
    for path, name in files:
        *folders, file = path[wrapping:]
        sequence, label = (folders or [""])[0], "/".join(folders[1:])
        masks.setdefault(sequence, {}).setdefault(label, {})[file.rpartition(".")[0]] = name
    return masks


def read_list(folder: DatasetFolder, file: str) -> List[str]:
    """Return the names in a list, found anywhere in the dataset; empty if it does not exist."""
    for name in sorted(folder.files.sizes, key=len):
        if name == file or name.endswith("/" + file):
            return _cut_names(folder, folder.files.read(name).decode("utf-8"))
    return []


def _cut_names(folder: DatasetFolder, text: str) -> List[str]:
    """Return the names in a text: whole lines that name a sequence, else single words."""
    names: List[str] = []
    for line in map(str.strip, text.splitlines()):
        names += [line] if _is_sequence(folder, line) else line.split()
    return names


def _is_sequence(folder: DatasetFolder, name: str) -> bool:
    """Return whether a name with a space belongs to a sequence."""
    return " " in name and TruthNames(folder.masks).respell(name) in folder.masks


def unseen_names(folder: DatasetFolder, path: str) -> List[str]:
    """Return unseen sequences or categories from the file at `path`, else from the dataset's list."""
    if not path:
        return read_list(folder, "unseen_videos.txt")
    try:
        with open(path, encoding="utf-8") as file:
            return _cut_names(folder, file.read())
    except (OSError, UnicodeError) as error:
        raise HostError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def names_and_facts(folder: DatasetFolder, layout: Layout, subset: str) -> Tuple[List[str], _Facts]:
    """Return the sequences to score, in the order of their list, and the facts of the meta file."""
    lists = _find_lists(folder, layout)
    metas = _metas(folder)
    chosen = subset or ("val" if "val" in lists else next(iter(lists)) if len(lists) == 1 else "")
    spell_as_folder = TruthNames(folder.masks).respell  # the list's Unicode form may differ from that of folder names
    meta = {spell_as_folder(name): facts for name, facts in _meta(folder.root, metas, chosen).items()}
    if chosen in lists:
        names = list(map(spell_as_folder, lists[chosen]))
    elif subset and not (meta and files_of_subset(metas, subset)):
        if not lists:
            example = f"ImageSets/2017/{subset}.txt"
            raise HostError(
                f"{folder.root}: has no lists of sequences such as {example}; name the folder that holds them"
            )
        raise HostError(f"{folder.root}: has no list of sequences for {subset!r}; found {name_list(sorted(lists))}")
    elif lists and not subset and not meta:
        raise HostError(
            f"{folder.root}: has several lists of sequences; choose one with --subset: {name_list(sorted(lists))}"
        )
    else:
        names = [name for name in meta if name in folder.masks] if meta else sorted(folder.masks)
    absent = [name for name in names if name not in folder.masks]
    if absent:
        raise HostError(f"{folder.root}: its list names sequences without masks: {name_list(absent)}")
    return names, meta


def _find_lists(folder: DatasetFolder, layout: Layout) -> Dict[str, List[str]]:
    """Return the lists of sequences by subset; the year of the layout takes precedence."""
    best: Dict[str, Tuple[int, str]] = {}
    for name in folder.files.sizes:
        parts = name.split("/")
        if not name.endswith(".txt") or not ("ImageSets" in parts or parts[-1].startswith("sav_")):
            continue
        subset = parts[-1][:-4].replace("sav_", "")
        year = layout.years.index(parts[-2]) if parts[-2:-1] and parts[-2] in layout.years else len(layout.years)
        if subset not in best or year < best[subset][0]:
            best[subset] = (year, name)
    return {subset: _read_names(folder, folder.files.read(name)) for subset, (_, name) in best.items()}


def _read_names(folder: DatasetFolder, data: bytes) -> List[str]:
    """Return distinct names in their order; DAVIS-2016 lists pairs of files instead."""
    lines = [line.strip() for line in data.decode("utf-8").splitlines() if line.strip()]
    names = [line if _is_sequence(folder, line) else line.split()[0] for line in lines]
    return list(dict.fromkeys(name.split("/")[-2] if "/" in name else name for name in names))


def _metas(folder: DatasetFolder) -> Dict[str, _Facts]:
    """Return the facts of each meta file, by the file's name."""
    metas = {}
    for name in folder.files.sizes:
        file = name.lower().rpartition("/")[2]
        if file.endswith(".json") and "meta" in file and "expressions" not in file:
            try:
                document = json.loads(folder.files.read(name))
                metas[name] = dict(document["videos"])
            except (ValueError, KeyError, TypeError) as error:
                folder.notes.append(f"{name} is not read: it is not a JSON object with videos ({error!r})")
    return metas


def files_of_subset(metas: Iterable[str], subset: str) -> List[str]:
    """Return the files whose names match a subset."""
    return [name for name in metas if subset in name or (subset == "val" and "valid" in name)]


def _meta(root: str, metas: Dict[str, _Facts], subset: str) -> _Facts:
    names = files_of_subset(metas, subset) if subset else list(metas)
    if len(metas) > 1 and len(names) != 1:
        raise HostError(f"{root}: has several meta files ({name_list(list(metas))}); choose one with --subset")
    return metas[names[0]] if names else (next(iter(metas.values())) if len(metas) == 1 else {})
