"""The description of a benchmark for hosts and participants: metrics, files, page, commands to copy."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.evaluation_script.scoring.scorer import read_truth
from segjudge.families import describe_direction, layout_of, tools_of
from segjudge.families.truths import TruthSource, pack_truth
from segjudge.starting.new_challenge import write_demo_truth
from segjudge.system.errors import UsageError

#: The page that lists all benchmarks.
_LIST = "docs/benchmarks.md"
#: The number of shown files of a truth or a submission.
_SHOWN_FILES = 4


class Metric(NamedTuple):
    """One metric of a benchmark."""

    name: str
    about: str
    #: Whether smaller values are better; None if the plug-in's family does not state it.
    smaller: bool | None
    #: The minimum and the maximum value; None for no limit.
    bounds: tuple[float | None, float | None]

    def describe_values(self) -> str:
        """Return the direction and the range of its values."""
        least, greatest = ("" if bound is None else f"{bound:g}" for bound in self.bounds)
        values = f"{least} to {greatest}" if least and greatest else f"from {least}" if least else f"up to {greatest}"
        if self.smaller is None:
            return f"{values}; the plug-in does not say which is better"
        return f"{values}, {'lower' if self.smaller else 'higher'} is better"


class Benchmark(NamedTuple):
    """The description of a benchmark; its first metric ranks."""

    protocol: FamilyProtocol
    metrics: list[Metric]
    layout: str
    #: The files of a small published truth, and of a submission for it; empty if the family makes none.
    truth: list[str]
    submission: list[str]
    upload_types: str
    #: Its page in the documentation; "" for those of plug-ins.
    page: str

    def as_json(self) -> dict[str, Any]:
        metrics = [
            {"name": metric.name, "about": metric.about, "smaller_is_better": metric.smaller, "range": metric.bounds}
            for metric in self.metrics
        ]
        of_protocol = {name: getattr(self.protocol, name) for name in ("name", "family", "about", "revision")}
        files = {name: getattr(self, name) for name in ("layout", "truth", "submission", "upload_types", "page")}
        return {**of_protocol, "metrics": metrics, **files}


def describe_benchmark(protocol: FamilyProtocol) -> Benchmark:
    """Describe a benchmark; the family's small synthetic truth shows its files."""
    tools = tools_of(protocol.family)
    metrics = [
        Metric(
            name,
            tools.describe_metric(name),
            None if describe_direction(name, protocol.name) else tools.prefers_smaller(name),
            choose_bounds(name, protocol),
        )
        for name in protocol.metrics
    ]
    truth, submission = _list_files(protocol)
    page = find_page(protocol)
    return Benchmark(protocol, metrics, layout_of(protocol), truth, submission, tools.upload_types, page)


def choose_bounds(metric: str, protocol: FamilyProtocol) -> tuple[float | None, float | None]:
    """Return the bounds that the protocol states for a metric, else those of its family; None for no bound."""
    stated: Mapping[str, tuple[float, float]] = getattr(protocol, "bounds", {})
    if metric not in stated:
        return tools_of(protocol.family).bounds_of(metric)
    least, greatest = (None if math.isinf(bound) else bound for bound in stated[metric])
    return least, greatest


def find_page(protocol: FamilyProtocol) -> str:
    """Return the page of a benchmark; "" for a plug-in's benchmark."""
    from segjudge.evaluation_script.families import plugins_of

    if plugins_of([protocol.name]):
        return ""
    entry = tools_of(protocol.family).read_entry()
    pages = {name: row.page for row in entry.benchmarks for name in row.protocols} if entry else {}
    return f"docs/benchmarks/{page}" if (page := pages.get(protocol.name)) else _LIST


def _list_files(protocol: FamilyProtocol) -> tuple[list[str], list[str]]:
    """List the files of a small truth and of a submission to it, as far as the family makes them."""
    tools = tools_of(protocol.family)
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        published = os.path.join(folder, "truth")
        os.mkdir(published)
        try:
            source = write_demo_truth(protocol, published)
            packed = os.path.join(folder, "packed.zip")
            pack_truth(TruthSource(source), protocol, packed, lambda *_: None)
            truths = list(read_truth(packed, protocol.name).splits.values())
            members = tools.make_sample(truths, protocol, 0.0)
            submission = [name for name, _ in islice(members, _SHOWN_FILES + 1)]
        except UsageError:  # a plug-in's family makes none
            return [], []
        truth = sorted(
            os.path.relpath(os.path.join(top, name), published)
            for top, _, names in os.walk(published)
            for name in names
        )
    return shorten(_spread(truth)), shorten(submission)


def _spread(files: list[str]) -> list[str]:
    """Sort the first file of each folder before the others, because it shows the layout."""
    firsts = list({os.path.dirname(name): name for name in reversed(files)}.values())[::-1]
    return [*firsts, *(name for name in files if name not in firsts)]


def shorten(files: list[str]) -> list[str]:
    """Return the first files, with an ellipsis if there are more."""
    return files if len(files) <= _SHOWN_FILES else [*files[:_SHOWN_FILES], "…"]
