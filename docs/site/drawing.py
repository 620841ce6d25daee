"""A picture as SVG: masks on a grid, lines and words, on a light ground in every theme."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import numpy as np
from numpy.typing import NDArray

from segjudge.report.colours import INKS

Mask = NDArray[np.bool_]

#: As in reports: of the truth alone, which is missed; of the prediction alone, which is surplus; of both.
TRUTH, PREDICTION, BOTH = (INKS[style] for style in ("missing", "extra", "right"))
INK, PALE = "#333333", "#d9d9d9"


class Drawing:
    """The elements of one picture."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._size = width, height
        self._title = title
        self._elements: list[str] = []

    def mask(self, mask: Mask, colour: str, corner: tuple[float, float], cell: float) -> None:
        """Draw the pixels of a mask as squares of this size; adjacent ones of a row are joined."""
        path = []
        for row, line in enumerate(np.pad(mask.astype(np.int8), ((0, 0), (1, 1)))):
            edges = np.flatnonzero(np.diff(line))
            for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist()):
                width = (stop - start) * cell
                left, top = corner[0] + start * cell, corner[1] + row * cell
                path.append(f"M{left:g} {top:g}h{width:g}v{cell:g}h-{width:g}z")
        self._elements.append(f'<path fill="{colour}" d="{"".join(path)}"/>')

    def box(self, corner: tuple[float, float], size: tuple[float, float], colour: str = "none") -> None:
        """Draw a rectangle, with an outline if its colour would be invisible."""
        outline = PALE if colour in ("none", "#ffffff") else colour
        place = f'x="{corner[0]:.1f}" y="{corner[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}"'
        self._elements.append(f'<rect {place} fill="{colour}" stroke="{outline}"/>')

    def line(
        self, points: Iterable[tuple[float, float]], colour: str = INK, width: float = 1.5, dash: str = ""
    ) -> None:
        """Draw a line through some points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self._elements.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="{width:g}"{dashed} points="{path}"/>'
        )

    def text(self, text: str, x: float, y: float, *, size: int = 13, colour: str = INK, anchor: str = "start") -> None:
        """Write a line of words."""
        style = f'font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
        self._elements.append(f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>')

    def legend(self, entries: dict[str, str], x: float, y: float) -> None:
        """Write the meanings of colours, one below the other."""
        for place, (text, colour) in enumerate(entries.items()):
            self.box((x, y + 20 * place - 10), (12, 12), colour)
            self.text(text, x + 18, y + 20 * place)

    def svg(self) -> str:
        """Return the whole picture."""
        width, height = self._size
        body = "\n".join(self._elements)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            f' role="img" font-family="sans-serif">\n<title>{escape(self._title)}</title>\n'
            f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff"/>\n{body}\n</svg>\n'
        )
