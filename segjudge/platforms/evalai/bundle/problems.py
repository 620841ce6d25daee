"""The problems of a bundle, how they are worded, and the rules that find them: one row says one problem."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .fields import ORDER, FieldError, as_written

if TYPE_CHECKING:
    from .opened_bundle import Bundle

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class BundleProblem:
    """One reason why the server rejects a bundle, or why the challenge breaks later."""

    subject: str
    fault: str
    remedy: str
    #: The server's own message; `{errors}` in it stands for those of its serializer.
    quote: str = ""
    #: The position of the rule in the server's order of tests; 0 for what the server does not test.
    rule: int = 0
    error: FieldError | None = None
    severity: str = ERROR
    #: The server accepts the bundle all the same.
    accepted: bool = False
    #: The server reports it because of another problem, and no longer when that one is fixed.
    consequence: bool = False
    #: File, line and column of the YAML.
    location: str = ""

    @property
    def server_message(self) -> str:
        """What the server would answer if this were the only problem."""
        return with_field_errors(self.quote, [self.error]) if self.error else self.quote

    def __str__(self) -> str:
        message = f' EvalAI says: "{self.server_message.strip()}"' if self.quote else ""
        location = f"{self.location}: " if self.location else ""
        return f"{location}{self.subject}: {self.fault}. {self.remedy}.{message}"

    def as_json(self) -> dict[str, Any]:
        """Return the problem for programs, its location in parts."""
        file, line, column = self.location.rsplit(":", 2) if self.location.count(":") >= 2 else (self.location, "", "")
        return {
            "severity": self.severity,
            "rule": self.rule or None,
            "file": file or None,
            "line": int(line) if line else None,
            "column": int(column) if column else None,
            "where": self.subject,
            "found": self.fault,
            "remedy": self.remedy,
            "evalai": self.server_message or None,
            "refused": self.severity == ERROR and not self.accepted,
        }


BundleProblems = Iterator[BundleProblem]


def with_field_errors(quote: str, errors: Iterable[FieldError]) -> str:
    """Return the server's message around the errors of its serializer, which it prints as Python does."""
    ordered = sorted(errors, key=lambda error: ORDER.index(error.field) if error.field in ORDER else len(ORDER))
    return quote.replace("{errors}", "{" + ", ".join(map(str, ordered)) + "}")


def warning(subject: str, fault: str, remedy: str) -> BundleProblem:
    """Return a problem that the server accepts and that is probably not intended."""
    return BundleProblem(subject, fault, remedy, severity=WARNING)


def breaks_later(subject: str, fault: str, remedy: str) -> BundleProblem:
    """Return a problem that the server accepts without a message and that breaks the challenge later."""
    return BundleProblem(subject, fault, remedy, accepted=True)


def crash(subject: str, fault: str, remedy: str, rule: int = 0) -> BundleProblem:
    """Return a problem that the server answers with an error 500 and no reason."""
    return BundleProblem(subject, f"{fault}; EvalAI answers that with an error 500 and no reason", remedy, rule=rule)


def hashable_value(item: dict[str, Any], key: str = "id") -> object:
    """Return a value that can be a key of a dictionary, whatever the host wrote."""
    value = item.get(key)
    return value if isinstance(value, (str, int, float, bool)) or value is None else repr(value)


def mappings_in(config: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the mappings in a list of the YAML; none where the value is not a list."""
    block = config.get(key)
    return [item for item in block if isinstance(item, dict)] if isinstance(block, list) else []


# ── rules as rows ───────────────────────────────────────────────────────────────────────────────────────────────────


class Silence(enum.Enum):
    """What EvalAI does where it has no words for a problem."""

    #: It answers with an error 500 and no reason.
    CRASH = enum.auto()
    #: It accepts the bundle, and the challenge breaks later.
    BREAKS_LATER = enum.auto()
    #: It accepts the bundle, which is probably not what was intended.
    WARNS = enum.auto()


CRASH, BREAKS_LATER, WARNS = Silence


@dataclass(frozen=True)
class Entry:
    """What rules look at: a mapping of the YAML, or one of its values."""

    bundle: Bundle
    #: As problems write it: `challenge_phases[0].codename`; "" for the whole YAML.
    path: str
    #: The mapping, and the key of the value in it.
    item: dict[str, Any]
    key: str = ""
    #: What the server's sentences call the item by.
    number: object = None
    #: The items before it in its block.
    earlier: tuple[dict[str, Any], ...] = ()
    #: The mapping at which a path of several keys begins.
    owner: dict[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> Any:
        """The value; None where the key is not written."""
        return self.item.get(self.key)

    @property
    def is_written(self) -> bool:
        """Whether the key is there."""
        return self.key in self.item

    def below(self, path: str) -> Entry:
        """Return the entry of a value of the item: of a key, or of a key in one of its mappings."""
        if not path:
            return self
        *steps, key = path.split(".")
        item: Any = self.item
        for step in steps:
            item = item.get(step) if isinstance(item, dict) else None
        item = item if isinstance(item, dict) else {}
        return replace(self, path=f"{self.path}.{path}".lstrip("."), item=item, key=key, owner=self.item)


Check = Callable[[Entry], Iterable[BundleProblem]]
#: What a rule found: nothing, or that it is broken, with further words for its sentences.
Verdict = bool | dict[str, Any] | None


@dataclass(frozen=True)
class Rule:
    """A row: the number in the server's order, the path, what breaks it, how that is worded, and what EvalAI says.

    The sentences are templates for `str.format` with the entry's value, key, path and number, and the verdict's words.
    """

    number: int
    path: str
    test: Callable[[Entry], Verdict]
    fault: str
    remedy: str
    answer: str | Silence
    #: What the serializer says of the field, by default of the key; `{errors}` in the answer stands for it.
    error: FieldError | None = None
    consequence: bool = False

    def __call__(self, entry: Entry) -> Iterator[BundleProblem]:
        at = entry.below(self.path)
        verdict = self.test(at)
        if not verdict:
            return
        words = {"value": at.value, "written": as_written(at.value), "key": at.key, "number": at.number}
        words |= {"name": entry.item.get("name"), "errors": "{errors}"}
        words |= verdict if isinstance(verdict, dict) else {}
        fault, remedy = self.fault.format_map(words), self.remedy.format_map(words)
        if self.answer is CRASH:
            yield crash(at.path, fault, remedy, self.number)
        elif self.answer is BREAKS_LATER:
            yield breaks_later(at.path, fault, remedy)
        elif self.answer is WARNS:
            yield warning(at.path, fault, remedy)
        else:
            quote, error = str(self.answer).format_map(words), words.get("error", self.error)
            error = replace(error, field=error.field or at.key) if error else None
            consequence = words.get("consequence", self.consequence)
            yield BundleProblem(at.path, fault, remedy, quote, self.number, error=error, consequence=consequence)


def all_of(*checks: Check) -> Check:
    """Return the check that says what each of these says."""
    return lambda entry: [problem for check in checks for problem in check(entry)]


def first_of(*checks: Check, unless: Callable[[Entry], object] = lambda _entry: False) -> Check:
    """Return the check that says what the first broken one of these says; nothing where `unless` holds."""

    def say_first(entry: Entry) -> Iterable[BundleProblem]:
        answers = ([*check(entry)] for check in checks)
        return [] if unless(entry) else next((problems for problems in answers if problems), [])

    return say_first
