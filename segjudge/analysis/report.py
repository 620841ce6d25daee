"""`segjudge report`: one page on what was scored, split by split."""

from collections.abc import Mapping
from dataclasses import replace

from segjudge.evaluation_script.families.base.truth import SplitTruth
from segjudge.evaluation_script.scoring.answer import public_warnings
from segjudge.families import tools_of
from segjudge.families.base.tools import ScoringInputs
from segjudge.report.overview import digests, origins, summary
from segjudge.report.page import PageOptions, ReportPage, Section
from segjudge.scoring.scores import Scores


def report_page(inputs: ScoringInputs, scores: Scores, title: str, options: PageOptions) -> ReportPage:
    """Return the page of scores."""
    sections: list[Section] = []
    streams: dict[str, bytes] = {}
    options = replace(options, budget=options.budget // max(len(scores.reports), 1))
    for report in scores.reports:
        own, more = tools_of(report.protocol.track).make_sections(inputs, report, options)
        streams |= more
        found = [summary(report), *own]
        if len(scores.reports) > 1:
            found = [one.of_split(report.split) for one in found]
        sections += found
    warnings = [f"truth: {note}" for note in scores.notes] + scores.warnings
    found = [*sections, origins(public_warnings(warnings), scores.provenance)]
    return ReportPage(title, found, streams, digests(scores.provenance))


def truth_page(splits: Mapping[str, SplitTruth], family: str, title: str, options: PageOptions) -> ReportPage:
    """Return the page of a family's truth alone."""
    sections: list[Section] = []
    streams: dict[str, bytes] = {}
    for name, truth in splits.items():
        own, more = tools_of(family).make_truth_sections(name, truth, options)
        streams |= more
        sections += [one.of_split(name) for one in own] if len(splits) > 1 else own
    return ReportPage(title, sections, streams)
