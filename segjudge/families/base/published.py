"""Sources of truths, their subsets, and packing of truths counted by unit."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Any, NamedTuple

from segjudge.evaluation_script.families.base.truth import DEFAULT_SPLIT, AnnotationFile
from segjudge.evaluation_script.files.problems import HostError, inflect
from segjudge.system.files import make_folder


class TruthSource(NamedTuple):
    """The location of a truth and the options that describe a published dataset."""

    path: str
    #: The layout of the dataset (default: the family's).
    layout: str = ""
    #: The list of sequences, e.g. val.
    subset: str = ""
    #: A file with the names of unseen sequences or categories.
    unseen: str = ""
    #: A file with the categories of Places-style PNGs.
    categories: str = ""


class PackedTruth(NamedTuple):
    """The result of packing: a split of an annotation file."""

    split: str
    #: The size in words.
    about: str
    #: Notes for the host about oddities.
    notes: list[str]


def check_subset(source: TruthSource) -> None:
    """Raise HostError if a dataset without lists has no part with the name of the subset.

    Any such dataset may be called val, the default name.
    """
    path, subset = source.path, source.subset
    if subset in ("", DEFAULT_SPLIT):
        return
    from segjudge.evaluation_script.files.archive import open_files
    from segjudge.evaluation_script.files.limits import ARCHIVE_ENDINGS, HOST_LIMITS

    limits = replace(HOST_LIMITS, compressed=ARCHIVE_ENDINGS)  # only names are read
    names = [] if os.path.isfile(path) and path.endswith((".json", ".gz")) else open_files(path, limits).sizes
    levels = [level for name in (path.replace(os.sep, "/"), *names) for level in name.split("/")]
    names_in_paths = {level.rpartition(".")[0] or level for level in levels}
    as_word = re.compile(rf"(?<![^\W_]){re.escape(subset)}(?![^\W_])")
    if not any(as_word.search(word) for word in names_in_paths):
        raise HostError(f"{path}: has no subset {subset!r}: no list, folder or file has that name; omit it")


def pack_units(published: AnnotationFile[Any], out: str, split: str) -> PackedTruth:
    """Pack a dataset counted by unit as one split; with `split`, add it to a file."""
    from segjudge.evaluation_script.families.base.units import read_units, write_units

    ((name, truth),) = published.splits.items()
    make_folder(os.path.dirname(out) or ".")
    write_units(out, {**(read_units(out) if split and os.path.exists(out) else {}), split or name: truth})
    units = len(truth.units)
    about = f"{units:,} {inflect(units, 'image or sequence', 'images or sequences')}"
    return PackedTruth(split or name, about, truth.notes)
