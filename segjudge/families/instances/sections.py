"""What a report shows of instance masks: where AP is lost, curves, thresholds, confusion, and the worst images."""

from __future__ import annotations

import numpy as np

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.families.base.tools import ScoringInputs
from segjudge.families.instances.diagnosis import InstanceDiagnosis, diagnosed
from segjudge.families.instances.judged import confusion
from segjudge.families.instances.thresholds import calibration, located_error
from segjudge.report.overview import first_rows, kinds_section, listed, tables
from segjudge.report.page import PageOptions, Section, Sections

from .pictures import mistake_pictures

#: So many images are drawn, and shown at once.
PICTURES, OPEN = 24, 4
#: So many categories have a curve of their own, and so many a place in the matrix of confusion.
OWN_CURVES, IN_MATRIX = 12, 30
#: Charts are so large, in the units of their drawing.
CHART = 100
#: The curves that stand out, by IoU.
MARKED = (0.5, 0.75)


def instance_sections(inputs: ScoringInputs, report: Report, options: PageOptions) -> Sections:
    """Return the sections of a split of instance masks."""
    found = diagnosed(inputs, report)
    costly = costly_categories(found, report)
    sections = [_errors(found)]
    if not found.protocol.tubes:
        about, pictures = _about_cut(found), mistake_pictures(found, PICTURES, options)
        sections.append(Section("worst_images", "Worst images", {"about": about, "pictures": pictures, "open": OPEN}))
    sections += [_categories(costly), _curves(found, costly), _scores(found), _confusion(found)]
    sections.append(listed("Images" if not found.protocol.tubes else "Videos", found.images(), _about_cut(found)))
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
    return Section("curves", "Precision and recall", {"overall": overall, "own": own})


def _points(across: np.ndarray, up: np.ndarray) -> str:
    """Return a line as SVG has it, of values from 0 to 1."""
    return " ".join(f"{CHART * x:.2f},{CHART * (1 - y):.2f}" for x, y in zip(across, up, strict=True))


def _scores(found: InstanceDiagnosis) -> Section:
    rows, bins = [], calibration(found.judged)
    for name, least in (("all", -np.inf), ("kept", found.least)):
        one = calibration(found.judged, least)
        rows.append([name, int(one.counts.sum()), one.error, one.largest, located_error(found.judged, least)])
    return Section(
        "scores",
        "Scores and thresholds",
        {
            "best": found.best,
            "profiles": found.counts.profiles(),
            "kind": "video" if found.protocol.tubes else "image",
            "bins": list(zip(bins.counts.tolist(), bins.scores.tolist(), bins.shares.tolist(), strict=True)),
            "columns": ["detections", "count", "D-ECE", "largest gap", "LaECE"],
            "rows": rows,
        },
    )


def _confusion(found: InstanceDiagnosis) -> Section:
    """Return the categories that are confused most, as a matrix, and every pair."""
    table = confusion(found.judged, found.least)
    wrong = table.sum(0) + table.sum(1) - 2 * np.diagonal(table)
    shown = np.argsort(-wrong[:-1], kind="stable")[:IN_MATRIX]
    places = [*np.sort(shown[wrong[shown] > 0]).tolist(), len(table) - 1]
    names = [*found.names, "nothing"]
    rows = [
        (names[row], [(int(table[row, one]), table[row, one] / max(table[row].sum(), 1)) for one in places])
        for row in places
    ]
    values = {"names": [names[one] for one in places], "rows": rows, "left_out": len(names) - len(places)}
    return Section("confusion", "Confusion", {**values, "pairs": first_rows(found.confusions())})


def _about_cut(found: InstanceDiagnosis) -> str:
    what = f"Detections with a score of {found.least:.3f} and more" if found.best else "All detections"
    return f"{what}, matched at an IoU of one half; those with most mistakes first."
