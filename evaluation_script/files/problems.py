"""Errors for people: whose mistake they are, what is wrong and what to do.

Exception
├── Flaw             what is wrong, raised where the file's name is not known
├── SubmissionError  the participant's mistake: its text is shown in full
└── HostError        ours or the host's: the participant reads a number to quote
"""

from __future__ import annotations

import json
import re
from typing import Iterable, Iterator, NamedTuple

#: The maximum number of shown problems; more are counted.
_MOST_SHOWN = 20

#: The default maximum number of names in a sentence; more are counted.
_MOST_NAMES = 3

#: The maximum length of a shown name from a submission.
_NAME_LENGTH = 120


def printable(name: object) -> str:
    """Return an untrusted name, safe for terminals and short enough for a sentence."""
    text = _printable(str(name)[: _NAME_LENGTH + 1])
    return text if len(text) <= _NAME_LENGTH else text[:_NAME_LENGTH] + "..."


def _printable(text: str) -> str:
    """Return text with escapes for characters that could move a cursor or forge a line."""
    return text if text.isprintable() else "".join(c if c.isprintable() else escape(c) for c in text)


def escape(text: str) -> str:
    r"""Return text with `\n`, `\x1b` or `\u202e` for each control and each character beyond ASCII."""
    return text.encode("unicode_escape").decode("ascii")


def ascii_text(text: str) -> str:
    """Return text in ASCII, because EvalAI serves worker output without a charset."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


def printable_lines(text: str) -> str:
    """Return untrusted text line by line, without characters that move a cursor or forge a line."""
    return "\n".join(map(_printable, text.splitlines()))


def name_list(names: list[str], limit: int = _MOST_NAMES) -> str:
    """Return `a, b, c and 7 more`."""
    head = ", ".join(printable(name) for name in names[:limit])
    return head if len(names) <= limit else f"{head} and {len(names) - limit} more"


def name_hint(name: object, names: Iterable[str], limit: int = 99) -> str:
    """Return the end of a sentence about an unknown name: `, only a, b and c; did you mean b?`."""
    known_names = list(names)
    return f", only {name_list(known_names, limit)}{near_hint(name, known_names)}"


def near_hint(name: object, names: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: `; did you mean b?`; "" if no name is similar."""
    near = nearest(name, names)
    return f"; did you mean {printable(near)}?" if near else ""


def nearest(name: object, names: Iterable[str]) -> str:
    """Return the most similar name; "" if none is similar."""
    from difflib import get_close_matches

    alike = {candidate.lower(): candidate for candidate in reversed(list(names))}
    return next((alike[match] for match in get_close_matches(str(name).lower()[:_NAME_LENGTH], alike, 1)), "")


def quantity(count: int, noun: str, of: int = 0) -> str:
    """Return `1 frame`, `2 frames`, or as a part `1 of 3 frames`."""
    return f"{count:,} {f'of {of:,} ' if of else ''}{noun}{'' if (of or count) == 1 else 's'}"


def inflect(count: int, singular: str, plural: str) -> str:
    """Return the form that agrees with a count."""
    return singular if count == 1 else plural


class Problem(NamedTuple):
    """One problem: where it is, what is wrong, what to do."""

    subject: str
    fault: str
    remedy: str

    def __str__(self) -> str:
        return f"{printable(self.subject)}: {_printable(self.fault)}. {_printable(self.remedy)}."


class Flaw(Exception):
    """Raised for a fault before the name of its file is known."""

    def __init__(self, fault: str, remedy: str) -> None:
        super().__init__(fault, remedy)
        self.fault = fault
        self.remedy = remedy

    def __str__(self) -> str:
        return self.fault

    def as_problem(self, subject: str) -> Problem:
        """Return the problem at a file or place."""
        return Problem(subject, self.fault, self.remedy)


class TruthFlaw(Flaw):
    """Raised for a fault that only truths have, so that its remedy is for hosts."""

    def __str__(self) -> str:
        return f"{self.fault}. {self.remedy}"


def explain_damage(error: Exception) -> str:
    """Return the cause of a host's unreadable file, and for damaged JSON the remedy."""
    if isinstance(error, RecursionError):
        return "its JSON is nested too deeply: name the file that the dataset publishes"
    if isinstance(error, json.JSONDecodeError) and not error.doc.rstrip().endswith(("}", "]")):
        return "its JSON is cut off: copy the file again"
    return str(error)


