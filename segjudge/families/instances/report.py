"""Report sections of instance masks: losses of AP, curves, thresholds, confusion, worst images."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from markupsafe import Markup

from segjudge.evaluation_script.families.base.reports import Report, Row
from segjudge.evaluation_script.families.instances.protocols import InstanceProtocol
from segjudge.families.base.tools import ScoringInputs
from segjudge.families.instances.diagnosis import (
    InstanceDiagnosis,
    count_confusions,
    diagnose,
    measure_calibration,
    measure_localisation_error,
)
from segjudge.report.page import (
    PageOptions,
    Section,
    add_bar,
    link_stream,
    make_confusion,
    make_kinds,
    make_list,
    make_tables,
    make_verdict,
)
from segjudge.report.sentences import LITTLE
from segjudge.report.tables import format_number

from .causes import describe_causes
from .keypoints import LEAST_OKS, list_keypoints
from .players import draw_worst

_PACKAGE = "segjudge.families.instances"
#: The number of categories with their own curve.
_MOST_CURVES = 12
#: The side of charts, in the units of their drawing.
_CHART = 100
#: The part of the bar that is lost at an IoU of one half already, by errors of any kind.
_AT_HALF = "lost at .50"
#: The highlighted curves, by IoU.
_MARKED = (0.5, 0.75)


def make_sections(inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
    diagnosis = diagnose(inputs, report)
    costly = _list_costly(diagnosis, report)
    verdict = _write_verdict(diagnosis, costly, report, describe_causes(diagnosis))
    sections = [verdict, _make_errors_section(diagnosis)]
    pictures = draw_worst({"": diagnosis}, report.split, options)
    sections += [pictures.player] if pictures else []
    points = list_keypoints(diagnosis)
    if points:
        about = (
            "Cost of each point in mean OKS, highest first, over the people found by kept detections (OKS at least "
            f"{LEAST_OKS}). The costs sum to 1 − OKS. A point is exact at a similarity of .85 or more, near at .5. "
            "Otherwise it is swapped (on another point of the same person), foreign (on this point of somebody else), "
            "or far (on neither)."
        )
        sections.append(make_list("Keypoints", points, about))
    sections += [
        _make_categories_section(costly),
        _make_curves_section(diagnosis, costly),
        _make_scores_section(diagnosis),
        _make_confusion_section(diagnosis),
    ]
    images = diagnosis.list_images()
    if pictures:
        images = [{**row, "image": link_stream(row["image"], pictures.streams)} for row in images]
    title = "Images" if not diagnosis.protocol.tubes else "Videos"
    sections.append(make_list(title, images, _describe_cut(diagnosis)))
    suspects = diagnosis.list_suspects()
    if suspects:
        about = (
            "Confident detections that the truth contradicts. Where the picture agrees with them, the truth is wrong."
        )
        sections.append(make_list("Truth to check", suspects, about))
    return [*sections, make_tables(report)]


def make_compared_sections(
    diagnoses: Mapping[str, InstanceDiagnosis], split: str, options: PageOptions
) -> list[Section]:
    """Return the player of the images in which the second method makes the most additional mistakes."""
    pictures = draw_worst(diagnoses, split, options)
    return [pictures.player] if pictures else []


def make_ap_bar(diagnosis: InstanceDiagnosis, report: Report) -> list[tuple[str, float, str]]:
    """Return AP, and its loss above and at an IoU of one half, as a bar; empty without an AP."""
    value = report.values[report.protocol.metrics[0]]
    at_half = _read_at_half(diagnosis, report)
    if value is None or at_half < value:
        return []
    return [
        ("kept", value, "kept"),
        ("inexact", at_half - value, "inexact"),
        (_AT_HALF, max(0.0, 1 - at_half), "lost"),
    ]


def _read_at_half(diagnosis: InstanceDiagnosis, report: Report) -> float:
    """Return the protocol's own AP at one half, which Cityscapes does not interpolate as the diagnosis does."""
    value = report.values[report.protocol.metrics[1]]
    return diagnosis.errors.average(diagnosis.errors.precision) if value is None else value


