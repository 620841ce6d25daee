"""Results in Python are shown as text, page, Markdown, LaTeX, figure and notebook cell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from PIL import Image

import segjudge
from segjudge import Comparison, Scores, UsageError, cli
from segjudge.analysis import standings
from segjudge.analysis.comparison import write_table
from segjudge.analysis.statistics import Sums, compare_pairs, describe_pair
from segjudge.families import tools_of
from segjudge.report import colours
from segjudge.report.page import PageOptions
from segjudge.report.tables import Look, format_table
from segjudge.scoring import parts
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


def test_a_comparison_says_what_the_command_prints(
    comparison: Comparison, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main([*COMMAND, "--kinds", "--out", str(tmp_path / "a.html"), "--json", str(tmp_path / "a.json")]) == 0
    printed = capsys.readouterr().out
    assert printed == f"{comparison!r}\n{comparison.kinds_text()}\n"
    comparison.report(tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert json.loads((tmp_path / "a.json").read_text()) == comparison.document(kinds=True)
    assert comparison.verdict in printed


def test_a_ranking_says_what_the_command_prints(
    scored: dict[str, Scores], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = [str(tmp_path / f"{name}.segjudge") for name in NAMES]
    for scores, path in zip(scored.values(), files, strict=True):
        scores.save(path)
    assert cli.main(["rank", *files, "--out", str(tmp_path / "a.html"), "--json", str(tmp_path / "a.json")]) == 0
    ranking = segjudge.rank(scored)
    assert capsys.readouterr().out == f"{ranking!r}\n"
    assert json.loads((tmp_path / "a.json").read_text()) == ranking.document()
    ranking.report(tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert ranking.verdict == "J&F-Mean: strong is first over 3 cases, and does not differ significantly from lagging."
    assert list(ranking.table["algorithm"]) == ["strong", "lagging"]
    assert segjudge.rank(*files).document() == ranking.document()


def test_a_ranking_notes_an_unknown_direction(scored: dict[str, Scores], monkeypatch: pytest.MonkeyPatch) -> None:
    assert segjudge.rank(scored).notes == []
    monkeypatch.setattr(standings, "describe_direction", lambda metric, protocol: f"no direction: {metric}, {protocol}")
    assert segjudge.rank(scored).notes == ["no direction: J&F-Mean, davis2017"]


def test_scores_write_the_page_of_the_command(
    scored: dict[str, Scores], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, truth = str(EXAMPLES / "lagging.zip"), str(TRUTH)
    arguments = ["report", results, "--truth", truth, "--split", "dev", "--out", str(tmp_path / "a.html")]
    assert cli.main(arguments) == 0
    scored["lagging"].report(tmp_path / "b.html", title="lagging.zip")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    capsys.readouterr()


def test_scores_without_files_have_a_page_of_what_they_hold(scored: dict[str, Scores], tmp_path: Path) -> None:
    scored["lagging"].save(tmp_path / "run.segjudge")
    for scores in (segjudge.load(tmp_path / "run.segjudge"), moved(3)):
        page = scores.page(title="Ours")
        assert "<title>Ours</title>" in page
        assert 'id="tables"' in page
        assert 'id="sequences"' in segjudge.compare({"a": scores, "b": scores}).page()
        with pytest.raises(UsageError, match="need results that `score` read from files"):
            scores.film(tmp_path / "film.png")


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


def test_saved_scores_are_compared_without_the_truth(
    scored: dict[str, Scores], comparison: Comparison, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, scores in scored.items():
        scores.save(tmp_path / f"{name}.scores")
    saved = [str(tmp_path / f"{name}.scores") for name in NAMES]
    assert cli.main(["compare", *saved, "--out", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().out == f"{comparison.text()}\n"
    assert "lagging − strong" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert cli.main(["compare", *saved, "--kinds"]) == 2
    assert "--kinds needs --truth or --phase, or scores that `score --save` wrote" in capsys.readouterr().err
    assert cli.main(["compare", *saved, "--film", str(tmp_path / "film.png")]) == 2
    assert "--film needs --truth or --phase: saved scores hold no masks" in capsys.readouterr().err
    assert cli.main(["compare", f"a={saved[0]}", f"b={EXAMPLES / 'strong.zip'}"]) == 2
    sentence = capsys.readouterr().err
    assert "compare needs a truth: --truth PATH and --protocol NAME, or --phase CODENAME" in sentence
    assert "was written neither by `score --part` nor by `score --save`" in sentence


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


@pytest.mark.parametrize("costs", [3, {"dev": 3}, {"dev": {"leak": "much"}}, {"dev": {"leak": float("nan")}}])
def test_costs_that_are_none_are_one_sentence(scored: dict[str, Scores], tmp_path: Path, costs: Any) -> None:
    path = tmp_path / "run.segjudge"
    parts.save(str(path), scored["strong"].reports, [], scored["strong"].provenance, costs)
    with pytest.raises(UsageError, match="has a manifest that cannot be read"):
        segjudge.load(path)


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


def test_a_metric_without_kinds_is_compared_where_no_kinds_are_shown(
    scored: dict[str, Scores], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    saved, scored_now = NAMES[:2], [str(EXAMPLES / f"{name}.zip") for name in NAMES[:2]]
    for name in saved:
        scored[name].save(name)
    for arguments in (saved, [*scored_now, "--truth", str(TRUTH), "--split", "dev"]):
        assert cli.main(["compare", *arguments, "--metric", "J-Decay"]) == 0
        assert capsys.readouterr().out.startswith("J-Decay over ")


def test_every_metric_of_a_report_can_be_asked_for(scored: dict[str, Scores]) -> None:
    report = scored["strong"].choose_report()
    instances = segjudge.score(
        ROOT / "examples/instances-dev/sharp.json", ROOT / "annotations/instances-dev.zip", "places2017"
    )
    from segjudge.analysis.comparison import choose_metric

    for values, protocol in (
        (report.values, report.protocol),
        *((report.values, report.protocol) for report in instances.reports),
    ):
        assert [choose_metric(protocol, metric) for metric in values] == list(values)


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


def test_a_pull_request_sees_what_grew_what_shrank_and_what_flipped(comparison: Comparison) -> None:
    text = comparison.markdown()
    assert text.startswith("### J&F-Mean: 0.933 → 0.445 (-0.488, not significantly different)\n")
    assert "| leak | 0.000 | 0.146 | +0.146 ▲ grew |" in text
    assert "that crossed one half: 2 of 3** (2 fell below it, 0 rose to it or above)" in text
    assert "| `crossing` | 0.942 | 0.407 | -0.536 |" in text
    assert re.search(r", truth [0-9a-f]{12}</sub>", text)
    assert "| `solo` |" in text.partition("<details><summary>Largest changes</summary>")[2]
    other_way = segjudge.compare({name: comparison.methods[name] for name in reversed(NAMES)}).markdown()
    assert "| leak | 0.146 | 0.000 | -0.146 ▼ shrank |" in other_way
    assert "(0 fell below it, 2 rose to it or above)" in other_way


def test_names_are_nothing_but_text_in_markdown() -> None:
    odd = "a|b `@all` <img src=x> [x](y)"
    text = segjudge.compare({odd: moved(0), "*bold*": moved(3)}).markdown()
    assert "| `a\\|b '@all' <img src=x> [x](y)` |" in text
    verdict = next(line for line in text.splitlines() if line.startswith("- "))
    assert verdict.startswith(r"- a\|b \`\@all\` \<img src=x\> \[x\](y) − \*bold\*: +")


@pytest.mark.parametrize(("least", "code"), [("-0.4", 4), ("-0.5", 0), ("0.1", 4)])
def test_a_loss_beyond_the_threshold_fails(least: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*COMMAND, "--fail-below", least]) == code
    text = "lagging loses 0.488 J&F-Mean against strong; --fail-below asks for at least "
    assert (text in capsys.readouterr().err) == bool(code)


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


def test_nothing_is_bold_where_three_sequences_tell_nothing(comparison: Comparison, tmp_path: Path) -> None:
    for ending in ("tex", "md"):
        assert cli.main([*COMMAND, "--table", str(tmp_path / f"t.{ending}")]) == 0
    assert r"\textbf" not in (tmp_path / "t.tex").read_text()
    assert (tmp_path / "t.tex").read_text() == comparison.latex()
    table = (tmp_path / "t.md").read_text()
    assert table.startswith("| method | J&F-Mean ↑ | J-Mean ↑ | J-Recall ↑ | J-Decay ↓ | F-Mean ↑ | F-Recall ↑ |")
    assert "**" not in table


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


def test_films_and_pages_speak_one_language_of_colour(scored: dict[str, Scores]) -> None:
    page = scored["lagging"].make_page(PageOptions(), "lagging")
    (player,) = (section for section in page.sections if section.id == "frames")
    data: Any = player.data
    assert data["colours"] == {"mistakes": colours.MISTAKES, "objects": colours.OBJECTS}


# ── notebooks ───────────────────────────────────────────────────────────────


def test_a_notebook_sees_bar_kinds_and_the_worst_frames_on_light_and_dark_pages(scored: dict[str, Scores]) -> None:
    text = scored["lagging"]._repr_html_()
    assert "<b>J&amp;F-Mean is 0.445.</b> The masks of all 3 sequences are 3 frames late." in text
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


def test_a_notebook_shows_numbers_where_files_are_gone(tmp_path: Path) -> None:
    results = tmp_path / "results.zip"
    results.write_bytes((EXAMPLES / "lagging.zip").read_bytes())
    scores = segjudge.score(results, TRUTH, split="dev")
    results.unlink()
    for text in (scores._repr_html_(), moved(3)._repr_html_()):
        assert "data:image" not in text
        assert "<th>J&amp;F-Mean</th>" in text


def test_a_notebook_shows_comparisons_rankings_and_other_families(
    scored: dict[str, Scores], comparison: Comparison
) -> None:
    text = comparison._repr_html_()
    assert text.count("data:image/") == 8
    assert "lagging loses 0.488 more than strong: leak +0.146" in text
    assert "strong is first over 3 cases" in segjudge.rank(scored)._repr_html_()
    instances = segjudge.score(
        ROOT / "examples/instances-dev/coarse.json", ROOT / "annotations/instances-dev.zip", "places2017"
    )
    text = instances._repr_html_()
    assert "would raise AP at an IoU of .50 by" in text
    assert "aria-label" not in text, "kinds whose costs sum to nothing make no bar"
    assert "data:image" not in text


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


def test_plots_draw_scores_comparisons_and_rankings(scored: dict[str, Scores], comparison: Comparison) -> None:
    axes = scored["lagging"].plot().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["crossing", "late-guest", "solo"]
    assert len(comparison.plot().axes[0].lines) == 4
    figure = segjudge.rank(scored).plot()
    figure.draw_without_rendering()
    assert figure.axes[0].title.get_window_extent().x1 <= figure.bbox.x1
    assert figure.axes[0].title.get_window_extent().x0 >= 0
    ranking = segjudge.rank(scored)
    assert "does the method of ranking matter" in ranking.plot("methods").axes[0].get_title()
    axes, spread = ranking.plot("stability").axes[0], ranking.tasks[0].stability
    order = [ranking.tasks[0].scores.algorithms.index(label.get_text()) for label in axes.get_xticklabels()]
    (ranges,) = (part for part in axes.collections if isinstance(part, LineCollection))
    lows_and_highs = [[[column, spread[end][row]] for end in ("low", "high")] for column, row in enumerate(order)]
    assert [segment.tolist() for segment in ranges.get_segments()] == lows_and_highs
    assert list(axes.lines[-1].get_ydata()) == [spread["median"][row] for row in order]
    with pytest.raises(UsageError, match="there is no plot 'method'.*did you mean methods"):
        ranking.plot("method")
    with pytest.raises(UsageError, match="sequences have no J-Meen.*did you mean J-Mean"):
        scored["lagging"].plot("J-Meen")


# ── tables that fit ─────────────────────────────────────────────────────────


def test_a_table_fits_its_width_or_goes_on_below() -> None:
    header, rows = ["a long name of something", *"bcd"], [["x" * 60, "0.123", "0.456", "0.789"], ["y", "1", "2", "3"]]
    assert "\n\n" not in format_table(header, rows)
    text = format_table(header, rows, Look(34))
    assert max(map(len, text.splitlines())) <= 34
    assert text.split("\n\n")[1].splitlines()[0].split() == ["a", "long", "n…omething", "d"]
    assert "…" in text
    for line in text.replace("\n\n", "\n").splitlines():
        assert line.rstrip() == line


def test_a_ranking_has_the_value_of_the_board_where_sequences_have_other_numbers_of_objects(
    comparison: Comparison,
) -> None:
    ranked = segjudge.rank(comparison.methods)
    counts = comparison.sums.counts.tolist()
    assert len(set(counts)) > 1, "sequences have other numbers of objects"
    values = {row["algorithm"]: row["value"] for row in ranked.tasks[0].rows()}
    assert values == pytest.approx({mean.name: mean.value for mean in comparison.means}, abs=1e-12)
    means = segjudge.rank(comparison.methods, method="rank-then-mean").tasks[0].rows()
    assert [row["algorithm"] for row in means] == list(values)


def test_a_best_method_is_set_beside_one_that_it_cannot_be_told_apart_from() -> None:
    sums = np.array([[0.98] * 6, [0.84] * 6, [1.2, 0.4, 1.2, 0.4, 1.2, 0.4]])
    comparison = Comparison("J&F-Mean", Sums(("careful", "coarse", "swapping"), sums, np.ones(6)), ["a", "b"])
    assert comparison.sign("careful", "swapping") == "="
    assert comparison.describe_best().endswith("J&F-Mean is 0.980, against 0.840 for coarse.") == (
        comparison.sign("careful", "coarse") == "="
    )
    assert "swapping" in comparison.describe_best()


@pytest.mark.parametrize("rivals", [1, 5])
def test_how_many_cases_a_difference_takes_is_more_than_there_are(rivals: int) -> None:
    random = np.random.default_rng(rivals)
    for _ in range(20):
        sums = 0.5 + np.concatenate([np.zeros((1, 12)), random.normal(0.05, 0.1, (rivals, 12))])
        table = Sums(tuple("abcdef"[: rivals + 1]), sums, np.ones(12))
        for pair in compare_pairs(table):
            text = describe_pair(pair, table)
            if "takes about" in text:
                assert int(text.rpartition(" ")[2].rstrip(".")) > 12
