"""A drop-in replacement of lvis-api's evaluator and results: the same names and numbers, faster.

Its dataset class `LVIS` has no replacement; its objects and paths of files may be given.
"""

import datetime
import os
from collections import OrderedDict
from dataclasses import replace
from typing import Any

import numpy as np

from segjudge.drop_in.summaries import SIZES
from segjudge.drop_in.tables import average_present
from segjudge.evaluation_script.families.instances.matching import cut_into_blocks, match_block, merge_counts
from segjudge.evaluation_script.families.instances.metrics import RECALLS, MatchedDetections
from segjudge.evaluation_script.families.instances.protocols import (
    AREAS,
    FREQUENCIES,
    INSTANCE_PROTOCOLS,
    THRESHOLDS,
    InstanceProtocol,
)
from segjudge.evaluation_script.families.instances.submission import InstanceRecords, check_json, check_records
from segjudge.evaluation_script.families.instances.truth import InstanceTruth, read_document, truth_of
from segjudge.evaluation_script.masks.stack import places_of
from segjudge.evaluation_script.runner.tuning import without_collector
from segjudge.system.errors import UsageError

__all__ = ["LVISEval", "LVISResults", "Params", "install"]

#: The parameters that must stay as they are.
_FIXED = ("iou_thrs", "rec_thrs", "area_rng", "area_rng_lbl", "img_count_lbl", "use_cats")


class Params:
    """The parameters of a comparison, as lvis-api has them; programs may change `img_ids` and `cat_ids`."""

    def __init__(self, iou_type: str) -> None:
        self.img_ids: Any = []
        self.cat_ids: Any = []
        self.iou_thrs: Any = np.array(THRESHOLDS)
        self.rec_thrs: Any = np.array(RECALLS)
        self.max_dets: Any = 300
        self.area_rng: Any = [[float(low), float(high)] for low, high in AREAS.values()]
        self.area_rng_lbl: Any = ["all", *SIZES]
        self.use_cats: Any = 1
        self.img_count_lbl: Any = [*FREQUENCIES]
        self.iou_type: Any = iou_type


class LVISResults:
    """Detections of a truth: a path or a list of records, of which the best `max_dets` per image count; all if < 0."""

    def __init__(self, lvis_gt: Any, results: Any, max_dets: int = 300) -> None:
        self.truth, self.max_dets = _read_truth(lvis_gt), max_dets
        self._data: Any = results
        if isinstance(results, str | os.PathLike):
            with open(results, "rb") as file:
                self._data = file.read()
        elif not isinstance(results, list):
            raise UsageError(f"results are a path or a list of records, not {type(results).__name__}")

    def read(self, protocol: InstanceProtocol) -> InstanceRecords:
        """Return the records of a protocol; raises SubmissionError for invalid ones."""
        with without_collector():
            check: Any = check_json if isinstance(self._data, bytes) else check_records
            records: InstanceRecords = check(self._data, self.truth.images, protocol)
            return records


