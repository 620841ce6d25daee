"""What a report shows of instance masks: where AP is lost, curves, thresholds, confusion, and the worst images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from segjudge.diagnosis.calibration import Calibration, calibration, located_error
from segjudge.diagnosis.confusion import confusion
from segjudge.diagnosis.instances import InstanceDiagnosis, diagnosed
from segjudge.evaluation_script.instance_protocols import InstanceProtocol
from segjudge.evaluation_script.instance_truth import InstanceTruth
from segjudge.evaluation_script.reports import Report, Row

from .instance_pictures import mistake_pictures
from .lists import MOST_ROWS, kinds_section, listed
from .overview import tables
from .page import PageOptions, Section

if TYPE_CHECKING:
    from segjudge.prepared import PreparedScoring

#: So many images are drawn, and shown at once.
PICTURES, OPEN = 24, 4
#: So many categories have a curve of their own, and so many a place in the matrix of confusion.
OWN_CURVES, IN_MATRIX = 12, 30
#: Charts are so large, in the units of their drawing.
CHART = 100
#: The curves that stand out, by IoU.
MARKED = (0.5, 0.75)


def instance_sections(
    job: PreparedScoring, report: Report, options: PageOptions
) -> tuple[list[Section], dict[str, bytes]]:
    """Return the sections of a split of instance masks."""
    truth, protocol = job.splits[report.split], report.protocol
    if not isinstance(truth, InstanceTruth) or not isinstance(protocol, InstanceProtocol):
        raise TypeError(f"{report.split} holds no instance masks")
    found = diagnosed(job.path, truth, protocol, job.rules.limits)
    costly = costly_categories(found, report)
    sections = [_errors(found)]
    if not protocol.tubes:
        sections.append(_worst(found, options))
    sections += [_categories(costly), _curves(found, costly), _scores(found), _confusion(found)]
    sections.append(listed("Images" if not protocol.tubes else "Videos", found.images(), _about_cut(found)))
    suspects = found.suspects()
    if suspects:
        about = (
            "Confident detections that the truth contradicts. Where the picture agrees with them, the truth is wrong."
        )
        sections.append(listed("Truth to check", suspects, about))
    return [*sections, tables(report)], {}


def costly_categories(found: InstanceDiagnosis, report: Report) -> list[Row]:
    """Return a row for each category with instances, those that cost most first; what they cost sums to 1 - AP."""
    precision = {row["name"]: row["AP"] for row in report.rows()["categories"]}
    rows = found.categories()
    for row in rows:
        row["AP"] = precision[row["name"]]
        row["costs"] = (1 - row["AP"]) / len(rows)
    rows.sort(key=lambda row: -row["costs"])
    names = ("name", "costs", "AP", "AP50", "instances", "detections")
    return [{**{name: row[name] for name in names}, **row} for row in rows]


def _errors(found: InstanceDiagnosis) -> Section:
    costs, before = found.errors.costs(), found.errors.average(found.errors.precision)
    about = (
        f"AP at an IoU of one half is {before:.3f}. By how much it would rise without the errors of each kind, as TIDE "
        "tells them apart; kinds hide each other, so they do not sum to what is lost."
    )
    note = (
        f"Without any false detection it would rise by {costs['FalsePos']:.3f}, with every instance detected by "
        f"{costs['FalseNeg']:.3f}."
    )
    return kinds_section("Where AP is lost", found.kinds(), about, note)


def _categories(rows: list[Row]) -> Section:
    about = (
        "Those that cost most first: each costs (1 − AP) / number of categories, and all of them together 1 − AP. "
        "A kind's column says by how much AP50 of the category would rise without these errors; threshold is the score "
        "with its largest F1."
    )
    return listed("Categories", rows, about)


def _curves(found: InstanceDiagnosis, costly: list[Row]) -> Section:
    overall = [
        {"name": f"{iou:.2f}", "points": _points(np.linspace(0, 1, len(curve)), curve), "marked": iou in MARKED,
         "area": float(curve.mean())}
        for iou, curve in found.curves().items()
    ]  # fmt: skip
    own = []
    for row in costly[:OWN_CURVES]:
        recall, precision, score = found.steps(found.names.index(row["name"]))
        marks = np.unique(np.searchsorted(recall, np.arange(1, 11) / 10))
        own.append(
            {
                "name": row["name"],
                "AP50": row["AP50"],
                "points": _points(recall, precision),
                "marks": [
                    (CHART * recall[mark], CHART * (1 - precision[mark]), precision[mark], recall[mark], score[mark])
                    for mark in marks.tolist()
                    if mark < len(recall)
                ],
            }
        )
    return Section("curves", "Precision and recall", {"overall": overall, "own": own, "chart": CHART})


def _points(across: np.ndarray, up: np.ndarray) -> str:
    """Return a line as SVG has it, of values from 0 to 1."""
    return " ".join(f"{CHART * x:.2f},{CHART * (1 - y):.2f}" for x, y in zip(across, up, strict=True))


def _scores(found: InstanceDiagnosis) -> Section:
    rows = []
    for name, least in (("all", -np.inf), ("kept", found.least)):
        one = calibration(found.judged, least)
        rows.append([name, int(one.counts.sum()), one.error, one.largest, located_error(found.judged, least)])
    return Section(
        "scores",
        "Scores and thresholds",
        {
            "best": found.best,
            "profiles": found.counts.profiles(),
            "kind": "video" if found.judged.truth.images.frames is not None else "image",
            "bins": _bins(calibration(found.judged)),
            "columns": ["detections", "count", "D-ECE", "largest gap", "LaECE"],
            "rows": rows,
            "chart": CHART,
        },
    )


def _bins(found: Calibration) -> list[Row]:
    columns = zip(found.counts.tolist(), found.scores.tolist(), found.shares.tolist(), strict=True)
    return [{"count": count, "score": score, "share": share} for count, score, share in columns]


def _confusion(found: InstanceDiagnosis) -> Section:
    """Return the categories that are confused most, as a matrix, and every pair."""
    table = confusion(found.judged, found.least)
    wrong = table.sum(0) + table.sum(1) - 2 * np.diagonal(table)
    shown = np.argsort(-wrong[:-1], kind="stable")[:IN_MATRIX]
    places = [*np.sort(shown[wrong[shown] > 0]).tolist(), len(table) - 1]
    names = [*found.names, "nothing"]
    rows = [
        {
            "name": names[row],
            "cells": [(int(table[row, one]), table[row, one] / max(table[row].sum(), 1)) for one in places],
        }
        for row in places
    ]
    pairs = found.confusions()[:MOST_ROWS]
    return Section(
        "confusion",
        "Confusion",
        {"names": [names[one] for one in places], "rows": rows, "left_out": len(names) - len(places),
         "columns": list(pairs[0]) if pairs else [], "pairs": [list(pair.values()) for pair in pairs]},
    )  # fmt: skip


def _about_cut(found: InstanceDiagnosis) -> str:
    what = f"Detections with a score of {found.least:.3f} and more" if found.best else "All detections"
    return f"{what}, matched at an IoU of one half; those with most mistakes first."


def _worst(found: InstanceDiagnosis, options: PageOptions) -> Section:
    pictures = mistake_pictures(found, PICTURES, options)
    return Section("worst_images", "Worst images", {"about": _about_cut(found), "pictures": pictures, "open": OPEN})
