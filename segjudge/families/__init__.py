"""The toolkit's half of each family: its folder here mirrors `evaluation_script/families/NAME`.

A folder's `__init__` has `TOOLS`, the family's displays and tools; a family without one gets the defaults. The rest of
the toolkit never asks for the family: it calls `tools_of`. The mirror of a plug-in is found here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.families import FAMILIES, FOLDERS, LAYOUTS, PROTOCOLS, folder_of, import_from
from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.evaluation_script.files.problems import name_hint, nearest, printable
from segjudge.families.base.tools import FamilyTools
from segjudge.system.errors import UsageError

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.reports import Report

__all__ = [
    "OPTIONAL_LAYOUTS",
    "FamilyTools",
    "check_columns",
    "describe_direction",
    "describe_metrics",
    "describe_unknown_metric",
    "layout_of",
    "prefers_smaller",
    "ranking_rule_of",
    "tools_of",
]


class _OptionalLayouts(Mapping[str, str]):
    """A mapping of the layouts that need `--layout`, to their families."""

    def __getitem__(self, layout: str) -> str:
        if "layout" not in FAMILIES[LAYOUTS[layout]].options:
            raise KeyError(layout)
        return LAYOUTS[layout]

    def __iter__(self) -> Iterator[str]:
        return (layout for layout, name in LAYOUTS.items() if "layout" in FAMILIES[name].options)

    def __len__(self) -> int:
        return len(list(iter(self)))


#: The assumption about a metric without a stated direction, and its remedy.
_LARGER = "larger is assumed to be better. State it in `directions` of the plug-in's TOOLS"
OPTIONAL_LAYOUTS = _OptionalLayouts()


@cache
def tools_of(family: str) -> FamilyTools:
    mirror = find_spec(f"{__name__}.{folder_of(family)}") if family in FAMILIES else None
    if mirror is None or mirror.origin is None:  # a folder without `__init__` is no package
        return FamilyTools()
    tools: FamilyTools = import_from(family, __name__, "", "TOOLS")
    return tools


def layout_of(protocol: FamilyProtocol) -> str:
    """Return the layout of a benchmark's published truth: its own name, else the family's default."""
    layouts = FAMILIES[protocol.family].layouts
    return max((layout for layout in layouts if protocol.name.startswith(layout)), key=len, default=layouts[0])


def prefers_smaller(metric: str, protocol: str = "") -> bool:
    """Return whether smaller values of a metric are better, according to the family that knows it."""
    families = [PROTOCOLS[protocol].family] if protocol in PROTOCOLS else FAMILIES
    return any(tools_of(family).prefers_smaller(metric) for family in families)


def ranking_rule_of(protocol: str) -> Any:
    """Return the ranking rule of a protocol's challenge; None if the protocol defines none."""
    return getattr(PROTOCOLS.get(protocol), "ranking", None)


def describe_direction(metric: str, protocol: str) -> str:
    """Return a note if a plug-in does not state the direction of a metric; "" if it is known."""
    family = PROTOCOLS[protocol].family if protocol in PROTOCOLS else ""
    if not family or folder_of(family) in FOLDERS or tools_of(family).states_direction(metric):
        return ""
    return f"{family} does not state whether larger or smaller values of {printable(metric)} are better; {_LARGER}"


def describe_metrics(report: Report) -> dict[str, str]:
    """Return the meanings of the metrics that this version knows; stored scores may name others."""
    protocol = PROTOCOLS.get(report.protocol.name)
    if protocol is None:
        return {}
    tools, metrics = tools_of(protocol.family), {*protocol.metrics, *FAMILIES[protocol.family].own_metrics}
    return {name: tools.describe_column(name) for name in report.values if name in metrics}


def describe_unknown_metric(protocol: str, metric: object, metrics: Iterable[str]) -> str:
    """Return the sentence about an unknown metric of a protocol, with a suggestion such as J&F-Mean for JF."""
    names = list(metrics)
    hint, letters = name_hint(metric, names), _letters_of(str(metric))
    if letters and not nearest(metric, names):
        alike = [name for name in names if _letters_of(name).startswith(letters)]
        hint += f"; did you mean {printable(min(alike, key=len))}?" if alike else ""
    return f"{printable(protocol)} has no metric {printable(metric)}{hint}"


def check_columns(protocol: FamilyProtocol, columns: Iterable[str]) -> None:
    """Raise UsageError for a column that is no metric of a protocol."""
    for column in columns:
        if column not in protocol.metrics:
            raise UsageError(f"--columns: {describe_unknown_metric(protocol.name, column, protocol.metrics)}")


def _letters_of(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())
