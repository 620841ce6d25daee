"""`segjudge board`: the leaderboards of a challenge or an archive as a static page, as CSV and as badges."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING

from segjudge.system.files import OutputFolder, make_folder

from .parser import CommandParser
from .shared import DONE, OUTPUT, Command, InputPath, say

if TYPE_CHECKING:
    from segjudge.report.boards import Board


def _add_options(parser: CommandParser) -> None:
    about = "the challenge's number on the server, which EVALAI_HOST sets; or an archive that `leave` wrote"
    parser.add_argument("challenge", type=_read_challenge, metavar="CHALLENGE", help=about)
    add = parser.options_of(OUTPUT)
    about = "the folder for index.html, and for the CSV and badge of each leaderboard"
    add("--out", metavar="FOLDER", type=OutputFolder, required=True, help=about)
    about = "include hidden leaderboards, of a server read with EVALAI_TOKEN; do not publish these files"
    add("--as-host", action="store_true", help=about)


def _read_challenge(text: str) -> int | InputPath:
    """Read the number of a challenge, or the path of an archive."""
    return int(text) if text.isdecimal() else InputPath(text)


def _write(args: argparse.Namespace) -> int:
    from segjudge.evaluation_script.files.problems import quantity
    from segjudge.report.boards import write_boards

    if isinstance(args.challenge, int):
        title, boards = _fetch(args.challenge, as_host=args.as_host)
    else:
        title, boards = _open(args.challenge, args.out, as_host=args.as_host)
    make_folder(args.out)
    write_boards(args.out, title, boards)
    number = quantity(len(boards), "leaderboard")
    say(f"Wrote {number} to {args.out}: index.html, and NUMBER.csv and NUMBER.svg of each.")
    if names := [board.name for board in boards if board.hidden]:
        say(f"warning: {args.out} holds hidden results ({', '.join(names)}). Do not publish it.")
    for name in _list_earlier_files(args.out, boards):
        fault = "an earlier `board` wrote it, but its leaderboard is no longer public"
        say(f"warning: {os.path.join(args.out, name)}: {fault}. Remove it.")
    return DONE


def _fetch(challenge: int, *, as_host: bool) -> tuple[str, list[Board]]:
    """Return title and leaderboards as visitors see them, or `as_host` as the token shows them."""
    from segjudge.evaluation_script.files.problems import HostError
    from segjudge.platforms.evalai.boards import fetch_boards, fetch_boards_of_host
    from segjudge.platforms.evalai.client import ApiError, EvalAISettings, server_address

    address = server_address()
    try:
        if as_host:
            return fetch_boards_of_host(address, EvalAISettings.read().token, challenge)
        return fetch_boards(address, challenge)
    except ApiError as error:
        hint = "" if as_host or error.status not in (401, 403, 404) else ". Visitors may not see it: try --as-host"
        raise HostError(f"challenge {challenge} of {address}: {error}{hint}") from None


def _open(path: str, out: str, *, as_host: bool) -> tuple[str, list[Board]]:
    """Return title and leaderboards of an archive as visitors of the platform saw them, or all; write reports."""
    from segjudge.archive.event import open_event
    from segjudge.archive.frozen_boards import read_boards

    with open_event(path) as event:
        return read_boards(event, out, as_host=as_host)


def _list_earlier_files(folder: str, boards: list[Board]) -> list[str]:
    """Return the files of leaderboards in a folder that this run did not write."""
    stems = {board.stem for board in boards}
    matches = [(name, re.fullmatch(r"(\d+(?:-hidden)?)\.(?:csv|svg)", name)) for name in sorted(os.listdir(folder))]
    return [name for name, match in matches if match and match[1] not in stems]


COMMANDS = {"board": Command(_add_options, _write, "segjudge board 2078 --out leaderboards")}
