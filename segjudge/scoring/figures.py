"""Figures: a metric of sequences or categories, and filmstrips; written with or without matplotlib."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.files.packed import replace_file
from segjudge.evaluation_script.files.problems import name_hint, name_list
from segjudge.families import tools_of
from segjudge.families.base.tools import Film, FilmCell, FilmChoice, ScoredMethod
from segjudge.report.colours import METHODS
from segjudge.report.tables import key_of_rows
from segjudge.system.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: The colours of a plot, of its highlight, and of the rest; no kind of error has them.
INK, ACCENT, GREY = *METHODS[:2], "#8a8f98"
#: The maximum number of drawn rows of a table, the lowest ones.
_MOST_ROWS = 40
#: The margin of a filmstrip for its letters, in inches, and the printed dots per inch.
_MARGIN, _PRINTED = 0.2, 300
#: The gap between frames of a filmstrip of pixels, in inches, and such a strip as SVG.
_GAP = 0.03
_SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{2}in">
<image width="{0}" height="{1}" href="data:image/png;base64,{3}"/></svg>
"""
#: The settings of all plots: names are not formulas, and equal plots give equal files.
_SETTINGS: Any = {"svg.hashsalt": "segjudge", "font.size": 9, "text.parse_math": False}
#: The endings of plots, with the metadata to remove: date and program.
_FORMATS: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}


def require_matplotlib() -> None:
    """Raise `MissingExtraError` unless matplotlib is installed."""
    try:
        import_module("matplotlib.figure")
    except ImportError:
        from segjudge.system.extras import make_error

        raise make_error("interactive", "A plot", "matplotlib") from None


def _make_figure(width: float, height: float, layout: Literal["constrained"] | None = "constrained") -> Figure:
    """Make an empty figure, sized in inches, that no matplotlib window shows."""
    require_matplotlib()
    from matplotlib.figure import Figure as NewFigure

    return NewFigure(figsize=(width, height), layout=layout)


def check_ending(path: str) -> str:
    """Return the ending of a figure's path, which decides its format; raises UsageError for unknown ones."""
    ending = os.path.splitext(path)[1].lstrip(".").lower()
    if ending not in _FORMATS:
        raise UsageError(f"{path}: end the figure's name in {name_list(list(_FORMATS))}")
    return ending


def save_figure(figure: Figure, path: str, dpi: int = 150) -> None:
    """Write a figure in the format of a path's extension; equal figures make equal files."""
    import matplotlib as mpl

    ending = check_ending(path)
    with mpl.rc_context(_SETTINGS), replace_file(path) as partial:
        figure.savefig(partial, format=ending, dpi=dpi, metadata=_FORMATS[ending])


def draw_figure(size: tuple[float, float], draw: Callable[[Axes], None]) -> Figure:
    """Draw into a new figure."""
    figure = _make_figure(*size)
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS):
        draw(figure.subplots())
    return figure


def format_label(name: str) -> str:
    """Escape a name for legends, which omit names that begin with an underscore."""
    return f" {name}" if name.startswith("_") else name


# ── scores ──────────────────────────────────────────────────────────────────


def plot_scores(report: Report, metric: str = "") -> Figure:
    """Draw a metric of each row of a split's first table, lowest first, with the split's value."""
    metric = metric or report.protocol.metrics[0]
    kind, rows = next(iter(report.rows().items()))
    rows = [row for row in rows if row.get(metric) is not None]
    if metric not in report.values or not rows:
        metrics = [name for name in report.protocol.metrics if name in (rows or report.rows()[kind] or [{}])[0]]
        raise UsageError(f"{kind} have no {metric}{name_hint(metric, metrics)}")
    key = key_of_rows(kind)
    rows = sorted(rows, key=lambda row: row[metric])[:_MOST_ROWS]

    def draw(axes: Axes) -> None:
        axes.barh(range(len(rows)), [row[metric] for row in rows], color=INK, height=0.7)
        axes.set_yticks(range(len(rows)), [str(row[key]) for row in rows])
        axes.invert_yaxis()
        whole, title = report.values[metric], f"{metric} of {kind}"
        if whole is not None:
            axes.axvline(whole, color=ACCENT)
            low, high = report.intervals().get(metric, (whole, whole))
            axes.axvspan(low, high, color=ACCENT, alpha=0.2, linewidth=0)
            title += f"; the line is {report.split}, {whole:.3f}"
        axes.set(xlabel=metric, title=title)

    return draw_figure((6.0, 1.2 + 0.22 * len(rows)), draw)


