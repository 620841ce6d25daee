"""What the toolkit does with each family: its folder here is the mirror of `evaluation_script/families/NAME`.

A folder's `__init__` has `TOOLS`, which says what the family shows and offers; a family without one gets the defaults.
Nothing else in the toolkit asks which family it has: it asks `tools_of`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from segjudge.evaluation_script.families import FAMILIES, FOLDERS
from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.families.base.tools import FamilyTools

__all__ = ["LAYOUTS", "OPTIONAL_LAYOUTS", "FamilyTools", "layout_of", "prefers_smaller", "tools_of"]

#: The layouts in which datasets are published, and the family that reads each.
LAYOUTS = {layout: name for name, family in FAMILIES.items() for layout in family.layouts}
#: Those among which a published dataset of a family has to be told apart.
OPTIONAL_LAYOUTS = [layout for layout, name in LAYOUTS.items() if "layout" in FAMILIES[name].options]

#: The families' folders by name.
_FOLDERS = dict(zip(FAMILIES, FOLDERS, strict=True))


@cache
def tools_of(family: str) -> FamilyTools:
    """Return what the toolkit does with a family."""
    module = f"{__name__}.{_FOLDERS[family]}" if family in _FOLDERS else ""
    if not module or find_spec(module) is None:
        return FamilyTools()
    tools: FamilyTools = import_module(module).TOOLS
    return tools


def layout_of(protocol: FamilyProtocol) -> str:
    """Return the layout in which the truth of a benchmark is published: by its name, else the family's usual one."""
    layouts = FAMILIES[protocol.family].layouts
    return max((layout for layout in layouts if protocol.name.startswith(layout)), key=len, default=layouts[0])


def prefers_smaller(metric: str) -> bool:
    """Return whether smaller values of a metric are better, whichever family it is of."""
    return any(tools_of(family).prefers_smaller(metric) for family in FAMILIES)
