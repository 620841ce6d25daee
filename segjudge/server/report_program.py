"""The program that makes a submission's page, in its own process and, if possible, in the sandbox.

It reads the order and the files in its folder, and writes the ordered page as JSON (`report_answers`). After a failure
it writes a sentence for people and returns a special exit code. Any other end is a defect.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.evaluation_script.runner.tuning import reuse_memory
from segjudge.evaluation_script.scoring.phase import Phase
from segjudge.platforms.evalai.bundle.bundle_source import PHASES_FILE, read_phases, script_files
from segjudge.system.errors import UsageError

if TYPE_CHECKING:
    from segjudge.report.page import ReportPage
    from segjudge.scoring.scores import Scores

#: The kinds of orders: by the phases' levels, a full page of submission and truth, of two submissions, of a phase's
#: stored data.
LEVELS, FULL, COMPARED, STORED = "levels", "full", "compared", "stored"
#: The names of a comparison's two submissions in an order.
SIDES = ("first", "second")
#: The file of the order; it names files, and texts for the page.
ORDER = "order.json"
#: The exit code of a failure that is not a defect.
REFUSED = 10

#: The styles and meanings of the colours in films of sequences.
_LEGEND = [("right", "right"), ("missing", "missing"), ("extra", "surplus"), ("mixed", "another object")]
#: Megabytes of a page.
_MEGABYTES = 6

_Order = dict[str, str]
_Answer = dict[str, Any]


def main() -> int:
    """Carry out the folder's order."""
    reuse_memory()
    output = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(2, 1)  # what a host's phases.py prints must not mix with the page
    with open(ORDER, encoding="utf-8") as file:
        order: _Order = json.load(file)
    try:
        code, text = 0, json.dumps(_MAKERS[order["kind"]](order))
    except (SubmissionError, UsageError) as error:
        code, text = REFUSED, str(error)
    with output:
        output.write(text)
    return code


def _read_levels(order: _Order) -> _Answer:
    """Return the detail level of each phase, the splits that it hides from participants, and all of its splits."""
    return {
        "levels": {
            phase.codename: [phase.detail, sorted(phase.hidden), sorted(split.codename for split in phase.splits)]
            for phase in _phases(order)
        }
    }


def _make_full_page(order: _Order) -> _Answer:
    from segjudge.report.page import make_page_options, render_page
    from segjudge.scoring.notebook import draw_worst

    scores = _score(order, "submission")

    def make(images: str) -> _Answer:
        page = scores.make_page(make_page_options(images, _MEGABYTES), order["title"])
        split_summaries = _summarize_splits(page, [report.split for report in scores.reports])
        films: dict[str, Any] = {section.split: section.values.get("film") for section in page.sections[::-1]}
        for split, split_summary in split_summaries.items():
            sequence = films[split]["sequence"] if films.get(split) else ""
            for row in draw_worst({"": scores}, split, sequence, images):
                split_summary |= {"subject": row["title"], "film": row["pictures"], "legend": _LEGEND}
        return {"page": render_page(page), "split_summaries": split_summaries}

    return _render(order, make)


def _summarize_splits(page: ReportPage, splits: list[str]) -> dict[str, _Answer]:
    """Return the verdicts of a page's splits, with the worst frame of each player."""
    from segjudge.report.page import PLAYER, read_verdicts
    from segjudge.scoring.notebook import shrink_picture

    verdicts = read_verdicts(page)
    split_summaries: dict[str, _Answer] = {
        split: {"verdict": verdicts.get(split, []), "subject": "", "film": []} for split in splits
    }
    for section in page.sections:
        still: Any = section.values.get("still") if section.template == PLAYER else None
        if still and section.split in split_summaries:
            split_summaries[section.split] |= {
                "subject": still.unit,
                "film": [(still.frame, shrink_picture(still.pixels))],
                "legend": section.values["legend"],
            }
    return split_summaries


def _make_comparison(order: _Order) -> _Answer:
    from segjudge.analysis.comparison import compare

    compared = compare({order[f"{side}_name"]: _score(order, side) for side in SIDES}, split=order["split"])
    return _render(order, lambda images: {"page": compared.page(images=images)})


def _score(order: _Order, name: str) -> Scores:
    from segjudge.scoring.request import prepare_phase

    phase = next((phase for phase in _phases(order) if phase.codename == order["phase"]), None)
    if phase is None:
        raise UsageError(f"{PHASES_FILE} has no phase {order['phase']!r} any more")
    return prepare_phase(order[name], phase, order["truth"]).score()


def _render(order: _Order, render: Callable[[str], _Answer]) -> _Answer:
    """Render a page with the pictures of its phase, or without them if they do not fit."""
    from segjudge.evaluation_script.files.problems import HostError

    try:
        return render(order["images"])
    except HostError:
        return render("")


def _make_stored_page(order: _Order) -> _Answer:
    from segjudge.report.stored import read_reports, read_result
    from segjudge.scoring.report import make_stored_page, render_stored

    try:
        result = read_result(order["result"])
    except UsageError:
        raise UsageError("the stored result of this submission cannot be shown as a page") from None
    page = make_stored_page(result, order["title"])
    return {
        "page": render_stored(page),
        "split_summaries": _summarize_splits(page, [report.split for report in read_reports(result)]),
    }


def _phases(order: _Order) -> tuple[Phase, ...]:
    with open(order["script"], "rb") as file:
        return read_phases(script_files(file.read())[PHASES_FILE], PHASES_FILE)


_MAKERS: dict[str, Callable[[_Order], _Answer]] = {
    LEVELS: _read_levels,
    FULL: _make_full_page,
    COMPARED: _make_comparison,
    STORED: _make_stored_page,
}

if __name__ == "__main__":
    raise SystemExit(main())
