"""What the families' folders are made of.

`tools` has `FamilyTools`, the door through which commands and pages ask a family for all that is its own, and
`UnitTools`, the same for families that count by unit, such as an image; a `UnitPainter` of `pictures` says what is
where in these, `drawing` draws the worst ones, each as `painted` has it, and `segments` says what is wrong with each
segment; `memory` has what counts masks in memory, `published` how truths are read as their authors publish them, and
`challenges` words and samples of new challenges.  A family that is written elsewhere starts from `tools`;
`docs/adding-a-family.md` shows how.
"""

__all__ = ["challenges", "drawing", "memory", "pictures", "published", "segments", "tools"]
