"""Tables in terminals, files and pages, and stored results, as one text."""

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
from segjudge.report import page, sentences, stored, tables
from segjudge.report.page import make_list, render_page
from tests.answers import Answers, fold
from tests.calls import labels, read_session, run_session

FILE = Path(__file__).parents[1] / "golden/tables_shown.txt"


def write_tables() -> str:
    """Return the output of the session, which runs in a folder of its own."""
    output = Answers()
    space: dict[str, Any] = {
        **{name: value for name, value in vars(tables).items() if name.startswith(("format_", "Look", "first_", "key_", "to_", "own_"))},
        **{name: value for name, value in vars(stored).items() if name.startswith(("as_", "read_result"))},
        **{name: getattr(page, name) for name in ("name_worst", "link_frames")}, "count_costly": sentences.count_costly, "rank_kinds": sentences.rank_kinds,
        "json": json, "tools_of": tools_of, "limited": _limit, "say": lambda head, text: output.add(str(head), str(text)), "make_list": make_list, "page": _render,
        "said": lambda: ("".join(output.texts), output.texts.clear())[0], "scored": _score, "files": _list_files, "images": _detect(), "write": _write, "few": _shorten_rows,
        "changed": lambda document, **changes: {**copy.deepcopy(document), **changes}, "read": _read,
    }  # fmt: skip
    return fold(run_session(read_session(FILE), space).replace(VERSION, "VERSION"))


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
