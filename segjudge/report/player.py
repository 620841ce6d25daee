"""The player of every family's page: frames to step through, worst moments, and pictures below the masks.

Its scripts `frames….js` read three forms of streams: `objects`, which have J and F in each frame, `segments`, each with
what is wrong with it, and `slices`, three planes of a volume.
"""

from __future__ import annotations

import io
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from PIL import ExifTags, Image, ImageOps

from segjudge.evaluation_script.files.problems import HostError, inflect, quantity
from segjudge.evaluation_script.masks.stack import Array, Size
from segjudge.report.colours import MISTAKES, OBJECTS
from segjudge.report.page import Section, picture_kind

#: The maximum width and the quality of pictures.
_SIDE, _QUALITY = 320, 45
#: The EXIF orientations that turn a picture by a quarter, and the ratio, as a logarithm, by which it may be stretched.
_QUARTER_TURNS, _MOST_STRETCHED = range(5, 9), 0.05
#: The worst moments with a filmstrip.
FILMS = 12
#: The number of frames on each side of the worst one in a filmstrip.
AROUND = 2
#: The maximum share of a page for pictures.
_PICTURE_SHARE = 0.35


class Still(NamedTuple):
    """A frame of a page with its mistakes, in small."""

    #: The name of the unit, and of the frame if it has several.
    unit: str
    frame: str
    #: Colours (height, width, 3).
    pixels: Array


def make_player(
    sequences: Sequence[Mapping[str, Any]],
    moments: Sequence[Mapping[str, Any]],
    form: Mapping[str, Any],
    about: Mapping[str, object],
    streams: Mapping[str, bytes],
    methods: Sequence[str],
) -> Section:
    """Return the player of the streams in the page; `about` describes omissions.

    `form` says how the scripts read streams.  Without methods it shows the truth alone.
    """
    numbered = [{**moment, "number": number, "film": number < FILMS} for number, moment in enumerate(moments)]
    noun = "region" if form["form"] == "slices" else "object"
    values = {
        "item": "Sequence",
        "legend": [("missing", "missing"), ("extra", "surplus"), ("mixed", f"another {noun}"), ("right", "right")],
        "single": False,
        "note": "",
        "scans": False,
        "threshold": form.get("threshold", ""),
        **about,
        "form": form["form"],
        "moments": numbered,
        "words": _count_words(numbered),
        "sequences": sequences,
        "methods": methods[:2],
        "alone": not methods,
    }
    data = {
        **form,
        "methods": methods,
        "sequences": sequences,
        "moments": numbered,
        "around": AROUND,
        "colours": {"mistakes": MISTAKES, "objects": OBJECTS},
        "pictures": form.get("pictures", f"image/{picture_kind()}"),
    }
    return Section("frames", "Frames", values, data, streams)


def _count_words(moments: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[tuple[str, int]]]]:
    """Count by group the words that distinguish moments, the most frequent first."""
    counts = Counter(tuple(word) for moment in moments for word in moment["words"])
    groups: dict[str, list[tuple[str, int]]] = {}
    for (group, word), count in counts.most_common():
        if count < len(moments):
            groups.setdefault(group, []).append((word, count))
    return list(groups.items())


def describe_frames(start: str, end: str) -> str:
    return f"frame {start}" if start == end else f"frames {start} to {end}"


def picture_room(budget: int) -> float:
    """Return the bytes of a page that pictures may use."""
    return budget * _PICTURE_SHARE


class PictureFolder:
    """The pictures below the masks of a page, made small; a sentence names the first one that cannot be shown."""

    def __init__(self, path: str) -> None:
        self._path = path
        #: By path of a picture, why it cannot be shown.
        self._faults: dict[str, str] = {}
        self._turned_paths: set[str] = set()

    def shrink(self, path: str, side: int = _SIDE, size: Size | None = None) -> bytes:
        """Return a small picture; b"" for a file that is not a picture, or too large.

        A picture that its EXIF data turn by a quarter may not fit frames of the given size.
        """
        try:
            small = read_picture(path, side)
        except HostError as error:
            fault = str(error).removeprefix(f"{path}: ").replace(path, os.path.basename(path))
            self._faults[path] = f"{os.path.relpath(path, self._path)} {fault}"
            return b""
        stretch = math.log(small.width / small.height * size[0] / size[1]) if size else 0.0
        if abs(stretch) > _MOST_STRETCHED and _is_turned(path):
            self._turned_paths.add(path)
        small.thumbnail((side, side))
        return encode_picture(small)

    def describe_faults(self) -> str:
        """Return the sentences on pictures that cannot be shown, or do not fit; "" without any."""
        sentences = []
        if self._faults:
            pictures, fault = quantity(len(self._faults), "picture"), next(iter(self._faults.values()))
            sentences.append(f"{pictures} cannot be shown: {'the first: ' if len(self._faults) > 1 else ''}{fault}.")
        if self._turned_paths:
            pictures = quantity(len(self._turned_paths), "picture")
            verb = inflect(len(self._turned_paths), "does", "do")
            sentences.append(f"{pictures} {verb} not fit the masks once turned as the EXIF data say.")
        return " ".join(sentences)


def decode_picture(data: bytes, size: tuple[int, int]) -> Array:
    """Return the colours of an encoded picture at a width and height."""
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB").resize(size))


def read_picture(path: str, side: int = 0) -> Image.Image:
    """Read a picture as RGB, turned as its EXIF data say, if a side is given at a smaller size that is not below it.

    Raises HostError if it is not a picture, or too large.
    """
    try:
        with Image.open(path) as image:
            if side:
                image.draft("RGB", (side, side))
            return _reduce_depth(ImageOps.exif_transpose(image)).convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise HostError(f"{path}: is not a picture ({error})") from None
    except Image.DecompressionBombError:
        limit = 2 * (Image.MAX_IMAGE_PIXELS or 0)
        raise HostError(f"{path}: has more than {limit:,} pixels. Make the picture smaller") from None


def _is_turned(path: str) -> bool:
    """Return whether the EXIF data of a picture turn it by a quarter."""
    with Image.open(path) as image:
        return image.getexif().get(ExifTags.Base.Orientation, 1) in _QUARTER_TURNS


def _reduce_depth(image: Image.Image) -> Image.Image:
    """Return a 16-bit picture reduced to the upper 8 bits of its shades; other pictures are unchanged."""
    if not image.mode.startswith("I"):
        return image
    return Image.fromarray(np.clip(np.asarray(image).astype(np.int64) >> 8, 0, 255).astype(np.uint8))


def encode_picture(picture: Image.Image) -> bytes:
    """Return a picture as bytes to embed in a page."""
    data = io.BytesIO()
    picture.save(data, picture_kind(), quality=_QUALITY)
    return data.getvalue()
