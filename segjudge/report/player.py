"""The player that every family's page has: frames that one steps through, worst moments, pictures below the masks.

Its scripts `frames….js` read three forms of streams: `objects`, which have J and F in each frame, `segments`, each with
what is wrong with it, and `slices`, three planes of a volume.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image

from segjudge.evaluation_script.files.problems import HostError
from segjudge.report.page import Section, picture_kind

#: Pictures are so wide at most, and so good.
_SIDE, _QUALITY = 320, 45
#: The worst moments with a filmstrip.
FILMS = 12
#: Frames beside the worst one of a moment that its filmstrip has.
AROUND = 2
#: Pictures take this share of a page at most.
_PICTURES = 0.35


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
        "pictures": f"image/{picture_kind()}",
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
    return budget * _PICTURES


def shrink_picture(path: str, side: int = _SIDE) -> bytes:
    """Read a picture and make it small; raises HostError where it is none."""
    try:
        with Image.open(path) as image:
            image.draft("RGB", (side, side))
            small = image.convert("RGB")
            small.thumbnail((side, side))
    except (OSError, SyntaxError, ValueError) as error:
        raise HostError(f"{path}: is not a picture ({error})") from None
    data = io.BytesIO()
    small.save(data, picture_kind(), quality=_QUALITY)
    return data.getvalue()
