"""Methods compare and rank: tables, texts, documents and plots, and rejections, as one text.

    python -m tests.analysis.standings

writes it to `tests/golden/standings.txt`. Run it after an intended change, and review the difference.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
import re
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import segjudge
from segjudge.analysis.comparison import write_table
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.scoring import VERSION
from segjudge.report.page import render_page
from tests.answers import fold
from tests.calls import labels, run_session
from tests.pages import round_numbers

FILE = Path(__file__).parents[1] / "golden/standings.txt"
_NUMBERS = (
    "0.9 0.8 0.7 0.4 0.6 0.95 0.85 0.3 0.7 0.65 0.9 0.75", "0.8 0.8 0.6 0.5 0.5 0.9 0.8 0.2 0.6 0.7 0.8 0.75",
    "0.1 0.2 0.65 0.1 0.3 0.3 0.4 0.25 0.2 0.1 0.3 0.2", "0.8 0.7 NA 0.5 0.5 0.9 NaN 0.2 0.6 0.55 0.8 0.7",
)  # fmt: skip
#: Five rows or more of a table of Markdown, of a CSV or of the bars of a plot.
_ROWS = re.compile(
    r"(?m)(?:^    \| `.*\n){5,}|(?:^    all,.*\n){5,}|(?:^      \[\[.*\]\]\n){5,}|(?:^    v\d+ .*\n){5,}"
)
#: The number of tables of changes that are kept whole: those of the first comparison.
_WHOLE_TABLES = 2

SESSION = """
ranked(table(), *METHODS)
ranked(table(), *METHODS, smaller=True, average_ties=True)
ranked(table(), "median-then-rank", "test-then-rank", missing="last")
ranked(table(), "mean-then-rank", "rank-then-mean", "rank-then-median", missing="remove")
ranked(table(), "test-then-rank", adjustment="holm")
ranked(table("t1,t2"), "mean-then-rank")
ranked(table(sign=-1), "mean-then-rank", "rank-then-mean")
ranked(table(sign=-1), "mean-then-rank", missing="zero")
ranked(table("t1", sign=-1), "mean-then-rank", missing="zero")
ranked(table(sign=-1), "mean-then-rank", smaller=True)
ranked(table(names="ab"), "mean-then-rank")
ranked(table(names="aa"), "mean-then-rank")
ranked(table(names="a"), "mean-then-rank", "test-then-rank")
whole = rank(table(), draws=20)
dump(whole.document())
dump(rank(table("t1,t2"), draws=3, method="test-then-rank", smaller=True).document())
whole.verdict
whole.table.round(4).to_csv(index=False)
render(whole.make_page("Mine"))
render(rank(table("t1,t2"), draws=20).make_page())
for kind in ("stability", "places", "significance", "methods"): print(kind, *look(whole.plot(kind)), sep="\\n  ")
printed()
look(rank(table("t1,t2"), draws=20).plot("places", task="t2"))
look(rank(table(), draws=20, method="test-then-rank", missing="last").plot())
look(rank(table("_1,_2", names="_a _b"), draws=20).plot("methods", task="_1"))
rank(table("t1,t2"), draws=20).plot(task="t3")
rank(table("t1,t2"), draws=20).plot()
whole.plot("stabilty")

# Tables that are none
csv("algorithm,case\\na,b\\n")
csv("algorithm,case,value,value\\na,b,1,1\\n")
csv("algorithm,case,value,task,task\\na,b,1,t,t\\n")
csv("algorithm,case,value\\n")
csv("")
csv("algorithm,case,value\\na,b,0,5\\n")
csv("algorithm,case,value\\na,b,x\\n")
csv("algorithm,case,value\\na,b,inf\\n")
csv("algorithm,case,value\\na,b,1e101\\n")
csv("algorithm,case,value\\na,b,-1e100\\nb,b,1e100\\n")
csv("algorithm,case,value\\na,b,1\\na,b,1\\n")
csv("algorithm,case,value\\na,b\\n")
csv("algorithm, case, value\\na, b, 1\\nb, b, nan\\n")
csv(b"algorithm,case,value\\na,b,\\xff\\n")
csv('algorithm,case,value\\na,"b"c,1\\n')
csv("".join(["algorithm,case,value\\n", *(f"a{k},b,1\\n" for k in range(501))]))
csv("value,case,algorithm,task,more\\n0.5,b,a,t,1\\n0.25,b,c,t,2\\n0.25,b,c,s,2\\n")
rank("nothing.csv")
rank(table(), method="mean")

