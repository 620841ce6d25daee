"""Scores and comparisons below a notebook's cell, on light and dark pages."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from markupsafe import Markup
from PIL import Image

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.families import tools_of
from segjudge.families.base.tools import Film, FilmChoice, ScoredMethod
from segjudge.report.page import picture_kind, read_styles, templates
from segjudge.report.sentences import HIDDEN
from segjudge.system.errors import UsageError

if TYPE_CHECKING:
    from segjudge.families.base.tools import ScoringInputs

#: The maximum number of shown warnings.
_MOST_WARNINGS = 5
#: The maximum number of objects in frames whose masks are read again for kinds of failure, which takes seconds.
_MOST_MASKS = 10_000
#: The frames of a filmstrip, the width and quality of each, and the maximum number of methods with one.
_COLUMNS, _SIDE, _QUALITY, _MOST_ROWS = 4, 240, 60, 4
#: A rule of a style, outside of queries; a class in its selector; a class in HTML.
_RULE = re.compile(r"(?<![^}\s/])([.\w][^{}@/;]*)\{([^{}]*)\}")
_SELECTED = re.compile(r"\.([a-z][\w-]*)")
_CLASSES = re.compile(r'class="([^"]*)"')


class ShownScores(Protocol):
    """The scores that a cell shows."""

    @property
    def reports(self) -> list[Report]:
        """Return the reports of its splits."""

    @property
    def notes(self) -> list[str]:
        """Return the notes about oddities of the truth."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Return the provenance of the scores."""

    @property
    def warnings(self) -> list[str]:
        """Return the warnings for participants."""

    @property
    def is_on_files(self) -> bool:
        """Return True if the scored files can be read again."""

    def open_inputs(self) -> ScoringInputs:
        """Open the scored files again."""

    def choose_report(self, split: str = "") -> Report:
        """Return the report of a split, or of the only one."""


def render_scores(scores: ShownScores) -> str:
    """Show the metrics with their intervals, the loss by kind, the worst moment, and the first warnings."""
    splits = []
    for report in scores.reports:
        tools = tools_of(report.protocol.family)
        kinds, cause = _explain_failures(scores, report)
        splits.append(
            {
                "report": report,
                "verdict": " ".join(filter(None, (cause, tools.rank_failures(kinds, report) if kinds else ""))),
                "bar": tools.make_bar(kinds) if kinds else [],
                "film": draw_worst({"": scores}, report.split),
                "intervals": report.intervals(),
                "errors": report.errors(),
            }
        )
    return render_with_style(
        "segjudge.scoring/notebook.html",
        scores.reports,
        splits=splits,
        most=_MOST_WARNINGS,
        hidden=HIDDEN,
        scores=scores,
    )


def render_with_style(template: str, reports: Iterable[Report], **values: object) -> str:
    """Render a template below its style, reduced to the rules for its classes."""
    text = templates().get_template(template).render(**values)
    packages = {type(tools_of(report.protocol.family)).__module__ for report in reports}
    used_classes = {name for names in _CLASSES.findall(text) for name in names.split()}
    rules = [
        f".segjudge {selector.strip()}{{{' '.join(body.split())}}}"
        for selector, body in _RULE.findall(read_styles(packages))
        if "," not in selector and (classes := set(_SELECTED.findall(selector))) and classes <= used_classes
    ]
    style = templates().get_template("segjudge.scoring/notebook.css").render()
    lines = f"<style>{style}{''.join(rules)}</style>\n{text}".splitlines()
    return "\n".join(line for line in lines if line.strip())  # an empty line ends HTML in Markdown


def is_quick(scores: ShownScores, split: str) -> bool:
    """Return True if the scored files can be read again in seconds."""
    rows = scores.choose_report(split).rows().get("objects", [])
    masks = sum(len(getattr(score, "frames", ())) for score in getattr(scores.choose_report(split), "scores", ()))
    return scores.is_on_files and max(masks, len(rows)) <= _MOST_MASKS


def _explain_failures(scores: ShownScores, report: Report) -> tuple[dict[str, float], str]:
    """Return the cost of each kind of failure and the causes; empty if the files are missing or would take long."""
    if not is_quick(scores, report.split):
        return {}, ""
    try:
        inputs = scores.open_inputs()
        is_there = report.split in inputs.scorers  # the truth may have changed
        return tools_of(report.protocol.family).explain_failures(inputs, report) if is_there else ({}, "")
    except (HostError, SubmissionError, UsageError, OSError):  # files were moved, or failures have no kinds
        return {}, ""


def draw_worst(
    methods: Mapping[str, ShownScores], split: str, sequence: str = "", images: str = ""
) -> list[dict[str, Any]]:
    """Draw the errors in frames of a sequence, over images or plain, one row per method; empty without masks."""
    if not all(scores.is_on_files for scores in methods.values()) or len(methods) > _MOST_ROWS:
        return []
    try:
        inputs = [
            ScoredMethod(name, scores.open_inputs(), scores.choose_report(split), {})
            for name, scores in methods.items()
        ]
        if not all(method.report.split in method.inputs.scorers for method in inputs):
            return []
        tools = tools_of(inputs[0].report.protocol.family)
        film = tools.draw_film(inputs, FilmChoice(sequence, columns=_COLUMNS, images=images, errors=True))
    except (HostError, SubmissionError, UsageError, OSError):
        return []
    return [*_list_rows(film)]


def _list_rows(film: Film) -> Iterable[dict[str, Any]]:
    for name, cells in film.rows.items():
        title = " · ".join(filter(None, [film.sequence, name]))
        pictures = [(frame, shrink_picture(cell.pixels)) for frame, cell in zip(film.frames, cells, strict=True)]
        yield {"title": title, "pictures": pictures}


def shrink_picture(pixels: Any) -> Markup:
    """Return a small picture of a frame as a data URL."""
    image = Image.fromarray(pixels)
    image.thumbnail((_SIDE, _SIDE))
    data = io.BytesIO()
    image.save(data, picture_kind(), quality=_QUALITY)
    return Markup(f"data:image/{picture_kind()};base64,{base64.b64encode(data.getvalue()).decode('ascii')}")  # noqa: S704
