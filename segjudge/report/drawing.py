"""`segjudge show`: truth and detections drawn over images, for people who look rather than read."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pycocotools.mask as coco
from PIL import Image, ImageDraw, ImageFont

from segjudge.evaluation_script import rle
from segjudge.evaluation_script.errors import HostError, counted
from segjudge.evaluation_script.instance_records import InstanceRecords
from segjudge.evaluation_script.instance_truth import InstanceTruth

Array = np.ndarray[Any, Any]
Colour = tuple[int, int, int]

FOUND, MISSED, WRONG = (46, 160, 67), (215, 58, 73), (227, 148, 0)
GROUND = (58, 62, 70)
#: Instances of a truth that is drawn alone.
COLOURS = ((0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (230, 159, 0), (86, 180, 233))
ALPHA = 0.45
ENDINGS = (".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG")
#: Between the two halves of a picture, and above each for its title.
GAP, TITLE = 8, 26
FONT_SIZE = 14


@dataclass(frozen=True)
class DrawnImage:
    """One image's picture and what it shows."""

    name: str
    picture: str
    right: int
    wrong: int
    missed: int


@dataclass(frozen=True)
class _Mask:
    pixels: Array
    label: str
    colour: Colour


@dataclass(frozen=True)
class View:
    """What to show."""

    #: Folder of the images; without it masks are drawn on a plain ground.
    pictures: str = ""
    #: From which overlap a detection is right.
    iou: float = 0.5
    #: Detections with a lower score are left out.
    score: float = 0.0


def draw_all(
    truth: InstanceTruth,
    records: InstanceRecords | None,
    out: str,
    view: View,
    progress: Callable[[str, int, int], None],
) -> list[DrawnImage]:
    """Draw every image as PNG below `out`, and one page with all of them, worst first; the truth alone has no worst."""
    os.makedirs(os.path.join(out, "images"), exist_ok=True)
    drawn = []
    for place, number in enumerate(truth.images.ids.tolist()):
        name = truth.names.get(number, str(number))
        progress(name, place, len(truth.images.ids))
        sides, counts = _truth_alone(truth, place) if records is None else _sides(truth, records, place, view)
        ground = _ground(view.pictures, name, truth.images.sizes[place].tolist())
        picture = os.path.join("images", f"{number}.png")
        _picture(ground, sides).save(os.path.join(out, picture))
        drawn.append(DrawnImage(name, picture, *counts))
    drawn.sort(key=lambda one: -(one.wrong + one.missed))
    with open(os.path.join(out, "index.html"), "w", encoding="utf-8") as file:
        file.write(_page(drawn, view, alone=records is None))
    return drawn


def _truth_alone(truth: InstanceTruth, place: int) -> tuple[tuple[list[_Mask]], tuple[int, int, int]]:
    """The masks of an image, each in a colour of its own."""
    size = truth.images.sizes[place].tolist()
    mine = np.flatnonzero((truth.image == place) & (truth.category >= 0)).tolist()
    masks = [
        _Mask(_pixels(truth.masks[one], size), truth.categories[truth.category[one]].name, COLOURS[nth % len(COLOURS)])
        for nth, one in enumerate(mine)
    ]
    return (masks,), (len(mine), 0, 0)


def _sides(
    truth: InstanceTruth, records: InstanceRecords, place: int, view: View
) -> tuple[tuple[list[_Mask], list[_Mask]], tuple[int, int, int]]:
    """The masks of both halves, coloured by what became of them; how many were right, wrong and missed."""
    size = truth.images.sizes[place].tolist()
    mine = np.flatnonzero((truth.image == place) & (truth.category >= 0))
    kept = (records.image == place) & (records.category >= 0) & (records.score >= view.score)
    theirs = np.flatnonzero(kept)
    theirs = theirs[np.argsort(-records.score[theirs], kind="stable")]
    taken = _matches(truth, records, mine, theirs, size, view.iou)

    def label(category: int) -> str:
        return truth.categories[category].name

    left = [
        _Mask(_pixels(truth.masks[one], size), label(truth.category[one]), FOUND if one in taken.values() else MISSED)
        for one in mine.tolist()
    ]
    right = [
        _Mask(
            _pixels(records.masks[one], size),
            f"{label(records.category[one])} {records.score[one]:.2f}",
            FOUND if one in taken else WRONG,
        )
        for one in theirs.tolist()
    ]
    return (left, right), (len(taken), len(theirs) - len(taken), len(mine) - len(set(taken.values())))


def _matches(
    truth: InstanceTruth, records: InstanceRecords, mine: Array, theirs: Array, size: list[int], iou: float
) -> dict[int, int]:
    """Detection → instance: each detection takes the best instance of its category that is left."""
    taken: dict[int, int] = {}
    for one in theirs.tolist():
        left = [
            place
            for place in mine.tolist()
            if truth.category[place] == records.category[one] and place not in taken.values()
        ]
        if left:
            pair = ([_rle(records.masks[one], size)], [_rle(truth.masks[place], size) for place in left])
            overlaps = np.asarray(coco.iou(*pair, [0] * len(left)))[0]
            if overlaps.max() >= iou:
                taken[one] = left[int(overlaps.argmax())]
    return taken