# Documents of `score --json`
good = {"protocol": "davis2017", "result": [{"val": {"J&F-Mean": 0.5, "J-Mean": 0.5}}], "objects": [{"split": "val", "sequence": s, "J&F-Mean": v, "J-Mean": None} for s, v in (("a", 0.75), ("b", 0.25))]}
best = changed(good, result=[{"val": {"J&F-Mean": 0.75, "J-Mean": 0.5}}], objects=[{"split": "val", "sequence": s, "J&F-Mean": v, "J-Mean": None} for s, v in (("a", 0.75), ("b", 0.75), ("c", 1.0))][:2])
documents(good, best)
documents(good, best, metric="J-Mean")
documents(good, best, metric="F-Mean")
documents(good, best, split="test")
documents(good)
documents(good, changed(best, protocol="davis2016"))
documents(good, changed(best, result=[{"val": {"J&F-Mean": 0.5}}]))
documents(good, changed(best, objects=best["objects"][:1], result=[{"val": {"J&F-Mean": 0.75}}]))
documents(good, changed(best, objects=best["objects"] * 2))
documents(good, changed(best, objects=[*best["objects"], {"split": "test", "sequence": "d"}]))
documents(good, changed(best, objects=[{**row, "J&F-Mean": "1"} for row in best["objects"]]))
documents(good, changed(best, objects=[{**row, "sequence": 5} for row in best["objects"]]))
documents(good, changed(best, result=[{"val": {"J&F-Mean": 1e101}}]))
documents(good, changed(best, result=[]))
documents(good, changed(best, result=[*best["result"], {"test": {}}]))
documents(good, [])
documents(good, {key: value for key, value in best.items() if key != "objects"})
origin = {"truth": "sha256:1", "protocols": {"val": {"revision": 2}}}
documents(changed(good, provenance=origin), best)
documents(changed(good, provenance=origin), changed(best, provenance={**origin, "truth": "sha256:2"}))
documents(changed(good, provenance=origin), changed(best, provenance={**origin, "protocols": {"val": {"revision": 3}}}))
documents(changed(good, provenance=origin), changed(best, provenance={**origin, "protocols": {"val": {"revision": 2, "changed": True}}}))
documents(changed(good, provenance=origin), changed(best, provenance=origin, rules={"val": {"skip": 1}}))
documents(changed(good, rules={"val": {"skip": 2}}), changed(best, rules={"val": {"skip": 1}}))
grouped = {"protocol": "coco", "result": [{"val": {"AP": 0.5, "AP50": 0.75}}], "groups": {"val": {"cases": "1", "values": {"AP": [0.25, 0.5, 0.75]}}}}
documents(grouped, changed(grouped, groups={"val": {"cases": "1", "values": {"AP": [0.5, 0.75, 0.75]}}}))
documents(grouped, changed(grouped, groups={"val": {"values": {"AP": [0.5, 0.75]}}}))
documents(grouped, changed(grouped, groups={"val": {"cases": "2", "values": {"AP": [0.5, 0.75, 1]}}}))
documents(grouped, changed(grouped, groups={"val": {"cases": "1", "values": {"AP": ["0.5", 0.75, 1]}}}))
documents(grouped, grouped, metric="AP50")
documents(grouped, grouped, metric="AP51")
documents(grouped, changed(good, protocol="coco", result=[{"val": {"AP": 0.5}}]))
rank("one.json", "one.json")
rank("x=one.json", "y=one.json", "z=zero.json")
rank("table.csv", "one.json")
rank(b="one.json")
rank()
rank(5)
rank(moved(1), "one.json")

