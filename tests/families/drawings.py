"""The drawings of pages, as the families' texts call them: with pictures, with little space, of long videos."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import segjudge
from segjudge.families.base import drawing, painted
from segjudge.report.page import PageOptions
from tests.pages import digest
from tests.scoring.mistakes import write_mistakes


def name_drawings() -> Mapping[str, Any]:
    """Return the names for texts."""
    return {
        "score_mistakes": score_mistakes, "score_files": segjudge.score, "list_frames": list_frames, "write_pictures": write_pictures,
        "draw": draw, "draw_limited": draw_limited, "list_sections": list_compared_sections, "film": describe_film,
    }  # fmt: skip


def score_mistakes(protocol: str) -> segjudge.Scores:
    """Score results with many mistakes."""
    folder = Path("truths", protocol)
    folder.mkdir(parents=True)
    files = write_mistakes(protocol, folder)
    return segjudge.score(files.results, files.truth, protocol)


def list_frames(scores: segjudge.Scores) -> dict[str, list[str]]:
    (scorer,) = scores.open_inputs().scorers.values()
    return {unit.name: [frame.name for frame in unit.load()][:3] for unit in scorer.truth.units[:8]}


def write_pictures(folder: str, names: list[str]) -> None:
    """Write pictures of different sizes, so that the page shows which ones it used."""
    for number, name in enumerate(names):
        data = io.BytesIO()
        Image.new("RGB", (10 + number, 8), (number, 90, 200)).save(
            data, {"jpg": "JPEG", "peg": "JPEG", "PEG": "JPEG"}.get(name[-3:], name.rpartition(".")[2].upper())
        )
        _write_bytes(f"{folder}/{name}", data.getvalue())


def _write_bytes(path: str, data: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(data)


def draw(scores: segjudge.Scores, images: str = "", budget: int = 6_000_000) -> str:
    """Describe the drawings of a report's sections: their streams, and the texts about omissions."""
    try:
        sections = scores.make_page(PageOptions(images, budget), "T").sections
    except segjudge.HostError as error:
        return f"HostError: {error}"
    lines = []
    for section in sections:
        names = ("pictures", "wanted", "smaller", "bare", "shown", "looked_at", "units", "of", "moments")
        kept = {name: section.values[name] for name in names if name in section.values}
        if isinstance(kept.get("pictures"), list):
            kept["pictures"] = [(picture.name, picture.size) for picture in kept["pictures"]]  # type: ignore[attr-defined]
        if "moments" in kept:
            kept["moments"] = [tuple(moment.values())[:6] for moment in section.values["moments"]][:4]  # type: ignore[attr-defined]
        if kept or section.streams:
            lines.append(f"{section.title}: {kept}")
        rest = "".join(name + _look(data) for name, data in section.streams.items())
        lines += [f"  {len(section.streams)} streams {digest(rest.encode())}"] if section.streams else []
    return "\n".join(lines)


def _look(data: bytes) -> str:
    try:
        return digest(zlib.decompress(data))
    except zlib.error:
        with Image.open(io.BytesIO(data)) as image:
            return str(image.size)


def list_compared_sections(scores: segjudge.Scores, metric: str) -> str:
    """Describe the sections that compare a method with itself, or why none can."""
    try:
        page = segjudge.compare({"a": scores, "b": scores}, metric=metric).make_page(PageOptions("", 60_000))
    except segjudge.UsageError as error:
        return str(error)
    return ", ".join(section.title for section in page.sections)


def draw_limited(limits: dict[str, int], scores: segjudge.Scores) -> str:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(drawing if hasattr(drawing, name) else painted, name, value)
        return draw(scores)


@contextmanager
def _seen() -> Iterator[list[Any]]:
    """Note the parts of figures."""
    figures: list[Any] = []
    from segjudge.scoring import figures as module

    make = module._make_figure

    def note(*size: Any, **options: Any) -> Any:
        figures.append(make(*size, **options))
        return figures[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_make_figure", note)
        patch.setattr(module, "save_figure", lambda figure, path, dpi: None)
        yield figures


def describe_film(scores: segjudge.Scores, path: str, **choice: Any) -> str:
    """Describe a filmstrip: its size, and the title, pixels and outlines of each cell."""
    with _seen() as figures:
        try:
            scores.film(path, **choice)
        except (segjudge.UsageError, segjudge.HostError) as error:
            return f"{type(error).__name__}: {error}"
    (figure,) = figures
    cells = []
    for axes in figure.axes:
        pixels = np.asarray(axes.images[0].get_array())
        lines = [str(np.round(line.get_edgecolor(), 2).tolist()) for line in axes.collections]
        cells.append(
            f"{axes.get_ylabel()!r} {axes.get_title()!r} {pixels.shape} {digest(np.ascontiguousarray(pixels).tobytes())} {lines}"
        )
    place = [round(float(edge), 4) for edge in figure.axes[0].get_position().bounds]
    return "\n".join([f"{figure.get_size_inches().round(3).tolist()} {place}", *cells])