# ── filmstrips ──────────────────────────────────────────────────────────────


def write_film(  # noqa: PLR0913 - published: what a user may say of a figure
    methods: Sequence[ScoredMethod],
    path: str,
    *,
    sequence: str = "",
    frames: Iterable[object] = (),
    columns: int = 5,
    images: str | os.PathLike[str] = "",
    errors: bool = False,
    width: float = 6.9,
) -> None:
    """Write frames of methods as a figure of page width; vector formats draw outlines and letters as vectors.

    Without matplotlib the figure has only pixels.
    """
    ending = check_ending(path)
    choice = FilmChoice(sequence, [str(frame) for frame in frames], columns, os.fspath(images), errors=errors)
    film = tools_of(methods[0].report.protocol.family).draw_film(methods, choice)
    if find_spec("matplotlib") is None:
        with replace_file(path) as partial:
            _write_pixels(film, partial, ending, width)
        return
    height, across = next(iter(film.rows.values()))[0].pixels.shape[:2]
    cell = (width - _MARGIN) / len(film.frames)
    tall = len(film.rows) * cell * height / across + _MARGIN
    figure = _make_figure(width, tall, layout=None)
    grid = figure.subplots(
        len(film.rows),
        len(film.frames),
        squeeze=False,
        gridspec_kw={
            "left": _MARGIN / width, "right": 1, "top": 1 - _MARGIN / tall, "bottom": 0, "wspace": 0.02, "hspace": 0.02,
        },
    )  # fmt: skip
    for row, (name, cells) in enumerate(film.rows.items()):
        grid[row, 0].set_ylabel(format_label(name), fontsize=8)
        for column, (frame, picture) in enumerate(zip(film.frames, cells, strict=True)):
            axes = grid[row, column]
            axes.imshow(picture.pixels, interpolation="none")
            for colour, mask in picture.outlines:
                if mask.any():
                    axes.contour(mask, [0.5], colors=[tuple(share / 255 for share in colour)], linewidths=0.6)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
            if row == 0:
                axes.set_title(frame, fontsize=8, pad=2)
    save_figure(figure, path, _PRINTED)


def _write_pixels(film: Film, path: str, ending: str, width: float) -> None:
    """Write a filmstrip as one picture, with a line of letters above each frame and beside each row."""
    height, across = next(iter(film.rows.values()))[0].pixels.shape[:2]
    margin, gap = round(_MARGIN * _PRINTED), round(_GAP * _PRINTED)
    cell = (round(width * _PRINTED) - margin) // len(film.frames)
    tall = max(1, round(cell * height / across))
    sheet = Image.new("RGB", (round(width * _PRINTED), margin + len(film.rows) * tall), "white")
    font = ImageFont.load_default(margin * 0.55)
    for row, (name, cells) in enumerate(film.rows.items()):
        label = Image.new("RGB", (tall, margin), "white")
        ImageDraw.Draw(label).text((tall / 2, margin / 2), name, "black", font, anchor="mm")
        sheet.paste(label.rotate(90, expand=True), (0, margin + row * tall))
        for column, picture in enumerate(cells):
            size = max(1, cell - gap), max(1, tall - gap)
            sheet.paste(_outline(picture, size), (margin + column * cell, margin + row * tall))
    for column, frame in enumerate(film.frames):
        middle = margin + column * cell + cell / 2, margin / 2
        ImageDraw.Draw(sheet).text(middle, frame, "black", font, anchor="mm")
    if ending != "svg":
        dates = {"creationDate": None, "modDate": None} if ending == "pdf" else {"dpi": (_PRINTED, _PRINTED)}
        sheet.save(path, ending.upper(), resolution=_PRINTED, **dates)
        return
    data = io.BytesIO()
    sheet.save(data, "PNG")
    with open(path, "w", encoding="utf-8") as file:
        file.write(_SVG.format(*sheet.size, width, base64.b64encode(data.getvalue()).decode("ascii")))


def _outline(cell: FilmCell, size: tuple[int, int]) -> Image.Image:
    """Return a frame at a size, with the outlines of its masks."""
    picture = Image.fromarray(cell.pixels).resize(size, Image.Resampling.NEAREST)
    for colour, mask in cell.outlines:
        large = Image.fromarray(mask).resize(size, Image.Resampling.NEAREST).convert("L")
        edges = ImageChops.difference(large.filter(ImageFilter.MaxFilter(3)), large)
        picture.paste(colour, mask=edges)
    return picture
