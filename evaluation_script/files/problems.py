"""Errors that people read, and whose mistake they are.

Exception
├── Flaw             what is wrong, raised where the file's name is not known
├── SubmissionError  the participant's mistake: its text is shown in full
└── HostError        ours or the host's: the participant reads a number to quote
"""

from __future__ import annotations

from typing import Iterable, Iterator, NamedTuple

#: More problems than this are counted, not shown.
_MOST_SHOWN = 20

#: So many names stand in a sentence, unless it says otherwise; the others are counted.
_MOST_NAMES = 3

#: What a participant named is cut to this length before it is shown.
_NAME_LENGTH = 120


def printable(name: object) -> str:
    """Return an untrusted name, safe for a terminal and short enough for a sentence."""
    text = _printable(str(name)[: _NAME_LENGTH + 1])
    return text if len(text) <= _NAME_LENGTH else text[:_NAME_LENGTH] + "…"


def _printable(text: str) -> str:
    """Return a text without what could move a terminal's cursor or forge a line."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def name_list(names: list[str], limit: int = _MOST_NAMES) -> str:
    """Return `a, b, c and 7 more`."""
    head = ", ".join(printable(name) for name in names[:limit])
    return head if len(names) <= limit else f"{head} and {len(names) - limit} more"


def name_hint(name: object, names: Iterable[str], limit: int = 99) -> str:
    """Return how a sentence goes on after a name that there is not: `, only a, b and c; did you mean b?`."""
    known_names = list(names)
    near = nearest(name, known_names)
    return f", only {name_list(known_names, limit)}" + (f"; did you mean {printable(near)}?" if near else "")


def nearest(name: object, names: Iterable[str]) -> str:
    """Return the name that somebody probably meant; nothing where none is like it."""
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
    """One thing to fix: what it is in, what is wrong with it, what to do."""

    subject: str
    fault: str
    remedy: str

    def __str__(self) -> str:
        return f"{printable(self.subject)}: {_printable(self.fault)}. {_printable(self.remedy)}."


class Flaw(Exception):
    """Raised where it is known what is wrong but not in which file."""

    def __init__(self, fault: str, remedy: str) -> None:
        super().__init__(fault, remedy)
        self.fault = fault
        self.remedy = remedy

    def __str__(self) -> str:
        return self.fault

    def at(self, subject: str) -> Problem:
        """Return the problem in the file or place of this name."""
        return Problem(subject, self.fault, self.remedy)


#: How the place of a problem ends that may occur in many places, after what these are of; and what they are called.
_PLACES = (("/", "files"), (", frame ", "frames"), (", mask ", "masks"))


class _Repeated:
    """One problem in several places: the first of them, and how many there are."""

    def __init__(self, index: int, problem: Problem, name: str) -> None:
        self._index, self._problem, self._names, self._count = index, problem, printable(name), 1

    def add_place(self, problems: list[Problem], whole: str, noun: str, name: str) -> None:
        """Add a place, and put one problem for all of them in the list."""
        self._count += 1
        if self._count <= _MOST_NAMES:
            self._names += f", {printable(name)}"
        more = f" and {self._count - _MOST_NAMES} more" if self._count > _MOST_NAMES else ""
        fault = f"each of {self._count} {noun} ({self._names}{more}) {self._problem.fault}"
        problems[self._index] = Problem(whole, fault, self._problem.remedy)


class Problems:
    """Problems gathered on the way, so that a participant reads all of them at once; one mistake is one of them."""

    def __init__(self) -> None:
        self.first: list[Problem] = []
        self.count = 0
        self._stopped = False
        self._repeated: dict[tuple[str, ...], _Repeated] = {}

    def add(self, problem: Problem) -> None:
        """Keep the first ones, count the rest; the same mistake in other files of a folder is a part of the first."""
        splits = ((*problem.subject.rpartition(mark), noun) for mark, noun in _PLACES)
        whole, _, name, noun = next((split for split in splits if split[0]), ("", "", "", ""))
        key = (whole, noun, problem.fault, problem.remedy)
        if whole and key in self._repeated:
            self._repeated[key].add_place(self.first, whole, noun, name)
            return
        self.count += 1
        if len(self.first) < _MOST_SHOWN:
            self._repeated[key] = _Repeated(len(self.first), problem, name)
            self.first.append(problem)

    def extend(self, problems: list[Problem], count: int) -> None:
        """Take the first of so many problems that were gathered elsewhere."""
        self.first += problems[: max(0, _MOST_SHOWN - len(self.first))]
        self.count += count

    def stop(self) -> None:
        """Note that what follows was not looked at, since there are enough problems."""
        self._stopped = True

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.first)

    def __bool__(self) -> bool:
        return self.count > 0

    def raise_if_any(self) -> None:
        if self.count:
            raise SubmissionError(self.text())

    def text(self, holder: str = "your submission") -> str:
        """Return one sentence for one problem, a numbered list for several, which `holder` has."""
        if self.count == 1:
            return str(self.first[0])
        many = f"{self.count} or more" if self._stopped else f"{self.count}"
        lines = [f"{many} problems found in {holder}:"]
        lines += [f"  {number}. {problem}" for number, problem in enumerate(self.first, 1)]
        if self.count > len(self.first):
            lines.append(f"  … and {self.count - len(self.first)} more like these.")
        return "\n".join(lines)


class SubmissionError(Exception):
    """Raised when the submission cannot be scored; the text says why, for the participant."""

    @classmethod
    def of(cls, problem: Problem) -> SubmissionError:
        return cls(str(problem))


class HostError(Exception):
    """Raised for what is not the participant's fault: a broken annotation file, or a defect of ours."""
