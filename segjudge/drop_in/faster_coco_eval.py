"""A drop-in replacement of `faster_coco_eval`: its classes, options and tables of numbers."""

import contextlib
import copy
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from segjudge.drop_in import coco
from segjudge.drop_in.coco import hold_output
from segjudge.drop_in.cocoeval import COCOeval
from segjudge.drop_in.summaries import list_faster_lines, summarize
from segjudge.evaluation_script.families.instances.matching import InstanceCounts
from segjudge.evaluation_script.masks.backend import backend
from segjudge.system.errors import UsageError

__all__ = ["COCO", "COCOeval_faster", "install"]

#: Options that change how faster-coco-eval computes, not what.
_HARMLESS = {"separate_eval", "boundary_cpu_count", "rle_iou_max_workers", "extra_calc"}
_Array = np.ndarray[Any, Any]
_LOGGER = logging.getLogger(__name__)
_Printer = Callable[[str], object]


class COCO(coco.COCO):
    """`COCO` that prints through `print_function`, and loads empty lists of results."""

    def __init__(
        self, annotation_file: Any = None, use_deepcopy: Any = None, print_function: _Printer = _LOGGER.debug
    ) -> None:
        self.print_function = print_function
        if isinstance(annotation_file, dict):
            self._say("loading annotations into memory...", "Done (t=0.00s)")
        super().__init__(copy.deepcopy(annotation_file) if use_deepcopy else annotation_file)

    def createIndex(self) -> None:
        """Index a dataset that the program has set, or one from a file on first use, which prints nothing."""
        is_set, begun = "anns" in vars(self), time.time()
        with hold_output():
            super().createIndex()
        if is_set:
            self._announce_index(time.time() - begun)

    def _say(self, *lines: str) -> None:
        for line in lines:
            self.print_function(line)

    def _announce_index(self, seconds: float = 0.0) -> None:
        self._say("creating index...", "index created!", f"Done (t={seconds:0.2f}s)")

    def _make_empty(self) -> "COCO":
        return COCO()

    def _load_results(self, truth: Any, results: Any) -> None:
        if isinstance(results, list) and not results:
            self.dataset = {**truth.hide_annotations().dataset, "annotations": []}
            self.createIndex()
        else:
            super()._load_results(truth, results)