class LVISEval:
    """AP of masks (`segm`) or boxes (`bbox`): `run`, then `results` and `eval`.

    `eval_imgs`, `ious` and `eval["dt_pointers"]` are missing.
    """

    def __init__(self, lvis_gt: Any, lvis_dt: Any, iou_type: str = "segm") -> None:
        if iou_type not in ("segm", "bbox"):
            raise UsageError(f"iou_type {iou_type!r} is not scored, only segm and bbox")
        self.lvis_gt = lvis_gt
        self.lvis_dt = lvis_dt if isinstance(lvis_dt, LVISResults) else LVISResults(lvis_gt, lvis_dt)
        self.params: Any = Params(iou_type)
        self.eval: dict[str, Any] = {}
        self.results: OrderedDict[str, float] = OrderedDict()
        self.freq_groups: list[list[int]] = []
        self._curves: Any = None
        images = self.lvis_dt.truth.images
        self.params.img_ids, self.params.cat_ids = images.ids.tolist(), images.categories.tolist()

    def evaluate(self) -> None:
        """Match the detections of every image with the truth."""
        params, usual = self.params, Params(self.params.iou_type)
        changed = [name for name in _FIXED if not np.array_equal(getattr(params, name), getattr(usual, name))]
        if changed:
            raise UsageError(f"{', '.join(changed)} cannot be changed; only lvis-api compares by other values")
        truth, cap = self.lvis_dt.truth, self.lvis_dt.max_dets
        protocol = replace(INSTANCE_PROTOCOLS["lvis"], boxes_give_areas=True, boxes=params.iou_type == "bbox")
        records = self.lvis_dt.read(protocol)
        caps = (cap if cap >= 0 else len(records.image),)
        images = np.sort(places_of(truth.images.ids, np.array([*{*params.img_ids}], np.int64)))
        blocks = cut_into_blocks(records, truth, replace(protocol, detections=caps), images[images >= 0], 1)
        counts = merge_counts(list(map(match_block, blocks)))
        self._curves = MatchedDetections(counts, len(truth.categories), caps)

    def accumulate(self) -> None:
        """Compute precision (thresholds, recalls, categories, areas) and recall (without recalls) into `eval`."""
        if self._curves is None:
            raise UsageError("call evaluate() first")
        truth, params = self.lvis_dt.truth, self.params
        chosen = truth.images.category_indices(params.cat_ids)
        frequencies = [truth.categories[index].frequency for index in chosen.tolist()]
        self.freq_groups = [
            [index for index, frequency in enumerate(frequencies) if frequency == name] for name in FREQUENCIES
        ]
        curves = self._curves.curves([(area, 0) for area in range(len(AREAS))])
        precision = np.ascontiguousarray(curves.precision[..., 0][:, :, chosen])
        self.eval = {
            "params": params,
            "counts": list(precision.shape),
            "date": datetime.datetime.now(tz=datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S"),
            "precision": precision,
            "recall": np.ascontiguousarray(curves.recall[..., 0][:, chosen]),
        }

    def summarize(self) -> None:
        """Compute the thirteen means into `results`; -1 for empty means."""
        if not self.eval:
            raise UsageError("call accumulate() first")
        precision, recall, cap = self.eval["precision"], self.eval["recall"], self.params.max_dets
        values = {"AP": precision[..., 0], "AP50": precision[0, ..., 0], "AP75": precision[5, ..., 0]}
        values |= {f"AP{size[0]}": precision[..., area] for area, size in enumerate(SIZES, 1)}
        groups = zip(FREQUENCIES, self.freq_groups, strict=True)
        values |= {f"AP{name}": precision[:, :, members, 0] for name, members in groups}
        values |= {f"AR@{cap}": recall[..., 0]}
        values |= {f"AR{size[0]}@{cap}": recall[..., area] for area, size in enumerate(SIZES, 1)}
        self.results.update((name, average_present(table)) for name, table in values.items())

    def run(self) -> None:
        """Call `evaluate`, `accumulate` and `summarize`."""
        self.evaluate()
        self.accumulate()
        self.summarize()

    def get_results(self) -> OrderedDict[str, float]:
        """Return the means by name, such as `AP` and `APr`."""
        return self.results

    def print_results(self) -> None:
        """Print the means as lvis-api does."""
        for name, value in self.results.items():
            title = "Average Precision  (AP)" if name.startswith("AP") else "Average Recall     (AR)"
            kind = name[2:3]
            ious = f"{int(name[2:]) / 100:0.2f}" if kind.isdigit() else "0.50:0.95"
            area, group = (kind if kind and kind in kinds else "all" for kinds in ("sml", "rcf"))
            cap = f"maxDets={self.params.max_dets:>3d} catIds={group:>3s}"
            print(f" {title} @[ IoU={ious:<9} | area={area:>6s} | {cap}] = {value:0.3f}")


def _read_truth(truth: Any) -> InstanceTruth:
    """Return the truth of a path or a dataset of lvis-api."""
    if isinstance(truth, str | os.PathLike):
        with open(truth, "rb") as file:
            return read_document(file.read(), os.fspath(truth))
    with without_collector():
        return truth_of(truth.dataset, "lvis_gt")


def install() -> None:
    """Make lvis-api's `LVISEval` and `LVISResults` ours, for programs that import them afterwards."""
    import lvis

    lvis.LVISEval, lvis.LVISResults = LVISEval, LVISResults
