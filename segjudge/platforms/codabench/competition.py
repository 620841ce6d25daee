"""What EvalAI's config says, as the mapping that Codabench reads from `competition.yaml`."""

from __future__ import annotations

import datetime
from typing import Any

from segjudge.evaluation_script.files.problems import HostError

from .chains import Chain, DatedPhase, Notes, board_columns, note

VERSION = 2
#: The image with Python 3.12 and the scientific packages; the default one has Python 3.7.
IMAGE = "codalab/codalab-legacy:py312"
#: What the public queue allows, in seconds, and what a run needs beside the scoring.
CAP, SPARE = 600, 120
#: Codabench appends the title to the name of the uploaded file, which may have 255 characters.
TITLE, NAME, REWARD, SHORT = 181, 256, 256, 36
TERMS, LOGO, SCORING = "terms.html", "logo", "scoring_program.zip"
#: Where the truth and the samples of a phase are.
REFERENCE, KIT = "reference_data/{}.zip", "starting_kit/{}.zip"
#: The texts of EvalAI's pages by the titles of Codabench's.
PAGES = {"description": "Overview", "evaluation_details": "Evaluation", "submission_guidelines": "Submission"}
#: Keys of EvalAI that have no counterpart.
_LOST = (
    *("allowed_email_domains", "blocked_email_domains", "banned_email_ids", "max_team_members", "sponsors"),
    *("anonymous_leaderboard", "forum_url"),
)
_LOST_OF_PHASE = {
    "max_submissions_per_month": "Codabench counts by the day and in all",
    "max_concurrent_submissions_allowed": "Codabench's queue decides",
    "allowed_email_ids": "enter them in Codabench's editor",
    "is_restricted_to_select_one_submission": "the leaderboard shows each participant's best",
}


def competition(
    config: dict[str, Any], chain: Chain, title: str, texts: dict[str, bytes], queue: str, image: str
) -> dict[str, Any]:
    """Return the content of `competition.yaml`, without what depends on the files of phases."""
    pages = [{"title": title, "file": f"pages/{key}.html"} for key, title in PAGES.items() if texts.get(key)]
    found: dict[str, Any] = {
        "version": VERSION,
        "title": title,
        "description": config.get("short_description") or "",
        "image": LOGO,
        "terms": TERMS,
        "pages": pages,
        "docker_image": image,
        "registration_auto_approve": True,
        "enable_detailed_results": True,
        "forum_enabled": bool(config.get("enable_forum", True)),
        "can_participants_make_submissions_public": any(phase.config.get("is_submission_public") for phase in chain),
    }
    prizes = sorted(config.get("prizes") or [], key=lambda prize: int(prize["rank"]))
    reward = ", ".join(f"{prize['rank']}: {prize['amount']}" for prize in prizes)
    optional = {"reward": reward, "queue": queue, "fact_sheet": fact_sheet(chain)}
    return {**found, **{key: value for key, value in optional.items() if value}}


def phase_entry(phase: DatedPhase, index: int, description: str, seconds: int) -> dict[str, Any]:
    """Return an entry of `phases`; without a limit on EvalAI there is none here, which has to be written."""
    return {
        "index": index,
        "name": phase.config["name"],
        "description": description,
        "start": _written(phase.start),
        "end": _written(phase.end),
        "tasks": [index],
        "max_submissions_per_day": phase.config.get("max_submissions_per_day"),
        "max_submissions": phase.config.get("max_submissions"),
        "execution_time_limit": seconds + SPARE,
    }


def task_entry(phase: DatedPhase, index: int) -> dict[str, Any]:
    """Return an entry of `tasks`: one for each phase, which says what is scored."""
    return {
        "index": index,
        "name": phase.config["name"],
        "description": f"{phase.codename}: {', '.join(dict.fromkeys(column.split for column in phase.columns))}",
        "scoring_program": SCORING,
        "reference_data": REFERENCE.format(phase.codename),
    }


def leaderboard_entry(chain: Chain) -> dict[str, Any]:
    """Return the only entry of `leaderboards`."""
    return {
        "title": "Leaderboard",
        "key": "main",
        "submission_rule": "Force_Best",
        "primary_index": 0,
        "hidden": not all(phase.config.get("leaderboard_public", True) for phase in chain),
        "columns": [
            {
                "title": column.key,
                "key": column.key,
                "index": index,
                "sorting": "asc" if column.ascending else "desc",
                "precision": column.precision,
                "hidden": column.hidden,
            }
            for index, column in enumerate(board_columns(chain))
        ],
    }


def _written(moment: datetime.datetime) -> str:
    """Return a date as text: an unquoted one loses its time on Codabench."""
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def fact_sheet(chain: Chain) -> dict[str, Any]:
    """Return the questions that participants answer with a submission; its flags are texts on Codabench."""
    sheet: dict[str, Any] = {}
    for phase in chain:
        for question in phase.config.get("submission_meta_attributes") or []:
            kind, selection = {
                "boolean": ("checkbox", [True, False]),
                "radio": ("select", question.get("options") or []),
            }.get(question["type"], ("text", ""))
            sheet[question["name"]] = {
                "key": question["name"],
                "type": kind,
                "title": question["name"],
                "selection": selection,
                "is_required": "true" if question.get("required") else "false",
                "is_on_leaderboard": "false",
            }
    return sheet


def page_text(text: bytes) -> str:
    """Return a page without indentation, which Markdown takes for code."""
    lines = text.decode("utf-8").splitlines()
    return "\n".join(lines if b"<pre" in text else [line.strip() for line in lines]) + "\n"


def check_lengths(found: dict[str, Any]) -> None:
    """Raise `HostError` for texts that are too long for Codabench; nothing is cut."""
    names = [(phase["name"], NAME) for phase in found["phases"]]
    keys = [(column["key"], SHORT) for board in found["leaderboards"] for column in board["columns"]]
    texts = [(found["title"], TITLE), (found.get("reward", ""), REWARD), *names, *keys]
    long = [
        f"{text!r} has {len(text)} characters, and Codabench takes {most}" for text, most in texts if len(text) > most
    ]
    if long:
        raise HostError("\n".join(long))


def note_losses(config: dict[str, Any], chain: Chain, notes: Notes) -> None:
    """Note what Codabench cannot express, each with the nearest thing that was done."""
    for key in [key for key in _LOST if config.get(key)]:
        note(notes, key, "has no counterpart on Codabench and is left out")
    for phase in chain:
        where = phase.codename
        for key in [key for key in _LOST_OF_PHASE if phase.config.get(key)]:
            note(notes, where, f"{key} is left out; {_LOST_OF_PHASE[key]}")
        if not phase.config.get("is_public", True):
            note(notes, where, "is not public, so its competition stays unpublished; push publishes none")
        if not phase.config.get("leaderboard_public", True):
            note(notes, where, "its leaderboard is hidden by Codabench's page alone: the API gives it to anybody")
        if any(column.hidden for column in phase.columns):
            note(notes, where, "hidden columns are hidden by Codabench's page alone: the API gives them to anybody")
        for split in phase.left_out:
            note(notes, where, f"{split} is left out, since Codabench hides by its page alone (--hidden keeps it)")
        for question in phase.config.get("submission_meta_attributes") or []:
            if question["type"] == "checkbox":
                note(notes, where, f"the question {question['name']!r} takes a text: there is no multiple choice")
    if len({len(phase.columns) for phase in chain}) > 1:
        note(notes, chain[0].codename, "the phases have different splits, so that their leaderboard has gaps")
