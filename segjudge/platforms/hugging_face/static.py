"""A Static Space with the leaderboards of an event that has ended, which costs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from segjudge.archive.event import open_event
from segjudge.archive.frozen_boards import read_boards
from segjudge.evaluation_script.files.problems import HostError
from segjudge.ledger.hub_dataset import HubDataset
from segjudge.ledger.page import FOLDER
from segjudge.report.boards import write_boards

from .build import CARD, render
from .requests import RESULTS

if TYPE_CHECKING:
    from huggingface_hub import HfApi


def write_from_archive(path: str, folder: str) -> None:
    """Write the leaderboards of an archive that visitors saw, with the reports that everybody may see."""
    with open_event(path) as event:
        title, boards = read_boards(event, folder, as_host=False)
    write_boards(folder, title, boards)
    _write_card(folder, title)


def write_from_results(api: HfApi, repository: str, title: str, folder: str) -> None:
    """Write the page that the evaluator of a board wrote last."""
    files = HubDataset(api, repository + RESULTS).read()
    pages = {path.removeprefix(f"{FOLDER}/"): data for path, data in files.items() if path.startswith(f"{FOLDER}/")}
    if not pages:
        raise HostError(f"{repository}{RESULTS}: has no page, so the evaluator has not run yet")
    for name, data in pages.items():
        Path(folder, name).write_bytes(data)
    _write_card(folder, title)


def _write_card(folder: str, title: str) -> None:
    Path(folder, CARD).write_text(render("static.md", {"title": title}), encoding="utf-8")
