"""Tables in terminals, files and pages, and stored results, as one text.

    python -m tests.report.tables_shown

writes it to `tests/golden/tables_shown.txt`. Run it after an intended change, and review the difference.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.evaluation_script.scoring import VERSION
from segjudge.families import tools_of
from segjudge.report import page, stored, tables
from segjudge.report.page import make_list, render_page
from tests.answers import Answers, fold
from tests.calls import labels, run_session

FILE = Path(__file__).parents[1] / "golden/tables_shown.txt"

SESSION = """
rows = [["a-name-that-is-longer-than-most-names-are", "0.5", "1", "–"], ["b", "0.25", "22", "0.125"], ["c\\x1b[2J", "", "333", "x"]]
for width in (0, 80, 50, 40, 30, 20, 8): say(width, format_table(["name", "first", "second one", "third"], rows, Look(width)))
said()
format_table(["name", "first"], [["b", "1"]], Look(30, True)).encode(), format_table(["", ""], [], Look(9, True)).encode(), format_table(["only"], [["one"], ["x" * 20]], Look(16))
[Look(0, True).paint("x", style) for style in ("strong", "faint", "bad", "good", "warning")], Look(0, True).paint("", "bad"), Look().paint("x", "bad")
[format_number(value) for value in (None, 0, 1, 1.0, 2.0, 1.5, 0.0005, -0.0001, -0.5, 1e6, 1e-9, 100, 99.9995, True)], format_number(0.123456, 5), format_number(-0.00001, 4), format_number(3, 0)
rank = {"a": {"x": 0.5, "y": "word"}, "b": {"x": 1, "y": None}, "c": {"x": "n", "y": 0.25}, "d": {}}
format_leaderboard("Board", rank, ["x", "y"], "x", descending=True), format_leaderboard("Board", rank, ["y", "x"], "y", descending=False)
format_difference({"a": 0.5, "b": 0.1, "c": 0.1004}, {"a": 0.25, "b": 0.4, "c": 0.1}), format_difference({"a": 0.1004}, {"a": 0.1}), format_difference({"a": 0.1005}, {"a": 0.1})
format_csv(["a", "b"], [["x,y", 1], ['"', None]]), [format_cell(value) for value in (None, 0, 0.12345, 12)]
first_metric([{"split": "a", "id": 5, "name": "b", "count": 3, "AP": None}]), first_metric([]), first_metric([{"split": "a"}]), key_of_rows("sequences"), key_of_rows("images")
short = scored(3); long = scored(45); short; few(repr(long))
few(format_report(long.reports[0], compare=False, look=Look(70)))
format_report(images.reports[0], compare=False, look=Look(50), all_metrics=False), format_report(images.reports[0], compare=False, look=Look(50))
[max(map(len, format_report(images.reports[0], compare=False, look=Look(width), all_metrics=every).splitlines())) <= width for width in (40, 80, 99) for every in (False, True)]
named = scored(20, ("bike-packing blackswan bmx-trees breakdance camel car-roundabout car-shadow cows dance-twirl dog dogs-jump drift-chicane drift-straight goat gold-fish horsejump-high india judo kite-surf lab-coat libby loading mbike-trick motocross-jump paragliding-launch parkour pigs scooter-black shooting soapbox").split())
few(format_report(named.reports[0], compare=True))
for protocol in ("vos-benchmark", "vos-benchmark-all-frames"): say(protocol, files(protocol))
said()
format_citations([{"source": "s", "method": "a"}, {"source": "t", "method": "b"}, {"source": "s", "method": "c"}])
[own_metrics(scores.reports[0]) for scores in (short, images)]
format_units(images.reports[0]), format_units(images.reports[0], ["AP50"])
images.metrics, short.table("metrics").round(4).to_csv(index=False)
to_frame([{"a": None, "b": 1}, {"a": 2.5}]).to_csv(), to_frame({"a": [1, 2]}).to_csv()
short.table("wrong")
[str(kind) for kind in short.table("objects").dtypes]

# Lists of pages
page(make_list("Some", [{"name": "a", "x": 0.5, "n": 3, "t": "text"}, {"name": "b", "x": None, "n": 0, "t": ""}], "About."))
page(make_list("Many", [{"name": str(k), "x": k / 50} for k in range(9)], "About."))
page(make_list("None", [], "About."))
limited("MOST_ROWS", 3, lambda: [make_list("Many", [{"name": str(k), "x": k / 50} for k in range(count)], "About.").values for count in (3, 4)])
one = make_list("Some", [{"name": "a"}], "About.").of_split("val"); one.title, one.id, one.path, one.style

