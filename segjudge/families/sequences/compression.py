"""`segjudge compress`: results in the smallest equivalent form, verified pixel by pixel.

The smallest form is run lengths in gzipped JSON; PNGs with few bits in a zip are readable by other evaluators too.
"""

import json
import os
import re
import zipfile
from dataclasses import dataclass
from itertools import chain
from typing import TypedDict

import numpy as np

from segjudge.evaluation_script.families.base.family import FamilyProtocol, Progress
from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences.engine import SequenceSubmission
from segjudge.evaluation_script.families.sequences.layouts import GENERIC, LAYOUTS
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS, SequenceProtocol
from segjudge.evaluation_script.families.sequences.truth import Sequence
from segjudge.evaluation_script.files.archive import open_files
from segjudge.evaluation_script.files.limits import LOCAL_LIMITS, ArchiveLimits, Files, size_text
from segjudge.evaluation_script.files.packed import add_member, make_entry, replace_file
from segjudge.evaluation_script.files.problems import Flaw, HostError, Problem, SubmissionError, name_list, quantity
from segjudge.evaluation_script.masks import png
from segjudge.evaluation_script.masks import run_lengths as rle
from segjudge.evaluation_script.masks.stack import Stacks
from segjudge.masks.compression import encode_smallest, read_pixels, write_gzipped
from segjudge.masks.run_lengths import runs_of_mask

RUN_LENGTHS, PNGS = ".json.gz", ".zip"
#: The name of an object's folder; any other folder is a sequence.
_OBJECT = re.compile(r"\d{1,3}")
#: The grey levels of a single salient mask, which are not objects.
_GREY = range(127, 256)
_TRY_PNGS = f"Write PNGs, with a name that ends in {PNGS}"


@dataclass(frozen=True)
class _Saving:
    """The size of results before and after; folders count the sum of their files."""

    before: int
    after: int
    #: The compared elements: frames or bytes.
    compared: str
    #: Whether they are run lengths of objects, which only one family reads.
    of_objects: bool


def compress(results: str, out: str, progress: Progress, protocol: FamilyProtocol | None) -> _Saving:
    """Write results in a smaller form; raises SubmissionError if none is smaller or readable."""
    files = open_files(results, LOCAL_LIMITS)
    try:
        pngs = [name for name in files.sizes if name.lower().endswith(".png")]
        documents = [name for name in files.sizes if name.lower().endswith(".json")]
        # Segments: the colours of their PNGs are ids, which the JSON next to them describes.
        described = documents if pngs and documents and png.is_coloured(files.read(pngs[0])) else []
        if not pngs and not documents:
            fault = f"holds neither PNGs nor JSON, only {name_list(list(files.sizes))}" if files.sizes else "is empty"
            raise _refusal(results, fault, "Send it as it is: compress only makes PNGs and JSON smaller")
        of_objects = bool(pngs) and not out.endswith(PNGS)
        if of_objects and protocol and protocol.family != SequenceProtocol.family:
            raise _refusal(out, f"would hold run lengths of objects, which {protocol.name} does not read", _TRY_PNGS)
        with replace_file(out) as partial:
            if out.endswith(PNGS):
                compared = _write_pngs(files, pngs, partial, progress)
            elif described:
                raise _refusal(described[0], "describes segments, which run lengths do not hold", _TRY_PNGS)
            elif pngs:
                compared = _write_run_lengths(results, pngs, partial, progress)
            else:
                compared = _write_document(files, documents, partial)
            before, after = _size_of(results, files), os.path.getsize(partial)
            if after >= before:
                fault = f"has {size_text(before)} and would have {size_text(after)}, so nothing was written"
                raise _refusal(results, fault, "Send it as it is, or try the other form")
    except HostError as error:
        raise SubmissionError(str(error)) from None
    finally:
        files.close()
    return _Saving(before, after, compared, of_objects)


def _refusal(file: str, fault: str, remedy: str) -> SubmissionError:
    return SubmissionError.from_problem(Problem(file, fault, remedy))


def _size_of(results: str, files: Files) -> int:
    return sum(files.sizes.values()) if os.path.isdir(results) else os.path.getsize(results)


def _write_document(files: Files, documents: list[str], out: str) -> str:
    """Write JSON with the best gzip compression."""
    if len(documents) != 1:
        raise _refusal("the results", f"hold no PNGs and {len(documents)} JSON files", "Name a folder or zip of masks")
    write_gzipped(files.read(documents[0]), out)
    return f"{size_text(len(files.read(documents[0])))} of JSON"


# ── run lengths ─────────────────────────────────────────────────────────────


