"""`segjudge report`: one page that shows where results fail."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import OutputFile, OutputFolder, name_of

from .drawing import IOU, Drawing
from .parser import CommandParser
from .shared import (
    BUDGET,
    DONE,
    OUTPUT,
    RARELY,
    SPEED,
    TRUTH,
    Command,
    InputPath,
    add_jobs_option,
    add_page_options,
    names,
    write_html,
)
from .truths import OF_TRUTHS, TruthChoice, add_truth_choice

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The default page.
_PAGE = "report.html"
#: The group of options for drawings.
_DRAWING = "drawings of all images, instead of the page"


def _report(args: argparse.Namespace) -> int:
    from segjudge.evaluation_script.runner.tuning import reuse_memory
    from segjudge.report.page import list_verdicts, make_page_options, render_page
    from segjudge.scoring.report import make_stored_page, make_truth_report, render_stored

    reuse_memory()
    choice = TruthChoice.read(vars(args))
    stored, reason = ({}, "") if choice.truth or choice.phase else _read_stored(args.results)
    if stored:
        for option in (*OF_TRUTHS, "annotations", "split", "sequences", "region", "jobs", "images"):
            if getattr(args, option):
                raise OptionError(f"{option} needs --truth or --phase: {args.results} is a stored result")
        page = make_stored_page(stored, args.title or name_of(args.results))
        text = render_stored(page)
    else:
        if args.draw is None and (args.iou is not None or args.score is not None):
            raise OptionError("iou and --score need --draw FOLDER")
        choice = choice.complete("report", f"; or RESULTS that a phase stored, as JSON{reason}")
        images = choice.choose_images(args.images)
        if args.draw is not None:
            return _draw_into_folder(args, choice, images)
        options = make_page_options(images, args.budget)
        if args.results:
            page = choice.score_openly(args.results).make_page(options, args.title or "")
        else:
            truths, title = choice.open_splits(), args.title or name_of(choice.source.path)
            page = make_truth_report(truths, choice.rules.family, title, options)
        text = render_page(page)
    verdicts = list_verdicts(page)
    write_html(text, args.out, verdicts)
    return DONE


def _draw_into_folder(args: argparse.Namespace, choice: TruthChoice, images: str) -> int:
    """Draw into a folder instead of writing the page."""
    ignored = {"out": _PAGE, "title": None, "budget": BUDGET, "jobs": None}
    if choice.rules.family == "instances":
        ignored["sequences"] = None
    for option, default in ignored.items():
        if getattr(args, option) != default:
            raise OptionError(f"{option} does not apply to --draw")
    values = {name: getattr(args, name) for name in ("iou", "score") if getattr(args, name) is not None}
    return Drawing(args.results or "", choice, args.draw, images, **values).draw()


def _read_stored(path: str | None) -> tuple[Mapping[str, object], str]:
    """Return a stored result, or why the file is not one."""
    from segjudge.report.stored import read_result

    if not path:
        return {}, ""
    try:
        result = read_result(path)
    except UsageError as error:
        return {}, f" ({error})"
    return (result, "") if "result" in result else ({}, f" ({path}: has no result)")


def _add_options(sub: CommandParser) -> None:
    results = "the predicted masks: a folder, zip, tar(.gz) or JSON; omit them to show the truth"
    sub.add_argument("results", nargs="?", metavar="RESULTS", type=InputPath, help=results)
    sub.arrange_groups(TRUTH, OUTPUT, _DRAWING, SPEED, RARELY)
    truth = "the ground truth: a dataset or a packed annotation file; omit it if RESULTS is a stored result"
    add_truth_choice(sub, truth)
    add = sub.options_of(TRUTH)
    add("--split", metavar="NAME", help="report only this split")
    add("--sequences", metavar="A,B", type=names, help="report only these sequences, images or cases")
    add("--region", metavar="NAME", help="score and show only this region or label of volumes, such as ET or 3")
    add = sub.options_of(OUTPUT)
    add("--out", default=_PAGE, metavar="FILE", type=OutputFile, help=f"the page to write (default: {_PAGE})")
    add_page_options(sub)
    add("--title", metavar="TEXT", help="the page's title (default: the name of the results)")
    add = sub.options_of(_DRAWING)
    about = "write a PNG of every image with truth and detections (instances), or only the player (other families)"
    add("--draw", metavar="FOLDER", type=OutputFolder, help=about)
    add("--iou", metavar="IOU", type=float, help=f"minimum IoU of a correct detection (default: {IOU:g})")
    add("--score", metavar="SCORE", type=float, help="skip detections with a lower score")
    add_jobs_option(sub)


COMMANDS = {
    "report": Command(_add_options, _report, "segjudge report masks.zip --truth DAVIS --subset val --out page.html")
}