# As the script of the Places Challenge prints it
tools_of("instances").format_official(images.reports[0])

# Words on what is lost
for kinds in ({}, {"a": 0.0}, {"a": 0.5}, {"a": 0.3, "b": 0.3}, {"a": 0.5, "b": 0.2, "c": 0.2, "d": 0.1}, {"a": 0.996, "b": 0.004}, {"a": 0.92, "b": 0.08}, {"a": 0.4, "b": -0.3, "c": 0.37}, {"a": 0.0004}, {"a": 0.0006}): say(kinds, f"{rank_kinds(kinds)} {rank_kinds(kinds, 'AP')}")
for costs in ([], [1], [0, 0], [1, 1], [3, 1], [9, 1, 1], [1, 0, 0, 0], [1] * 9, [2] + [1] * 9, [1] * 30, [5, 4] + [1] * 30, [50] + [1] * 30, [20, 20] + [1] * 40, [-1, 2, 3], [1000.5, 0.25] * 3): say(f"{len(costs)} {costs[:3]}", count_costly(costs, "cases"))
for rows in ([], [{"name": "a", "costs": 0.5}], [{"name": "a", "costs": 0.0001, "x": 1}] * 2, [{"name": "a<b", "costs": 0.5, "x": 0.1, "y": 0.4}] * 2, [{"name": "c", "costs": 0.5, "x": 0.5, "y": 0}] * 2): say(len(rows), f"{name_worst(rows, 'Worst images')} | {name_worst(rows, 'units', 'val', {'c': 'sea'})}")
said()
link_frames([{"name": "a", "x": 1}, {"name": "b", "x": 2}, {"name": "c&", "x": 3}], {"a": "val/a", "c&": "val/c"}, {"a": "an <a>", "b": "bee"})

