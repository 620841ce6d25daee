"""Maps of videos in memory score the same bits as files, in parts, in any order and with repetitions."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import segjudge
from tests.data import TRACKS_DATA
from tests.scoring.memory_parts import frames_of, of_parts, refuse_state, same
from tests.shared import needs_shared


@needs_shared
@pytest.mark.parametrize("protocol", ["vspw", "vspw-official"])
def test_semantic_videos_in_memory_score_as_files_do(protocol: str) -> None:
    folder = TRACKS_DATA / "vspw"
    expected = segjudge.score(str(folder / "submission"), str(folder / "truth"), protocol)
    updates, names = [], (folder / "truth/val.txt").read_text().split()
    assert names != sorted(names), "the list's order is not that of names"
    for path in sorted((folder / "truth/data").glob("*/mask/*.png")):
        video = path.parent.parent.name
        if video in names:
            prediction = next((folder / "submission").rglob(f"{video}/{path.name}"))
            updates.append((video, path.stem, np.asarray(Image.open(prediction)), np.asarray(Image.open(path))))
    same(of_parts(protocol, updates, expected=frames_of(names, updates)), expected)
    same(of_parts(protocol, updates), expected, order=False)


def test_a_state_that_cannot_have_been_counted_makes_no_scores() -> None:
    ids = np.zeros((4, 6), np.int64)
    ids[1:3, 1:4] = 1
    strange = np.stack((ids, ids + 60_000)).astype("<u2")
    refuse_state("vspw", "00000", struct.pack("<II", *ids.shape) + zlib.compress(strange.tobytes()))
