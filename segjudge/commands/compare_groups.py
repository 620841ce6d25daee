"""`segjudge compare` of instances and of the tracks that count by image, video or sequence."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from segjudge.errors import UsageError
from segjudge.evaluation_script.phase import PROTOCOLS

from .methods import places, scored_method
from .pages import write_page
from .ranking import METRIC, write_document
from .shared import DONE


def compare_groups(args: argparse.Namespace) -> int:
    """Compare methods by a metric that is no mean over objects."""
    from segjudge.diagnosis.tables import costs_of
    from segjudge.evaluation_script.intervals import bounds_of
    from segjudge.report.group_comparison import GroupedMethods, group_sections
    from segjudge.report.overview import digests
    from segjudge.report.page import ReportPage
    from segjudge.report.tables import number, table
    from segjudge.statistics.pseudo_values import grouped_sums
    from segjudge.statistics.rankings import differences, in_order, means

    metric = PROTOCOLS[args.protocol].metrics[0] if args.metric == METRIC else args.metric
    methods = [scored_method(text, args) for text in args.results]
    reports = {one.name: one.report(args.split or "") for one in methods}
    if len(reports) < len(methods):
        raise UsageError("two results have the same name; give them as NAME=RESULTS")
    wanted = args.kinds or args.out
    costs = {one.name: costs_of(one.job, reports[one.name]) if wanted else {} for one in methods}
    sums = grouped_sums(reports, metric)
    pairs = differences(sums)
    found = GroupedMethods(
        metric, reports, costs, sums, in_order(means(sums, pairs, bounds=bounds_of(metric)), sums), pairs
    )
    print(f"{found.about}\n\n{places(found.means, metric)}\n")
    print("\n".join(found.verdicts()))
    document: dict[str, Any] = {
        "metric": metric,
        "means": list(map(asdict, found.means)),
        "pairs": list(map(asdict, pairs)),
    }
    if args.kinds:
        document["kinds"] = costs
        print("\nWhat each kind costs (docs/ranking.md):")
        kinds = list(next(iter(costs.values())))
        print(table(["method", *kinds], [[name, *map(number, one.values())] for name, one in costs.items()]))
        print("\n".join(found.kinds()))
    if args.out:
        origins = {one.name: one.scores.provenance for one in methods}
        page = ReportPage(" · ".join(reports), group_sections(found, origins), origin=digests(*origins.values()))
        write_page(page, args.out)
    write_document(document, args.json)
    return DONE
