"""The names of a board's repositories, and the settings of its Space: only what everybody may know."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.ledger.rules import BoardRules, PhaseRules, Rules
from segjudge.platforms.evalai.bundle.bundle_source import UNREADABLE, BundleSource
from segjudge.platforms.evalai.bundle.phase_splits import is_published
from segjudge.platforms.evalai.rows import list_file_types
from segjudge.platforms.github.challenge import SETTINGS, read_reveal, read_rules
from segjudge.platforms.rules.problems import mappings_in
from segjudge.system.errors import UsageError

from .requests import SUBMISSIONS

#: The folder of the challenge in the private repository.
BUNDLE = "bundle"
#: The maximum characters of a repository's name.
_LONGEST_NAME = 96
#: The host's pages that the Space shows, with their titles.
_TEXTS = {
    "description": "Overview",
    "evaluation_details": "Evaluation",
    "submission_guidelines": "Submission",
    "terms_and_conditions": "Terms",
}


def name_repository(owner: str, name: str) -> str:
    """Return OWNER/NAME; raises UsageError for names that the Hub does not allow."""
    for word in (owner, f"{name}{SUBMISSIONS}"):
        if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9]|[-._](?![-._]))*", word):
            fault = "is no name on the Hub: use letters and digits, with single - _ or . between them"
            raise UsageError(f"{word.removesuffix(SUBMISSIONS)!r} {fault}")
    if len(f"{owner}/{name}{SUBMISSIONS}") > _LONGEST_NAME:
        raise UsageError(f"{owner}/{name}{SUBMISSIONS} has more than {_LONGEST_NAME} characters; set --name")
    return f"{owner}/{name}"


def find_rules(source: BundleSource) -> Rules:
    """Return the rules of a challenge, with the days of `board.yaml` if there is one; only its evaluator knows all."""
    has_settings = os.path.exists(os.path.join(source.root, SETTINGS))
    return read_rules(source, read_reveal(source.root) if has_settings else {})


@dataclass(frozen=True)
class SpaceSettings:
    """The settings of a Space."""

    #: OWNER/NAME.
    repository: str
    about: str
    #: The public phases with their public leaderboards.
    rules: Rules
    #: Phase → endings of file names; without any, every file is accepted.
    endings: Mapping[str, Sequence[str]]
    #: Title → HTML of the host.
    texts: Mapping[str, str]

    @classmethod
    def of_challenge(cls, source: BundleSource, repository: str) -> SpaceSettings:
        """Return what everybody may know of a challenge; raises HostError if that is nothing."""
        config = source.config()
        rows = {str(row.get("codename")): row for row in mappings_in(config, "challenge_phases")}
        rules = find_rules(source)
        phases = [
            replace(phase, boards=[board for board in phase.boards if board.public])
            for phase in rules.phases
            if is_published(rows[phase.codename])
        ]
        if not phases:
            raise HostError("challenge_config.yaml: no phase is public, so nobody could submit; set is_public: True")
        endings = {
            phase.codename: list_file_types(rows[phase.codename].get("allowed_submission_file_types"))
            for phase in phases
        }
        texts = {title: _read_text(source.root, config[key]) for key, title in _TEXTS.items() if config.get(key)}
        about = str(config.get("short_description") or "")
        return cls(repository, about, replace(rules, phases=phases), endings, texts)

    def to_json(self) -> str:
        """Return the settings as the text of a file."""
        return json.dumps(asdict(self), default=lambda day: day.isoformat(), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> SpaceSettings:
        """Return the settings from the text of a file."""
        values = json.loads(text)
        rules = values.pop("rules")
        phases = [_read_phase(phase) for phase in rules["phases"]]
        return cls(rules=Rules(rules["title"], phases), **values)


def _read_phase(values: dict[str, Any]) -> PhaseRules:
    start, end = (datetime.datetime.fromisoformat(values.pop(key)) for key in ("start", "end"))
    boards = [BoardRules(**board) for board in values.pop("boards")]
    day = values.pop("reveal")
    return PhaseRules(
        start=start, end=end, boards=boards, reveal=datetime.date.fromisoformat(day) if day else None, **values
    )


def _read_text(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()
    except UNREADABLE as error:
        raise HostError(f"{path}: cannot be read ({error})") from None
