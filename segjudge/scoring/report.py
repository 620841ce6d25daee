"""The pages of a truth alone, and of a stored result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS
from segjudge.families import FamilyTools, describe_metrics, tools_of
from segjudge.report.page import (
    ReportPage,
    Section,
    add_summary,
    describe_digests,
    join_splits,
    make_list,
    make_origins,
    make_tables,
    render_page,
)
from segjudge.report.sentences import HIDDEN
from segjudge.report.stored import as_list, as_mapping, as_text, read_reports, refuse

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.truth import SplitTruth
    from segjudge.report.page import PageOptions


def make_truth_report(truths: Mapping[str, SplitTruth], family: str, title: str, options: PageOptions) -> ReportPage:
    """Make the page of a family's truth alone, split by split."""
    tools = tools_of(family)
    return ReportPage(
        title, join_splits({name: tools.make_truth_sections(name, truth, options) for name, truth in truths.items()})
    )


def make_stored_report(result: Mapping[str, object], title: str) -> str:
    """Make the page of a `submission_result` of any family and level, as HTML.

    Raises UsageError for anything else.
    """
    return render_stored(make_stored_page(result, title))


def make_stored_page(result: Mapping[str, object], title: str) -> ReportPage:
    """Make the page of a `submission_result`, for `render_stored`.

    Raises UsageError for anything else.
    """
    splits: dict[str, list[Section]] = {}
    reports, losses = read_reports(result), as_mapping(result.get("losses", {}))
    for report in reports:
        meanings = describe_metrics(report)
        if report.split in losses:
            tools = _tools_that_read(report.protocol.name)
            sections = tools.make_stored_sections(as_mapping(losses[report.split]), report)
        else:
            sections = [make_tables(report)] if report.rows() else []
        splits[report.split] = add_summary(report, sections, meanings)
    joined = join_splits(splits)
    if not reports:
        joined.append(make_list("Summary", [], "The scores of this phase are not shown."))
    warnings = [f"{as_text(split)} {HIDDEN}" for split in as_list(result.get("hidden", []))]
    warnings += [as_text(line) for line in as_list(result.get("warnings", []))]
    provenance = as_mapping(result.get("provenance") or result.get("versions") or {})
    try:
        joined.append(make_origins(warnings, provenance))
    except RecursionError:
        refuse("is nested too deeply")
    return ReportPage(title, joined, describe_digests(provenance))


def render_stored(page: ReportPage) -> str:
    """Render the page of a stored result as HTML; raises UsageError if the result is nested too deeply."""
    try:
        text = render_page(page)
    except RecursionError:
        refuse("is nested too deeply")
    return text.encode("utf-8", "replace").decode("utf-8")  # a name may contain a lone surrogate


def _tools_that_read(protocol: str) -> FamilyTools:
    """Find the reader of stored losses: the protocol's family if it stores any, else another that does."""
    families = [*([PROTOCOLS[protocol].family] if protocol in PROTOCOLS else []), *FAMILIES]
    return next((tools for tools in map(tools_of, families) if tools.keeps_losses), FamilyTools())
