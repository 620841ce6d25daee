"""`segjudge report`: one page on what was scored, split by split."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.base.truth import SplitTruth
from segjudge.evaluation_script.families.instances.protocols import InstanceProtocol
from segjudge.evaluation_script.families.sequences.protocols import SequenceProtocol
from segjudge.evaluation_script.families.sequences.truth import Split
from segjudge.evaluation_script.scoring.answer import public_warnings
from segjudge.families.base.unit_losses import UNIT_LOSSES
from segjudge.families.base.unit_sections import unit_sections
from segjudge.families.instances.sections import instance_sections
from segjudge.families.sequences.sections import sequence_sections
from segjudge.families.sequences.truth_sections import truth_sections
from segjudge.report.overview import digests, origins, summary, tables
from segjudge.report.page import PageOptions, ReportPage, Section, Sections
from segjudge.scoring.requests import PreparedScoring
from segjudge.scoring.scores import Scores
from segjudge.system.errors import UsageError

#: Returns a track's own sections of a split, and the streams that they read.
SectionMaker = Callable[[PreparedScoring, Report, PageOptions], Sections]
#: What a track shows after its metrics; another track adds a row.
TRACK_SECTIONS: dict[str, SectionMaker] = {
    InstanceProtocol.track: instance_sections,
    SequenceProtocol.track: sequence_sections,
    **dict.fromkeys(UNIT_LOSSES, unit_sections),
}


def report_page(job: PreparedScoring, scores: Scores, title: str, options: PageOptions) -> ReportPage:
    """Return the page of scores."""
    sections: list[Section] = []
    streams: dict[str, bytes] = {}
    options = replace(options, budget=options.budget // max(len(scores.reports), 1))
    for report in scores.reports:
        maker = TRACK_SECTIONS.get(report.protocol.track, _tables_alone)
        own, more = maker(job, report, options)
        streams |= more
        found = [summary(report), *own]
        if len(scores.reports) > 1:
            found = [one.of_split(report.split) for one in found]
        sections += found
    warnings = [f"truth: {note}" for note in scores.notes] + scores.warnings
    found = [*sections, origins(public_warnings(warnings), scores.provenance)]
    return ReportPage(title, found, streams, digests(scores.provenance))


def _tables_alone(_job: PreparedScoring, report: Report, _options: PageOptions) -> Sections:
    return [tables(report)], {}


def truth_page(splits: Mapping[str, SplitTruth], title: str, options: PageOptions) -> ReportPage:
    """Return the page of a truth of mask sequences alone."""
    sections: list[Section] = []
    streams: dict[str, bytes] = {}
    for name, truth in splits.items():
        if not isinstance(truth, Split):
            raise UsageError("the truth alone is reported of mask sequences; `show` draws that of images")
        own, more = truth_sections(name, truth, options)
        streams |= more
        sections += [one.of_split(name) for one in own] if len(splits) > 1 else own
    return ReportPage(title, sections, streams)