# Scores
three = {"near": moved(1), "far": moved(4), "gone": moved(9, drop=True)}
compared = compare(three)
compared
dump(compared.document(kinds=True))
dump(compared.scores_by_case), compared.noun, compared.changes(), compared.places(), compared.gain, compared.describe_best()
compared.kinds_text()
compared.markdown()
compared.latex()
compared.latex(["J-Mean", "F-Decay", "J-Recall"])
compared.latex(["K-Mean"])
compared.table.round(4).to_csv(index=False), compared.differences.round(4).to_csv(index=False)
table_of(compared, "a.md"); table_of(compared, "b.tex"); table_of(compared, "c.html")
look(compared.plot())
compared.page()[:100] > ""
compare(three, metric="J-Mean").document(kinds=True)
compare(three, metric="J-Decay")
compare(three, metric="F")
compare({"near": three["near"]})
compare(three["near"], three["far"])
compare({"a": three["near"], "b": three["near"]})
compare({"a": three["near"], "b": three["near"]}).markdown()
compare({"a": three["far"], "b": three["near"]}).markdown(kinds=False)
compare({"a": three["near"], "b": moved(1, videos=3)})
compare({"a": moved(1, videos=14), "b": moved(5, videos=14)}).markdown()
compare({"a": moved(1, videos=10), "b": moved(9, videos=10)}).markdown()
compare({"a": three["near"], "b": moved(1, protocol="davis2016")})
compare({"a": three["near"], "b": moved(1, rule=True)})
compare(three, split="val")
compare({"a`|@x": moved(2, videos=2), "b_*": moved(3, videos=2)}).markdown()
compare({"a`|@x": moved(2, videos=2), "b_*%~^{}": moved(3, videos=2)}).latex(["J-Mean"])
kinds = {"near": {"missed": 0.05, "surplus": 0.02, "inexact": 0.05}, "same": {"missed": 0.05, "surplus": 0.02, "inexact": 0.05}, "far": {"missed": 0.05, "surplus": 0.06, "inexact": 0.4}}
costly = compare({name: replace(three[name if name != "same" else "near"], costs={"all": costs}) for name, costs in kinds.items()})
costly.kinds_text()
costly.markdown()
costly.kinds.to_csv(index=False), costly.describe_kinds()
dump(costly.document(kinds=True)["kinds"])
compare({**costly.methods, "gone": three["gone"]}).kinds_text()
compare({"far": costly.methods["far"], "near": costly.methods["near"]}).kinds_text()
rank(three, draws=20)
rank(three, draws=20, metric="F-Mean")
grey = compare({"near": grey_maps(30), "far": grey_maps(90), "other": grey_maps(60)}, metric="MAE")
grey
grey.gain, grey.describe_best(), [grey.sign(a, b) for a in three for b in ("near", "far") if a in grey.methods], grey.changes()[:3]
grey.markdown()
grey.latex(["MAE", "S"])
table_of(grey, "d.md")
grey.kinds_text()
rank(grey.methods, draws=20, metric="MAE")
images = compare({"near": detections(1), "far": detections(3)})
images
images.markdown()
images.latex()
compare({"near": detections(1), "less": detections(1, images=9)})
compare({"near": detections(1), "x": three["near"]})
images.for_metric("APl")
images.for_metric("AP51")
rank(images.methods, draws=20)
rank(images.methods, draws=20, metric="APl")
for scores in (three["far"], grey.methods["far"], images.methods["far"]): print(*look(scores.plot()), sep="\\n  ")
printed()
look(three["far"].plot("F-Mean", split="all"))
three["far"].plot("K")
grey.methods["far"].plot("wX")
[three["far"].interval("J&F-Mean"), three["far"].interval("J-Mean", 0.5), images.methods["far"].interval("AP"), moved(1, videos=1).interval("J-Mean")]
three["far"].interval("K")
three["far"].interval("J-Mean", 1)
three["far"].interval("J-Mean", "0.95")
three["far"].interval("J-Mean", split="x")
three["far"].flat("val/")
{**three}["far"]["J-Mean"], "J-Mean" in three["far"], "AP" in three["far"], list(images.methods["far"])[:3], three["far"] == three["far"], three["far"] == three["near"], three["far"] == 5
three["far"].title, three["far"].is_on_files, three["far"].warnings, three["gone"].warnings
three["far"].kinds
three["far"].open_inputs()
three["far"].objects.round(4).to_csv(index=False)
three["gone"].frames.round(4).head(12).to_csv(index=False)
images.methods["far"].images.to_csv(index=False)
images.methods["far"].categories.round(4).to_csv(index=False)
images.methods["far"].curves.round(4).iloc[::97].to_csv(index=False)
images.methods["far"].frames
three["far"].table("nobody")
three["far"]
images.methods["far"]
grey.methods["far"]
"""


def write_standings() -> str:
    """Run the session in a new folder, and return its output."""
    printed = io.StringIO()
    space = {
        "rank": segjudge.rank, "replace": replace, "compare": segjudge.compare, "METHODS": segjudge.analysis.METHODS, "ranked": _rank_by,
        "table": _write_csv, "csv": _rank_csv, "dump": _dump, "render": _render, "look": _look,
        "changed": lambda document, **changes: {**copy.deepcopy(document), **changes}, "documents": _rank_documents,
        "moved": _move, "grey_maps": _make_grey_maps, "detections": _detect, "table_of": _write_table,
        "print": print, "printed": lambda: (printed.getvalue(), printed.seek(0), printed.truncate())[0],
    }  # fmt: skip
    with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
        warnings.simplefilter("ignore")
        return fold(_thin_tables(run_session(SESSION, space).replace(VERSION, "VERSION")))


def _thin_tables(text: str) -> str:
    """Return the text with long tables cut to their first two rows, their last one, and the number of rows between.

    The first table of comparisons that has all columns stays whole: it shows the order of the rows.
    """
    tables = iter(range(text.count("\n")))

    def thin(run: re.Match[str]) -> str:
        rows = run[0].splitlines()
        if rows[0].startswith("    | `v") and next(tables) < _WHOLE_TABLES:
            return run[0]
        return "\n".join([*rows[:2], f"    … {len(rows) - 3} more", rows[-1], ""])

    return _ROWS.sub(thin, text)


# ── tables and documents ────────────────────────────────────────────────────


def _write_csv(tasks: str = "", names: str = "good near poor some", sign: int = 1) -> str:
    lines = [f"algorithm,case,value{',task' if tasks else ''}"]
    for shift, task in enumerate(tasks.split(",")):
        for name, numbers in zip(names.split() if " " in names else names, _NUMBERS, strict=False):
            for case, number in enumerate(numbers.split()[shift:]):
                value = number if number.startswith("N") else f"{sign * float(number)}"
                lines.append(f"{name},c{case},{value}{f',{task}' if tasks else ''}")
    return _write("table.csv", "\n".join(lines))


def _write(name: str, text: str | bytes) -> str:
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def _rank_by(path: str, *methods: Any, **options: Any) -> str:
    """Rank by several methods, and show the columns with each method's ranks in the first table only."""
    output: dict[str, list[str]] = {}
    for number, method in enumerate(methods):
        try:
            ranking = segjudge.rank(path, method=method, draws=20, **options)
            text = "\n".join([ranking.text(), *ranking.notes])
            text = _leave_out_columns(text) if number else text
        except segjudge.UsageError as error:
            text = f"{type(error).__name__}: {error}"
        output.setdefault(text, []).append(method)
    return "\n".join(f"{', '.join(names)}\n{text}" for text, names in output.items())


