"""One colour code: docs, pages and pictures agree, and colour-blind readers can tell the colours apart."""

from __future__ import annotations

import ast
import importlib
import itertools
import re

import numpy as np
import pytest
from numpy.typing import NDArray

from segjudge.report import colours
from segjudge.report.page import read_styles
from tests.builders import ROOT

#: What linear RGB becomes for eyes without one kind of cone (Machado, Oliveira and Fernandes, 2009, severity 1).
CONES = {
    "all": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
#: A distance of 2.3 in CIELAB can just be seen side by side; six of these are two inks that nobody takes for one.
APART = 15.0
Floats = NDArray[np.float64]


def as_seen(inks: Floats, cones: str) -> Floats:
    """Return inks (0–255) in CIELAB as colour-blind eyes see them."""
    linear = np.where(inks <= 10.31, inks / 255 / 12.92, ((inks / 255 + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ np.transpose(CONES[cones]), 0, 1)
    xyz = linear @ np.transpose([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    root = np.cbrt(np.maximum(xyz / [0.9505, 1, 1.089], 0.008856))
    return np.stack(
        [116 * root[..., 1] - 16, 500 * (root[..., 0] - root[..., 1]), 200 * (root[..., 1] - root[..., 2])], axis=-1
    )


def triple(text: str) -> tuple[int, ...]:
    """Return a colour that is written as #rrggbb, or as three numbers."""
    if text.startswith("#"):
        return tuple(bytes.fromhex(text[1:]))
    return tuple(map(int, re.findall(r"\d+", text)))


MISSING, SURPLUS, OTHER, RIGHT = colours.MISSING, colours.SURPLUS, colours.OTHER, colours.RIGHT
#: All files that draw, or style a chart.
DRAWING = sorted(
    path
    for folder in ("segjudge", "docs/site", "demo")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".js", ".html", ".css"} and path != ROOT / "segjudge/report/colours.py"
)


def test_colours_of_mistakes_are_defined_in_one_place() -> None:
    inks = {ink: style for style, ink in colours.INKS.items() if style in colours.MISTAKES}
    spelt = {", ".join(map(str, colour)): style for style, colour in colours.MISTAKES.items()} | inks
    assert len(DRAWING) > 100
    for path in DRAWING:
        text = path.read_text(encoding="utf-8").lower()
        assert [style for ink, style in spelt.items() if ink in text] == [], path


def test_docs_have_the_colours_of_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs/site")
    drawing = importlib.import_module("drawing")
    assert [triple(ink) for ink in (drawing.TRUTH, drawing.PREDICTION, drawing.BOTH)] == [MISSING, SURPLUS, RIGHT]


def inks_of(style: str) -> list[tuple[int, ...]]:
    """Return the opaque colours of a style; later rules may only draw patterns on them or fill them."""
    rules = re.findall(rf"(?<![\w.-])\.{style.split(maxsplit=1)[0]} \{{([^}}]*background:[^}}]*)\}}", read_styles(()))
    assert len(rules) == 1, style
    return [triple(ink) for ink in re.findall(r"#\w{6}\b", rules[0])]


#: Of each kind of mistake that a family names, the family.
KINDS = {
    key.value: path.parent.name
    for path in sorted((ROOT / "segjudge/families").glob("*/*.py"))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
    if isinstance(node.targets[0], ast.Name) and node.targets[0].id in {"kinds", "KINDS", "_KINDS"}
    for key in node.value.keys
    if isinstance(key, ast.Constant) and isinstance(key.value, str)
}


def test_kinds_of_mistakes_have_the_colours_of_the_language_and_none_that_of_what_is_right() -> None:
    assert {"too little", "links", "withdrawn", "Dupe"} <= KINDS.keys()
    styles = {kind: colours.style_of_kind(kind, 1) for kind in KINDS}
    assert {kind for kind, style in styles.items() if style.startswith("kind-")} == set()
    assert (inks_of(styles["missed"]), inks_of(styles["surplus"])) == ([MISSING], [SURPLUS])
    for style in [*styles.values(), *(f"kind-{number}" for number in range(1, 7))]:
        assert set(inks_of(style)) & {RIGHT} == set(), style
    for style, colour in colours.MISTAKES.items():
        assert set(inks_of(style)) == {colour}, style


@pytest.mark.parametrize("cones", CONES)
@pytest.mark.parametrize(
    "styles", ["missing extra mixed merged split inexact right", "kind-1 kind-2 kind-3 kind-4 kind-5 kind-6"]
)
def test_all_eyes_tell_apart_the_colours_of_mistakes(cones: str, styles: str) -> None:
    inks = {style: RIGHT if style == "right" else inks_of(style)[0] for style in styles.split()}
    for (first, ink), (second, beside) in itertools.combinations(inks.items(), 2):
        seen = as_seen(np.array([ink, beside], float), cones)
        assert np.linalg.norm(seen[0] - seen[1]) > APART, (first, second)
