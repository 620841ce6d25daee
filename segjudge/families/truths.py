"""Truths of all families, opened or packed: annotation files and published datasets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from segjudge.evaluation_script.families import FAMILIES, LAYOUTS, PROTOCOLS, engine_of
from segjudge.evaluation_script.families.base.family import FamilyProtocol, Progress, ignore_progress
from segjudge.evaluation_script.families.base.truth import AnnotationFile, SplitTruth
from segjudge.evaluation_script.files.archive import FolderElsewhere
from segjudge.evaluation_script.files.packed import family_of
from segjudge.evaluation_script.files.problems import HostError, name_list
from segjudge.evaluation_script.scoring.scorer import is_packed
from segjudge.families import tools_of
from segjudge.families.base.published import TruthSource
from segjudge.system.errors import OptionError

if TYPE_CHECKING:
    from segjudge.families.base.published import PackedTruth

__all__ = ["TruthSource", "open_truth", "pack", "pack_truth"]


def open_truth(
    source: TruthSource, protocol: FamilyProtocol, progress: Progress = ignore_progress
) -> AnnotationFile[SplitTruth]:
    """Open a truth as a protocol's family reads it."""
    family = family_of(source.path) if os.path.isfile(source.path) else ""
    if not family:
        with _open_path(source.path):
            return tools_of(protocol.family).read_published(protocol.family, _complete(source, protocol), progress)
    for option in ("layout", "unseen", "categories"):
        if getattr(source, option):
            raise OptionError(f"{option} does not apply to {source.path}, which is a packed file")
    if family != protocol.family:
        fault = f"holds {family}, which the protocol {protocol.name} does not score"
        protocols = name_list([name for name, row in PROTOCOLS.items() if row.family == family])
        raise HostError(f"{source.path}: {fault}; choose another file, or a protocol of {family}: {protocols}")
    return AnnotationFile(engine_of(family).read_packed(source.path))


@contextmanager
def _open_path(path: str) -> Iterator[None]:
    """Raise HostError for a missing path or JSON nested too deeply, within a block."""
    if not isinstance(path, FolderElsewhere) and not os.path.exists(path):
        raise HostError(f"{path}: there is no such file or folder")
    try:
        yield
    except RecursionError:
        raise HostError(
            f"{path}: is nested too deeply to be a truth. Name the file that the dataset publishes"
        ) from None


def _complete(source: TruthSource, protocol: FamilyProtocol) -> TruthSource:
    """Return a source with the protocol's layout, if the host named none."""
    layout = protocol.name if protocol.name in FAMILIES[protocol.family].layouts else ""
    return source._replace(layout=source.layout or layout)


def pack_truth(source: TruthSource, protocol: FamilyProtocol, out: str, progress: Progress) -> list[str]:
    """Write a protocol's truth, packed or published, as an annotation file; return remarks."""
    if is_packed(source.path):
        shutil.copyfile(source.path, out)
        return []
    family = protocol.family
    with _open_path(source.path):
        return tools_of(family).pack(family, _complete(source, protocol), out, source.subset, progress).notes


def pack(source: TruthSource, out: str, split: str = "", progress: Progress = ignore_progress) -> PackedTruth:
    """Write a dataset in a layout of `LAYOUTS` as an annotation file; with `split`, add it to one under that name."""
    family = LAYOUTS[source.layout]
    with _open_path(source.path):
        return tools_of(family).pack(family, source, out, split, progress)
