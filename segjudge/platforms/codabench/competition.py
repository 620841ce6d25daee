"""Phases → competitions, and what EvalAI's config says as the mapping that Codabench reads from `competition.yaml`.

On Codabench phases may neither overlap nor touch, and a competition has one leaderboard.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.agreement import MappedSplit, splits_of
from segjudge.platforms.evalai.bundle.problems import mappings_in

VERSION = 2
#: The image with Python 3.12 and the scientific packages; the default one has Python 3.7.
IMAGE = "codalab/codalab-legacy:py312"
#: What the public queue allows, in seconds, and what a run needs beside the scoring.
CAP, SPARE = 600, 120
#: Codabench appends the title to the name of the uploaded file, which may have 255 characters.
TITLE, _NAME, _REWARD, _SHORT = 181, 256, 256, 36
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
#: The shortest pause between two phases.
_GAP = datetime.timedelta(seconds=1)


@dataclass(frozen=True)
class BoardColumn:
    """A column of Codabench's leaderboard: a label of a split."""

    key: str
    split: str
    label: str
    ascending: bool
    precision: int
    hidden: bool
    description: str = ""


@dataclass(frozen=True)
class DatedPhase:
    """A phase with its columns, the one that ranks first, and its dates in UTC."""

    config: dict[str, Any]
    boards: tuple[object, ...]
    columns: tuple[BoardColumn, ...]
    start: datetime.datetime
    end: datetime.datetime
    #: Codenames of splits that are left out, since Codabench hides them by its page alone.
    left_out: tuple[str, ...] = ()

    @property
    def codename(self) -> str:
        return str(self.config["codename"])


#: Phases of one competition, each of which ends before the next begins.
Chain = list[DatedPhase]
#: What differs from the challenge on EvalAI, with the codenames or keys that it is about.
Notes = dict[str, list[str]]


def note(notes: Notes, subject: str, text: str) -> None:
    """Add a note, once."""
    if subject not in notes.setdefault(text, []):
        notes[text].append(subject)


def collect_phases(config: dict[str, Any], *, hidden: bool = False) -> list[DatedPhase]:
    """With `hidden`, splits that participants may not see come as hidden columns."""
    return [_make_phase(config, phase, hidden=hidden) for phase in mappings_in(config, "challenge_phases")]


def _make_phase(config: dict[str, Any], phase: dict[str, Any], *, hidden: bool) -> DatedPhase:
    # A hidden column can rank nothing.
    splits = sorted(splits_of(config, phase), key=lambda split: not split.is_public)
    shown_splits = [split for split in splits if hidden or split.is_public]
    columns: list[BoardColumn] = []
    for split in shown_splits:
        # The first split of every phase has the plain labels, so that the column that ranks is never empty.
        columns += _columns(split, f"{split.codename}: " if columns else "")
    left_out = tuple(split.codename for split in splits if split not in shown_splits)
    boards = tuple(dict.fromkeys(split.row["leaderboard_id"] for split in shown_splits))
    return DatedPhase(phase, boards, tuple(columns), _moment(phase["start_date"]), _moment(phase["end_date"]), left_out)


def _columns(split: MappedSplit, prefix: str) -> list[BoardColumn]:
    metadata = split.schema.get("metadata") or {}
    columns = []
    for label in sorted(split.schema["labels"], key=lambda label: label != split.schema["default_order_by"]):
        entry = metadata.get(label)
        about = str(entry.get("description", "")) if isinstance(entry, dict) else ""
        precision, ascending = int(split.row["leaderboard_decimal_precision"]), not split.is_descending(label)
        key, is_hidden = f"{prefix}{label}", not split.is_public
        columns.append(BoardColumn(key, split.codename, label, ascending, precision, is_hidden, about))
    return columns


def _moment(value: object) -> datetime.datetime:
    """Dates of the config are in UTC; those of Codabench have no zone."""
    moment = datetime.datetime.fromisoformat(str(value))
    return moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment


def chain_phases(phases: Sequence[DatedPhase], notes: Notes) -> list[Chain]:
    """Put phases into competitions, in their order; dates that are moved are noted.

    A competition holds phases of one leaderboard, either public or not.
    """
    competitions: list[Chain] = []
    for phase in sorted(phases, key=lambda phase: phase.start):
        for chain in competitions:
            latest = chain[-1]
            same = latest.boards == phase.boards and _is_public(latest) == _is_public(phase)
            if not same or phase.start < latest.end:
                continue
            if phase.start == latest.end:
                note(notes, phase.codename, "starts a second later, since phases may not touch on Codabench")
                phase = replace(phase, start=phase.start + _GAP)  # noqa: PLW2901
            chain.append(phase)
            break
        else:
            competitions.append([phase])
    order = {phase.codename: number for number, phase in enumerate(phases)}
    return sorted(competitions, key=lambda chain: order[chain[0].codename])


