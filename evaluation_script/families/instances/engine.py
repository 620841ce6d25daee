"""How instances are scored: open a submission, match its detections with the truth, and sum up."""

from __future__ import annotations

import numpy as np

from ...runner.parallel import WHOLE, Part, results_of_processes
from ..base.engine import Engine, Progress, ignore_progress
from ..base.family import ScoringRules
from ..base.truth import DEFAULT_SPLIT, AnnotationFile
from . import truth as instance_truth
from .matching import decode_counts, match_block, split_into_blocks
from .metrics import InstanceAccumulator, InstanceReport
from .protocols import InstanceProtocol
from .submission import read_records
from .truth import InstanceTruth


class OpenedRecords:
    """A submission beside its truth; each part reads all records, and keeps those of its images."""

    def __init__(self, path: str, truth: InstanceTruth, protocol: InstanceProtocol, rules: ScoringRules) -> None:
        self._path, self._truth, self._protocol, self._rules = path, truth, protocol, rules

    def count(self, part: Part = WHOLE, progress: Progress = ignore_progress) -> InstanceAccumulator:
        """Match what the submission holds of a part of the images, by the processes that the rules allow."""
        truth, protocol, rules = self._truth, self._protocol, self._rules
        progress("detections", 0, 1)
        images = np.array(part.of([1] * len(truth.images.ids)), np.int64)
        taken = None if part == WHOLE else images
        records = read_records(self._path, truth.images, protocol, rules.limits, jobs=rules.jobs, taken=taken)
        accumulator = InstanceAccumulator(protocol, truth.images.ids.tolist(), truth.categories, strict=rules.strict)
        accumulator.notes = records.warnings
        blocks = split_into_blocks(records, truth, protocol, images, rules.jobs)

        def work(number: int) -> bytes:
            return match_block(blocks[number]).encode()

        for data in results_of_processes(
            work, [len(block.record_indices) for block in blocks], rules.jobs, lambda _: None
        ):
            accumulator.update(decode_counts(data))
        progress("", 1, 1)
        return accumulator

    def close(self) -> None:
        """Do nothing: no file is held open."""


ENGINE = Engine(
    InstanceAccumulator,
    instance_truth.read,
    lambda path, subset, _protocol: AnnotationFile(instance_truth.read(path, subset or DEFAULT_SPLIT)),
    OpenedRecords,
    InstanceReport,
    parts_each=1,
)
