"""The options and output of commands that write pages."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from segjudge.system.files import written

from .shared import say, whole_number

if TYPE_CHECKING:
    from segjudge.report.page import PageOptions, ReportPage


def write_page(page: ReportPage, path: str) -> None:
    """Write a page, and say how large it is."""
    from segjudge.report.page import rendered

    write_html(rendered(page), path)


def write_html(text: str, path: str) -> None:
    """Write the text of a page, and say how large it is."""
    with written(path) as file:
        file.write(text)
    say(f"wrote {path} ({os.path.getsize(path) / 1e6:.1f} MB)")


def page_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of whatever writes a page."""
    sub.add_argument("--images", metavar="DIR", help="the dataset's pictures, over which the page draws masks")
    size = "megabytes that the page may have: masks become smaller, and pictures fewer (default: 6)"
    sub.add_argument("--budget", type=whole_number(1, 500), default=6, metavar="MB", help=size)


def options_of(args: argparse.Namespace) -> PageOptions:
    """Return the options of a page that the user set."""
    from segjudge.report.page import PageOptions

    return PageOptions(args.images or "", args.budget * 1_000_000)
