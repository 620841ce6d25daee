"""The base of the toolkit's family folders.

`tools` has `FamilyTools`, the interface through which commands and pages use a family, and `unit_tools` `UnitTools`,
its implementation for families that count by unit. A `UnitPainter` of `pictures` locates segments; `drawing` draws the
worst units, `painted` holds a drawn unit, `segments` judges each segment, and `causes` explains losses by one table of
causes. `memory` counts masks in memory, `published` reads published truths, `challenges` has texts and samples of new
challenges, and `benchmarks` the entries in the list of benchmarks. A plug-in family starts from `tools`;
`docs/adding-a-family.md` shows how.
"""

__all__ = [
    "benchmarks", "causes", "challenges", "drawing", "memory", "pictures", "published", "segments", "tools",
    "unit_tools",
]  # fmt: skip
