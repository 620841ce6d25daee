"""The scoring of instances: open a submission, match its detections with the truth, and compute AP."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Tuple

import numpy as np

from ...masks.stack import Array
from ...runner.parallel import WHOLE, Part, results_of_processes
from ..base.engine import CountingJob, Engine
from ..base.family import Progress, ScoringRules
from ..base.truth import DEFAULT_SPLIT, AnnotationFile
from . import truth as instance_truth
from .matching import cut_into_blocks, decode_counts, match_block, merge_counts
from .metrics import InstanceAccumulator, InstanceReport
from .protocols import InstanceProtocol
from .submission import InstanceRecords, count_passes, read_within_cap
from .truth import InstanceTruth

if TYPE_CHECKING:
    from ...doctor import Examination
    from .mask_files import ReadImage, StreetSubmission


_NONE = np.zeros(0, np.int64)


class _OpenedRecords:
    """A submission and its truth; each part reads all records and keeps those of its images."""

    def __init__(self, path: str, truth: InstanceTruth, protocol: InstanceProtocol, rules: ScoringRules) -> None:
        self._path, self._truth, self._protocol, self._rules = path, truth, protocol, rules
        #: The mask files, or some of the records, for the doctor.
        self._files: Optional[StreetSubmission] = None
        self._kept: List[InstanceRecords] = []

    def plan(self, share: Part, progress: Progress) -> CountingJob:
        """Read the records of a part of the images; they are matched in blocks."""
        truth, protocol, rules = self._truth, self._protocol, self._rules
        progress("detections", 0, 1)
        images = np.array(share.select([1] * len(truth.images.ids)), np.int64)
        if protocol.streets:
            return self._plan_mask_files(images, progress)
        if rules.jobs == 1:
            passes = min(count_passes(self._path, truth.images, protocol, rules.limits), len(images))
            if passes > 1:
                return self._plan_passes(np.array_split(images, passes))
        records = self._read(None if share == WHOLE else images)
        if share == WHOLE:
            self._keep(records)
        accumulator = self._make_accumulator(records)
        blocks = cut_into_blocks(records, truth, protocol, images, rules.jobs)

        def count(number: int) -> bytes:
            return match_block(blocks[number]).encode()

        return CountingJob(accumulator, count, [len(block.record_indices) for block in blocks])

    def _plan_passes(self, parts: List[Array]) -> CountingJob:
        """Plan to reread all records for each part of the images, and to hold one part's records at a time."""
        truth, protocol = self._truth, self._protocol
        records_of_part = {0: self._read(parts[0])}
        accumulator = self._make_accumulator(records_of_part[0])

        def count(number: int) -> bytes:
            records = records_of_part.pop(number, None) or self._read(parts[number])
            self._keep(records)
            blocks = cut_into_blocks(records, truth, protocol, parts[number], 1)
            return merge_counts(list(map(match_block, blocks))).encode()

        return CountingJob(accumulator, count, list(map(len, parts)))

    def _plan_mask_files(self, images: Array, progress: Progress) -> CountingJob:
        """Plan to read and match the mask files of one image at a time."""
        from .mask_files import StreetSubmission, gather  # other benchmarks do not need it

        truth, protocol, rules = self._truth, self._protocol, self._rules
        files = self._files = StreetSubmission(self._path, truth, protocol, rules.limits)
        count = len(truth.images.ids)
        is_own = np.isin(np.arange(count), images).tolist()
        begun = iter(range(count))

        def match_image(index: int) -> Tuple[ReadImage, bytes]:
            if not is_own[index]:
                return files.read(index, masked=False), b""
            image = files.read(index, np.flatnonzero(truth.image == index))
            if image.records is None:
                return image, b""
            (block,) = cut_into_blocks(image.records, truth, protocol, np.array([index]), 1)
            return image._replace(records=None, inside=None), match_block(block._replace(inside=image.inside)).encode()

        results = list(
            results_of_processes(
                match_image,
                [1] * count,
                rules.jobs,
                lambda _: progress("masks", next(begun), count),
                rules.most_jobs,
            )
        )
        notes = gather([image for image, _ in results], files, rules.limits)
        counts = merge_counts([decode_counts(data) for _, data in results if data])
        ids, categories = truth.images.ids.tolist(), truth.categories
        accumulator = InstanceAccumulator(protocol, ids, categories, notes, strict=rules.strict)
        return CountingJob(accumulator, lambda _number: counts.encode(), [1])

    def _read(self, only: Optional[Array]) -> InstanceRecords:
        return read_within_cap(self._path, self._truth.images, self._protocol, self._rules, only)

    def _keep(self, records: InstanceRecords) -> None:
        """Keep the records of the images that the doctor may examine."""
        from ...doctor import choose_sampled
        from .examination import list_images

        images = list_images(self._truth, self._protocol)
        chosen = [images[number] for number in choose_sampled(len(images))]
        self._kept.append(records.take(np.flatnonzero(np.isin(records.image, chosen))))

    def examine(self) -> Examination:
        """Return the submission as the doctor examines it, after counting."""
        from .examination import examine  # few results need it

        files = self._files

        def read(image: int) -> Optional[InstanceRecords]:
            if files is not None:
                return files.read(image).records
            parts = [records for records in self._kept if (records.image == image).any()]
            return parts[0].take(np.flatnonzero(parts[0].image == image)) if parts else self._kept[0].take(_NONE)

        return examine(self._truth, self._protocol, read)

    def _make_accumulator(self, records: InstanceRecords) -> InstanceAccumulator:
        ids, categories = self._truth.images.ids.tolist(), self._truth.categories
        return InstanceAccumulator(self._protocol, ids, categories, records.warnings, strict=self._rules.strict)

    def close(self) -> None:
        """Close the mask files; a JSON file is read at once."""
        if self._files is not None:
            self._files.close()


ENGINE = Engine(
    InstanceAccumulator,
    instance_truth.read,
    lambda path, subset, _protocol: AnnotationFile(instance_truth.read(path, subset or DEFAULT_SPLIT)),
    _OpenedRecords,
    InstanceReport,
    reads_whole=True,
    examine=_OpenedRecords.examine,
    parts_each=1,
)
