"""The two repositories of a board: the public one with forms and workflow, and the private one with the challenge."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from segjudge.ledger.evaluator import AGAIN, DISQUALIFY, SCORE
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.templates import open_templates

from .challenge import SETTINGS, read_rules
from .forms import CHECKSUM, FILE, METHOD, NUMBER, PHASE
from .worker import BRANCH, PRIVATE

#: The folders of the two repositories.
PUBLIC_FOLDER, PRIVATE_FOLDER = "public", "private"
#: The folder of the rows with which their ledgers begin.
HISTORY_FOLDER = "history"
#: What installs the Segjudge that scores; both repositories have it.
LOCK = ("requirements.txt", "wheels")
WORKFLOW = ".github/workflows/board.yml"
SUBMIT_FORM = ".github/ISSUE_TEMPLATE/submit.yml"
#: The files of the public repository by their templates.
_FILES = {
    WORKFLOW: "board.yml",
    SUBMIT_FORM: "submit.yml",
    ".github/ISSUE_TEMPLATE/withdraw.yml": "withdraw.yml",
    SETTINGS: "board.yaml",
    "README.md": "README.md",
}


def build_board(folder: str, final: str, history: Sequence[str] = ()) -> None:
    """Write the public repository and the steps for its host beside the challenge in `private`.

    The folder will get its final name. `history` has the repositories whose ledgers begin with rows.
    """
    name = re.sub(r"[^\w.-]+", "-", os.path.basename(os.path.abspath(final)), flags=re.ASCII)
    private, public = (os.path.join(folder, name) for name in (PRIVATE_FOLDER, PUBLIC_FOLDER))
    texts = render_files(private)
    for path, text in {**texts, "../HOSTING.md": _render("HOSTING.md", {"name": name, "history": history})}.items():
        target = Path(public, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    for path in LOCK:
        source = os.path.join(private, path)
        if os.path.isdir(source):
            shutil.copytree(source, os.path.join(public, path))
        elif os.path.exists(source):
            shutil.copyfile(source, os.path.join(public, path))


def render_files(private: str) -> dict[str, str]:
    """Return the texts of the public repository for the challenge in a folder, by their paths."""
    source = find_bundle(private)
    rules = read_rules(source, {})
    values = {"title": rules.title, "phases": rules.phases, "about": str(source.config().get("short_description", ""))}
    return {path: _render(template, values) for path, template in _FILES.items()}


def _render(template: str, values: Mapping[str, object]) -> str:
    # GitHub's own expressions begin with the usual marks.
    environment = open_templates("segjudge.platforms.github", variable_start_string="<<", variable_end_string=">>")
    names = {
        "questions": {"method": METHOD, "phase": PHASE, "file": FILE, "checksum": CHECKSUM, "number": NUMBER},
        "actions": [SCORE, DISQUALIFY, AGAIN],
        "branch": BRANCH,
        "private": PRIVATE,
        "settings": SETTINGS,
        "suffixes": {PUBLIC_FOLDER: "", PRIVATE_FOLDER: PRIVATE},
    }
    return environment.get_template(f"{template}.jinja").render({**names, **values})
