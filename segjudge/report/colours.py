"""The colours of pictures, as the player has them (`pages/frames_masks.js`): eyes of all kinds tell them apart."""

#: Of the truth alone, of a prediction alone, of what is taken for another object, of what is right.
MISSING, SURPLUS, OTHER, RIGHT = (230, 159, 0), (0, 114, 178), (213, 94, 0), (0, 158, 115)
GREY = (128, 128, 128)
#: Objects in turn; what a mistake has comes last.
OBJECTS = ((86, 180, 233), (204, 121, 167), (240, 228, 66), OTHER, RIGHT, GREY, MISSING, SURPLUS)
#: Where there is no picture.
GROUND = (58, 62, 70)
#: By what families call a kind of mistake, the classes of `pages/page.css`: what is alike has one colour everywhere.
_STYLES = {
    "right": "right",
    "missed": "missing", "Miss": "missing", "withdrawn": "missing over",
    "surplus": "extra", "false alarm": "extra", "Bkg": "extra",
    "wrong class": "mixed", "swapped": "mixed", "wrong object": "mixed", "links": "mixed", "Cls": "mixed",
    "Both": "mixed over",
    "merged": "merged", "split": "split", "Dupe": "split",
    "inexact": "inexact", "too much": "inexact over", "too little": "inexact under",
    "partial": "partial", "Loc": "partial",
}  # fmt: skip


def style_of_kind(name: str, number: int) -> str:
    """Return the style of a kind of mistake, the number-th of its family: of one that has no colour here, any."""
    return _STYLES.get(name, f"kind-{number}")
