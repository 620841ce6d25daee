"""One colour code: docs, pages and pictures agree, and colour-blind readers can tell the colours apart."""

from __future__ import annotations

import ast
import itertools
import re

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from segjudge.report import colours
from segjudge.scoring import figures
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
        [
            116 * root[..., 1] - 16,
            500 * (root[..., 0] - root[..., 1]),
            200 * (root[..., 1] - root[..., 2]),
        ],
        axis=-1,
    )


def triple(text: str) -> tuple[int, ...]:
    """Return a colour that is written as #rrggbb, or as three numbers."""
    if text.startswith("#"):
        return tuple(bytes.fromhex(text[1:]))
    return tuple(map(int, re.findall(r"\d+", text)))


def read(path: str, pattern: str) -> list[tuple[int, ...]]:
    match = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"))
    assert match, path
    return [triple(text) for text in match.groups()]


NUMBERS = r"[\[(](\d+, \d+, \d+)[\])]"
#: The colours of missed, surplus and correct regions in every place that defines one.
WORDS = {
    "player": read(
        "segjudge/report/pages/frames_masks.js",
        rf"missing: {NUMBERS}, extra: {NUMBERS}, mixed: {NUMBERS}, right: {NUMBERS}",
    ),
    "legend": [
        *read("segjudge/report/pages/page.css", r"\.missing \{[^}]*?(#\w{6})"),
        *read("segjudge/report/pages/page.css", r"\.extra \{[^}]*?(#\w{6})"),
    ],
    "pictures": [colours.RIGHT, colours.MISSING, colours.SURPLUS],
    "key": [
        *read("segjudge/families/instances/pages/page.css", r"\.key\.right \{ background: (#\w{6})"),
        *read("segjudge/families/instances/pages/page.css", r"\.key\.missed \{ background: (#\w{6})"),
        *read("segjudge/families/instances/pages/page.css", r"\.key\.wrong \{ background: (#\w{6})"),
    ],
    "docs": read("docs/site/drawing.py", r'TRUTH, PREDICTION, BOTH = "(#\w{6})", "(#\w{6})", "(#\w{6})"'),
}
MISSING, SURPLUS, OTHER, RIGHT = WORDS["player"]


def test_docs_pages_and_pictures_speak_one_language() -> None:
    assert WORDS["legend"] == [MISSING, SURPLUS]
    assert WORDS["pictures"] == WORDS["key"] == [RIGHT, MISSING, SURPLUS]
    assert WORDS["docs"] == [MISSING, SURPLUS, RIGHT]


@pytest.mark.parametrize("cones", CONES)
def test_missing_surplus_and_right_are_told_apart_by_all_eyes(cones: str) -> None:
    seen = as_seen(np.array([MISSING, SURPLUS, RIGHT], float), cones)
    for first, second in itertools.combinations(seen, 2):
        assert np.linalg.norm(first - second) > APART


def inks_of(style: str) -> list[tuple[int, ...]]:
    """Return the opaque colours of a style; later rules may only draw patterns on them or fill them."""
    text = (ROOT / "segjudge/report/pages/page.css").read_text(encoding="utf-8")
    rules = re.findall(rf"(?<![\w.-])\.{style.split(maxsplit=1)[0]} \{{([^}}]*background:[^}}]*)\}}", text)
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
    for style in ("merged", "split", "inexact", "partial"):
        assert inks_of(style) == read("segjudge/report/pages/frames_segments.js", rf"[ {{]{style}: {NUMBERS}"), style


@pytest.mark.parametrize("cones", CONES)
@pytest.mark.parametrize(
    "styles", ["missing extra mixed merged split inexact right", "kind-1 kind-2 kind-3 kind-4 kind-5 kind-6"]
)
def test_all_eyes_tell_apart_the_colours_of_mistakes(cones: str, styles: str) -> None:
    inks = {style: RIGHT if style == "right" else inks_of(style)[0] for style in styles.split()}
    for (first, ink), (second, beside) in itertools.combinations(inks.items(), 2):
        seen = as_seen(np.array([ink, beside], float), cones)
        assert np.linalg.norm(seen[0] - seen[1]) > APART, (first, second)


#: The styles of kinds of mistakes in legends.
STYLES = ("missing", "extra", "mixed", "merged", "split", "inexact", "partial")


def inks_in(path: str, pattern: str) -> list[tuple[int, ...]]:
    """Return the colours of a file in a pattern's matches."""
    match = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), re.DOTALL)
    assert match, path
    return [triple(ink) for ink in re.findall(r"#\w{6}\b|\d+, \d+, \d+", match[0])]


