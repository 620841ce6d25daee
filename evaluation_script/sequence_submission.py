"""A submission of mask sequences: which of its files belong to which sequence.

People send the sequences at the root, under one or two wrapping folders, or
under `Annotations/480p`; what counts is that a folder is named as a sequence.
"""

from __future__ import annotations

import json
from typing import AbstractSet, Any, Dict, List, Optional, Set, Tuple, Union

from .archive import JSON_NAME, UPLOAD, open_files
from .archive_limits import ArchiveLimits, told
from .errors import Flaw, Problem, Problems, SubmissionError, listed, printable
from .mask_files import LabelImages, MaskFiles, ObjectFolders, RunLengths, SalientImages
from .sequence_protocols import SequenceProtocol
from .sequence_truth import Sequence

EXAMPLE = '{"sequence": {"object": [rle or null for each frame]}}'

#: A rough price of JSON in memory, in bytes for each of these characters.
PRICES = {b"{": 240, b"[": 80, b",": 40, b'"': 30, b":": 60}

#: No run length has more digits.
LONGEST_NUMBER = 12


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
        self._protocol, self._limits = protocol, limits
        #: Sequences of the phase's other splits: known, though nothing here reads them.
        self._elsewhere = elsewhere
        self._files = open_files(path, limits)
        self._truth = {sequence.name: sequence for sequence in truth}
        pictures = [name for name in self._files.sizes if name.lower().endswith(".png")]
        documents = [name for name in self._files.sizes if name.lower().endswith(".json")]
        self._json: Optional[Dict[str, Any]] = None
        self._folders: Dict[str, Dict[str, Dict[str, str]]] = {}
        if documents and not pictures:
            self._json = self._document(documents)
            self._ignore([name for name in self._json if name not in self._truth and name not in elsewhere])
        else:
            self._place(pictures)
            self._ignore([name for name in self._files.sizes if not name.lower().endswith(".png")])

    def close(self) -> None:
        """Let go of the file."""
        self._files.close()

    def names(self) -> Set[str]:
        """The sequences that were sent."""
        return set(self._folders if self._json is None else self._json)

    def sequence(self, name: str) -> Optional[MaskFiles]:
        """The masks of one sequence, or None when it was not sent."""
        if name not in (self._folders if self._json is None else self._json):
            return None
        most = self._limits.objects
        if self._json is not None:
            frames, overlapping = self._truth[name].frames, self._protocol.overlapping or self._protocol.salient
            return RunLengths(name, self._json[name], frames, self.problems, overlapping=overlapping, most=most)
        objects = self._folders[name]
        if "" not in objects:
            owner = "" if self._protocol.overlapping or self._protocol.salient else name
            return ObjectFolders(self._files, objects, self.problems, most, owner)
        kind = SalientImages if self._protocol.salient else LabelImages
        return kind(self._files, objects[""], self.problems, most)

    def _place(self, pictures: List[str]) -> None:
        """Sort pictures by sequence, object ("" for label images) and frame."""
        homes: Dict[str, Dict[str, None]] = {}
        strangers: List[str] = []
        for name in pictures:
            parts = name.split("/")
            at = self._sequence_in(parts)
            if at is None:
                if not self._elsewhere & set(parts[:-1]):
                    strangers.append(name)
                continue
            sequence, home = parts[at], "/".join(parts[: at + 1])
            homes.setdefault(sequence, {})[home] = None
            label = parts[at + 1] if at == len(parts) - 3 else ""
            frames = self._folders.setdefault(sequence, {}).setdefault(label, {})
            other = frames.setdefault(_stem(parts[-1]), name)
            if other != name and other.rpartition("/")[0] == name.rpartition("/")[0]:
                self.problems.add(Problem(name, f"is the same frame as {other}", "Send each frame once"))
        if not homes:
            if strangers or not pictures:
                self._place_alone(strangers)
            return  # masks of other splits alone: what is missing is told later
        for sequence, places in homes.items():
            if len(places) > 1:
                found = f"is there more than once: {listed(list(places))}"
                self.problems.add(Problem(sequence, found, "Send one folder for each sequence"))
            elif "" in self._folders[sequence] and len(self._folders[sequence]) > 1:
                found = "holds both masks and folders of masks"
                self.problems.add(Problem(next(iter(places)), found, "Send one PNG a frame, or one folder an object"))
        self.problems.raise_if_any()
        self._ignore(sorted({name.rpartition("/")[0] or name for name in strangers}))

    def _sequence_in(self, parts: List[str]) -> Optional[int]:
        """Which part of a path names the sequence: the parent folder, or the one above an object's folder."""
        for back in (2, 3):
            if len(parts) >= back and parts[-back] in self._truth:
                return len(parts) - back
        return None

    def _place_alone(self, pictures: List[str]) -> None:
        """Pictures without a sequence's name: fine when there is one sequence and one folder."""
        folders = sorted({name.rpartition("/")[0] for name in pictures})
        if len(self._truth) == 1 and len(folders) == 1:
            (sequence,) = self._truth
            self._folders[sequence] = {"": {_stem(name.rpartition("/")[2]): name for name in pictures}}
            return
        wanted = listed(list(self._truth))
        if folders == [""]:
            found = f"has its masks at the top, outside of any folder; the sequences are {wanted}"
        elif pictures:
            found = f"no folder is named as a sequence of this phase ({wanted}); found {listed(folders)}"
        elif self._files.sizes:
            found = f"holds no PNG and no JSON file, but {listed(list(self._files.sizes))}"
        else:
            found = "holds no files"
        raise SubmissionError.of(Problem(UPLOAD, found, "Send one folder of PNG masks for each sequence"))

    def _ignore(self, names: List[str]) -> None:
        if names:
            self.warnings.append(f"not part of any sequence of this phase, so not scored: {listed(names, 5)}")

    def _document(self, names: List[str]) -> Dict[str, Any]:
        where = UPLOAD if names[0] == JSON_NAME else names[0]
        try:
            if len(names) > 1:
                raise Flaw(f"holds {len(names)} JSON files", "Send one, with all sequences")
            document = read_json(self._files.read(names[0]), self._limits)
            if not isinstance(document, dict):
                raise Flaw("is JSON, but not an object of sequences", f"Write {EXAMPLE}")
            if document and not set(document) & (set(self._truth) | self._elsewhere):
                wanted, found = listed(list(self._truth)), listed(list(document))
                raise Flaw(f"names no sequence of this phase ({wanted}); found {found}", f"Write {EXAMPLE}")
        except Flaw as flaw:
            raise SubmissionError.of(flaw.at(where)) from None
        return document


