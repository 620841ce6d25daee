"""Our tables compared with those of the official evaluators, in their order and units."""

from __future__ import annotations

from typing import Any

import numpy as np

from segjudge.evaluation_script.families.sequences import metrics as sequence_metrics

EXACT = 1e-9
#: Evaluator → the protocol that is equal to it.
EVALUATORS = {
    "davis_semi": "davis2017", "davis_unsup": "davis2017-unsupervised", "vosb": "vos-benchmark",
    "vosb_d": "vos-benchmark-all-frames", "sav": "sav", "sav_flat": "sav", "lvos_semi": "lvos",
    "lvos_us": "lvos-unsupervised-single", "lvos_um": "lvos-unsupervised", "vost": "vost", "mosev2": "mosev2",
}  # fmt: skip


def close(mine: float | None, golden: float | None, scale: float = 1.0) -> bool:
    if golden is None or mine is None:
        return mine is golden
    return abs(mine - golden / scale) <= EXACT


def rows_by_sequence(scores: list[sequence_metrics.ObjectScore]) -> dict[str, list[sequence_metrics.ObjectScore]]:
    rows: dict[str, list[sequence_metrics.ObjectScore]] = {}
    for score in scores:
        rows.setdefault(score.sequence, []).append(score)
    for of_one in rows.values():  # official tables of matched proposals are in the proposals' order
        of_one.sort(key=lambda row: row.proposal)
    return rows


def check_values(values: dict[str, Any], mine: Any, evaluator: str, scale: float) -> None:
    for name, number in values.items():
        head, _, tail = name.rpartition("_")
        if name in ("object_id", "n") or tail == "frames":
            continue
        if evaluator.startswith("lvos") and tail in ("recall", "decay"):
            continue  # always computed on the wrong axis there
        ours = f"{head}-{tail.capitalize()}" if tail in ("mean", "recall", "decay") else f"{name}-Mean"
        assert close(mine.values[ours], number, scale), (mine.sequence, mine.name, name)


def in_official_order(series: Any, evaluator: str) -> Any:
    """LVOS's single-mask task stores the first frame's value last."""
    return np.roll(series, -1) if evaluator == "lvos_us" else series
