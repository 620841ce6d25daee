"""The program that makes the page of a submission, in a process of its own and in the sandbox where there is one.

It reads the order and the files in its folder, and writes what was ordered, or with an exit code of its own what people
may read of a failure.  Any other end is a defect.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.evaluation_script.runner.tuning import reuse_memory
from segjudge.evaluation_script.scoring.phase import Phase
from segjudge.platforms.evalai.bundle.bundle_source import PHASES_FILE, read_phases, script_files
from segjudge.system.errors import UsageError

#: What may be ordered: the phases' levels, the page of submission and truth, the page of what a phase left.
LEVELS, FULL, STORED = "levels", "full", "stored"
#: The file of the order, and what it names: files, and texts that the page shows.
ORDER = "order.json"
#: The exit code of a failure that is no defect.
REFUSED = 10

_Order = dict[str, str]


def main() -> int:
    """Make what the folder's order asks for."""
    reuse_memory()
    output = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(2, 1)  # what a host's table prints is no page
    with open(ORDER, encoding="utf-8") as file:
        order: _Order = json.load(file)
    try:
        code, text = 0, _MAKERS[order["kind"]](order)
    except (SubmissionError, UsageError) as error:
        code, text = REFUSED, str(error)
    with output:
        output.write(text)
    return code


def _read_levels(order: _Order) -> str:
    """Return what each phase lets participants read, and the splits that it hides from them."""
    return json.dumps({phase.codename: [phase.detail, sorted(phase.hidden)] for phase in _phases(order)})


def _make_full_page(order: _Order) -> str:
    from segjudge.evaluation_script.files.problems import HostError
    from segjudge.report.page import PageOptions, render_page
    from segjudge.scoring.scores import prepare_phase
    from segjudge.showing.report import make_report

    phase = next((phase for phase in _phases(order) if phase.codename == order["phase"]), None)
    if phase is None:
        raise UsageError(f"{PHASES_FILE} has no phase {order['phase']!r} any more")
    scores = prepare_phase(order["submission"], phase, order["truth"]).score_openly()
    try:
        return render_page(make_report(scores, order["title"], PageOptions(order["images"])))
    except HostError:  # its pictures are of something else
        return render_page(make_report(scores, order["title"], PageOptions()))


def _make_stored_page(order: _Order) -> str:
    from segjudge.report.stored import read_result
    from segjudge.showing.report import make_stored_report

    try:
        result = read_result(order["result"])
    except UsageError:
        raise UsageError("what this phase left of the submission is no result that a page can be made of") from None
    return make_stored_report(result, order["title"])


def _phases(order: _Order) -> tuple[Phase, ...]:
    with open(order["script"], "rb") as file:
        return read_phases(script_files(file.read())[PHASES_FILE], PHASES_FILE)


_MAKERS: dict[str, Callable[[_Order], str]] = {LEVELS: _read_levels, FULL: _make_full_page, STORED: _make_stored_page}

if __name__ == "__main__":
    raise SystemExit(main())