def _leave_out_columns(text: str) -> str:
    """Return the text with each table row in one line: rank, algorithm, value, interval, and worse methods."""
    rows = re.sub(r"(?m)^(?!Kendall|all tasks)(\S+  .*)\n", lambda row: f"{' '.join(row[1].split()[:5])}; ", text)
    return re.sub(r"(?m)^rank algorithm value 95 %; |\n(?=\n|$)", "", rows)


def _rank_csv(text: str | bytes) -> str:
    return segjudge.rank(_write("given.csv", text), draws=2).text()


def _rank_documents(*documents: Any, **options: Any) -> str:
    names = ("zero", "one", "two")
    paths = [_write(f"{name}.json", json.dumps(document)) for name, document in zip(names, documents, strict=False)]
    return segjudge.rank(*paths, draws=2, **options).text()


def _dump(document: Any) -> str:
    return round_numbers(json.dumps(document, ensure_ascii=False)).replace("}, ", "},\n")


def _render(page: Any) -> str:
    """Return the text of a page's sections and a digest of their HTML; other tests note the rest."""
    html = render_page(page)
    sections = round_numbers(html[html.index("<section") : html.rindex("</section>")])
    cells = re.sub(r"</t[hd]><t[hd][^>]*>", " | ", re.sub(r"</tr>\s*<tr>", " || ", sections))
    words = [line.strip() for line in re.sub(r"<[^>]+>", "", cells).splitlines() if line.strip()]
    return "\n".join([f"{page.title}: {hashlib.sha256(sections.encode()).hexdigest()[:16]}", *words])


def _write_table(compared: Any, path: str) -> str:
    return write_table(compared, path, ["J-Mean", "J&F-Mean"] if "J-Mean" in compared.protocol.metrics else ["MAE"])


# ── plots ───────────────────────────────────────────────────────────────────


