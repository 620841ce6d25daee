"""The methods of the demo: each has a known fault that a report should show."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from .drawing import SIZE, Floats, Labels, blur, make_clouds
from .films import SEED, Film

#: The masks of a film, frame by frame.
Masks = list[Labels]
_Method = Callable[[Film, Masks], Masks]
#: An object is hidden, and lost by a forgetful method, once it shows less than this share of what it showed at most.
_HIDDEN = 0.5


def _careful(film: Film, truth: Masks) -> Masks:
    """Return precise masks: details below two pixels are smoothed, and all edges are slightly off."""
    noise = _noise(film, 0)
    return [_decide([blur(_of(labels, number), 2) + noise for number in film.object_numbers()]) for labels in truth]


def _drifting(film: Film, truth: Masks) -> Masks:
    """Return masks that lag behind their objects, drift off them, and stay after they have left."""
    masks, drifted = _careful(film, truth), []
    held = {number: _of(masks[0], number) for number in film.object_numbers()}
    for frame, labels in enumerate(masks):
        moment = frame / (film.frames - 1)
        behind = masks[max(0, frame - round(2.4 * moment))]
        slid = np.roll(behind, (round(-9 * moment**2), round(15 * moment**2)), axis=(0, 1))
        for number in film.object_numbers():
            shown = _of(slid, number)
            if shown.sum() > 30 and _of(labels, number).any():
                held[number] = shown
        drifted.append(_decide(list(held.values())))
    return drifted


def _swapping(film: Film, truth: Masks) -> Masks:
    """Return masks that exchange two similar objects after they meet."""
    masks = _careful(film, truth)
    alike = [
        pair for pair in combinations(film.object_numbers(), 2) if film.names[pair[0] - 1] == film.names[pair[1] - 1]
    ]
    meetings = [(distance, frame, pair) for pair in alike for frame, distance in _distances(masks, pair)]
    if not meetings:
        return masks
    _, met, (one, other) = min(meetings)
    exchange = np.arange(256, dtype=np.uint8)
    exchange[[one, other]] = other, one
    return masks[:met] + [exchange[labels] for labels in masks[met:]]


def _distances(masks: Masks, pair: tuple[int, int]) -> list[tuple[int, float]]:
    """Return the distance of two objects in the frames that show both, with frames before and after."""
    distances = []
    for frame, labels in enumerate(masks[2:-4], 2):
        places = [np.argwhere(labels == number) for number in pair]
        if all(map(len, places)):
            distances.append((frame, float(np.hypot(*(places[0].mean(axis=0) - places[1].mean(axis=0))))))
    return distances


def _leaking(film: Film, truth: Masks) -> Masks:
    """Return masks that spill over the edges of objects, more in each frame."""
    noise = 2.2 * _noise(film, 1)
    leaked = []
    for frame, labels in enumerate(_careful(film, truth)):
        moment = frame / (film.frames - 1)
        soft = [blur(_of(labels, number), 2 + round(11 * moment)) for number in film.object_numbers()]
        leaked.append(_decide([field + noise * (field > 0.04) for field in soft], 0.5 - 0.28 * moment))
    return leaked


def _forgetful(film: Film, truth: Masks) -> Masks:
    """Return masks that lose one hidden object, and find all others again some frames late."""
    masks = [labels.copy() for labels in _careful(film, truth)]
    for number in film.object_numbers():
        seen, hidden_at = 0.0, -1
        for frame, labels in enumerate(masks):
            area = float(_of(labels, number).sum())
            seen = max(seen, area)
            if area < _HIDDEN * seen:
                hidden_at = frame
            is_found = (len(film.name) + number) % 2 == 0 and frame > hidden_at + 3
            if hidden_at >= 0 and not is_found:
                labels[labels == number] = 0
    return masks


def _coarse(film: Film, truth: Masks) -> Masks:
    """Return masks in blocks of twelve pixels, like a network's features, without smaller objects."""
    side = 12
    coarse = []
    for labels in truth:
        height, width = (-(-length // side) * side for length in labels.shape)
        padded = np.pad(labels, ((0, height - labels.shape[0]), (0, width - labels.shape[1])))
        blocks = padded.reshape(height // side, side, width // side, side)
        shares = [(blocks == number).mean(axis=(1, 3), dtype=np.float32) for number in film.object_numbers()]
        small = _decide(shares)
        coarse.append(small.repeat(side, axis=0).repeat(side, axis=1)[: labels.shape[0], : labels.shape[1]])
    return coarse


def _of(labels: Labels, number: int) -> Floats:
    return (labels == number).astype(np.float32)


def _noise(film: Film, salt: int) -> Floats:
    """Return a film's own soft noise around zero."""
    generator = np.random.default_rng([SEED, salt, *film.name.encode()])
    return 0.5 * (make_clouds(generator, SIZE, (9, 16)) - 0.5)


def _decide(fields: list[Floats], least: float = 0.5) -> Labels:
    """Give each pixel to the object with the largest value, where that is large enough."""
    stack = np.stack(fields)
    labels: Labels = np.where(stack.max(axis=0) > least, stack.argmax(axis=0) + 1, 0).astype(np.uint8)
    return labels


#: By the names of their samples.
METHODS: dict[str, _Method] = {
    "careful": _careful,
    "swapping": _swapping,
    "coarse": _coarse,
    "drifting": _drifting,
    "forgetful": _forgetful,
    "leaking": _leaking,
}
