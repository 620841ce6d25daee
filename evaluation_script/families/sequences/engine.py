"""A submission of mask sequences: the assignment of files to sequences, and their problems.

Sequences may lie at the root, in one or two wrapping folders, or in `Annotations/480p`; a folder counts if it has the
name of a sequence. Sequences are independent and are read block by block, so memory holds only a few frames at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, AbstractSet, Collection, Dict, Iterable, List, Optional, Set

import numpy as np

from ...files import ArchiveLimits, Flaw, Problem, Problems, SubmissionError, inflect, name_list, quantity, read_json
from ...files.archive import JSON_NAME, UPLOAD, open_files
from ...masks.files import (
    GreyFolders,
    LabelImages,
    MaskFiles,
    ObjectFolders,
    ObjectMasks,
    RequiredFrames,
    RunLengths,
    SalientImages,
    holds_equal_channels,
    note_channels,
)
from ...masks.stack import Size
from ...runner.parallel import Part
from ..base.engine import CountingJob, Engine, LossReader
from ..base.family import Progress, ScoringRules
from ..base.truth import TruthNames
from . import dataset as dataset_reader
from . import truth as sequence_truth
from .counting import SequenceAccumulator, Warnings, count_sequence, frames_to_read
from .layouts import layout_of
from .metrics import SequenceReport, score_objects
from .protocols import MissingRule, SequenceProtocol
from .truth import Sequence, SequencePair, Split

if TYPE_CHECKING:
    from ...doctor import Examination

#: The background of label images; run lengths may use it too.
_BACKGROUND = "0"
_EXAMPLE = '{"sequence": {"object": [rle or null for each frame]}}'


class SequenceSubmission:
    """The sequences of a submission, by the names that the truth gives them."""

    def __init__(
        self,
        path: str,
        truth: List[Sequence],
        protocol: SequenceProtocol,
        limits: ArchiveLimits,
        elsewhere: AbstractSet[str],
    ) -> None:
        self.problems = Problems()
        self.warnings: List[str] = []
        self._limits = limits
        self._protocol, self._overlapping = protocol, protocol.overlapping or protocol.salient
        #: Sequences of the phase's other splits, which are known but not read here.
        self._elsewhere = elsewhere
        self._truth = {sequence.name: sequence for sequence in truth}
        self._names = TruthNames(_names_in(truth, elsewhere))
        self._files = open_files(path, self._names.spare_backslashes(limits))
        pngs = [name for name in self._files.sizes if name.lower().endswith(".png")]
        documents = [name for name in self._files.sizes if name.lower().endswith(".json")]
        #: The run lengths of each sequence, if the submission is JSON.
        self._run_lengths: Dict[str, object] = {}
        #: Sequence → object ("" for label images) → frame → file.
        self._folders: Dict[str, Dict[str, Dict[str, str]]] = {}
        if documents and not pngs:
            self._run_lengths = self._document(documents)
            self._ignore(name for name in self._run_lengths if name not in self._truth and name not in elsewhere)
        else:
            self._group_pngs(pngs)
            self._ignore(name for name in self._files.sizes if not name.lower().endswith(".png"))
        #: Notes for participants, which reject nothing.
        self.notes = [*note_channels(self._files, pngs, holds_equal_channels), *self._names.notes]

    def close(self) -> None:
        """Close the file."""
        self._files.close()

    def names(self) -> Set[str]:
        """Return the names of the sequences that were sent."""
        return {*self._run_lengths, *self._folders}

    def sequence(self, name: str) -> Optional[MaskFiles]:
        """Return the masks of one sequence; None if it was not sent."""
        most_objects = self._limits.objects
        if name in self._run_lengths:
            frames, objects = self._truth[name].frames, self._run_lengths[name]
            if isinstance(objects, dict):
                objects = {self._names.respell(label): masks for label, masks in objects.items()}
            masks = RunLengths(name, objects, frames, self.problems, overlapping=self._overlapping, limit=most_objects)
            masks.leave_out({_BACKGROUND} - self._truth[name].objects.keys())
            return masks
        if name not in self._folders:
            return None
        members = self._folders[name]
        if "" not in members:
            shared, many = "" if self._overlapping else name, self._protocol.many_values
            folders = GreyFolders if self._protocol.grey else ObjectFolders
            return folders(self._files, members, self.problems, most_objects, shared, many_values=many)
        kind = SalientImages if self._protocol.salient else LabelImages
        return kind(self._files, members[""], most_objects)

    def _group_pngs(self, pngs: List[str]) -> None:
        """Sort PNGs by sequence, object and frame."""
        #: Sequence → the folders with its name.
        folders_of: Dict[str, Dict[str, None]] = {}
        unknown: List[str] = []
        for name in pngs:
            parts = self._cut_path(name)
            depth = self._sequence_in(parts)
            if depth is not None:
                label, folder = parts[depth + 1 : -1], name.rpartition("/")[0]
                folders_of.setdefault(parts[depth], {})[folder.rpartition("/")[0] if label else folder] = None
                self._add(name, parts[depth], "".join(label), _stem(parts[-1]))
            elif not self._elsewhere & set(parts[:-1]):
                unknown.append(name)
        if folders_of:
            self._check_folders(folders_of)
            self._ignore(sorted({name.rpartition("/")[0] or name for name in unknown}))
        elif unknown or not pngs:  # otherwise only masks of other splits; missing ones are reported later
            self._sort_unnamed(unknown)

    def _cut_path(self, name: str) -> List[str]:
        """Return the parts of a path; an annotator round's folder moves before the sequence."""
        parts = name.split("/")
        if not name.isascii():
            parts = [*map(self._names.respell, parts[:-1]), self._names.respell(_stem(name)) + name[-len(".png") :]]
        for index, folder in enumerate(parts[:-2]):
            if folder in self._protocol.rounds:
                return [*parts[:index], *parts[index + 1 : -2], self._names.respell(f"{folder}/{parts[-2]}"), parts[-1]]
        return parts

    def _sequence_in(self, parts: List[str]) -> Optional[int]:
        """Return the part of a path that names the sequence: the parent folder, or the one above an object's folder."""
        places = (len(parts) - back for back in (2, 3))
        return next((depth for depth in places if depth >= 0 and parts[depth] in self._truth), None)

    def _add(self, name: str, sequence: str, label: str, frame: str) -> None:
        frames = self._folders.setdefault(sequence, {}).setdefault(label, {})
        earlier = frames.setdefault(frame, name)
        if earlier != name and earlier.rpartition("/")[0] == name.rpartition("/")[0]:
            self.problems.add(Problem(name, f"is the same frame as {earlier}", "Send each frame once"))

    def _check_folders(self, folders_of: Dict[str, Dict[str, None]]) -> None:
        for sequence, folders in folders_of.items():
            if len(folders) > 1:
                places = sorted(folders, key=lambda folder: (folder.count("/"), folder))  # in any order of files
                fault = f"occurs more than once: {name_list(places)}"
                self.problems.add(Problem(sequence, fault, "Send one folder for each sequence"))
            elif "" in self._folders[sequence] and len(self._folders[sequence]) > 1:
                fault = "holds both masks and folders of masks"
                self.problems.add(
                    Problem(next(iter(folders)), fault, "Send one PNG per frame, or one folder per object")
                )
        self.problems.raise_if_any()

    def _sort_unnamed(self, pngs: List[str]) -> None:
        """Accept PNGs without a sequence name if there is one sequence and one folder."""
        folders = sorted({name.rpartition("/")[0] for name in pngs})
        if len(self._truth) == 1 and len(folders) == 1:
            (sequence,) = self._truth
            self._folders[sequence] = {"": {self._names.respell(_stem(name)): name for name in pngs}}
            return
        names = name_list(list(self._truth))
        if folders == [""]:
            fault = f"has its masks at the top level, outside any folder; the sequences are {names}"
        elif pngs:
            fault = f"no folder has the name of a sequence of this phase ({names}); found {name_list(folders)}"
        elif self._files.sizes:
            fault = f"holds no PNG and no JSON file, only {name_list(list(self._files.sizes))}"
        else:
            fault = "holds no files"
        raise SubmissionError.from_problem(Problem(UPLOAD, fault, "Send one folder of PNG masks for each sequence"))

    def _ignore(self, names: Iterable[str]) -> None:
        ignored = list(names)
        if ignored:
            self.warnings.append(f"not part of any sequence of this phase, so not scored: {name_list(ignored, 5)}")

    def _document(self, names: List[str]) -> Dict[str, object]:
        subject = UPLOAD if names[0] == JSON_NAME else names[0]
        try:
            if len(names) > 1:
                raise Flaw(f"holds {len(names)} JSON files", "Send one, with all sequences")
            document = read_json(self._files.read(names[0]), self._limits, _EXAMPLE)
            if not isinstance(document, dict):
                raise Flaw("is JSON, but not an object of sequences", f"Write {_EXAMPLE}")
            if self._protocol.rounds:
                document = {
                    self._names.respell(f"{folder}/{name}"): objects
                    for folder in self._protocol.rounds
                    if isinstance(document.get(folder), dict)
                    for name, objects in document[folder].items()
                }
            else:
                document = {self._names.respell(name): objects for name, objects in document.items()}
            if document and not document.keys() & (self._truth.keys() | self._elsewhere):
                expected, names_sent = name_list(list(self._truth)), name_list(list(document))
                raise Flaw(f"names no sequence of this phase ({expected}); found {names_sent}", f"Write {_EXAMPLE}")
        except Flaw as flaw:
            raise SubmissionError.from_problem(flaw.as_problem(subject)) from None
        return document


