"""One thing to correct in a bundle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .fields import ORDER

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Detail:
    """What a serializer of the server says of one field."""

    field: str
    words: str
    code: str
    #: Further words and codes about the same field.
    also: tuple[tuple[str, str], ...] = ()
    #: The whole of it as the server prints it, for a list, whose items are told by their index.
    listed: str = ""

    @property
    def printed(self) -> str:
        """All that is said of the field."""
        told = ((self.words, self.code), *self.also)
        return self.listed or f"[{', '.join(f'ErrorDetail(string={words!r}, code={code!r})' for words, code in told)}]"

    def __str__(self) -> str:
        return f"{self.field!r}: {self.printed}"


@dataclass(frozen=True)
class BundleProblem:
    """One thing that the server would reject, or that would go wrong later."""

    where: str
    found: str
    remedy: str
    #: The server's own words; `{errors}` in them stands for what its serializer says.
    quote: str = ""
    #: File, line and column, where it lies in the YAML.
    at: str = ""
    #: The place of the rule in the order in which the server tests; nothing for what the server does not test.
    rule: int = 0
    severity: str = ERROR
    detail: Detail | None = None
    #: The server takes it, and it goes wrong later.
    taken: bool = False
    #: The server says it because of another finding: it goes away with that one.
    follows: bool = False

    @property
    def words(self) -> str:
        """What the server would say if this were all that is wrong."""
        return said(self.quote, [self.detail]) if self.detail else self.quote

    def __str__(self) -> str:
        words = f' EvalAI says: "{self.words.strip()}"' if self.quote else ""
        place = f"{self.at}: " if self.at else ""
        return f"{place}{self.where}: {self.found}. {self.remedy}.{words}"

    def as_json(self) -> dict[str, Any]:
        """For programs: everything, with the place in its parts."""
        file, line, column = (*self.at.rsplit(":", 2), "", "")[:3] if self.at.count(":") >= 2 else (self.at, "", "")
        return {
            "severity": self.severity,
            "rule": self.rule or None,
            "file": file or None,
            "line": int(line) if line else None,
            "column": int(column) if column else None,
            "where": self.where,
            "found": self.found,
            "remedy": self.remedy,
            "evalai": self.words or None,
            "refused": self.severity == ERROR and not self.taken,
        }


BundleProblems = Iterator[BundleProblem]


def said(quote: str, details: Iterable[Detail]) -> str:
    """The server's sentence around its serializer's errors, which it prints as Python does."""
    ordered = sorted(details, key=lambda one: ORDER.index(one.field) if one.field in ORDER else len(ORDER))
    return quote.replace("{errors}", "{" + ", ".join(map(str, ordered)) + "}")


def warning(where: str, found: str, remedy: str) -> BundleProblem:
    """What the server takes, and what is likely not meant."""
    return BundleProblem(where, found, remedy, severity=WARNING)


def later(where: str, found: str, remedy: str) -> BundleProblem:
    """What the server takes without a word, and what then breaks the challenge."""
    return BundleProblem(where, found, remedy, taken=True)


def crash(where: str, found: str, remedy: str, rule: int = 0) -> BundleProblem:
    """What the server answers with an error 500 and no reason."""
    return BundleProblem(where, f"{found}; EvalAI answers that with an error 500 and no reason", remedy, rule=rule)


def name_of(item: dict[str, Any], key: str = "id") -> Any:
    """A value that can be looked up, whatever a host wrote there."""
    value = item.get(key)
    return value if isinstance(value, (str, int, float, bool)) or value is None else repr(value)


def items(config: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The mappings of a block of the YAML; nothing where it is no list."""
    block = config.get(key)
    return [item for item in block if isinstance(item, dict)] if isinstance(block, list) else []
