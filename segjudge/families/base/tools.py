"""What the toolkit does with a family beside scoring it: masks in memory, reports, new challenges, words.

A family's folder here overrides what it has and leaves the rest: each default is what a family without a folder gets.
Methods import what they need when they are called, so that asking for a family's tools costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from segjudge.evaluation_script.files.problems import quantity
from segjudge.system.errors import UsageError

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import Progress
    from segjudge.evaluation_script.families.base.reports import Report, Row
    from segjudge.evaluation_script.families.base.truth import AnnotationFile, SplitTruth
    from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
    from segjudge.evaluation_script.scoring.scorer import Scorer
    from segjudge.report.page import PageOptions, Sections

    from .memory import MemoryDoor
    from .published import PackedTruth, TruthSource
    from .units import UnitLosses

#: Files by path: bytes, texts, or documents that become JSON.
Content = Iterator[tuple[str, Any]]
#: The files of a sample submission.
Members = Iterator[tuple[str, bytes]]
#: What the texts of a new challenge say of its truth.
Facts = dict[str, Any]
#: The file of a family's folder with the texts of new challenges.
TEXTS = "texts.html.jinja"
_UNIT_METRIC = re.compile(r"(?P<stem>[A-Za-z_]+?(?:F1)?)(?P<frames>\d*)(?:-(?P<category>[A-Za-z]+))?")


class ScoringInputs(Protocol):
    """The results that were scored, and what scored them."""

    @property
    def results(self) -> str:
        """The path of the results."""

    @property
    def scorers(self) -> Mapping[str, Scorer]:
        """What scores each split."""


class SequenceMethods(Protocol):
    """Several methods that are compared sequence by sequence."""

    def add(self, inputs: ScoringInputs, report: Report, name: str) -> None:
        """Add a method."""

    def compare(self, metric: str) -> Any:
        """Return how the methods compare, as `analysis.comparison.ComparedMethods`."""

    def make_sections(self, comparison: Any, options: PageOptions, origins: Mapping[str, object]) -> Sections:
        """Return what a page shows of them, and the streams that its scripts read."""


class FamilyTools:
    """What the toolkit does with a family.  `protocol` is always one of the family's own."""

    #: What `phases.py` of a new challenge calls the limits of a submission, where they are not the default ones.
    limits: ClassVar[str] = ""
    #: Metrics that a leaderboard may show beside those of the protocol.
    other_metrics: ClassVar[Sequence[str]] = ()
    #: Methods are compared sequence by sequence; else by groups of units.
    compares_sequences: ClassVar[bool] = False
    #: A phase keeps what `make_stored_sections` reads.
    keeps_losses: ClassVar[bool] = False

    # ── truths as they are published ──

    def read_published(self, family: str, source: TruthSource, progress: Progress) -> AnnotationFile[SplitTruth]:
        """Return a published dataset as one split."""
        del progress
        from .published import read_units_as_published

        return read_units_as_published(family, source)

    def pack(self, family: str, source: TruthSource, out: str, split: str, progress: Progress) -> PackedTruth:
        """Write a published dataset as an annotation file; with `split`, add it to one under that name."""
        del progress
        from .published import pack_units

        return pack_units(family, source, out, split)

    # ── masks in memory ──

    def open_memory(self, protocol: Any, categories: Sequence[Mapping[str, Any]], unseen: Iterable[str]) -> MemoryDoor:
        """Return what counts masks in memory."""
        del categories, unseen
        raise UsageError(f"{protocol.name} scores files alone")

    # ── reports ──

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> Sections:
        """Return what a page shows of a split after its metrics, and the streams that its scripts read."""
        del inputs, options
        from segjudge.report.overview import tables

        return [tables(report)], {}

    def make_stored_sections(self, losses: Mapping[str, Any], report: Report) -> Sections:
        """Return the same of what a phase left; raises UsageError where it cannot be that."""
        del losses
        from segjudge.report.overview import tables

        return [tables(report)], {}

    def make_truth_sections(self, split: str, truth: SplitTruth, options: PageOptions) -> Sections:
        """Return what a page shows of a truth alone."""
        del split, truth, options
        raise UsageError("the truth alone is reported of mask sequences; `show` draws that of images")

    def list_failures(self, open_inputs: Callable[[], ScoringInputs], report: Report) -> list[Row]:
        """Return what each kind of failure costs each object, category or unit."""
        del open_inputs
        raise UsageError(f"failures of {report.protocol.name} have no kinds")

    def sum_failures(self, inputs: ScoringInputs, report: Report) -> dict[str, float]:
        """Return what each kind of failure costs a split altogether."""
        del inputs
        raise UsageError(f"failures of {report.protocol.name} have no kinds")

    def open_comparison(
        self, protocol: Any, count: int, options: PageOptions | None, *, with_losses: bool
    ) -> SequenceMethods | None:
        """Return what compares so many methods sequence by sequence; None where they are compared by groups."""
        del protocol, count, options, with_losses
        return None

    def list_unit_costs(self, report: Report) -> dict[str, float | None]:
        """Return what each unit costs, below zero; nothing where the family does not count by unit."""
        del report
        return {}

    # ── words ──

    def describe_metric(self, metric: str) -> str:
        """Return what a metric means, for a leaderboard."""
        return metric

    def prefers_smaller(self, metric: str) -> bool:
        """Return whether smaller values of a metric are better."""
        del metric
        return False

    # ── new challenges ──

    def read_texts(self) -> str:
        """Return the template with the macros `task`, `scoring` and `sending`, the texts of a new challenge's pages."""
        from importlib.resources import files  # `new` and `host` alone show texts

        path = files(type(self).__module__) / TEXTS
        if not path.is_file():
            raise UsageError(
                f"there are no texts for challenges of this family: {type(self).__module__} has no {TEXTS}"
            )
        return path.read_text(encoding="utf-8")

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        """Return what texts say of the truths of all splits: `content` and `about`, and what the family's own name."""
        del truths
        raise UsageError(f"no challenges of {protocol.name} can be made yet")

    def make_sample(self, truths: list[Any], protocol: Any, share: float) -> Members:
        """Yield a submission that is the truth, worse by a share: masks are moved by it, as part of the width."""
        del truths, share
        raise UsageError(f"no challenges of {protocol.name} can be made yet")

    def make_demo(self, protocol: Any) -> Content:
        """Yield a small synthetic truth as the benchmark publishes its own."""
        raise UsageError(f"{protocol.name} has no synthetic truth: name one with --truth")


