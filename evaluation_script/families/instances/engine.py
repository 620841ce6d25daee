"""How instances are scored: open a submission, match its detections with the truth, and sum up."""

from __future__ import annotations

import numpy as np

from ...runner.parallel import WHOLE, Part
from ..base.engine import CountingJob, Engine
from ..base.family import Progress, ScoringRules
from ..base.truth import DEFAULT_SPLIT, AnnotationFile
from . import truth as instance_truth
from .matching import cut_into_blocks, match_block
from .metrics import InstanceAccumulator, InstanceReport
from .protocols import InstanceProtocol
from .submission import read_records
from .truth import InstanceTruth


class OpenedRecords:
    """A submission beside its truth; each part reads all records, and keeps those of its images."""

    def __init__(self, path: str, truth: InstanceTruth, protocol: InstanceProtocol, rules: ScoringRules) -> None:
        self._path, self._truth, self._protocol, self._rules = path, truth, protocol, rules

    def plan(self, share: Part, progress: Progress) -> CountingJob:
        """Read the records of a part of the images; they are matched in blocks."""
        truth, protocol, rules = self._truth, self._protocol, self._rules
        progress("detections", 0, 1)
        images = np.array(share.of([1] * len(truth.images.ids)), np.int64)
        only = None if share == WHOLE else images
        records = read_records(self._path, truth.images, protocol, rules.limits, jobs=rules.jobs, only=only)
        ids, notes = truth.images.ids.tolist(), records.warnings
        accumulator = InstanceAccumulator(protocol, ids, truth.categories, notes, strict=rules.strict)
        blocks = cut_into_blocks(records, truth, protocol, images, rules.jobs)

        def count(number: int) -> bytes:
            return match_block(blocks[number]).encode()

        return CountingJob(accumulator, count, [len(block.record_indices) for block in blocks])

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