#: How the places of a problem with many places end, after their kind, and the names of these places.
_PLACES = (("/", "files"), (", frame ", "frames"), (", mask ", "masks"))
#: A row of a file with its context, as in `results.json, record 7 (image 3)`.
_ROW = r"(|.*, )(record|line) ([\d,]+(?: \(.*\))?)"


def _divide_place(subject: str) -> tuple[str, str, str]:
    """Return the holder, noun and name of a place; empty texts for anything else."""
    row = re.fullmatch(_ROW, subject, re.DOTALL)
    if row:
        return row[1], f"{row[2]}s", row[3]
    splits = ((*subject.rpartition(mark), noun) for mark, noun in _PLACES)
    return next(((whole, noun, name) for whole, _, name, noun in splits if whole), ("", "", ""))


class _Repeated:
    """One problem in several places: the first names, and the number of places."""

    def __init__(self, index: int, problem: Problem, whole: str, noun: str, name: str) -> None:
        self._index, self._problem, self._names, self._count = index, problem, printable(name), 1
        self._whole, self._noun = whole, noun

    def add_place(self, problems: list[Problem], name: str) -> None:
        """Add a place, and update the shared problem in the list."""
        self._count += 1
        if self._count <= _MOST_NAMES:
            self._names += f", {printable(name)}"
        self.put(problems, "")

    def put(self, problems: list[Problem], least: str) -> None:
        """Add one problem for all places; `least` precedes the number of unnamed places."""
        if self._count == 1:
            return
        problem, more = self._problem, self._count - _MOST_NAMES
        names = f"{self._names} and {least}{more:,} more" if more > 0 else self._names
        if self._noun in ("records", "lines"):
            subject, fault = f"{self._whole}{self._noun} {names}", f"each {problem.fault}"
        else:
            subject, fault = self._whole, f"each of {self._count} {self._noun} ({names}) {problem.fault}"
        problems[self._index] = Problem(subject, fault, problem.remedy)


class Problems:
    """A collection of problems, which joins repeated mistakes, so that participants read all at once."""

    def __init__(self) -> None:
        self.first: list[Problem] = []
        self.count = 0
        #: The number of added problems, counting each place of one mistake.
        self.places = 0
        self._stopped = False
        self._repeated: dict[tuple[str, ...], _Repeated] = {}

    def add(self, problem: Problem) -> None:
        """Add a problem: the first ones are kept, the rest counted, repeated mistakes joined."""
        whole, noun, name = _divide_place(problem.subject)
        key = (whole, noun, problem.fault, problem.remedy)
        self.places += 1
        if noun and key in self._repeated:
            self._repeated[key].add_place(self.first, name)
            return
        self.count += 1
        if len(self.first) < _MOST_SHOWN:
            self._repeated[key] = _Repeated(len(self.first), problem, whole, noun, name)
            self.first.append(problem)

    def extend(self, problems: list[Problem], count: int) -> None:
        """Add the first problems of another collection, and the number of its problems."""
        self.first += problems[: max(0, _MOST_SHOWN - len(self.first))]
        self.count += count
        self.places += count

    def stop(self) -> None:
        """Record that checking stopped because there are enough problems."""
        self._stopped = True
        for repeated in self._repeated.values():
            repeated.put(self.first, "at least ")

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.first)

    def __bool__(self) -> bool:
        return self.count > 0

    def raise_if_any(self) -> None:
        if self.count:
            raise SubmissionError(self.text())

    def text(self, holder: str = "your submission") -> str:
        """Return one problem as a sentence, several as a numbered list about `holder`."""
        if self.count == 1:
            return str(self.first[0])
        many = f"{self.count} or more" if self._stopped else f"{self.count}"
        lines = [f"{many} problems found in {holder}:"]
        lines += [f"  {number}. {problem}" for number, problem in enumerate(self.first, 1)]
        if self.count > len(self.first):
            lines.append(f"  ... and {self.count - len(self.first)} more like these.")
        return "\n".join(lines)


class SubmissionError(Exception):
    """Raised if a submission cannot be scored; the text tells the participant why."""

    @classmethod
    def from_problem(cls, problem: Problem) -> SubmissionError:
        return cls(str(problem))


class HostError(Exception):
    """Raised for errors that are not the participant's: a broken annotation file, or a defect."""
