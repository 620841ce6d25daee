"""Results in Python are shown as text, page, Markdown, LaTeX, figure and notebook cell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import segjudge
from segjudge import Comparison, Scores, UsageError, cli
from segjudge.analysis.comparison import write_table
from segjudge.families import tools_of
from tests.builders import ROOT

EXAMPLES = ROOT / "examples/sequences-dev"
TRUTH = ROOT / "annotations/sequences-dev.zip"
NAMES = ("strong", "lagging")
METHODS = [f"{name}={EXAMPLES / name}.zip" for name in NAMES]
COMMAND = ["compare", *METHODS, "--truth", str(TRUTH), "--split", "dev"]


@pytest.fixture(scope="module")
def scored() -> dict[str, Scores]:
    return {name: segjudge.score(EXAMPLES / f"{name}.zip", TRUTH, split="dev") for name in NAMES}


@pytest.fixture(scope="module")
def comparison(scored: dict[str, Scores]) -> Comparison:
    return segjudge.compare(scored)


def moved(shift: int, videos: int = 8) -> Scores:
    """Return videos with a square, and predictions whose offset grows from video to video."""
    truths, predictions = {}, {}
    for number in range(videos):
        truths[f"v{number}"] = np.zeros((4, 60, 80), np.uint8)
        truths[f"v{number}"][:, 20:40, 10:40] = 1
        predictions[f"v{number}"] = np.roll(truths[f"v{number}"], shift + shift * number // 8, axis=2)
    return segjudge.score_arrays(predictions, truths, "davis2017")


# ── one path for commands and Python ────────────────────────────────────────


def test_what_the_tables_of_a_comparison_hold(comparison: Comparison) -> None:
    assert list(comparison.table["name"]) == ["strong", "lagging"]
    assert list(comparison.table["value"]) == pytest.approx([comparison.methods[name]["J&F-Mean"] for name in NAMES])
    assert comparison.differences["difference"][0] == pytest.approx(-np.diff(comparison.table["value"])[0])
    losses = comparison.kinds.set_index("method").sum(axis=1)
    assert losses.tolist() == pytest.approx([1 - value for value in comparison.table["value"]])
    assert [change.case for change in comparison.changes()] == ["crossing", "late-guest", "solo"]
    assert {change.case for change in comparison.changes() if change.has_flipped} == {"crossing", "late-guest"}
    ends = re.findall(r'<path d="M([-.\d]+) 0H([-.\d]+)"/><path class="mean"', comparison.page())
    lowest, highest = zip(*ends, strict=True)
    assert (min(map(float, lowest)), max(map(float, highest))) == (0, 100), "intervals fill their pictures"


def test_what_score_saves_tells_kinds_of_failure_too(
    comparison: Comparison, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth, saved = str(TRUTH), [str(tmp_path / f"{name}.segjudge") for name in NAMES]
    for name, path in zip(NAMES, saved, strict=True):
        arguments = ["score", str(EXAMPLES / f"{name}.zip"), "--truth", truth, "--protocol", "davis2017"]
        assert cli.main([*arguments, "--save", path]) == 0
    capsys.readouterr()
    written = [str(tmp_path / "page.html"), str(tmp_path / "kinds.md")]
    assert cli.main(["compare", *saved, "--kinds", "--out", written[0], "--markdown", written[1]]) == 0
    assert capsys.readouterr().out == f"{comparison.text()}\n{comparison.kinds_text()}\n"
    assert Path(written[1]).read_text(encoding="utf-8") == comparison.markdown()
    assert "leak" in Path(written[0]).read_text(encoding="utf-8")
    loaded = segjudge.load(saved[0])
    loaded.save(tmp_path / "again.segjudge")
    assert (tmp_path / "again.segjudge").read_bytes() == Path(saved[0]).read_bytes()


# ── refusals ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--metric", "J-Deca"], "davis2017 has no metric J-Deca, only J&F-Mean, "),
        (["--metric", "J-Decay", "--kinds"], "--kinds does not apply to J-Decay, only to J&F-Mean"),
        (["--metric", "J-Decay", "--out", "a.html"], "--out does not apply to J-Decay, only to J&F-Mean"),
        (["--table", "a.doc"], "a.doc: name the table FILE.tex or FILE.md"),
        (["--film", "a.gif"], "a.gif: end the figure's name in svg, png, pdf"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_scored(
    arguments: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.zip", "b.zip", "truth.zip"):
        (tmp_path / name).write_bytes(b"cannot be scored")
    assert cli.main(["compare", "a.zip", "b.zip", "--truth", "truth.zip", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_scores_of_other_truths_are_not_compared(scored: dict[str, Scores]) -> None:
    strong = scored["strong"]
    with pytest.raises(UsageError, match="b and a were scored on different truths"):
        segjudge.compare({"a": strong, "b": replace(strong, provenance={**strong.provenance, "truth": "zip:0"})})
    with pytest.raises(UsageError, match="two have the name strong; name them"):
        segjudge.compare(strong, strong)
    with pytest.raises(UsageError, match="needs at least two results"):
        segjudge.compare(strong)
    with pytest.raises(UsageError, match="is not scores: segjudge.score and segjudge.load return scores"):
        segjudge.compare({"a": "a.zip"})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="rank takes scores or files, not both"):
        segjudge.rank(strong, "scores.csv")


# ── pull requests ───────────────────────────────────────────────────────────


def test_names_are_nothing_but_text_in_markdown() -> None:
    odd = "a|b `@all` <img src=x> [x](y)"
    text = segjudge.compare({odd: moved(0), "*bold*": moved(3)}).markdown()
    assert "| `a\\|b '@all' <img src=x> [x](y)` |" in text
    verdict = next(line for line in text.splitlines() if line.startswith("- "))
    assert verdict.startswith(r"- a\|b \`\@all\` \<img src=x\> \[x\](y) − \*bold\*: +")


@pytest.mark.long
def test_a_reader_that_leaves_early_neither_opens_the_gate_nor_keeps_files_from_being_written(tmp_path: Path) -> None:
    """As in `segjudge compare … --fail-below 0 | head -3`."""
    ours, theirs = os.pipe()
    os.close(ours)
    script = "import sys; from segjudge.cli import main; raise SystemExit(main())"
    outputs = {"--json": "compared.json", "--markdown": "compared.md", "--report": "compared.html"}
    words = [*COMMAND, "--kinds", "--fail-below", "0", *(word for pair in outputs.items() for word in pair)]
    done = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=tmp_path, stdout=theirs, stderr=subprocess.PIPE, check=False
    )
    os.close(theirs)
    assert done.returncode == 4, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(outputs.values())


def test_of_a_metric_whose_small_values_are_good_a_rise_is_a_loss(comparison: Comparison) -> None:
    decay = segjudge.compare(comparison.methods, metric="J-Decay")
    assert decay.gain == pytest.approx(-0.123, abs=0.001)
    assert decay.gain < 0 < comparison.methods["lagging"]["J-Decay"] - comparison.methods["strong"]["J-Decay"]  # type: ignore[operator]


# ── papers ──────────────────────────────────────────────────────────────────


def test_bold_is_whoever_can_be_told_apart_from_all_others() -> None:
    apart = segjudge.compare({"near_&_50%": moved(2), "far": moved(9)})
    text = apart.latex(["J-Mean", "J-Decay"])
    assert r"near\_\&\_50\% & \textbf{" in text
    assert text.count(r"\textbf") == 1, "their decay is the same"
    assert r"Method & J-Mean $\uparrow$ & J-Decay $\downarrow$ \\" in text
    value, low, high = re.search(r"far & ([\d.]+) .*\n.*?\[([\d.]+), ([\d.]+)\]", text).groups()  # type: ignore[union-attr]
    mean = apart.for_metric("J-Mean").means[-1]
    assert [float(value), float(low), float(high)] == [
        round(100 * item, 1) for item in (mean.value, mean.low, mean.high)
    ]  # type: ignore[operator]
    assert "**" in write_table(apart, "table.md", ["J-Mean"])


@pytest.mark.long
def test_a_filmstrip_has_the_resolution_of_print_and_outlines_as_vectors(
    scored: dict[str, Scores], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*COMMAND, "--sequence", "solo", "--frames", "00003,00005"]
    for name in ("a.png", "b.png", "a.svg", "a.pdf"):
        assert cli.main([*arguments, "--film", str(tmp_path / name)]) == 0
    capsys.readouterr()
    with Image.open(tmp_path / "a.png") as image:
        assert image.width == 2070, "6.9 inches at 300 dots"
        assert round(image.info["dpi"][0]) == 300
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    svg = (tmp_path / "a.svg").read_text()
    assert svg.count("<image ") == 6, "the truth and two methods in two frames"
    assert svg.count('id="QuadContourSet') == 6
    assert [name for name in ("truth", "strong", "lagging", "00003", "00005") if f"<!-- {name} -->" not in svg] == []
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    scored["lagging"].film(tmp_path / "errors.svg", errors=True, columns=3)
    assert (tmp_path / "errors.svg").read_text().count("<image ") == 3
    assert cli.main([*COMMAND, "--film", str(tmp_path / "c.png"), "--sequence", "sool"]) == 2
    assert "there is no sequence 'sool', only crossing, late-guest, solo; did you mean solo?" in capsys.readouterr().err
    assert cli.main([*arguments[:-1], "99999", "--film", str(tmp_path / "c.png")]) == 2
    assert "solo has no frame 99999" in capsys.readouterr().err


@pytest.mark.long
def test_a_filmstrip_needs_no_matplotlib(
    scored: dict[str, Scores], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segjudge.scoring.figures.find_spec", lambda _name: None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for name in ("a.png", "b.png", "a.svg", "a.pdf"):
        scored["lagging"].film(tmp_path / name, sequence="solo", frames=["00003", "00005"])
    with Image.open(tmp_path / "a.png") as image:
        assert image.width == 2070
        assert round(image.info["dpi"][0]) == 300
        colours_of_frames = {colour for _, colour in image.getcolors(1 << 24) or ()}
    assert {(255, 255, 255), (0, 0, 0)} < colours_of_frames
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert "data:image/png" in (tmp_path / "a.svg").read_text()
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_a_film_is_drawn_over_the_pictures_and_paints_what_is_wrong(scored: dict[str, Scores], tmp_path: Path) -> None:
    from segjudge.families.base.tools import FilmChoice, ScoredMethod

    assert cli.main(["demo", "--frames", str(tmp_path / "pictures")]) == 0
    scores = scored["lagging"]
    method = ScoredMethod("lagging", scores.open_inputs(), scores.choose_report(), {})
    draw_film = tools_of("sequences").draw_film
    film = draw_film([method], FilmChoice("crossing", ["00010"], errors=True))
    (cell,) = film.rows["lagging"]
    truth = np.logical_or.reduce([mask for _, mask in cell.outlines])
    ground = (cell.pixels == (58, 62, 70)).all(axis=2)
    assert not (ground & truth).any(), "whatever is true is right, missing or mixed up"
    assert len(np.unique(cell.pixels.reshape(-1, 3), axis=0)) == 5, "the ground, right, missing, too much, mixed up"
    folder = next(path for path in (tmp_path / "pictures").rglob("crossing") if path.is_dir())
    over = draw_film([method], FilmChoice("crossing", ["00010"], images=str(tmp_path / "pictures")))
    with Image.open(sorted(folder.glob("*"))[10]) as image:
        outside = ~np.logical_or.reduce([mask for _, mask in over.rows["truth"][0].outlines])
        assert (over.rows["truth"][0].pixels[outside] == np.asarray(image.convert("RGB"))[outside]).all()


# ── notebooks ───────────────────────────────────────────────────────────────


def test_a_notebook_sees_bar_kinds_and_the_worst_frames_on_light_and_dark_pages(scored: dict[str, Scores]) -> None:
    text = scored["lagging"]._repr_html_()
    assert "<b>J&amp;F-Mean is 0.445.</b> 56 of 87 masks are inexact: 27 % of their pixels are missing" in text
    assert "⚠ dev: each frame of the masks looks as if it belonged to the frame 3 places before its own" in text
    assert "Spilled pixels (leak) cause 26 % of the loss" in text
    assert text.count("data:image/") == 4
    assert 'class="kind shape leak"' in text
    assert ".segjudge .shape{background-color:" in text
    assert "[data-jp-theme-light=false] .segjudge" in text
    assert "color-scheme: light dark" in text
    used = {name for names in re.findall(r'class="([^"]*)"', text) for name in names.split()}
    assert {"bar", "kept", "swatch", "reel"} <= used
    assert ".poster" not in text, "what it does not need stays in the page"
    assert len(text) < 40_000
    assert "\n\n" not in text, "in Markdown HTML ends with an empty line"


def test_show_brings_the_page_below_a_cell_or_into_a_browser(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    published: list[dict[str, str]] = []
    shell = SimpleNamespace(kernel=object(), display_pub=SimpleNamespace(publish=published.append))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    comparison.show(title="Two")
    assert "&lt;title&gt;Two&lt;/title&gt;" in published[0]["text/html"]
    monkeypatch.delitem(sys.modules, "IPython")
    opened: list[str] = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("webbrowser.open", lambda address: not opened.append(address))  # type: ignore[func-returns-value]
    comparison.show()
    assert Path(opened[0].removeprefix("file://")).read_text(encoding="utf-8") == comparison.page()
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    with pytest.raises(UsageError, match="no browser was found; open "):
        comparison.show()
