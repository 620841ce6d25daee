"""What the toolkit does with each family: its folder here is the mirror of `evaluation_script/families/NAME`.

A folder's `__init__` has `TOOLS`, which says what the family shows and offers; a family without one gets the defaults.
Nothing else in the toolkit asks which family it has: it asks `tools_of`.  The mirror of a plug-in is found here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec

from segjudge.evaluation_script.families import FAMILIES, LAYOUTS, PROTOCOLS, folder_of, import_from
from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.families.base.tools import FamilyTools

__all__ = ["OPTIONAL_LAYOUTS", "FamilyTools", "layout_of", "prefers_smaller", "tools_of"]


class _OptionalLayouts(Mapping[str, str]):
    """The layouts among which a published dataset of a family has to be told apart, and that family."""

    def __getitem__(self, layout: str) -> str:
        if "layout" not in FAMILIES[LAYOUTS[layout]].options:
            raise KeyError(layout)
        return LAYOUTS[layout]

    def __iter__(self) -> Iterator[str]:
        return (layout for layout, name in LAYOUTS.items() if "layout" in FAMILIES[name].options)

    def __len__(self) -> int:
        return len(list(iter(self)))


OPTIONAL_LAYOUTS = _OptionalLayouts()


@cache
def tools_of(family: str) -> FamilyTools:
    mirror = find_spec(f"{__name__}.{folder_of(family)}") if family in FAMILIES else None
    if mirror is None or mirror.origin is None:  # a folder without `__init__` is none
        return FamilyTools()
    tools: FamilyTools = import_from(family, __name__, "", "TOOLS")
    return tools


def layout_of(protocol: FamilyProtocol) -> str:
    """Return the layout in which the truth of a benchmark is published: by its name, else the family's usual one."""
    layouts = FAMILIES[protocol.family].layouts
    return max((layout for layout in layouts if protocol.name.startswith(layout)), key=len, default=layouts[0])


def prefers_smaller(metric: str, protocol: str = "") -> bool:
    """Return whether smaller values of a metric are better; of an unknown protocol, whichever family it is of."""
    families = [PROTOCOLS[protocol].family] if protocol in PROTOCOLS else FAMILIES
    return any(tools_of(family).prefers_smaller(metric) for family in families)