class COCOeval_faster(COCOeval):  # noqa: N801 - their name
    """`COCOeval` with faster-coco-eval's options, `run`, `stats_as_dict` and `extended_metrics`.

    `stats` begins with the mean precision up to the last of `maxDets`, where pycocotools takes 100 detections.
    """

    def __init__(
        self,
        cocoGt: Any = None,
        cocoDt: Any = None,
        iouType: str = "segm",
        print_function: _Printer = _LOGGER.info,
        **options: Any,
    ) -> None:
        super().__init__(cocoGt, cocoDt, iouType)
        self.print_function = print_function
        self.all_stats: Any = []
        sigmas = options.pop("kpt_oks_sigmas", None)
        if sigmas is not None:
            self.params.kpt_oks_sigmas = np.asarray(sigmas, float)
        unknown = [name for name, value in options.items() if name not in _HARMLESS and value]
        if unknown:
            raise UsageError(f"{', '.join(unknown)}: only faster-coco-eval has this option")

    def _say(self, *lines: str) -> None:
        """Print nothing: the lines are pycocotools'."""

    def _call(self, name: str, *arguments: Any) -> None:
        with hold_output():
            super()._call(name, *arguments)

    def evaluate(self) -> None:
        """Match the detections of every image with the truth."""
        self.print_function(f"Evaluate annotation type *{self.params.iouType}*")
        with self._report("evaluate"):
            super().evaluate()

    def accumulate(self, p: Any = None) -> None:
        """Compute the curves of every category, range of areas and cap into `eval`."""
        self.print_function("Accumulating evaluation results...")
        with self._report("accumulate"):
            super().accumulate(p)

    @contextlib.contextmanager
    def _report(self, name: str) -> Iterator[None]:
        begun = time.time()
        yield
        self.print_function(f"COCOeval_opt.{name}() finished...")
        self.print_function(f"DONE (t={time.time() - begun:0.2f}s).")

    def summarize(self) -> None:
        """Print the means through `print_function`; `all_stats` has them, `stats` all but AR_50 and AR_75."""
        if not self.eval:
            raise UsageError("call accumulate() first")
        lines = list_faster_lines(self.params)
        self.all_stats, texts = summarize(self.eval, self.params, lines.values())
        self.stats = self.all_stats[: None if self.params.iouType == "keypoints" else -2]
        for text in texts:
            self.print_function(text)

    def run(self) -> None:
        """Call `evaluate`, `accumulate` and `summarize`."""
        self.evaluate()
        self.accumulate()
        self.summarize()

    @property
    def stats_as_dict(self) -> dict[str, float]:
        """Return the means by faster-coco-eval's names, such as `AP_all`."""
        return dict(zip(list_faster_lines(self.params), map(float, self.all_stats), strict=False))

    @property
    def extended_metrics(self) -> dict[str, Any]:
        """Return AP, precision and recall of each class and of all, at the score with the best mean F1 at IoU 0.5.

        Detections beyond `maxDets`, and those that COCO ignores, count neither as right nor as wrong.
        """
        if self._counts is None or not len(self.all_stats) or self.params.iouThrs[0] != 0.5:
            raise UsageError("extended_metrics needs run(), parameters that Segjudge compares, and iouThrs from 0.5")
        precision, recall = _find_best_score(self._counts, len(self.params.catIds))
        rows = []
        tables = self.eval["precision"][:, :, :, 0, -1]
        for index, name in enumerate(self._name_classes() if self.params.useCats else []):
            both = (tables[:, :, index], tables[0, :, index])
            if np.isnan(precision[index]) or any((table <= -1).any() for table in both):
                continue
            rows.append(_make_row(name, both[0].mean(), both[1].mean(), precision[index], recall[index]))
        present = ~np.isnan(precision)
        means = [float(np.mean(values[present])) if present.any() else 0.0 for values in (precision, recall)]
        stats = self.stats_as_dict
        rows.append(_make_row("all", stats["AP_all"], stats["AP_50"], *means))
        return {"class_map": rows, "map": stats["AP_50"], "precision": means[0], "recall": means[1]}


def _find_best_score(counts: InstanceCounts, categories: int) -> tuple[_Array, _Array]:
    """Return precision and recall of each class at the lowest score with the best mean F1; NaN without truth."""
    truth, rows = counts.truth, counts.detections
    rows = rows[rows["ignored"] & 1 == 0]
    rows = rows[backend().order_by_score(rows["score"], rows["category"])]
    instances = np.bincount(truth["category"], truth["counted"][:, 0], categories)
    scores = np.unique(rows["score"])
    precision, recall = np.full((2, categories, len(scores)), np.nan)
    for index in np.flatnonzero(instances).tolist():
        members = rows[rows["category"] == index]
        right = np.append(0, np.cumsum(members["matched"] & 1))
        above = np.searchsorted(-members["score"], -scores, side="right")
        precision[index] = right[above] / np.maximum(above, 1)
        recall[index] = right[above] / instances[index]
    if not len(scores) or not instances.any():
        return np.full(categories, np.nan), np.full(categories, np.nan)
    both = np.maximum(precision + recall, np.finfo(float).tiny)
    f1 = np.ascontiguousarray((2 * precision * recall / both)[instances > 0].T).mean(axis=1)
    best = int(np.argmax(f1))
    return precision[:, best], recall[:, best]


def _make_row(name: str, ap: float, ap50: float, precision: float, recall: float) -> dict[str, Any]:
    values = {"map@50:95": ap, "map@50": ap50, "precision": precision, "recall": recall}
    return {"class": name, **{key: float(value) for key, value in values.items()}}


def install() -> None:
    """Make faster-coco-eval's `COCO` and `COCOeval_faster` ours, for programs that import them afterwards."""
    import faster_coco_eval

    faster_coco_eval.COCO, faster_coco_eval.COCOeval_faster = COCO, COCOeval_faster
