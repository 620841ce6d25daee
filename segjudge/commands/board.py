"""`segjudge board`: the leaderboards of a challenge as a static page, as CSV and as badges."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from segjudge.system.files import OutputFolder, make_folder, open_output

from .shared import DONE, Command, say

if TYPE_CHECKING:
    from segjudge.platforms.evalai.boards import PublicBoard
    from segjudge.report.page import ReportPage


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("challenge", type=int, metavar="CHALLENGE", help="its number on the server of EVALAI_HOST")
    parser.add_argument(
        "--out",
        type=OutputFolder,
        required=True,
        help="the folder for index.html, and for each leaderboard its CSV and badge",
    )


def _write(args: argparse.Namespace) -> int:
    from segjudge.evaluation_script.files.problems import HostError, quantity
    from segjudge.platforms.evalai.boards import fetch_boards
    from segjudge.platforms.evalai.client import ApiError, Client, EvalAISettings, server_address
    from segjudge.report.page import render_page

    try:
        token = EvalAISettings.read().token
    except HostError:  # what is public needs no account
        token = ""
    address = server_address()
    try:
        title, boards = fetch_boards(Client(address, token), args.challenge)
    except ApiError as error:
        raise HostError(f"challenge {args.challenge} of {address}: {error}") from None
    make_folder(args.out)
    for board in boards:
        for ending, text in ((".csv", _write_csv(board)), (".svg", board.draw_badge())):
            with open_output(os.path.join(args.out, f"{board.number}{ending}")) as file:
                file.write(text)
    with open_output(os.path.join(args.out, "index.html")) as file:
        file.write(render_page(_make_page(title, boards)))
    number = quantity(len(boards), "leaderboard")
    say(f"Wrote {number} to {args.out}: index.html, and NUMBER.csv and NUMBER.svg of each.")
    return DONE


def _write_csv(board: PublicBoard) -> str:
    """Every digit that the server gives; texts that a spreadsheet would take for a formula are kept as texts."""
    from segjudge.report.tables import format_csv

    cells = ([_plain_cell(value) for value in row.values()] for row in board.rows)
    return format_csv(list(board.rows[0]) if board.rows else ["rank", "team"], cells)


def _plain_cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def _make_page(title: str, boards: list[PublicBoard]) -> ReportPage:
    from segjudge.report.page import ReportPage, make_list

    sections = []
    for board in boards:
        about = f"By {board.order}. Every digit: {board.number}.csv. A badge of the first row: {board.number}.svg."
        sections.append(make_list(board.name, board.rows, about if board.rows else "Nobody is here yet."))
    return ReportPage(title, sections)


COMMANDS = {"board": Command(_add_options, _write)}