#: The colours of methods, runs, teams, objects and classes in charts and pictures.
IDENTITIES = {
    "methods and runs": [triple(ink) for ink in colours.METHODS],
    "methods in the dark": [triple(ink) for ink in colours.METHODS_IN_DARK],
    "objects": list(colours.OBJECTS),
}
#: The mistakes of all families, and the correct answer.
MISTAKES = [RIGHT, *dict.fromkeys(ink for style in STYLES for ink in inks_of(style))]


def test_the_player_the_pictures_and_the_pages_have_one_palette_of_identities() -> None:
    assert inks_in("segjudge/report/pages/frames_masks.js", r"OBJECTS = \[.*?\];") == IDENTITIES["objects"]
    teams = inks_in("segjudge/server/static/page.css", r"\.team-1,.*?\.team-6[^}]*")
    assert teams[::2] == IDENTITIES["methods and runs"]
    assert teams[1::2] == IDENTITIES["methods in the dark"]


@pytest.mark.parametrize("cones", CONES)
@pytest.mark.parametrize(("palette", "apart"), [("methods and runs", 15), ("methods in the dark", 15), ("objects", 14)])
def test_no_identity_has_the_colour_of_a_mistake(palette: str, apart: float, cones: str) -> None:
    mistakes = as_seen(np.array(MISTAKES, float), cones)
    for ink in IDENTITIES[palette]:
        assert np.linalg.norm(mistakes - as_seen(np.array(ink, float), cones), axis=1).min() > apart, ink


def test_plots_have_the_inks_of_methods() -> None:
    assert colours.METHODS[:2] == (figures.INK, figures.ACCENT)
    for path in ("segjudge/scoring/figures.py", "segjudge/analysis/plots.py", "segjudge/interactive/runs.py"):
        assert set(re.findall(r"#[0-9a-f]{6}", (ROOT / path).read_text(encoding="utf-8"))) <= {figures.GREY}


@pytest.mark.parametrize("cones", CONES)
@pytest.mark.parametrize("palette", IDENTITIES)
def test_all_eyes_tell_apart_the_first_eight_identities(palette: str, cones: str) -> None:
    seen = as_seen(np.array(IDENTITIES[palette][:8], float), cones)
    for first, second in itertools.combinations(seen, 2):
        assert np.linalg.norm(first - second) > APART


@pytest.mark.parametrize(("palette", "ground"), [("methods and runs", "#ffffff"), ("methods in the dark", "#14181f")])
def test_names_in_the_colour_of_a_line_can_be_read(palette: str, ground: str) -> None:
    inks = np.array([triple(ground), *IDENTITIES[palette]], float) / 255
    light = np.where(inks <= 0.04045, inks / 12.92, ((inks + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722] + 0.05
    assert (np.maximum(light[1:], light[0]) / np.minimum(light[1:], light[0])).min() >= 4.5


def test_lines_of_many_methods_differ_in_their_dashes() -> None:
    assert len({colours.line_of_method(number) for number in range(24)}) == 24


#: Where a chart may have colours of its own: nowhere else does a file draw with one that is not in these.
CHARTS = sorted(
    str(path.relative_to(ROOT))
    for folder in ("analysis", "interactive", "report", "scoring", "server", "families")
    for ending in ("py", "js", "html", "css")
    for path in (ROOT / "segjudge" / folder).rglob(f"*.{ending}")
)
#: A cycle of foreign colours: matplotlib's, or a named colour map.
CYCLES = re.compile(r"""["']C\d|f["']C\{|tab\d+|["']viridis|color_cycle|prop_cycle|cmap=""")


@pytest.mark.parametrize("path", CHARTS)
def test_no_chart_takes_its_colours_from_elsewhere(path: str) -> None:
    assert not CYCLES.findall((ROOT / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("side", [400, 24])
@pytest.mark.parametrize("cones", CONES)
def test_the_logo_is_of_three_parts_to_all_eyes(cones: str, side: int) -> None:
    logo = Image.open(ROOT / "logo.png").convert("RGB").resize((side, side), Image.Resampling.LANCZOS)
    pixels = np.asarray(logo, float)
    # The truth alone, both, the prediction alone, the ground: from the left of a row through the middle of the masks.
    across = [round(side * share) for share in (0.22, 0.5, 0.78, 0.02)]
    seen = as_seen(pixels[round(side * 0.43), across], cones)
    for first, second in itertools.combinations(seen, 2):
        assert np.linalg.norm(first - second) > APART