# What a phase stored
good = {"result": [{"val": {"J&F-Mean": 0.5, "J-Mean": None, "x": 1}}], "protocol": "davis2017", "errors": [{"val": {"J-Mean": 0.25}}], "intervals": [{"val": {"J-Mean": [0.25, 1]}}], "sequences": [{"split": "val", "sequence": "a", "J-Mean": 0.5}, {"split": "test", "sequence": "b", "J-Mean": 0.25}], "warnings": ["w"], "scored": {}}
read(good)
read(changed(good, protocol="mine")), read(changed(good, provenance={"protocols": {"val": {"name": "davis2016", "changed": False}}})), read(changed(good, provenance={"protocols": {"val": {"name": "davis2016", "changed": True}}}))
for change in ({"result": []}, {"result": 5}, {"result": [5]}, {"result": [{"val": 5}]}, {"result": [{"val": {}}]}, {"result": [{"val": {"a": "b"}}]}, {"result": [{"val": {"a": True}}]}, {"result": [{"val": {"a": 1e999}}]}): say(change, read(changed(good, **change)))
for change in ({"errors": [{"val": {"J-Mean": "x"}}]}, {"intervals": [{"val": {"J-Mean": [1]}}]}, {"intervals": [{"val": {"J-Mean": 1}}]}, {"intervals": [{"val": {"J-Mean": [1, None]}}]}, {"sequences": [{"sequence": "a"}]}, {"sequences": [5]}, {"sequences": [{"split": "a", "b": []}]}, {"sequences": [{"split": "a"}, {"split": "a", "b": 1}]}, {"provenance": 5}, {"provenance": {"protocols": {"val": 5}}}, {"other": 5}, {"other": [{"split": "val", "name": "q", "x": 1}]}): say(change, read(changed(good, **change)))
said()
read({key: value for key, value in good.items() if key != "result"})
as_text(5), as_mapping({}), as_list((1, 2))
as_text(5)
as_mapping([])
as_list({})
as_number(True)
as_whole_numbers([1, 2, 3], 1, 3)
as_whole_numbers([1, 4], 1, 3)
as_whole_numbers([0, 1], 1, 3)
as_whole_numbers([1.0], 1, 3)
read_result(write("a.json", json.dumps(good)))["protocol"]
read_result(write("a.json", "[1]"))
read_result(write("a.json", "{"))
read_result("nothing.json")
limited("_MOST_BYTES", 6, lambda: read_result(write("b.json", '{"a":1}')))
limited("_MOST_BYTES", 7, lambda: read_result(write("b.json", '{"a":1}')))
"""


def write_tables() -> str:
    """Return the output of the session, which runs in a folder of its own."""
    output = Answers()
    space: dict[str, Any] = {
        **{name: value for name, value in vars(tables).items() if name.startswith(("format_", "Look", "first_", "key_", "to_", "own_"))},
        **{name: value for name, value in vars(stored).items() if name.startswith(("as_", "read_result"))},
        **{name: getattr(page, name) for name in ("rank_kinds", "name_worst", "link_frames")}, "count_costly": page._count_costly,
        "json": json, "tools_of": tools_of, "limited": _limit, "say": lambda head, text: output.add(str(head), str(text)), "make_list": make_list, "page": _render,
        "said": lambda: ("".join(output.texts), output.texts.clear())[0], "scored": _score, "files": _list_files, "images": _detect(), "write": _write, "few": _shorten_rows,
        "changed": lambda document, **changes: {**copy.deepcopy(document), **changes}, "read": _read,
    }  # fmt: skip
    return fold(run_session(SESSION, space).replace(VERSION, "VERSION"))


def _score(videos: int, names: Any = ()) -> segjudge.Scores:
    square = labels("00000000 01110000 01110022 00000022")
    names = names or [f"v{number}" for number in range(videos)]
    truths = {name: np.stack([np.roll(square, frame, 1) for frame in range(4)]) for name in names}
    predictions = {name: np.roll(frames, 1 + number % 3, 2) for number, (name, frames) in enumerate(truths.items())}
    return segjudge.score_arrays(predictions, truths, "davis2017")


def _shorten_rows(text: str) -> str:
    """Return a table with each row once; a row that repeats the numbers of an earlier one adds only its name."""
    lines, names, repeats = list[str](), dict[str, str](), list[str]()
    for line in text.splitlines():
        name, _, numbers = line.partition(" ")
        if re.match(r"[a-z][\w-]* +\d", line) and names.setdefault(numbers.strip(), name) != name:
            repeats.append(f"{name} as {names[numbers.strip()]}")
            continue
        lines += [", ".join(repeats)] if repeats else []
        repeats.clear()
        lines.append(line)
    return "\n".join(lines)


def _list_files(protocol: str) -> str:
    """Write the files of two videos: unordered objects, a long name, misplaced masks; and one without objects."""
    first, second = labels("1110000 1110909 0000909 3333333"), labels("0044000 0044000 0000000 2222222")
    moved = {1: 33, 9: 8, 3: 3, 2: 64, 4: 1}
    numbers = np.array([moved.get(label, 0) for label in range(10)], np.uint8)
    truths = {"a-video-of-a-name": np.stack([numbers[first]] * 5), "b": np.stack([numbers[second]] * 5)}
    sent = {
        name: np.stack([np.roll(frame, number % 3, 1) for number, frame in enumerate(frames)])
        for name, frames in truths.items()
    }
    empty = {"none": np.zeros((3, 4, 4), np.uint8)}
    written = []
    for prediction, truth in ((sent, truths), (empty, empty)):
        (report,) = segjudge.score_arrays(prediction, truth, protocol).reports
        written += [f"{name}:\n{text}" for name, text in tools_of("sequences").make_files(report).items()]
    return "\n".join(written)


def _detect() -> segjudge.Scores:
    masks = np.zeros((2, 40, 60), bool)
    masks[0, 5:25, 5:25], masks[1, 8:38, 30:58] = True, True
    sides = [
        (
            {"masks": np.roll(masks, shift, 2), "labels": [1, 2], "scores": [0.5, 0.25]},
            {"masks": masks, "labels": [1, 2]},
        )
        for shift in (0, 2, 5)
    ]
    names = [{"id": 1, "name": "cat, small"}, {"id": 2, "name": "dog"}, {"id": 3, "name": "owl"}]
    return segjudge.score_arrays([side[0] for side in sides], [side[1] for side in sides], "coco", categories=names)


def _limit(name: str, value: int, call: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page if hasattr(page, name) else stored, name, value)
        return call()


def _render(section: Any) -> str:
    from segjudge.report.page import ReportPage

    html = render_page(ReportPage("T", [section]))
    return html[html.index("<section") : html.rindex("</section>")]


def _read(document: Any) -> str:
    """Describe the reports read from a stored result, or the reason why there are none."""
    try:
        reports = stored.read_reports(document)
    except segjudge.UsageError as error:
        return str(error)
    return repr([
        (report.split, report.protocol.name, report.protocol.metrics, report.values, report.rows(), report.errors(), report.intervals())
        for report in reports
    ])  # fmt: skip


def _write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


if __name__ == "__main__":
    FILE.write_text(write_tables())
