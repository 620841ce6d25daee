"""The beginning of every report: the loss and its causes, in how many cases, and where most."""

from __future__ import annotations

import pytest

from segjudge.report.sentences import name_lowest


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([0.5, 0.2, None], "Of 2 categories, b has the lowest AP, 0.200."),
        ([0.5, 0.0, 0.0001], "Of 3 categories, b and c have the lowest AP, 0.000."),
        ([1.0, 1.0, None], ""),
        ([0.5, None, None], ""),
        ([None, None, None], ""),
    ],
)
def test_the_lowest_row_is_named(values: list[float | None], sentence: str) -> None:
    assert name_lowest("categories", values, "abc", "AP") == sentence
    numbered = sentence.replace(", b", ", number 0").replace("and c", "and number 3")
    assert name_lowest("categories", values, "103", "AP") == numbered