def _write_verdict(
    diagnosis: InstanceDiagnosis, costliest_categories: list[Row], report: Report, cause: str
) -> Section:
    """Return the verdict: the most costly errors, the number of categories, the worst one."""
    measure = diagnosis.protocol.measure
    at_half = _read_at_half(diagnosis, report)
    kinds = describe_rises(
        measure, {f"{row['kind']} errors ({row['about']})": row["cost"] for row in diagnosis.list_kinds()}
    )
    if not kinds and at_half < 1 - LITTLE:
        kinds = (
            f"Correcting one kind of error alone would not raise AP at an {measure} of .50, because kinds hide each "
            "other."
        )
    costs = [row["costs"] for row in costliest_categories]
    worst: Markup | str = ""
    if len(costliest_categories) > 1:
        text = Markup('Worst: <a href="#categories">{}</a>, AP {}.')
        worst = text.format(costliest_categories[0]["name"], format_number(costliest_categories[0]["AP"]))
    main = report.protocol.metrics[0]
    value = report.values[main]
    inexact = 0.0 if value is None else at_half - value
    causes = [_describe_inexact(diagnosis.protocol, report, at_half, inexact) if inexact >= LITTLE else "", kinds]
    if inexact < 1 - at_half:
        causes.reverse()
    verdict = make_verdict(report, main, [cause, *causes], costs, "categories", worst)
    bar = make_ap_bar(diagnosis, report)
    if not bar:
        return verdict
    meanings = {
        "inexact": f"matched at an {measure} of .50, but not at all greater ones",
        _AT_HALF: f"missed, surplus, of the wrong category or with an {measure} below .50",
    }
    return add_bar(verdict, main, bar, meanings)


def describe_rises(measure: str, costs: Mapping[str, float]) -> str:
    """Describe the errors whose correction would raise AP most; "" if none would."""
    costly = sorted(((name, cost) for name, cost in costs.items() if cost >= LITTLE), key=lambda item: -item[1])
    if not costly:
        return ""
    (name, cost), *following = costly[:2]
    second = "".join(f"; correcting all {other_name}, by {other_cost:.3f}" for other_name, other_cost in following)
    return f"Correcting all {name} would raise AP at an {measure} of .50 by {cost:.3f}{second}."


def _describe_inexact(protocol: InstanceProtocol, report: Report, at_half: float, inexact_cost: float) -> str:
    """Describe the AP that inexact masks lose at greater thresholds."""
    measure = protocol.measure
    main, noun = report.protocol.metrics[0], "boxes" if protocol.boxes else "keypoints" if measure == "OKS" else "masks"
    stricter = report.values.get("AP75")
    beside = "" if stricter is None else f", and {format_number(stricter)} at .75"
    return (
        f"Inexact {noun} lower {main} by {format_number(inexact_cost)}: "
        f"AP is {format_number(at_half)} at an {measure} of .50{beside}."
    )


def _list_costly(diagnosis: InstanceDiagnosis, report: Report) -> list[Row]:
    """Return a row per category with instances, most costly first; costs sum to 1 - AP."""
    precision = {row["name"]: row["AP"] for row in report.rows()["categories"]}
    rows = diagnosis.list_categories()
    for row in rows:
        row["AP"] = precision[row["name"]]
        row["costs"] = (1 - row["AP"]) / len(rows)
    rows.sort(key=lambda row: -row["costs"])
    names = ("name", "costs", "AP", "AP50", "instances", "detections")
    return [{**{name: row[name] for name in names}, **row} for row in rows]


def _make_errors_section(diagnosis: InstanceDiagnosis) -> Section:
    costs, before = diagnosis.errors.costs(), diagnosis.errors.average(diagnosis.errors.precision)
    about = (
        f"AP at an {diagnosis.protocol.measure} of .50 is {before:.3f}. Each kind of TIDE costs the AP that correcting "
        "all its errors would gain. Kinds hide each other, so their sum is not the loss."
    )
    note = (
        f"Removing all false detections would raise it by {costs['FalsePos']:.3f}; detecting every instance, by "
        f"{costs['FalseNeg']:.3f}."
    )
    return make_kinds("Where AP is lost", diagnosis.list_kinds(), about, note)


