"""The range of the scores of detections, and a suspicion about scores that are no confidences."""

from __future__ import annotations

import math
from typing import Any, List

import numpy as np

from ...files import quantity

#: The tolerance for confidences outside 0 to 1.
_ROUNDING = 1e-6


class ScoreRange:
    """Counts of scores inside 0 to 1, and the range of all scores."""

    def __init__(self) -> None:
        self.count = self.outside = 0
        self._least, self._most = math.inf, -math.inf

    def add(self, scores: Any) -> None:
        """Record finite scores."""
        values = np.asarray(scores, np.float64)
        if values.size:
            self.count += values.size
            self.outside += int(np.count_nonzero((values < -_ROUNDING) | (values > 1 + _ROUNDING)))
            self._least, self._most = min(self._least, float(values.min())), max(self._most, float(values.max()))

    def join(self, scores: ScoreRange) -> None:
        """Add the counts of another range."""
        self.count, self.outside = self.count + scores.count, self.outside + scores.outside
        self._least, self._most = min(self._least, scores._least), max(self._most, scores._most)

    def judge(self) -> List[str]:
        """Return warnings about the range of scores."""
        if not self.outside:
            return []
        lie = "lies" if self.outside == 1 else "lie"
        outside = (
            f"{quantity(self.outside, 'score', self.count)} {lie} outside of 0 to 1, as {self._guess_reading()} do"
        )
        return [f"{outside} (all lie from {self._least:g} to {self._most:g}): write confidences from 0 to 1"]

    def _guess_reading(self) -> str:
        is_percent = self._least >= 0 and self._most <= 100 and 2 * self.outside > self.count and self._most > 10
        return "percentages" if is_percent else "logits"