def _names_in(truth: List[Sequence], elsewhere: AbstractSet[str]) -> Iterable[str]:
    """Yield the truth's names of sequences, and of objects and frames that are not plain numbers."""
    yield from (sequence.name for sequence in truth)
    yield from sorted(elsewhere)
    for sequence in truth:
        yield from (name for name in (*sequence.objects, *sequence.frames) if not name.isascii() or "\\" in name)


def _stem(path: str) -> str:
    """Return the name of a file without its folder and ending."""
    return path.rpartition("/")[2].rpartition(".")[0]


#: The frame whose size MeViS's script assumes for all frames.
_FIRST_FRAME = "00000"
_SEND_FOLDERS = "Send a folder of masks for each sequence"


class OpenedSequences:
    """A submission and its truth, opened once for any number of parts."""

    def __init__(self, path: str, split: Split, protocol: SequenceProtocol, rules: ScoringRules) -> None:
        self._split, self._protocol, self._rules = split, protocol, rules
        truth = [sequence for sequence in split.sequences if not protocol.salient or sequence.salient]
        elsewhere = split.elsewhere
        if protocol.rounds:
            truth = [
                sequence._replace(name=f"{folder}/{sequence.name}") for folder in protocol.rounds for sequence in truth
            ]
            of_rounds = split.of_rounds or {sequence.name for sequence in truth}
            other_rounds = {f"{folder}/{name}" for folder in protocol.rounds for name in elsewhere}
            elsewhere = elsewhere | other_rounds | ({sequence.name for sequence in truth} - of_rounds)
            truth = [sequence for sequence in truth if sequence.name in of_rounds]
        self._submission = SequenceSubmission(path, truth, protocol, rules.limits, elsewhere)
        self._warnings = Warnings(strict=rules.strict, problems=self._submission.problems)
        for line in self._submission.warnings:
            self._warnings.add("extra", Problem("extra files", line, "Remove them"))
        # Nobody chooses how a computer writes names, so these warnings never reject, not even in strict phases.
        for line in self._submission.notes:
            self._warnings.note("names", Problem("names", line, ""))
        try:
            #: Every sequence with its masks; None if it was not submitted.
            self.pairs = self._pair_sequences(truth)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the submission's file."""
        self._submission.close()

    def examine(self) -> Examination:
        """Return the submission as the doctor examines it."""
        from .examination import examine  # few results need it

        return examine(self.pairs, self._protocol)

    def plan(self, share: Part, progress: Progress) -> CountingJob:
        """Return the sequences of a part."""
        names, notes = [sequence.name for sequence, _ in self.pairs], self._warnings.entries
        accumulator = SequenceAccumulator(self._protocol, names, notes, strict=self._rules.strict)
        numbers = share.select([sequence.cost for sequence, _ in self.pairs])
        pairs = [self.pairs[number] for number in numbers]

        def count(number: int) -> bytes:
            return count_sequence(*pairs[number], self._protocol, self._split).encode()

        costs, names = [sequence.cost for sequence, _ in pairs], [sequence.name for sequence, _ in pairs]
        return CountingJob(accumulator, count, costs, names)

    def _pair_sequences(self, truth: List[Sequence]) -> List[SequencePair]:
        """Return every sequence with its masks, after checking for missing ones."""
        self._check_sequences(truth)
        pairs: List[SequencePair] = []
        for whole in truth:
            sequence, masks = whole, self._submission.sequence(whole.name)
            if masks is not None:
                if self._protocol.missing_object is not MissingRule.EMPTY:
                    sequence = self._exclude_missing_objects(sequence, masks)
                self._check_frames(sequence, masks)
            if masks is not None or self._protocol.missing is MissingRule.ZEROS:
                pairs.append((sequence, masks))
        self._submission.problems.raise_if_any()
        if not pairs:
            fault = f"holds no masks of {name_list([sequence.name for sequence in truth], 5)}"
            raise SubmissionError.from_problem(Problem(UPLOAD, fault, _SEND_FOLDERS))
        return pairs

    def _check_sequences(self, truth: List[Sequence]) -> None:
        """Report the sequences that were not sent."""
        names_sent = self._submission.names()
        missing = [sequence.name for sequence in truth if sequence.name not in names_sent]
        if not missing:
            return
        are = inflect(len(missing), "is", "are")
        fault = f"{quantity(len(missing), 'sequence', len(truth))} {are} missing: {name_list(missing, 5)}"
        if self._protocol.missing is MissingRule.ERROR:
            unused = [] if self._rules.strict else self._submission.warnings
            self._submission.problems.add(
                Problem(UPLOAD, "; ".join([fault, *unused]), f"{_SEND_FOLDERS}, with its name")
            )
        else:
            meaning = "scored as 0" if self._protocol.missing is MissingRule.ZEROS else "excluded from the means"
            self._warnings.add("missing", Problem(UPLOAD, f"{fault} ({meaning})", "Send all sequences"))

    def _exclude_missing_objects(self, sequence: Sequence, masks: MaskFiles) -> Sequence:
        """Report the missing objects of a sequence; return it without the excluded ones."""
        required, rule = self._require_frames(sequence), self._protocol.missing_object
        labels_sent = set(masks.labels()) if isinstance(masks, ObjectMasks) else set()
        if rule is not MissingRule.ERROR and isinstance(masks, ObjectMasks):
            labels_sent = {
                label
                for label in labels_sent & required.keys()
                if not masks.missing_frames({label: self._list_needed(required[label])})
                and (not isinstance(masks, GreyFolders) or masks.fits(label, _sizes_of(sequence)))
            }
            masks.leave_out(set(masks.labels()) - labels_sent)
            if rule is MissingRule.ZEROS:
                masks.faulty = frozenset(required.keys() - labels_sent)
        missing = [label for label in required if label and label not in labels_sent]
        if not missing:
            return sequence
        lacking = f"{quantity(len(missing), 'expression', len(required))} {inflect(len(missing), 'lacks', 'lack')}"
        fault, remedy = f"{lacking} masks: {name_list(missing)}", "Send a folder of masks for each expression"
        if rule is MissingRule.ERROR or (rule is MissingRule.ZEROS and not isinstance(masks, ObjectMasks)):
            self._submission.problems.add(Problem(sequence.name, fault, remedy))
            return sequence
        if rule is MissingRule.ZEROS:
            self._warnings.add(
                "objects", Problem(sequence.name, f"{fault}, all of the frames' size (scored as 0)", remedy)
            )
            return sequence
        self._warnings.add("objects", Problem(sequence.name, f"{fault} (excluded from the means)", remedy))
        objects_left = {label: facts for label, facts in sequence.objects.items() if label not in missing}
        return sequence._replace(objects=objects_left)

    def _list_needed(self, frames: List[str]) -> List[str]:
        """Return the frames that an expression requires."""
        if self._protocol.missing_frame is MissingRule.EMPTY:
            return frames[:1]
        return frames if self._protocol.missing_object is MissingRule.ZEROS else [_FIRST_FRAME, *frames]

    def _require_frames(self, sequence: Sequence) -> RequiredFrames:
        return {
            label: [sequence.frames[frame] for frame in np.flatnonzero(counted_frames)]
            for label, counted_frames in frames_to_read(sequence, self._protocol).items()
        }

    def _check_frames(self, sequence: Sequence, masks: MaskFiles) -> None:
        """Report missing and surplus frames of a sequence."""
        required, faulty = self._require_frames(sequence), masks.faulty if isinstance(masks, ObjectMasks) else ()
        for problem in masks.missing_frames({label: required[label] for label in required if label not in faulty}):
            if self._protocol.missing_frame is MissingRule.ERROR:
                self._submission.problems.add(problem)
            else:
                self._warnings.add("gaps", problem._replace(fault=f"{problem.fault} (scored as empty)"))
        frames = masks.frames()
        surplus = sorted(frames - set(sequence.frames))
        if surplus:
            were = inflect(len(surplus), "is not in the truth and was", "are not in the truth and were")
            shift = _find_shift(frames, sequence.frames)
            hint = f"; all frames look numbered {abs(shift)} too {'high' if shift > 0 else 'low'}" if shift else ""
            fault = f"{quantity(len(surplus), 'frame')} {were} ignored: {name_list(surplus)}{hint}"
            self._warnings.add("frames", Problem(sequence.name, fault, "Name the frames as the truth does"))


