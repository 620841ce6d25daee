"""Open a truth, packed or as its dataset publishes it."""

import json
import os
import re
from dataclasses import dataclass, replace

from segjudge.evaluation_script.families import FAMILIES, engine_of
from segjudge.evaluation_script.families.base.engine import Progress, ignore_progress
from segjudge.evaluation_script.families.base.family import TrackProtocol
from segjudge.evaluation_script.families.base.truth import DEFAULT_SPLIT, AnnotationFile, SplitTruth
from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.families.sequences.layouts import ALIASES, GENERIC, HOST_LIMITS
from segjudge.evaluation_script.families.sequences.layouts import LAYOUTS as SEQUENCE_LAYOUTS
from segjudge.evaluation_script.families.sequences.truth import Split
from segjudge.evaluation_script.files.archive import open_files
from segjudge.evaluation_script.files.limits import ArchiveLimits
from segjudge.evaluation_script.files.packed import track_of
from segjudge.evaluation_script.files.problems import HostError, name_hint
from segjudge.evaluation_script.scoring.annotation_file import is_packed
from segjudge.system.addresses import RemoteFolder
from segjudge.system.errors import OptionError, UsageError

from .layouts import LAYOUTS

#: A participant's own machine has more room than EvalAI's worker, and links in a folder are the participant's own.
LOCAL_LIMITS = ArchiveLimits(
    members=50_000_000,
    total_bytes=1 << 40,
    memory_bytes=1 << 32,
    json_bytes=1 << 34,
    records=50_000_000,
    links=True,
)


@dataclass(frozen=True)
class TruthSource:
    """The location of a truth, and what the files of a published dataset leave open; a packed file leaves nothing."""

    path: str
    #: How a dataset of mask sequences is laid out (default: generic).
    layout: str = ""
    #: The list of sequences, e.g. val.
    subset: str = ""
    #: A file with the names of unseen sequences or categories.
    unseen: str = ""
    #: A file with the categories of Places-style PNGs.
    categories: str = ""


def open_truth(
    source: TruthSource, protocol: TrackProtocol, progress: Progress = ignore_progress
) -> AnnotationFile[SplitTruth]:
    """Open a truth as a protocol's track reads it."""
    options = FAMILIES[protocol.track].options
    if "categories" in options:
        return open_instances(source, progress)
    if not is_packed(source.path):
        if "layout" not in options:
            check_subset(source)
            return engine_of(protocol.track).read_published(source.path, source.subset, protocol.name)
        default = protocol.name if protocol.name in LAYOUTS else ""
        return read_published(replace(source, layout=source.layout or default))
    for option in ("layout", "unseen"):
        if getattr(source, option):
            raise OptionError(f"{option} has no meaning for {source.path}, which is a packed file")
    held = track_of(source.path)
    if held != protocol.track:
        found = f"holds {held}, which the protocol {protocol.name} does not score"
        raise HostError(f"{source.path}: {found}; choose another file or protocol")
    return AnnotationFile(engine_of(protocol.track).read_packed(source.path))


def check_subset(source: TruthSource) -> None:
    """Raise HostError for a subset that nothing of a dataset without lists of subsets is named after.

    Any such dataset may be called val, since that is what it is called where nothing is said.
    """
    path, subset = source.path, source.subset
    if subset in ("", DEFAULT_SPLIT):
        return
    names = [] if os.path.isfile(path) and path.endswith((".json", ".gz")) else open_files(path, HOST_LIMITS).sizes
    words = {part.rpartition(".")[0] or part for name in (path, *names) for part in name.split(os.sep)}
    as_word = re.compile(rf"(?<![^\W_]){re.escape(subset)}(?![^\W_])")
    if not any(as_word.search(word) for word in words):
        raise HostError(f"{path}: has no subset {subset!r}: no list, folder or file is named so; leave it out")


def open_sequences(source: TruthSource) -> AnnotationFile[Split]:
    """Open mask sequences; of a packed file all splits, of a published dataset the subset as one split."""
    return sequence_truth.read(source.path) if is_packed(source.path) else read_published(source)


def read_published(
    source: TruthSource, *, split: str = "", progress: Progress = ignore_progress
) -> AnnotationFile[Split]:
    """Read a published dataset of mask sequences as one split of this name (default: its subset's)."""
    name = ALIASES.get(source.layout, source.layout)
    layout = SEQUENCE_LAYOUTS.get(name) if name else GENERIC
    if layout is None:
        raise UsageError(f"there is no layout {source.layout!r}{name_hint(source.layout, LAYOUTS)}")
    return dataset_reader.read(source.path, layout, source.subset, unseen=source.unseen, split=split, progress=progress)


def open_instances(source: TruthSource, progress: Progress = ignore_progress) -> AnnotationFile[InstanceTruth]:
    """Open instance masks: COCO's JSON, a packed file, or with a list of categories a folder of Places-style PNGs."""
    path, split = source.path, source.subset or DEFAULT_SPLIT
    if not is_packed(path):
        check_subset(source)
    if isinstance(path, RemoteFolder):
        raise UsageError(f"{path}: a folder of PNGs is read on this machine alone; copy it, or pack it")
    if not os.path.isdir(path):
        if source.categories:
            raise UsageError(f"categories have no meaning for {path}, which is not a folder of PNGs")
        return AnnotationFile(instance_truth.read(path, split))
    if not source.categories:
        raise UsageError(
            f"{path}: is a folder. The truth of instances is COCO's JSON, a packed file, or with --categories FILE a "
            "folder of Places-style PNGs"
        )
    from .places import convert

    document, oddities = convert(path, source.categories, progress)
    return AnnotationFile({split: instance_truth.read_document(json.dumps(document).encode(), path)}, oddities)
