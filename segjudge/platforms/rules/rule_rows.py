"""Rules as rows, for EvalAI and Codabench.

A row has the rule's number (its position in the server's order), the path in the YAML, the condition, the fault, the
remedy, and the server's message. `first_of` reports only the first broken row, where the server stops at one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from .fields import FieldError, as_written
from .problems import BundleProblem, breaks_later, crash, mappings_in, warning

Opened = TypeVar("Opened")


class _Silence(enum.Enum):
    """A server's silent reaction to a problem."""

    #: The server answers with an error 500 and no reason.
    CRASH = enum.auto()
    #: The server accepts the bundle, and the challenge breaks later.
    BREAKS_LATER = enum.auto()
    #: The server accepts the bundle, which is probably not as intended.
    WARNS = enum.auto()


CRASH, BREAKS_LATER, WARNS = _Silence


@dataclass(frozen=True)
class Entry(Generic[Opened]):
    """An entry for rules: a mapping of the YAML, or one of its values."""

    bundle: Opened
    #: The path in problems: `challenge_phases[0].codename`; "" for the whole YAML.
    path: str
    #: The mapping, and the key of the value in it.
    item: dict[Any, Any]
    key: str = ""
    #: The item's name in the server's messages.
    number: object = None
    #: The items before it in its block.
    earlier: tuple[dict[Any, Any], ...] = ()
    #: The mapping at which a path of several keys begins.
    owner: Any = None

    @property
    def value(self) -> Any:
        """Return the value; None for a missing key."""
        return self.item.get(self.key)

    @property
    def is_written(self) -> bool:
        return self.key in self.item

    def child(self, path: str) -> Entry[Opened]:
        """Return the entry of one of the item's values: of a key, or of a key in one of its mappings."""
        if not path:
            return self
        *steps, key = path.split(".")
        item: Any = self.item
        for step in steps:
            item = item.get(step) if isinstance(item, dict) else None
        item = item if isinstance(item, dict) else {}
        return replace(self, path=f"{self.path}.{path}".lstrip("."), item=item, key=key, owner=self.item)


Check = Callable[[Entry[Any]], Iterable[BundleProblem]]
#: The result of a rule: False, or a violation, possibly with values for its sentences.
Verdict = bool | dict[str, Any] | None


@dataclass(frozen=True)
class RuleRow:
    """A rule of a server.

    The sentences are templates for `str.format`, with the entry's value, kind, key and number, the item's name, and the
    verdict's words.
    """

    number: int
    path: str
    test: Callable[[Entry[Any]], Verdict]
    fault: str
    remedy: str
    answer: str | _Silence
    #: The serializer's message about the field, by default of the key; `{errors}` in the answer stands for it.
    error: FieldError | None = None
    consequence: bool = False

    def __call__(self, entry: Entry[Any]) -> Iterator[BundleProblem]:
        key_entry = entry.child(self.path)
        verdict = self.test(key_entry)
        if not verdict:
            return
        facts = {
            "value": key_entry.value,
            "written": as_written(key_entry.value),
            "key": key_entry.key,
            "number": key_entry.number,
        }
        facts |= {"kind": type(key_entry.value).__name__, "name": entry.item.get("name"), "errors": "{errors}"}
        facts |= verdict if isinstance(verdict, dict) else {}
        fault, remedy = self.fault.format_map(facts), self.remedy.format_map(facts)
        if self.answer is CRASH:
            yield crash(key_entry.path, fault, remedy, self.number)
        elif self.answer is BREAKS_LATER:
            yield breaks_later(key_entry.path, fault, remedy)
        elif self.answer is WARNS:
            yield warning(key_entry.path, fault, remedy, self.number)
        else:
            quote, error = str(self.answer).format_map(facts), facts.get("error", self.error)
            error = replace(error, field=error.field or key_entry.key) if error else None
            consequence = facts.get("consequence", self.consequence)
            yield BundleProblem(key_entry.path, fault, remedy, quote, self.number, error=error, consequence=consequence)


def all_of(*checks: Check) -> Check:
    """Return a check that yields all problems of several checks."""
    return lambda entry: [problem for check in checks for problem in check(entry)]


def first_of(*checks: Check, unless: Callable[[Entry[Any]], object] = lambda _entry: False) -> Check:
    """Return a check that yields the first broken check's problems, unless `unless` holds."""

    def say_first(entry: Entry[Any]) -> Iterable[BundleProblem]:
        answers = ([*check(entry)] for check in checks)
        return [] if unless(entry) else next((problems for problems in answers if problems), [])

    return say_first


def entries(bundle: Any, key: str) -> Iterator[Entry[Any]]:
    """Yield the mappings in a block of a bundle's config."""
    items = mappings_in(bundle.config, key)
    for index, item in enumerate(items):
        yield Entry(bundle, f"{key}[{index}]", item, number=item.get("id"), earlier=tuple(items[:index]))


def check_each(block: str, check: Check) -> Check:
    """Return a check of a whole block, given a check of one item."""
    return lambda entry: [problem for item in entries(entry.bundle, block) for problem in check(item)]


# ── verdicts for both platforms ─────────────────────────────────────────────────────────────────────────────────────


def is_absent(entry: Entry[Any]) -> Verdict:
    """Return whether a key is missing."""
    return not entry.is_written


def is_repeated(entry: Entry[Any]) -> Verdict:
    """Return whether an earlier item has the same value."""
    return entry.is_written and entry.value in [item[entry.key] for item in entry.earlier if entry.key in item]