def _is_public(phase: DatedPhase) -> bool:
    return bool(phase.config.get("is_public", True))


def collect_columns(chain: Chain) -> list[BoardColumn]:
    """Each column of the phases once; the one that ranks stands first."""
    columns: dict[str, BoardColumn] = {}
    for phase in chain:
        for column in phase.columns:
            columns.setdefault(column.key, column)
    return list(columns.values())


def make_document(
    config: dict[str, Any], chain: Chain, title: str, texts: dict[str, bytes], queue: str, image: str
) -> dict[str, Any]:
    """The content of `competition.yaml`, without what depends on the files of phases."""
    pages = [{"title": title, "file": f"pages/{key}.html"} for key, title in PAGES.items() if texts.get(key)]
    document: dict[str, Any] = {
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
    return {**document, **{key: value for key, value in optional.items() if value}}


def phase_entry(phase: DatedPhase, index: int, description: str, seconds: int) -> dict[str, Any]:
    """Where EvalAI has no limit there is none here, which has to be written."""
    return {
        "index": index,
        "name": phase.config["name"],
        "description": description,
        "start": _write_date(phase.start),
        "end": _write_date(phase.end),
        "tasks": [index],
        "max_submissions_per_day": phase.config.get("max_submissions_per_day"),
        "max_submissions": phase.config.get("max_submissions"),
        "execution_time_limit": seconds + SPARE,
    }


def task_entry(phase: DatedPhase, index: int) -> dict[str, Any]:
    """One for each phase, which says what is scored."""
    return {
        "index": index,
        "name": phase.config["name"],
        "description": f"{phase.codename}: {', '.join(dict.fromkeys(column.split for column in phase.columns))}",
        "scoring_program": SCORING,
        "reference_data": REFERENCE.format(phase.codename),
    }


def leaderboard_entry(chain: Chain) -> dict[str, Any]:
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
            for index, column in enumerate(collect_columns(chain))
        ],
    }


def _write_date(moment: datetime.datetime) -> str:
    """A text: an unquoted date loses its time on Codabench."""
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def fact_sheet(chain: Chain) -> dict[str, Any]:
    """The questions that participants answer with a submission; flags are texts on Codabench."""
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
    """Take the indentation away, which Markdown takes for code."""
    lines = text.decode("utf-8").splitlines()
    return "\n".join(lines if b"<pre" in text else [line.strip() for line in lines]) + "\n"


def check_lengths(document: dict[str, Any]) -> None:
    """Raise `HostError` for texts that are too long for Codabench; nothing is cut."""
    names = [(phase["name"], _NAME) for phase in document["phases"]]
    keys = [(column["key"], _SHORT) for board in document["leaderboards"] for column in board["columns"]]
    texts = [(document["title"], TITLE), (document.get("reward", ""), _REWARD), *names, *keys]
    long = [
        f"{text!r} has {len(text)} characters, and Codabench takes {limit}"
        for text, limit in texts
        if len(text) > limit
    ]
    if long:
        raise HostError("\n".join(long))


def note_losses(config: dict[str, Any], chain: Chain, notes: Notes) -> None:
    """Note what Codabench cannot express, each with the nearest thing that was done."""
    for key in [key for key in _LOST if config.get(key)]:
        note(notes, key, "has no counterpart on Codabench and is left out")
    for phase in chain:
        subject = phase.codename
        for key in [key for key in _LOST_OF_PHASE if phase.config.get(key)]:
            note(notes, subject, f"{key} is left out; {_LOST_OF_PHASE[key]}")
        if not phase.config.get("is_public", True):
            note(notes, subject, "is not public, so its competition stays unpublished; push publishes none")
        if not phase.config.get("leaderboard_public", True):
            note(notes, subject, "its leaderboard is hidden by Codabench's page alone: the API gives it to anybody")
        if any(column.hidden for column in phase.columns):
            note(notes, subject, "hidden columns are hidden by Codabench's page alone: the API gives them to anybody")
        for split in phase.left_out:
            note(notes, subject, f"{split} is left out, since Codabench hides by its page alone (--hidden keeps it)")
        for question in phase.config.get("submission_meta_attributes") or []:
            if question["type"] == "checkbox":
                note(notes, subject, f"the question {question['name']!r} takes a text: there is no multiple choice")
    if len({len(phase.columns) for phase in chain}) > 1:
        note(notes, chain[0].codename, "the phases have different splits, so that their leaderboard has gaps")