def _make_categories_section(rows: list[Row]) -> Section:
    about = (
        "Largest loss first. A category loses (1 − AP) / number of categories; all categories together lose 1 − AP. "
        "A kind's column shows how much the category's AP50 would rise without these errors; threshold is the score "
        "with its largest F1."
    )
    return make_list("Categories", rows, about)


def _make_curves_section(diagnosis: InstanceDiagnosis, costliest_categories: list[Row]) -> Section:
    overall = [
        {"name": f"{iou:.2f}", "points": _format_points(np.linspace(0, 1, len(curve)), curve), "marked": iou in _MARKED,
         "area": diagnosis.average_precision(iou), "label": 100 * (1 - float(curve[len(curve) // 3]))}
        for iou, curve in diagnosis.average_curves().items()
    ]  # fmt: skip
    curves = []
    for row in costliest_categories[:_MOST_CURVES]:
        recall, precision, score = diagnosis.trace_curve(diagnosis.names.index(row["name"]))
        marks = np.unique(np.searchsorted(recall, np.arange(1, 11) / 10))
        curves.append(
            {
                "name": row["name"],
                "AP50": row["AP50"],
                "points": _format_points(recall, precision),
                "marks": [
                    (_CHART * recall[mark], _CHART * (1 - precision[mark]), precision[mark], recall[mark], score[mark])
                    for mark in marks.tolist()
                    if mark < len(recall)
                ],
            }
        )
    values = {
        "overall": overall,
        "own": curves,
        "measure": diagnosis.protocol.measure,
        "smooth": not diagnosis.protocol.streets,
    }
    return Section("curves", "Precision and recall", values, package=_PACKAGE)


def _format_points(xs: np.ndarray, ys: np.ndarray) -> str:
    return " ".join(f"{_CHART * x:.2f},{_CHART * (1 - y):.2f}" for x, y in zip(xs, ys, strict=True))


def _make_scores_section(diagnosis: InstanceDiagnosis) -> Section:
    rows, bins = [], measure_calibration(diagnosis.judged)
    for name, least in (("all", -np.inf), ("kept", diagnosis.least)):
        calibration = measure_calibration(diagnosis.judged, least)
        rows.append(
            [
                name,
                int(calibration.counts.sum()),
                calibration.error,
                calibration.largest_gap,
                measure_localisation_error(diagnosis.judged, least),
            ]
        )
    return Section(
        "scores",
        "Scores and thresholds",
        {
            "best": diagnosis.best_threshold,
            "measure": diagnosis.protocol.measure,
            "profiles": diagnosis.counts.profiles(),
            "kind": "video" if diagnosis.protocol.tubes else "image",
            "bins": list(zip(bins.counts.tolist(), bins.scores.tolist(), bins.shares.tolist(), strict=True)),
            "columns": ["detections", "count", "D-ECE", "largest gap", "LaECE"],
            "rows": rows,
        },
        package=_PACKAGE,
    )


def _make_confusion_section(diagnosis: InstanceDiagnosis) -> Section:
    table = count_confusions(diagnosis.judged, diagnosis.least)
    about = (
        "Detections at or above the best threshold, matched with instances of any category at an "
        f"{diagnosis.protocol.measure} of .50. Click a cell to select its pictures."
    )
    return make_confusion([*diagnosis.names, "nothing"], table, "detections", about, "instances")


def _describe_cut(diagnosis: InstanceDiagnosis) -> str:
    subject = (
        f"Detections with a score of {diagnosis.least:.3f} and more" if diagnosis.best_threshold else "All detections"
    )
    return f"{subject}, matched at an {diagnosis.protocol.measure} of .50; most mistakes first."
