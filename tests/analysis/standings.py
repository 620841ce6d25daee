"""Methods compare and rank: tables, texts, documents and plots, and rejections, as one text."""

from __future__ import annotations

import copy
import hashlib
import json
import re
import warnings
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
from tests.calls import labels, read_session, run_session
from tests.pages import round_numbers

FILE = Path(__file__).parents[1] / "golden/standings.txt"
_NUMBERS = (
    "0.9 0.8 0.7 0.4 0.6 0.95 0.85 0.3 0.7 0.65 0.9 0.75", "0.8 0.8 0.6 0.5 0.5 0.9 0.8 0.2 0.6 0.7 0.8 0.75",
    "0.1 0.2 0.65 0.1 0.3 0.3 0.4 0.25 0.2 0.1 0.3 0.2", "0.8 0.7 NA 0.5 0.5 0.9 NaN 0.2 0.6 0.55 0.8 0.7",
)  # fmt: skip
#: Five rows or more of a table of Markdown or of a CSV.
_ROWS = re.compile(r"(?m)(?:^    \| `.*\n){5,}|(?:^    all,.*\n){5,}|(?:^    v\d+ .*\n){5,}")


def write_standings() -> str:
    """Run the session in a new folder, and return its output."""
    space = {
        "rank": segjudge.rank, "replace": replace, "compare": segjudge.compare, "METHODS": segjudge.analysis.METHODS, "ranked": _rank_by,
        "table": _write_csv, "csv": _rank_csv, "dump": _dump, "render": _render, "look": _look,
        "changed": lambda document, **changes: {**copy.deepcopy(document), **changes}, "documents": _rank_documents,
        "moved": _move, "listed": _list, "changes": _list_changes, "grey_maps": _make_grey_maps, "detections": _detect, "table_of": _write_table,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fold(_thin_tables(run_session(read_session(FILE), space).replace(VERSION, "VERSION")))


def _thin_tables(text: str) -> str:
    """Return the text with long tables cut to their first two rows, their last one, and the number of rows between.

    The first one stays whole: it shows the order of the rows.
    """
    head, whole, rest = text.partition(_ROWS.search(text)[0])  # type: ignore[index]
    return head + whole + _ROWS.sub(_thin, rest)


def _thin(run: re.Match[str]) -> str:
    rows = run[0].splitlines()
    return "\n".join([*rows[:2], f"    … {len(rows) - 3} more", rows[-1], ""])


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
    """Rank by several methods, one line each: rank, algorithm, value, interval, and number of worse methods."""
    output = []
    for method in methods:
        try:
            output.append(f"{method}: {_list(segjudge.rank(path, method=method, draws=20, **options))}")
        except segjudge.UsageError as error:
            output.append(f"{method}: {type(error).__name__}: {error}")
    return "\n".join(output)


def _list(ranking: Any) -> str:
    """Return the text of a ranking in one line, without the ranks by other methods."""
    text = re.sub(
        r"(?m)^(?!Kendall|all tasks)(\S+  .*)\n", lambda row: f"{' '.join(row[1].split()[:5])}; ", ranking.text()
    )
    text = re.sub(r"rank algorithm value 95 %; |Kendall's (tau) between this .* rankings: ", r"\1 ", text)
    return " | ".join(filter(None, [*text.splitlines(), *ranking.notes]))


def _rank_csv(text: str | bytes) -> str:
    return _list(segjudge.rank(_write("given.csv", text), draws=2))


def _rank_documents(*documents: Any, **options: Any) -> str:
    names = ("zero", "one", "two")
    paths = [_write(f"{name}.json", json.dumps(document)) for name, document in zip(names, documents, strict=False)]
    return _list(segjudge.rank(*paths, draws=2, **options))


def _dump(document: Any) -> str:
    return round_numbers(json.dumps(document, ensure_ascii=False)).replace("}, ", "},\n")


def _render(page: Any) -> str:
    """Return a page's title, its headings and sentences, and a digest of the HTML; other tests note the rest."""
    html = render_page(page)
    sections = round_numbers(html[html.index("<section") : html.rindex("</section>")])
    texts = re.findall(r"<(?:h2|p)[^>]*>(.*?)</(?:h2|p)>", sections)
    return "\n".join([f"{page.title}: {_digest(sections)}", *(re.sub(r"<[^>]+>", "", word) for word in texts)])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _list_changes(compared: Any) -> str:
    """Return a comparison's Markdown without its tables, except kinds of error; show their numbers of rows."""
    lines: list[str] = []
    for line in compared.markdown().splitlines():
        if re.match(r"###|\*\*|…|.* (?:▲ grew|▼ shrank|– \|$)", line):
            lines.append(line)
        elif line.startswith("| `"):
            rows = re.fullmatch(r"\((\d+) rows?\)", lines[-1])
            lines[-1:] = [f"({int(rows[1]) + 1} rows)"] if rows else [lines[-1], "(1 row)"]
    return "\n".join(lines)


def _write_table(compared: Any, path: str) -> str:
    return write_table(compared, path, ["J-Mean", "J&F-Mean"] if "J-Mean" in compared.protocol.metrics else ["MAE"])


# ── plots ───────────────────────────────────────────────────────────────────


def _look(figure: Any) -> str:
    """Return the texts of a figure, and a digest of the sizes, positions and colours of what it draws."""
    shown, shapes = list[str](), [f"{figure.get_size_inches().round(3).tolist()}"]
    for axes in figure.axes:
        legend = axes.get_legend()
        texts = [*axes.texts, *(legend.get_texts() if legend else [])]
        corner = legend.get_bbox_to_anchor().transformed(axes.transAxes.inverted()).bounds if legend else ()
        shapes += [f"{axes.get_aspect()} {_shape(corner)} {[text.get_fontsize() for text in texts]}"]
        shown += [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), *(text.get_text() for text in texts)]
        shapes += [f"{text.get_position()} {text.get_color()} {text.get_ha()} {text.get_weight()}" for text in texts]
        for axis in (axes.xaxis, axes.yaxis):
            ticks = axis.get_ticklabels()
            shown.append("/".join(label.get_text().strip() for label in ticks))
            shapes.append(f"{_shape(axis.get_view_interval())} {ticks[-1].get_rotation()} {ticks[-1].get_ha()}")
        for line in axes.lines:
            shapes.append(
                f"{_shape(line.get_xydata())} {line.get_color()} {line.get_linestyle()} {line.get_marker()} {_stroke(line)}"
            )
        for patch in axes.patches:
            shapes.append(_shape(patch.get_path().transformed(patch.get_patch_transform()).vertices))
        for group in axes.collections:
            sizes = group.get_sizes() if hasattr(group, "get_sizes") else [path.vertices for path in group.get_paths()]
            shapes += [_shape(group.get_offsets()), _shape(group.get_facecolor()), _shape(sizes), str(_stroke(group))]
    return f"{_digest(chr(10).join(shapes))}: {'; '.join(filter(None, shown))}"


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