def read_json(data: bytes, limits: ArchiveLimits) -> Any:
    """Parse untrusted JSON, which may hold each key once and no NaN."""
    text = json_text(data, limits)
    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=_refuse_constant, parse_int=_whole)
    except RecursionError:
        raise Flaw("is nested too deeply", f"Write {EXAMPLE}") from None
    except ValueError as error:
        raise Flaw(f"is not valid JSON ({printable(error)})", "Write it with a JSON library") from None


def json_text(data: bytes, limits: ArchiveLimits) -> str:
    """The text of a JSON document, once what it will take in memory was estimated."""
    if len(data) > limits.json_bytes:
        raise Flaw(f"is larger than {told(limits.json_bytes)}", limits.smaller)
    check_price(data, limits.memory_bytes, limits.smaller)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Flaw("is not UTF-8 text", "Write the JSON in UTF-8") from None


def check_price(text: Union[str, bytes], most: int, smaller: str) -> None:
    """Refuse JSON that would take more than so many bytes of memory, as its punctuation tells."""
    data = text.encode() if isinstance(text, str) else text
    price = len(data) * (2 if data.isascii() else 8)
    price += sum(cost * data.count(mark) for mark, cost in PRICES.items())
    if price > most:
        raise Flaw("holds too many lists and numbers to be read", f"Write compressed run lengths. {smaller}")


def unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    """The object of these pairs, which may hold each key once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: Set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise Flaw(f"has the key {printable(name)} twice in one object", "Write each key once")
            seen.add(name)
    return found


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise Flaw(f"holds a number of {len(digits)} digits", "Write run lengths")
    return int(digits)


def _refuse_constant(name: str) -> Any:
    raise Flaw(f"holds {name}, which is not JSON", "Write whole numbers")


def _stem(file: str) -> str:
    return file.rpartition(".")[0]
