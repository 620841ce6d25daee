"""The colours of pictures, pages and scripts, distinguishable by colour-blind readers.

Styles write a colour of `INKS` as `$missing`; the player's scripts get `MISTAKES` and `OBJECTS` with their data.
"""

#: The colours of missing pixels, surplus pixels, another object's pixels, and correct pixels.
MISSING, SURPLUS, OTHER, RIGHT = (230, 159, 0), (0, 114, 178), (213, 94, 0), (0, 158, 115)
#: The colours of mistakes by the first word of their style in `pages/page.css`; charts of anything else have none.
MISTAKES = {
    "missing": MISSING, "extra": SURPLUS, "mixed": OTHER, "right": RIGHT,
    "merged": (204, 121, 167), "split": (240, 228, 66), "inexact": (86, 180, 233), "partial": (86, 180, 233),
}  # fmt: skip
GREY = (128, 128, 128)
#: The colours of objects and classes in turn, over photographs; none resembles the colour of a mistake or of correct
#: pixels.
OBJECTS = (
    (170, 221, 187), (187, 102, 255), (238, 0, 68), (68, 238, 119), (85, 0, 255), (153, 0, 119),
    (51, 85, 17), (119, 0, 187), (238, 204, 255), (102, 34, 51), (255, 136, 68), (221, 17, 187),
    (255, 68, 119), (68, 34, 136), (102, 119, 68), (136, 68, 255), (153, 68, 102), (238, 170, 204),
    (153, 17, 0), (204, 238, 102), (68, 51, 85), (170, 170, 102), (204, 204, 153), (153, 68, 221),
)  # fmt: skip
#: The colours of methods, runs and teams in turn, as lines on white; further ones have other dashes.
METHODS = ("#003399", "#cc0033", "#aa22ff", "#992266", "#440011", "#000044")
#: What `$name` means in a style: a mistake, and the lines or points of a chart, on light and on dark ground.
INKS = {
    **{style: f"#{bytes(colour).hex()}" for style, colour in MISTAKES.items()},
    "mark": f"light-dark({METHODS[0]}, #aaeeff)",
    "second": f"light-dark({METHODS[1]}, #ff1155)",
}
DASHES = ("-", "--", ":", "-.")
#: The ground without a picture.
GROUND = (58, 62, 70)
#: A kind of mistake -> its class in `pages/page.css`; similar kinds have the same colour everywhere.
_STYLES = {
    "right": "right",
    "missed": "missing", "missing": "missing", "Miss": "missing", "withdrawn": "missing over",
    "surplus": "extra", "false alarm": "extra", "Bkg": "extra",
    "wrong class": "mixed", "swapped": "mixed", "wrong object": "mixed", "links": "mixed", "Cls": "mixed",
    "wrong label": "mixed", "Both": "mixed over",
    "merged": "merged", "split": "split", "Dupe": "split",
    "inexact": "inexact", "too much": "inexact over", "too little": "inexact under",
    "partial": "partial", "Loc": "partial", "grey": "partial",
}  # fmt: skip


def line_of_method(number: int) -> tuple[str, str]:
    """Return the colour and the dashes of a chart's method by its number."""
    return METHODS[number % len(METHODS)], DASHES[number // len(METHODS) % len(DASHES)]


def letters_of_kind(name: str) -> str:
    """Return two letters for a kind of mistake: the initials of its words, or the first letters of a single one."""
    words = name.split()
    return words[0][0] + words[1][0] if len(words) > 1 else name[:2]


def style_of_kind(name: str, number: int) -> str:
    """Return the style of a kind of mistake by name; of an unknown kind, by its number in the family."""
    return _STYLES.get(name, f"kind-{number}")
