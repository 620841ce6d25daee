"""What the families' folders are made of.

`tools` has `FamilyTools`, the door through which commands and pages ask a family for all that is its own, and
`UnitTools`, the same for families that count by unit, such as an image; `pictures` draws the worst of these, `segments`
says what is wrong with each segment; `memory` has what counts masks in memory, `published` how truths are read as their
authors publish them, and `challenges` words and samples of new challenges.  A family that is written elsewhere starts
from `tools`; `docs/adding-a-family.md` shows how.
"""

__all__ = ["challenges", "memory", "pictures", "published", "segments", "tools"]
