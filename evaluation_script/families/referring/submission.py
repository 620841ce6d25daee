"""Submissions of answers: JSON lines with a mask per sample and, for gRefCOCO, a no-target flag."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import chain
from typing import AbstractSet, Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

import numpy as np

from ...files import CHUNK_BYTES, ArchiveLimits, Flaw, HostError, Problem, Problems, printable, quantity, read_json
from ...masks import run_lengths as rle
from ...masks.backend import backend
from ...masks.run_lengths import MaskTexts, pack_texts
from ...masks.stack import Array, Size
from ...runner.tuning import without_collector
from ..base.units import UnitSubmission, UnitTruth
from .protocols import GREFCOCO, REASONSEG, ReferringProtocol

_MASK = '"segmentation": {"size": [h, w], "counts": "..."}'
#: An example of a line, by form; the first key names the sample.
_EXAMPLES = {
    "refcoco": f'{{"sent_id": 17, {_MASK}}}',
    GREFCOCO: f'{{"sent_id": 17, {_MASK}, "no_target": false}}',
    REASONSEG: f'{{"image": "...", {_MASK}}}',
}
#: The keys of results of other kinds, the more special first, and what they are.
_OTHER_FORMS = (
    ({"segments_info"}, "a list of panoptic segments"),
    ({"video_id", "segmentations"}, "tracks of instances in videos"),
    ({"image_id", "category_id", "keypoints"}, "detections of keypoints"),
    ({"image_id", "category_id", "score"}, "detections of instances"),
    ({"image_id", "category_id", "segmentation"}, "label maps in run lengths"),
    ({"image_id", "segmentation", "score"}, "masks of phrases"),
    ({"sent_id", "segmentation"}, "answers to referring expressions"),
    ({"image", "segmentation"}, "answers to reasoning instructions"),
)
_KEY = re.compile(rb'"(\w+)"\s*:')
#: The number of bytes that are searched for keys.
_BEGINNING = 1 << 16
_ENDINGS = (".jsonl", ".json")
#: The maximum length of a line, and of the lines checked at once.
_LONGEST_LINE = 16 << 20
_LINES_AT_ONCE = 2_000
#: The number of bad lines after which reading ends.
_MOST_PROBLEMS = 1_000


class _Answer(NamedTuple):
    """An answer: the mask of a sample, its area, and its no-target flag."""

    text: str
    area: int
    is_withdrawn: bool


class ReferringSubmission(UnitSubmission):
    """The answers of all samples."""

    noun = "sample"
    protocol: ReferringProtocol

    def __init__(self, path: str, truth: UnitTruth, protocol: ReferringProtocol, limits: ArchiveLimits) -> None:
        if protocol.form == GREFCOCO and protocol.official and not any(unit.facts["target"] for unit in truth.units):
            raise HostError("no sample has a target, which stops ReLA's evaluator: use the other protocol")
        super().__init__(path, truth, protocol, limits)

    @property
    def send(self) -> str:
        return f"Send one file with a line {_EXAMPLES[self.protocol.form]} for each sample"

    def read_upload(self) -> None:
        names = [name for name in self.files.sizes if name.lower().endswith(_ENDINGS)]
        if len(names) != 1:
            remedy = f"Send one file with lines {_EXAMPLES[self.protocol.form]}"
            several = f"holds {quantity(len(names), 'file')} of JSON lines"
            raise Flaw(several if names else self.describe_files("file of JSON lines"), remedy)
        self.used_files = {names[0]}
        problems = Problems()
        reader = _Reader(self.truth, self.protocol, self.limits, problems)
        chunks = self.files.read_chunks(names[0])
        head = next(chunks, b"")
        reader.refuse_other_form(head)
        reader.read(chain([head], chunks), names[0])
        problems.raise_if_any()
        self._area, self._is_withdrawn = reader.join()
        #: The masks of batches, which are not joined because copies of long ones take time, and where these begin.
        self._masks, self._starts = reader.masks, np.cumsum([0, *map(len, reader.masks)]).tolist()
        self._numbers = reader.numbers

    def names(self) -> AbstractSet[str]:
        return self._numbers.keys()

    def answer(self, sample: str) -> _Answer:
        """Return the answer to a sample."""
        number = self._numbers[sample]
        batch = bisect_right(self._starts, number) - 1
        text = self._masks[batch][number - self._starts[batch]]
        return _Answer(text, int(self._area[number]), bool(self._is_withdrawn[number]))


class _Reader:
    """A reader of answers, line by line, that keeps the masks."""

    def __init__(
        self, truth: UnitTruth, protocol: ReferringProtocol, limits: ArchiveLimits, problems: Problems
    ) -> None:
        self._limits, self._problems = limits, problems
        self._example, self._has_flags = _EXAMPLES[protocol.form], protocol.form == GREFCOCO
        self._key = "image" if protocol.form == REASONSEG else "sent_id"
        self._sizes: Dict[str, Size] = {unit.name: tuple(unit.facts["size"]) for unit in truth.units}
        self._elsewhere = truth.elsewhere
        #: The number of each sample's answer.
        self.numbers: Dict[str, int] = {}
        #: The masks of each batch of lines.
        self.masks: List[MaskTexts] = []
        self._areas: List[Array] = []
        self._is_withdrawn: List[Array] = []

    def refuse_other_form(self, data: bytes) -> None:
        """Raise a Flaw if a file begins with records of another kind of results, and none of this one."""
        keys = {key.decode() for key in _KEY.findall(data, 0, _BEGINNING)}
        form = next((form for needed, form in _OTHER_FORMS if needed <= keys), "")
        if form and self._key not in keys:
            raise Flaw(f"looks like {form}, which this task does not score", f"Write {self._example} for each sample")

    def read(self, chunks: Iterable[bytes], member: str) -> None:
        """Read all lines."""
        lines: List[Tuple[int, bytes]] = []
        length = 0
        with without_collector():
            for number, line in enumerate(_cut_lines(chunks), 1):
                if not line.strip():
                    continue
                if number > self._limits.records:
                    raise Flaw(f"holds more than {self._limits.records:,} lines", "Send one line for each sample")
                lines.append((number, line))
                length += len(line)
                if length > CHUNK_BYTES or len(lines) == _LINES_AT_ONCE:
                    self._read_lines(lines, member)
                    lines, length = [], 0
                    if self._problems.places >= _MOST_PROBLEMS:
                        self._problems.stop()
                        return
        self._read_lines(lines, member)

    def _read_lines(self, lines: List[Tuple[int, bytes]], member: str) -> None:
        """Read some lines, and check their masks together."""
        samples: List[str] = []
        subjects: List[str] = []
        texts: List[str] = []
        flags: List[Any] = []
        for number, line in lines:
            subject = f"{member}, line {number:,}"
            try:
                record = self._read_line(line)
                name = self._name_of(record)
                subject = f"{subject} (sample {printable(name)})"
                if name not in self._sizes and name in self._elsewhere:
                    continue  # of another split
                if name not in self._sizes:
                    raise Flaw("belongs to a sample that the truth lacks", f"Use the truth's {self._key}")
                if name in self.numbers:
                    raise Flaw("occurs twice", "Send one line for each sample")
                self.numbers[name] = -1  # until its mask is checked
                flag = self._flag_of(record)
                text = self._mask_of(record, self._sizes[name], is_withdrawn=bool(flag))
            except Flaw as flaw:
                self._problems.add(flaw.as_problem(subject))
                continue
            samples.append(name)
            subjects.append(subject)
            texts.append(text)
            flags.append(flag)
        pixels = np.array([height * width for height, width in map(self._sizes.__getitem__, samples)], np.int64)
        checked = backend().check_masks(texts, pixels)
        for index in np.flatnonzero(checked.fault).tolist():
            self._problems.add(Problem(subjects[index], rle.FAULTS[int(checked.fault[index])], rle.WRITE_AGAIN))
        start = sum(map(len, self.masks))
        self.numbers.update(zip(samples, range(start, start + len(samples))))
        self.masks.append(pack_texts(texts))
        self._areas.append(checked.area)
        empty = (checked.area == 0) & self._has_flags
        self._is_withdrawn.append(
            np.array([default if flag is None else flag for flag, default in zip(flags, empty.tolist())], bool)
        )

    def _read_line(self, line: bytes) -> Dict[str, Any]:
        record = read_json(line, self._limits, self._example)
        if not isinstance(record, dict):
            raise Flaw("is not an object", f"Write each sample on its own line: {self._example}")
        return record

    def _name_of(self, record: Dict[str, Any]) -> str:
        """Return the sample that a record answers."""
        if self._key not in record:
            raise Flaw(f"lacks {self._key}", f"Write {self._example}")
        value = record[self._key]
        if type(value) is not (str if self._key == "image" else int):
            kind = "a text" if self._key == "image" else "a whole number"
            raise Flaw(f"has {self._key} {printable(repr(value))}, which is not {kind}", f"Write {self._example}")
        name = str(value)
        if name not in self._sizes and name.lower().endswith((".jpg", ".jpeg", ".png")):
            return name.rpartition(".")[0]
        return name

    def _flag_of(self, record: Dict[str, Any]) -> "bool | None":
        """Return the no-target flag of a record; None without one."""
        flag = record.get("no_target")
        if flag is not None and type(flag) is not bool:
            raise Flaw(f"has no_target {printable(repr(flag))}, which is neither true nor false", "Write true or false")
        if flag and not self._has_flags:
            raise Flaw("has no_target, which only gRefCOCO scores", "Omit it and send the mask, which may be empty")
        return flag

    def _mask_of(self, record: Dict[str, Any], size: Size, *, is_withdrawn: bool) -> str:
        """Return the compressed runs of a record's mask, unchecked."""
        height, width = size
        mask = record.get("segmentation")
        if mask is None and is_withdrawn:
            return rle.compress([height * width])
        mask_size, counts = rle.read_encoding(mask, self._example)
        if mask_size != (height, width):
            raise rle.other_size(mask_size, (height, width))
        return rle.text_of(counts, height * width)

    def join(self) -> Tuple[Array, Array]:
        """Return the areas of all masks, and flags of withdrawn ones."""
        nothing = np.zeros(0, np.int64)
        return (
            np.concatenate([nothing, *self._areas]),
            np.concatenate([nothing.astype(bool), *self._is_withdrawn]),
        )


def _cut_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file; raises a Flaw for lines longer than any mask needs."""
    waiting: List[bytes] = []
    length = 0
    for chunk in chunks:
        *lines, remainder = chunk.split(b"\n")
        for line in lines:
            yield b"".join([*waiting, line])
            waiting, length = [], 0
        waiting.append(remainder)
        length += len(remainder)
        if length > _LONGEST_LINE:
            raise Flaw("holds a line that does not end", "Write each sample on its own line")
    yield b"".join(waiting)
