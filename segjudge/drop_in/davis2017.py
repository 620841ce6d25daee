"""A stand-in for `davis2017.evaluation`: the same dictionary, from the same folders."""

from collections.abc import Sequence
from typing import Any

from segjudge.evaluation_script.families.sequences.metrics import ObjectScore, SequenceReport
from segjudge.evaluation_script.files.problems import name_hint
from segjudge.scoring import score
from segjudge.scoring.scores import Scores
from segjudge.system.errors import UsageError

#: Our protocol for each task.
TASKS = {"semi-supervised": "davis2017", "unsupervised": "davis2017-unsupervised"}
#: Their letters, and what we call a statistic.
STATISTICS = {"M": "Mean", "R": "Recall", "D": "Decay"}


class DAVISEvaluation:
    """J and F of every object of a set of DAVIS 2017."""

    def __init__(
        self, davis_root: str, task: str, gt_set: str, sequences: str | Sequence[str] = "all", *, codalab: bool = False
    ) -> None:
        if task not in TASKS:
            raise UsageError(f"there is no task {task!r}{name_hint(task, TASKS)}")
        if codalab:
            raise UsageError("CodaLab's folders are not read; give the root of DAVIS")
        named = [sequences] if isinstance(sequences, str) else list(sequences)
        self.davis_root, self.task, self._subset = davis_root, task, gt_set
        self._sequences = None if sequences == "all" else named

    def evaluate(self, res_path: str, metric: str | Sequence[str] = ("J", "F"), *, debug: bool = False) -> Any:
        """Return for each metric the lists M, R and D over all objects, and `M_per_object`."""
        metrics = [metric] if isinstance(metric, str) else list(metric)
        if "T" in metrics:
            raise ValueError("Temporal metric not supported!")
        wanted = [one for one in ("J", "F") if one in metrics]
        if not wanted:
            raise ValueError("Metric possible values are J for IoU or F for Boundary")
        del debug  # there is nothing to wait for
        scores = score(
            res_path, self.davis_root, TASKS[self.task], subset=self._subset, sequences=self._sequences, jobs="auto"
        )
        found: dict[str, dict[str, Any]] = {
            one: {**{key: [] for key in STATISTICS}, "M_per_object": {}} for one in wanted
        }
        numbers: dict[str, int] = {}
        for scored in _in_order(scores):
            number = numbers[scored.sequence] = numbers.get(scored.sequence, 0) + 1
            for one in wanted:
                for key, name in STATISTICS.items():
                    found[one][key].append(scored.values[f"{one}-{name}"])
                found[one]["M_per_object"][f"{scored.sequence}_{number}"] = scored.values[f"{one}-Mean"]
        return found


def _in_order(scores: Scores) -> list[ObjectScore]:
    """Return the objects of each sequence, in the order of the proposals that were matched with them."""
    objects = [one for report in scores.reports if isinstance(report, SequenceReport) for one in report.scores]
    place = {name: number for number, name in enumerate(dict.fromkeys(one.sequence for one in objects))}
    return sorted(objects, key=lambda one: (place[one.sequence], one.proposal))
