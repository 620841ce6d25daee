"""One thing to mend in a bundle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One thing that the server would reject, or that would go wrong later."""

    where: str
    found: str
    remedy: str
    #: The server's own words.
    quote: str = ""
    #: File, line and column, where it lies in the YAML.
    at: str = ""

    def __str__(self) -> str:
        said = f' EvalAI says: "{self.quote}"' if self.quote else ""
        place = f"{self.at}: " if self.at else ""
        return f"{place}{self.where}: {self.found}. {self.remedy}.{said}"


Findings = Iterator[Finding]


def items(config: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The mappings of a block of the YAML; nothing where it is no list."""
    block = config.get(key)
    return [item for item in block if isinstance(item, dict)] if isinstance(block, list) else []
