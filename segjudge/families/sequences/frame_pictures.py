"""Which frames have their picture in a page, and how it is made small."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator

import numpy as np
from markupsafe import Markup
from PIL import Image

from segjudge.evaluation_script.families.sequences.losses import SequenceLosses
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.masks.stream import in_page
from segjudge.report.painting import picture_kind

from .moments import Moment
from .published import frame_images_of

#: Pictures are so wide at most, so good, and take so many bytes, in the page a third more.
SIDE, QUALITY, PICTURE_BYTES = 320, 45, 7000
#: Frames beside the worst one of a moment that have their picture.
AROUND = 2
#: Posters are so wide, and take this share of a page at most.
POSTER_SIDE, POSTERS = 160, 0.05


def frame_pictures(folder: str, found: list[SequenceLosses], moments: list[Moment], room: int) -> dict[str, bytes]:
    """Return pictures of the frames that are looked at first, as many as there is room for, by the name of a stream."""
    by_name = {one.name: one for one in found}
    paths = _paths(folder, found)
    wanted = _wanted([one for one in found if paths[one.name]], moments)
    pictures: dict[str, bytes] = {}
    for name, frame in wanted:
        if room < PICTURE_BYTES * 4 / 3:
            break
        stream = f"{by_name[name].stream}#{frame}"
        if stream not in pictures:
            pictures[stream] = picture_bytes(paths[name][frame])
            room -= in_page([pictures[stream]])
    return pictures


def posters(folder: str, found: list[SequenceLosses], budget: int) -> dict[str, Markup]:
    """Return a small picture of the worst frame of each sequence, by its name, as many as there is room for."""
    room, made = budget * POSTERS, dict[str, Markup]()
    paths = _paths(folder, found)
    for one in found:
        if not paths[one.name] or room < 0:
            continue
        frame = _order(one)[-1]
        data = base64.b64encode(picture_bytes(paths[one.name][frame], POSTER_SIDE)).decode("ascii")
        room -= len(data)
        made[one.name] = Markup('<img class="poster" alt="frame {}" src="data:image/{};base64,{}">').format(
            one.frames[frame], picture_kind(), data
        )
    return made


def _paths(folder: str, found: list[SequenceLosses]) -> dict[str, list[str]]:
    """Return the pictures of each sequence's frames, none where one is missing; refuses a folder without any."""
    paths = {one.name: frame_images_of(folder, one.name, one.frames) for one in found}
    if not any(paths.values()):
        names = ", ".join(list(paths)[:3])
        raise HostError(f"{folder}: has no pictures of all frames of any sequence; folders such as {names} are sought")
    return paths


def _wanted(found: list[SequenceLosses], moments: list[Moment]) -> Iterator[tuple[str, int]]:
    """Yield sequences and frames: the worst and the median of each, those around moments, then ever more of all."""
    by_name = {one.name: one for one in found}
    for share in (1.0, 0.5):
        for one in found:
            order = _order(one)
            yield one.name, order[round(share * (len(order) - 1))]
    for moment in moments:
        if moment.sequence in by_name:
            frames = by_name[moment.sequence].frames
            place = frames.index(moment.worst)
            for frame in range(max(0, place - AROUND), min(len(frames), place + AROUND + 1)):
                yield moment.sequence, frame
    longest = max((len(one.frames) for one in found), default=0)
    step = 1 << max(longest, 1).bit_length()
    while step:
        for one in found:
            for frame in range(0, len(one.frames), step):
                yield one.name, frame
        step //= 2


def _order(one: SequenceLosses) -> list[int]:
    """Return the frames of a sequence, those that lost least first, as a page's script orders them."""
    lost = np.full((len(one.objects), len(one.frames)), np.nan)
    places = {frame: place for place, frame in enumerate(one.frames)}
    for row, item in enumerate(one.objects):
        lost[row, [places[frame] for frame in item.score.frames]] = item.parts.sum(axis=1)
    counted = np.flatnonzero(~np.isnan(lost).all(axis=0))
    means = np.nanmean(lost[:, counted], axis=0)
    return [int(frame) for frame in counted[np.lexsort((-counted, means))]] or [0]


def picture_bytes(path: str, side: int = SIDE) -> bytes:
    """Return a picture made small."""
    try:
        with Image.open(path) as image:
            image.draft("RGB", (side, side))
            small = image.convert("RGB")
            small.thumbnail((side, side))
    except (OSError, SyntaxError, ValueError) as error:
        raise HostError(f"{path}: is not a picture ({error})") from None
    data = io.BytesIO()
    small.save(data, picture_kind(), quality=QUALITY)
    return data.getvalue()
