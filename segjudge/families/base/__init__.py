"""The base of the toolkit's family folders.

`tools` has `FamilyTools`, the door through which commands and pages ask a family for all that is its own, and
`UnitTools`, the same for families that count by unit, such as an image; a `UnitPainter` of `pictures` says what is
where in these, `drawing` draws the worst ones, each as `painted` has it, `segments` says what is wrong with each
segment, and `causes` why segments lose; `memory` has what counts masks in memory, `published` how truths are read as
their authors publish them, and `challenges` words and samples of new challenges, `benchmarks` what the documentation
lists of each family.  A family that is written elsewhere starts from `tools`; `docs/adding-a-family.md` shows how.
"""

__all__ = ["benchmarks", "causes", "challenges", "drawing", "memory", "pictures", "published", "segments", "tools"]
