"""A drop-in replacement of `davis2017.evaluation`: the same dictionary from the same folders."""

import warnings
from collections.abc import Sequence
from typing import Any

from segjudge.evaluation_script.families.sequences.metrics import ObjectScore, SequenceReport
from segjudge.evaluation_script.families.sequences.protocols import DAVIS_TASKS
from segjudge.evaluation_script.files.problems import name_hint
from segjudge.scoring import score
from segjudge.scoring.scores import Scores
from segjudge.system.errors import UsageError

#: The official letters of statistics, and our names.
_STATISTICS = {"M": "Mean", "R": "Recall", "D": "Decay"}


class DAVISEvaluation:
    """J and F of every object of a set of DAVIS 2017."""

    def __init__(
        self, davis_root: str, task: str, gt_set: str, sequences: str | Sequence[str] = "all", *, codalab: bool = False
    ) -> None:
        if task not in DAVIS_TASKS:
            raise UsageError(f"there is no task {task!r}{name_hint(task, DAVIS_TASKS)}")
        if codalab:
            raise UsageError("CodaLab's folders are not read; give the root of DAVIS")
        names = [sequences] if isinstance(sequences, str) else list(sequences)
        self.davis_root, self.task, self._subset = davis_root, task, gt_set
        self._sequences = None if sequences == "all" else names

    def evaluate(self, res_path: str, metric: str | Sequence[str] = ("J", "F"), *, debug: bool = False) -> Any:
        """Return for each metric the lists M, R and D over all objects, and `M_per_object`.

        A UserWarning names each likely mistake in the results.
        """
        metrics = [metric] if isinstance(metric, str) else list(metric)
        if "T" in metrics:
            raise ValueError("Temporal metric not supported!")
        measures = [name for name in ("J", "F") if name in metrics]
        if not measures:
            raise ValueError("Metric possible values are J for IoU or F for Boundary")
        del debug  # there is no work to wait for
        scores = score(
            res_path,
            self.davis_root,
            DAVIS_TASKS[self.task],
            subset=self._subset,
            sequences=self._sequences,
            jobs="auto",
        )
        for report in scores.reports:
            for line in report.suspicions:
                warnings.warn(f"{res_path}: {line}", stacklevel=2)
        results: dict[str, dict[str, Any]] = {
            measure: {**{key: [] for key in _STATISTICS}, "M_per_object": {}} for measure in measures
        }
        numbers: dict[str, int] = {}
        for row in _sort_objects(scores):
            number = numbers[row.sequence] = numbers.get(row.sequence, 0) + 1
            for measure in measures:
                for key, name in _STATISTICS.items():
                    results[measure][key].append(row.values[f"{measure}-{name}"])
                results[measure]["M_per_object"][f"{row.sequence}_{number}"] = row.values[f"{measure}-Mean"]
        return results


def _sort_objects(scores: Scores) -> list[ObjectScore]:
    """Return the objects of each sequence in the order of their matched proposals."""
    objects = [row for report in scores.reports if isinstance(report, SequenceReport) for row in report.scores]
    order = {name: number for number, name in enumerate(dict.fromkeys(row.sequence for row in objects))}
    return sorted(objects, key=lambda row: (order[row.sequence], row.proposal))
