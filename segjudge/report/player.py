"""The player of every family's page: frames to step through, worst moments, and pictures below the masks.

Its scripts `frames….js` read three forms of streams: `objects`, which have J and F in each frame, `segments`, each with
what is wrong with it, and `slices`, three planes of a volume.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from segjudge.evaluation_script.files.problems import HostError
from segjudge.report.page import Section, picture_kind

#: The maximum width and the quality of pictures.
_SIDE, _QUALITY = 320, 45
#: The worst moments with a filmstrip.
FILMS = 12
#: The number of frames on each side of the worst one in a filmstrip.
AROUND = 2
#: The maximum share of a page for pictures.
_PICTURE_SHARE = 0.35


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
        "legend": [("missing", "missing"), ("extra", "too much"), ("mixed", f"another {noun}"), ("right", "right")],
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


def shrink_picture(path: str, side: int = _SIDE) -> bytes:
    """Read a picture and make it small; raises HostError where it is none, or too large."""
    small = read_picture(path, side)
    small.thumbnail((side, side))
    return encode_picture(small)


def read_picture(path: str, side: int = 0) -> Image.Image:
    """Read a picture as RGB, if a side is given at a smaller size that is not below it.

    Raises HostError where it is none, or too large.
    """
    try:
        with Image.open(path) as image:
            if side:
                image.draft("RGB", (side, side))
            return _reduce_depth(image).convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise HostError(f"{path}: is not a picture ({error})") from None
    except Image.DecompressionBombError:
        limit = 2 * (Image.MAX_IMAGE_PIXELS or 0)
        raise HostError(f"{path}: has more than {limit:,} pixels. Make the picture smaller") from None


def _reduce_depth(image: Image.Image) -> Image.Image:
    """Return a picture of 16 bits with the upper 8 bits of its shades, and any other as it is."""
    if not image.mode.startswith("I"):
        return image
    return Image.fromarray(np.clip(np.asarray(image).astype(np.int64) >> 8, 0, 255).astype(np.uint8))


def encode_picture(picture: Image.Image) -> bytes:
    """Return a picture as pages hold it."""
    data = io.BytesIO()
    picture.save(data, picture_kind(), quality=_QUALITY)
    return data.getvalue()