def _rle(mask: str, size: list[int]) -> Any:
    return {"size": size, "counts": mask}


def _pixels(mask: str, size: list[int]) -> Array:
    pixels: Array = rle.flags(_rle(mask, size), (size[0], size[1]))[0][:, : size[1]]
    return pixels


def _ground(pictures: str, name: str, size: list[int]) -> Image.Image:
    """The image itself where there is one, else a plain ground."""
    stem = os.path.join(pictures, os.path.splitext(name)[0])
    paths = [path for ending in ENDINGS if os.path.isfile(path := stem + ending)] if pictures else []
    if not paths:
        return Image.new("RGB", (size[1], size[0]), GROUND)
    path = paths[0]
    try:
        with Image.open(path) as image:
            return image.convert("RGB").resize((size[1], size[0]))
    except (OSError, SyntaxError, ValueError) as error:
        raise HostError(f"{path}: is not a picture ({error})") from None


def _picture(ground: Image.Image, sides: Sequence[list[_Mask]]) -> Image.Image:
    """Truth at the left, detections at the right where there are any."""
    width, height = ground.size
    whole = Image.new("RGB", (len(sides) * (width + GAP) - GAP, height + TITLE), (255, 255, 255))
    draw = ImageDraw.Draw(whole)
    font = ImageFont.load_default(size=FONT_SIZE)
    for place, (title, masks) in enumerate(zip(("truth", "detections"), sides, strict=False)):
        left = place * (width + GAP)
        draw.text((left + 4, 4), f"{title}: {len(masks)}", fill=(0, 0, 0), font=font)
        whole.paste(_painted(ground, masks, font), (left, TITLE))
    return whole


def _painted(ground: Image.Image, masks: list[_Mask], font: Any) -> Image.Image:
    canvas = np.asarray(ground).astype(float)
    for mask in masks:
        canvas[mask.pixels] = (1 - ALPHA) * canvas[mask.pixels] + ALPHA * np.array(mask.colour)
        canvas[_outline(mask.pixels)] = mask.colour
    image = Image.fromarray(canvas.astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for mask, (x, y) in _anchors(masks):
        box = draw.textbbox((x, y), mask.label, font=font)
        shift = min(0, image.width - 2 - box[2])
        draw.rectangle((box[0] + shift - 2, box[1] - 1, box[2] + shift + 2, box[3] + 1), fill=mask.colour)
        draw.text((x + shift, y), mask.label, fill=(255, 255, 255), font=font)
    return image


def _outline(mask: Array) -> Array:
    """Pixels of the mask that touch its outside."""
    padded = np.pad(mask, 1)
    inner = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    outline: Array = mask & ~inner
    return outline


def _anchors(masks: list[_Mask]) -> Iterator[tuple[_Mask, tuple[int, int]]]:
    """Where each label goes: the top left of its mask, below labels that are there already."""
    rows: list[tuple[int, int]] = []
    for mask in masks:
        ys, xs = np.nonzero(mask.pixels)
        if not len(ys):
            continue
        x, y = int(xs.min()) + 2, int(ys.min()) + 2
        while any(abs(x - other) < 60 and abs(y - at) < FONT_SIZE + 3 for other, at in rows):
            y += FONT_SIZE + 3
        y = min(y, mask.pixels.shape[0] - FONT_SIZE - 4)
        rows.append((x, y))
        yield mask, (x, y)


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1200px; padding: 1rem; color: #1f2328 }
figure { margin: 0 0 2rem; border-top: 1px solid #d0d7de; padding-top: 1rem }
img { max-width: 100%; height: auto }
b { padding: 0 .4em; border-radius: 3px; color: #fff }
"""


def _page(drawn: list[DrawnImage], view: View, *, alone: bool) -> str:
    title = "Truth" if alone else "Truth and detections"
    figures = "\n".join(_figure(one, title, alone=alone) for one in drawn)
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE}</style>
<h1>{title}</h1>
<p>{_summary(drawn, view, alone=alone)}</p>
{figures}
</html>
"""


def _figure(one: DrawnImage, title: str, *, alone: bool) -> str:
    name, source = html.escape(one.name), html.escape(one.picture)
    told = counted(one.right, "instance") if alone else f"{one.right} right, {one.wrong} wrong, {one.missed} missed"
    return (
        f'<figure><img src="{source}" loading="lazy" alt="{title.lower()} of {name}">'
        f"<figcaption>{name}: {told}</figcaption></figure>"
    )


def _summary(drawn: list[DrawnImage], view: View, *, alone: bool) -> str:
    def key(colour: Colour, word: str) -> str:
        return f'<b style="background:rgb{colour}">{word}</b>'

    images = counted(len(drawn), "image")
    totals = [sum(getattr(one, name) for one in drawn) for name in ("right", "wrong", "missed")]
    if alone:
        return f"{images}, {counted(totals[0], 'instance')}."
    least = f", scores from {view.score:g}" if view.score else ""
    return (
        f"{images}, matched at an intersection over union of {view.iou:g}{least}; those with most mistakes first.\n"
        f"{key(FOUND, 'right')} {totals[0]} {key(WRONG, 'wrong')} {totals[1]} {key(MISSED, 'missed')} {totals[2]}"
    )
