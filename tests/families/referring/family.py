"""The data of referring for the tests of all families; `tests/families/contract.py` defines each name."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.referring.protocols import REFERRING_PROTOCOLS
from segjudge.evaluation_script.masks import run_lengths
from tests import published
from tests.families.slips import Slip, answers, lines, mirrored, moved, rearranged, turned

#: The truth of a new challenge: the benchmarks publish Python's pickles, which Segjudge never reads.
PUBLISHED = {name: partial(published.write_demo, name) for name in REFERRING_PROTOCOLS}
UPLOADS: dict[str, Any] = {}
UPLOAD_OF_OTHERS = ""
REFUSALS: dict[str, str] = {}


def write_flags(answers: list[dict[str, Any]], *, opposite: bool) -> list[dict[str, Any]]:
    """Return answers whose flag is the opposite, or true."""
    return [{**answer, "no_target": not (opposite and answer.get("no_target", False))} for answer in answers]


SLIPS: dict[str, tuple[str, Slip, str]] = {
    "rows of answers": ("reasonseg", answers(turned), "run lengths look as if written row by row"),
    "mirrored answers": ("reasonseg", answers(lambda text, size: mirrored(moved(text, size, -8), size)), "masks look mirrored"),
    "inverted answers": ("refcoco", answers(lambda text, size: rearranged(moved(text, size, -8), size, np.logical_not)), "masks look inverted, with objects black: corrected, oIoU would be 1.00"),
    "opposite flags": ("grefcoco", lines(partial(write_flags, opposite=True)), "no_target contradicts the truth for"),
    "all withdrawn": ("grefcoco", lines(partial(write_flags, opposite=False)), "no_target is true for all"),
    "moved answers": ("refcoco", lambda data: data, "masks look moved by 8 along x (in pixels): corrected, oIoU would be"),
    "white answers": ("refcoco", answers(lambda _, size: run_lengths.compress([0, size[0] * size[1]])), "all places of the masks have the same value (1)"),
}  # fmt: skip
JSON_TRUTHS = {"reasonseg": "000002.json", "refcoco": "instances.json"}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "promises": ("grefcoco",),
    "pages": ("refcoco", "grefcoco", "reasonseg"),
    "pages shown whole": ("refcoco",),
    "mounts": ("refcoco", "reasonseg"),
    "JSON mounts": ("refcoco",),
    "surplus": ("grefcoco",),
    "good results": ("refcoco", "grefcoco", "reasonseg"),
    "painted": ("refcoco", "reasonseg"),
    "painted questions": ("refcoco", "reasonseg"),
    "wrong roots": ("refcoco",),
}
SAMPLE_SCORES = {
    "refcoco": (0.914920406511377, 0.5012867971091134),
    "refcoco-plus": (0.914920406511377, 0.5012867971091134),
    "refcocog": (0.914920406511377, 0.5012867971091134),
    "grefcoco": (0.9232276767126282, 0.5766980827908588),
    "grefcoco-official": (0.9232276767126282, 0.5766980827908588),
    "reasonseg": (0.930271432490374, 0.553671751600756),
    "reasonseg-official": (0.9302707314491272, 0.5536713004112244),
}