class UnitTools(FamilyTools):
    """What the toolkit does with a family that counts by unit."""

    limits = "UNIT_LIMITS"
    #: Its metrics' meanings, by the name before a number of frames and a category.
    meanings: ClassVar[Mapping[str, str]] = {}

    def split_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Return what costs the metrics, by unit, category and kind."""
        raise NotImplementedError

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        """Return the metric whose loss that is, and what units are called."""
        raise NotImplementedError

    def _losses_of(self, report: Report) -> tuple[UnitAccumulator[Any], UnitLosses]:
        from segjudge.evaluation_script.families.base.units import UnitAccumulator

        if not isinstance(report.counts, UnitAccumulator):
            raise TypeError(f"{report.split} was not counted by unit")
        return report.counts, self.split_losses(report.counts)

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> Sections:
        del inputs, options
        from .units import unit_sections

        accumulator, losses = self._losses_of(report)
        metric, noun = self.name_losses(report.protocol)
        return unit_sections(report, accumulator.names, losses, metric, noun), {}

    def list_failures(self, open_inputs: Callable[[], ScoringInputs], report: Report) -> list[Row]:
        del open_inputs
        accumulator, losses = self._losses_of(report)
        return [
            {"name": name, **dict(zip(losses.kinds, costs, strict=True))}
            for name, costs in zip(accumulator.names, losses.by_unit.tolist(), strict=True)
        ]

    def sum_failures(self, inputs: ScoringInputs, report: Report) -> dict[str, float]:
        del inputs
        return self._losses_of(report)[1].totals()

    def list_unit_costs(self, report: Report) -> dict[str, float | None]:
        accumulator, losses = self._losses_of(report)
        names = [str(unit) for unit in accumulator.names]
        return dict(zip(names, (-losses.by_unit.sum(axis=1)).tolist(), strict=True))

    def describe_metric(self, metric: str) -> str:
        name = _UNIT_METRIC.fullmatch(metric)
        if name is None or name["stem"] not in self.meanings:
            return metric
        window = f" over {name['frames']} frames" if name["frames"] else ""
        category = f" ({name['category'].lower()})" if name["category"] else ""
        text = self.meanings[name["stem"]] + window + category
        return text[0].upper() + text[1:]

    def describe_truth(self, truths: list[UnitTruth], protocol: Any) -> Facts:
        units = [unit for truth in truths for unit in truth.units]
        frames = units[0].load()
        kind = self.name_losses(protocol)[1].removesuffix("s")
        total = quantity(len(units), kind)
        categories = truths[0].facts.get("categories")
        return {
            "content": f"{total} with {count_categories(len(categories))}" if categories else total,
            "about": f"Label every pixel of {total}."
            if kind != "sequence"
            else f"Follow every object through {total}.",
            "kind": kind,
            "unit": units[0].name,
            "frames": [frame.name for frame in frames[:2]],
            "size": frames[0].size,
            "category": categories[0][0] if categories else 1,
        }


def count_categories(count: int) -> str:
    """Return a number of categories in words."""
    return f"{count:,} {'category' if count == 1 else 'categories'}"
