"""The problems of a bundle, and how they are worded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .fields import FieldError

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class BundleProblem:
    """One reason why the server rejects a bundle, or why the challenge breaks later."""

    subject: str
    fault: str
    remedy: str
    #: The server's own message, in which `{errors}` stands for its serializer's.
    quote: str = ""
    #: The position of the rule in the server's order of tests; 0 for tests of our own.
    rule: int = 0
    error: FieldError | None = None
    severity: str = ERROR
    #: The server nevertheless accepts the bundle.
    accepted: bool = False
    #: The challenge would publish hidden scores.
    leaks: bool = False
    #: The server reports it only because of another problem, and no longer once that one is fixed.
    consequence: bool = False
    #: File, line and column of the YAML.
    location: str = ""
    #: The platform of the quoted message.
    platform: str = "EvalAI"

    @property
    def server_message(self) -> str:
        """Return the server's answer if this were the only problem."""
        return with_field_errors(self.quote, [self.error]) if self.error else self.quote

    def __str__(self) -> str:
        message = f' {self.platform} says: "{self.server_message.strip()}"' if self.quote else ""
        location = f"{self.location}: " if self.location else ""
        stop = "" if self.fault.endswith(("?", "!", ".")) else "."
        return f"{location}{self.subject}: {self.fault}{stop} {self.remedy}.{message}"

    def as_json(self) -> dict[str, Any]:
        """Return the problem as JSON values, with the location in parts."""
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
    """Return the server's message with the errors of its serializer, which it prints as Python does."""
    return quote.replace("{errors}", "{" + ", ".join(map(str, errors)) + "}")


def warning(subject: str, fault: str, remedy: str, rule: int = 0) -> BundleProblem:
    """Make a problem that the server accepts and that is probably not intended."""
    return BundleProblem(subject, fault, remedy, rule=rule, severity=WARNING)


def breaks_later(subject: str, fault: str, remedy: str) -> BundleProblem:
    """Make a problem that the server accepts without a message and that breaks the challenge later."""
    return BundleProblem(subject, fault, remedy, accepted=True)


def publishes_hidden(subject: str, fault: str, remedy: str) -> BundleProblem:
    """Make a problem that the server accepts without a message and that publishes hidden scores."""
    return BundleProblem(subject, fault, remedy, accepted=True, leaks=True)


def crash(subject: str, fault: str, remedy: str, rule: int = 0) -> BundleProblem:
    """Make a problem that the server answers with an error 500 and no reason."""
    return BundleProblem(subject, f"{fault}; EvalAI answers with error 500 and no reason", remedy, rule=rule)


def hashable_value(item: dict[str, Any], key: str = "id") -> object:
    """Return a hashable form of any value."""
    value = item.get(key)
    return value if isinstance(value, (str, int, float, bool)) or value is None else repr(value)


def mappings_in(config: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the mappings in a list of the YAML; empty for other values."""
    block = config.get(key)
    return [item for item in block if isinstance(item, dict)] if isinstance(block, list) else []
