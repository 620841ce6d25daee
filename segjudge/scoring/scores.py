"""Score without a command line: on any truth, or by a phase of a bundle."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

from segjudge.datasets.opening import TruthSource
from segjudge.evaluation_script.families.base.engine import Progress, ignore_progress
from segjudge.evaluation_script.families.base.family import TrackProtocol, Values
from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.files.problems import name_hint
from segjudge.evaluation_script.scoring.answer import joined_rows
from segjudge.families import tools_of
from segjudge.scoring.requests import (
    PreparedScoring,
    ScoreRequest,
    chosen_names,
    named_protocol,
    prepare,
)
from segjudge.system.errors import UsageError

if TYPE_CHECKING:
    from pandas import DataFrame

    from segjudge.scoring.sharing import DaskClient


@dataclass(frozen=True, repr=False)
class Scores:
    """The scores of results, split by split; a value is None where there is nothing to average."""

    reports: list[Report]
    #: What is odd about the truth.
    notes: list[str] = field(default_factory=list)
    #: The version, the protocols and their revisions, digests of truth and submission, and what counted.
    provenance: dict[str, Any] = field(default_factory=dict)
    #: What was scored, where it can be read again.
    request: ScoreRequest | None = None

    def __repr__(self) -> str:
        from segjudge.report.tables import of_report

        return "\n\n".join(of_report(report, compare=False) for report in self.reports)

    def _repr_html_(self) -> str:
        from segjudge.report.overview import notebook_table

        return notebook_table(self.reports, self.warnings, self.provenance)

    def __getitem__(self, metric: str) -> float | None:
        return self._report("").values[metric]

    def __contains__(self, metric: object) -> bool:
        return any(metric in report.values for report in self.reports)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the metrics, of all splits."""
        return iter(dict.fromkeys(metric for report in self.reports for metric in report.values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scores) and self._contents == other._contents

    __hash__ = None  # type: ignore[assignment] # they hold lists

    @property
    def _contents(self) -> tuple[object, ...]:
        """What scores say, by which two of them are equal."""
        return self.metrics, self.tables, self.warnings, self.notes, self.provenance

    @property
    def metrics(self) -> dict[str, Values]:
        """The overall metrics of each split, those of the protocol and those beside it."""
        return {report.split: report.values for report in self.reports}

    @property
    def standard_errors(self) -> dict[str, Values]:
        """The standard errors of each split's metrics, where there are any."""
        return {report.split: report.errors() for report in self.reports}

    @property
    def tables(self) -> dict[str, list[Row]]:
        """Rows by table: `sequences` and `objects`, or `categories`."""
        return joined_rows(self.reports)

    @property
    def warnings(self) -> list[str]:
        """What a participant should know though the results were scored."""
        return [line for report in self.reports for line in report.warnings]

    def table(self, name: str) -> DataFrame:
        """Return a table of pandas, of all splits: one of `tables`, or one of the properties below."""
        from segjudge.report.data_frames import data_frame

        return data_frame(self.reports, name)

    @property
    def sequences(self) -> DataFrame:
        """The metrics of each sequence."""
        return self.table("sequences")

    @property
    def objects(self) -> DataFrame:
        """The metrics of each object."""
        return self.table("objects")

    @property
    def frames(self) -> DataFrame:
        """J and F of each object in each frame that counts for it."""
        return self.table("frames")

    @property
    def categories(self) -> DataFrame:
        """The metrics of each category."""
        return self.table("categories")

    @property
    def images(self) -> DataFrame:
        """How many instances of each image were found, at an IoU of one half and whatever the scores."""
        return self.table("images")

    @property
    def curves(self) -> DataFrame:
        """The precision of each category by IoU and recall, over all sizes."""
        return self.table("curves")

    @cached_property
    def kinds(self) -> DataFrame:
        """What each kind of failure costs each object, category or unit; but for units the files are read again."""
        from segjudge.report.data_frames import frame_of

        @cache
        def open_inputs() -> PreparedScoring:
            if self.request is None:
                raise UsageError("kinds of failure need what `score` has read from files")
            return prepare(self.request)

        return frame_of(
            [
                {"split": report.split, **row}
                for report in self.reports
                for row in tools_of(report.protocol.track).list_failures(open_inputs, report)
            ]
        )

    def interval(self, metric: str, level: float = 0.95, *, split: str = "") -> tuple[float, float] | None:
        """Return Student's t interval of a metric; None where too few sequences or images tell one."""
        report = self._report(split)
        if metric not in report.values:
            raise UsageError(f"{report.protocol.name} has no metric {metric}{name_hint(metric, report.values)}")
        if not isinstance(level, (int, float)) or not 0 < level < 1:
            raise UsageError(f"level is {level!r:.60}; it is a share between 0 and 1, such as 0.95")
        return report.intervals(level).get(metric)

    def _report(self, split: str) -> Report:
        chosen = [report for report in self.reports if split in ("", report.split)]
        if len(chosen) != 1:
            raise UsageError(f"name one of the splits {', '.join(report.split for report in self.reports)}")
        return chosen[0]

    def flat(self, prefix: str = "") -> dict[str, float]:
        """Return the metrics that have a value under one name each, as loggers take them.

        Names begin with the prefix, then the split where there are several.
        """
        several = len(self.reports) > 1
        return {
            f"{prefix}{report.split}/{metric}" if several else f"{prefix}{metric}": value
            for report in self.reports
            for metric, value in report.values.items()
            if value is not None
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was counted to a file that `load` reads; `docs/scale.md` describes it."""
        from segjudge.scoring.parts import save

        save(os.fspath(path), self.reports, self.notes, self.provenance)


def load(path: str | os.PathLike[str]) -> Scores:
    """Return the scores that `save` wrote; raises UsageError where they cannot be read."""
    from segjudge.scoring.parts import merge_parts

    return Scores(*merge_parts([os.fspath(path)]))


def score(  # noqa: PLR0913 - published: what a user may say of results and truth
    results: str | os.PathLike[str],
    truth: str | os.PathLike[str],
    protocol: str | TrackProtocol = "davis2017",
    *,
    subset: str = "",
    split: str = "",
    sequences: Iterable[str] | None = None,
    layout: str = "",
    unseen: str = "",
    categories: str = "",
    strict: bool = False,
    jobs: int | Literal["auto"] | None = None,
    executor: Executor | DaskClient | None = None,
    progress: Progress = ignore_progress,
) -> Scores:
    """Score results on a truth, exactly as a challenge with this protocol would.

    Args:
        results: a folder, zip, tar(.gz) or JSON with the predicted masks; here and below a path, or an address such as
            s3://bucket/results.zip.
        truth: a packed annotation file, or a dataset's folder or zip as it was published; of instances COCO's JSON
            or a folder of Places-style PNGs.
        protocol: the name of a protocol, or one of its rows with changes.
        subset: the list of sequences to score, e.g. val; in a packed file a split.
        split: the split to score (default: all).
        sequences: the sequences to score (default: all).
        layout: how a published dataset is laid out (default: as the protocol's dataset).
        unseen: a file with the names of unseen sequences or categories.
        categories: the file with the categories of Places-style PNGs.
        strict: whether warnings refuse the results.
        jobs: so many processes share the scoring; "auto": as many as there are cores that may be used.
        executor: whose workers score: any of `concurrent.futures`, or a Dask client. They read the files themselves,
            and share as many parts as `jobs` says (default: some for each worker).
        progress: called with a name, how many are done, and how many there are.

    Raises:
        SubmissionError: the results cannot be scored.
        HostError: the truth cannot be read.
        UsageError: the arguments do not go together.

    """
    request = ScoreRequest(
        os.fspath(results),
        TruthSource(os.fspath(truth), layout, subset, unseen, categories),
        named_protocol(protocol),
        split,
        chosen_names(sequences),
        strict,
        jobs,
    )
    return score_request(request, executor, progress)


def score_request(request: ScoreRequest, executor: Executor | DaskClient | None, progress: Progress) -> Scores:
    """Score a request, in this process and those that it forks, or by an executor's workers."""
    if executor is not None:
        from segjudge.scoring.sharing import score_by_workers

        return Scores(*score_by_workers(executor, request, progress), request)
    return score_prepared(prepare(request, progress), request, progress)


def score_prepared(
    job: PreparedScoring, request: ScoreRequest | None = None, progress: Progress = ignore_progress
) -> Scores:
    """Score what was prepared from a request or a phase, in this process and those that it forks."""
    reports = [scorer.score(job.results, progress) for scorer in job.scorers.values()]
    return Scores(reports, job.notes, job.provenance(), request)