def _find_shift(names: Collection[str], true_names: Collection[str]) -> int:
    """Return by how much the numbers in names differ from the true ones; 0 if the difference varies."""
    if len(names) != len(true_names) or not all(name.isdecimal() and len(name) < 10 for name in (*names, *true_names)):
        return 0
    shifts = {int(name) - int(true) for name, true in zip(sorted(names, key=int), sorted(true_names, key=int))}
    return shifts.pop() if len(shifts) == 1 else 0


def _sizes_of(sequence: Sequence) -> Dict[str, Size]:
    """Return the size of each frame."""
    return {frame: block.size for block in sequence.blocks for frame in sequence.frames[block.start : block.stop]}


def _load_losses() -> LossReader:
    from .losses import read_losses

    return lambda opened, report, room, jobs: read_losses(opened.pairs, report, room, jobs)


def _report(split: str, counts: SequenceAccumulator) -> SequenceReport:
    return SequenceReport(split, counts.protocol, *score_objects(counts), counts)


ENGINE = Engine(
    SequenceAccumulator,
    lambda path: sequence_truth.read(path).splits,
    lambda path, subset, protocol: dataset_reader.read(path, layout_of(protocol), subset),
    OpenedSequences,
    _report,
    load_losses=_load_losses,
    examine=OpenedSequences.examine,
)