def _look(figure: Any) -> list[str]:
    """Describe a figure: its size, and the texts, lines, points and bars of each axis."""
    lines = [f"{figure.get_size_inches().round(3).tolist()}"]
    for axes in figure.axes:
        texts = [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), *(text.get_text() for text in axes.texts)]
        legend = axes.get_legend()
        lines.append(f"{texts} {axes.get_aspect()}")
        if legend:
            place = legend.get_bbox_to_anchor().transformed(axes.transAxes.inverted()).bounds
            texts = legend.get_texts()
            lines.append(f"{[text.get_text() for text in texts]} {texts[0].get_fontsize()} {_shape(place)}")
        for axis in (axes.xaxis, axes.yaxis):
            ticks = axis.get_ticklabels()
            names, (last,) = [label.get_text() for label in ticks], ticks[-1:]
            lines.append(f"{_shape(axis.get_view_interval())} {names} {last.get_rotation()} {last.get_ha()}")
        lines += _group(
            (
                _shape(line.get_xydata()),
                f"{line.get_color()} {line.get_linestyle()} {line.get_marker()} {_stroke(line)}",
            )
            for line in axes.lines
        )
        lines += [
            f"{_shape(patch.get_path().transformed(patch.get_patch_transform()).vertices)}" for patch in axes.patches
        ]
        marks = []
        for group in axes.collections:
            sizes = group.get_sizes() if hasattr(group, "get_sizes") else [path.vertices for path in group.get_paths()]
            marks.append(
                (f"{_shape(group.get_offsets())} {_shape(group.get_facecolor())}", f"{_shape(sizes)} {_stroke(group)}")
            )
        lines += _group(marks)
        lines += _group(
            (f"{text.get_position()}", f"{text.get_color()} {text.get_ha()} {text.get_va()} {text.get_weight()}")
            for text in axes.texts
        )
    return lines


def _group(artists: Iterable[tuple[str, str]]) -> list[str]:
    """Return one line per style, with the positions of all artists that have it."""
    places: dict[str, list[str]] = {}
    for place, style in artists:
        places.setdefault(style, []).append(place)
    return [f"{'; '.join(same)}: {style}" for style, same in places.items()]


def _stroke(artist: Any) -> list[Any]:
    """Describe the widths, transparency and order of lines."""
    return [np.round(artist.get_linewidth(), 3).tolist(), artist.get_alpha(), artist.get_zorder()]


def _shape(values: Any) -> str:
    return str(np.round(np.asarray(values, float), 3).tolist())


# ── scores ──────────────────────────────────────────────────────────────────


def _move(shift: int, videos: int = 8, *, drop: bool = False, protocol: Any = "davis2017", rule: bool = False) -> Any:
    """Return videos with a square and a bar, and predictions whose offset grows from video to video."""
    truths, predictions = {}, {}
    for number in range(videos):
        frames = np.zeros((6, 40, 60), np.uint8)
        for frame in range(6):
            frames[frame, 10:30, 5 + number + frame : 25 + number] = 1
            frames[frame, 32:36, 10 : 30 + frame] = 2
        name = f"v{number}"
        truths[name], predictions[name] = frames, np.roll(frames, shift + shift * number // 4, axis=2)
        if drop and number % 2:
            predictions[name][3:] = 0
            predictions[name][1, :5, :5] = 3
    row = (
        replace(PROTOCOLS[protocol], proposals=0, decimals=3)
        if rule and hasattr(PROTOCOLS[protocol], "decimals")
        else PROTOCOLS[protocol]
    )
    return segjudge.score_arrays(predictions, truths, row)


def _make_grey_maps(value: int) -> Any:
    square = labels("00000000 01110000 01111100 00000000")
    truths = [np.roll(square > 0, number % 3, 1) for number in range(12)]
    maps = [np.where(mask, 255 - value, value + 5 * number).astype(np.uint8) for number, mask in enumerate(truths)]
    return segjudge.score_arrays(maps, truths, "sod")


def _detect(shift: int, images: int = 12) -> Any:
    """Return images with a small and a large square, and detections with an extra one in every third image."""
    truths, predictions = [], []
    for number in range(images):
        masks = np.zeros((2, 50, 120), bool)
        masks[0, 5:25, 5 : 25 + number], masks[1, 8:48, 60:118] = True, True
        results = np.roll(masks, shift + number % 4, axis=2)
        truths.append({"masks": masks, "labels": [1, 2]})
        sent = [*results, results[0]] if number % 3 == 0 else [*results]
        scores = [0.9 - number / 50, 0.8, 0.3][: len(sent)]
        predictions.append({"masks": np.stack(sent), "labels": [1, 2, 2][: len(sent)], "scores": scores})
    return segjudge.score_arrays(predictions, truths, "coco")


if __name__ == "__main__":
    FILE.write_text(write_standings())
