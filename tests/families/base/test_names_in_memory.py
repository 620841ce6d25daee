"""Numbers of frames in memory are named as in files."""

from __future__ import annotations

import pytest

from segjudge.families.base.memory import frame_name


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        (None, ""), (0, "00000"), (3.0, "00003"), ("3", "00003"), ("00003", "00003"), (99_999, "99999"),
        (100_000, "100000"), (-1, "-0001"), (1.5, "1.5"), ("12345", "12345"), ("1.50", "1.50"), ("0000003", "0000003"), ("000003", "000003"), ("a3", "a3"), ("", ""),
    ],
)  # fmt: skip
def test_a_number_of_a_frame_is_named_as_in_files(frame: object, name: str) -> None:
    assert frame_name(frame) == name