def _write_run_lengths(results: str, pngs: list[str], out: str, progress: Progress) -> str:
    sequences = _read_sequences(results, pngs)
    document = {}
    for number, sequence in enumerate(sequences):
        progress(sequence.name, number, len(sequences))
        document[sequence.name] = run_lengths_of(sequence)
    write_gzipped(json.dumps(document, separators=(",", ":")).encode(), out)
    _compare(sequences, out)
    return quantity(sum(len(sequence.frames) for sequence in sequences), "frame")


def _read_sequences(results: str, pngs: list[str]) -> list[Sequence]:
    """Return the sequences of results, read like a dataset; raises for ambiguous files."""
    by_object = all(name.count("/") > 1 and _OBJECT.fullmatch(name.split("/")[-2]) for name in pngs)
    layout = LAYOUTS["sav"] if by_object else GENERIC
    (split,) = dataset_reader.read(results, layout).splits.values()
    read = 0
    for sequence in split.sequences:
        labels, frames = sequence.objects, sequence.frames
        if not sequence.name or (sequence.lists_objects and not by_object):
            raise _refusal(results, "does not show which folders are sequences", "Make one folder for each sequence")
        if not by_object and len(labels) > 1 and any(int(label) in _GREY for label in labels):
            raise _refusal(sequence.name, "holds object numbers of 127 and above, which may be grey levels", _TRY_PNGS)
        if all(map(str.isdecimal, frames)) and sorted(frames, key=int) != frames:
            raise _refusal(sequence.name, "has frames whose numbers and names are in different order", _TRY_PNGS)
        ranges = chain.from_iterable(facts.lifespan or [] for facts in labels.values())
        read += sum(stop - start for start, stop in ranges) if by_object else len(frames)
    if read != len(pngs):
        raise _refusal(results, f"holds {len(pngs)} PNGs, of which {read} belong to its sequences", _TRY_PNGS)
    return split.sequences


class CompressedMask(TypedDict):
    """A mask as COCO's compressed run lengths."""

    size: tuple[int, int]
    counts: str


def run_lengths_of(sequence: Sequence) -> dict[str, list[CompressedMask | None]]:
    """Return the masks of each object, frame by frame; None where it is invisible."""
    objects: dict[str, list[CompressedMask | None]] = {
        label: [None] * len(sequence.frames) for label in sequence.objects
    }
    for index, block in enumerate(sequence.blocks):
        for label, stack in sequence.read_block(index).items():
            masks = {frame: runs_of_mask(stack.draw(frame)) for frame in np.flatnonzero(stack.area).tolist()}
            for frame, counts in zip(masks, rle.compress_many(list(masks.values())), strict=True):
                objects[label][block.start + frame] = {"size": block.size, "counts": counts}
    return objects


def _compare(sequences: list[Sequence], out: str) -> None:
    """Read a submission as a phase does; raises unless every object keeps its pixels."""
    submission = SequenceSubmission(out, sequences, SEQUENCE_PROTOCOLS["sav"], ArchiveLimits(), frozenset())
    for sequence in sequences:
        masks = submission.sequence(sequence.name)
        for index, block in enumerate(sequence.blocks):
            problems = submission.problems
            read = masks.read_stacks(sequence.frames[block.start : block.stop], block.size, problems) if masks else None
            problems.raise_if_any()
            if read is None or not _are_equal(read, sequence.read_block(index)):
                raise AssertionError(f"{sequence.name}: the written masks differ from the original ones")
    submission.close()


def _are_equal(before: Stacks, after: Stacks) -> bool:
    return before.keys() == after.keys() and all(
        (stack.top, stack.column) == (after[label].top, after[label].column)
        and np.array_equal(stack.words, after[label].words)
        for label, stack in before.items()
    )


# ── PNGs ────────────────────────────────────────────────────────────────────


def _write_pngs(files: Files, names: list[str], out: str, progress: Progress) -> str:
    """Write PNGs in their own kinds, because a protocol decides what grey or colour means; copy all other files."""
    if not names:
        raise _refusal("the results", "hold no PNGs", f"Name the output with the ending {RUN_LENGTHS}")
    with zipfile.ZipFile(out, "w") as archive:
        for number, name in enumerate(names):
            progress(name, number, len(names))
            data = files.read(name)
            try:
                smallest = encode_smallest(data, read_pixels(data))
            except Flaw as flaw:
                raise SubmissionError.from_problem(flaw.as_problem(name)) from None
            archive.writestr(make_entry(name), min(data, smallest, key=len))
        for name in sorted(files.sizes.keys() - set(names)):
            add_member(archive, name, files.read(name))
    with zipfile.ZipFile(out) as archive:
        for name in names:
            before, after = files.read(name), archive.read(name)
            if not np.array_equal(read_pixels(before), read_pixels(after)):
                raise AssertionError(f"{name}: the written masks differ from the original ones")
    return f"{len(names):,} PNGs"
