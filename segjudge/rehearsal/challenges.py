"""Challenges as the rehearsal holds them, shown as EvalAI's API shows them."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from segjudge.bundle.field_values import TRUE
from segjudge.bundle.fields import FLAG, PHASE, TEXTS

from .accounts import Accounts, User
from .signed_urls import SignedUrls
from .store import Store
from .timestamps import seconds, whole, written

#: What EvalAI assumes of a challenge where the YAML says nothing.
_CHALLENGE_DEFAULTS: dict[str, Any] = {
    "submission_time_limit": 86400,
    "max_docker_image_size": 42949672960,
    "cli_version": None,
    "is_registration_open": True,
    "enable_forum": True,
    "forum_url": None,
    "short_description": None,
    "leaderboard_description": None,
    "max_team_members": None,
    "domain": None,
    "tags": [],
    "job_cpu_cores": "2000m",
    "job_memory": "8Gi",
    "worker_python_version": "3.9",
}
#: Visibilities of a phase split, as EvalAI numbers them.
HOST_ONLY, OWNER_AND_HOST, PUBLIC = 1, 2, 3
_FLAGS = ("published", "remote_evaluation", "is_docker_based", "is_static_dataset_code_upload", "cpu_only_jobs")
_CHALLENGE_FLAGS = (
    *_FLAGS,
    "anonymous_leaderboard",
    "allow_resuming_submissions",
    "allow_host_cancel_submissions",
    "allow_cancel_running_submissions",
    "allow_participants_resubmissions",
)


class Challenges:
    """All challenges, by their numbers."""

    def __init__(self, store: Store, accounts: Accounts, links: SignedUrls) -> None:
        self._store, self._accounts, self._links = store, accounts, links

    def all(self) -> list[Any]:
        """Every challenge, as rows."""
        return self._store.rows("SELECT * FROM challenges ORDER BY id")

    def row(self, challenge: int) -> Any:
        """One of them; None where there is none."""
        return self._store.row("SELECT * FROM challenges WHERE id = ?", challenge)

    def of_queue(self, queue: str) -> Any:
        """The challenge whose queue it is."""
        return self._store.row("SELECT * FROM challenges WHERE queue = ?", queue)

    def phase_rows(self, challenge: int, user: User | None) -> list[Any]:
        """The phases that somebody may see."""
        rows = self._store.rows("SELECT * FROM phases WHERE challenge_id = ? ORDER BY config_id", challenge)
        return [row for row in rows if self.may_see_phase(user, row)]

    def may_see_phase(self, user: User | None, phase: Any) -> bool:
        """Everybody may see a public phase, hosts any of theirs."""
        return json.loads(phase["config"]).get("is_public") in TRUE or self.is_host(user, phase["challenge_id"])

    def may_see_board(self, user: User | None, phase: Any, split: Any) -> bool:
        """Everybody may see a public leaderboard of a public phase, hosts any of theirs."""
        if self.is_host(user, phase["challenge_id"]):
            return True
        config = json.loads(phase["config"])
        public = config.get("is_public") in TRUE and config.get("leaderboard_public") in TRUE
        return public and split["visibility"] == PUBLIC

    def phase_row(self, phase: int) -> Any:
        """One phase; None where there is none."""
        return self._store.row("SELECT * FROM phases WHERE id = ?", phase)

    def is_host(self, user: User | None, challenge: int) -> bool:
        """Whether a user belongs to the team that hosts a challenge."""
        row = self.row(challenge)
        return row is not None and self._accounts.is_member(user, row["host_team"])

    def team_of(self, user: User | None, challenge: int) -> Any:
        """The team with which a user takes part; None when with none."""
        if user is None:
            return None
        return self._store.row(
            "SELECT teams.* FROM participants JOIN teams ON teams.id = participants.team_id "
            "JOIN members ON members.team_id = teams.id WHERE challenge_id = ? AND user_id = ?",
            challenge,
            user.id,
        )

    def splits_of(self, phase: int) -> list[Any]:
        """Phase splits with the names of what they join."""
        return self._store.rows(
            "SELECT phase_splits.*, splits.name AS split_name, splits.codename AS split_codename, "
            "leaderboards.schema AS schema FROM phase_splits JOIN splits ON splits.id = split_id "
            "JOIN leaderboards ON leaderboards.id = leaderboard_id WHERE phase_id = ? ORDER BY phase_splits.id",
            phase,
        )

    # ── as the API shows them ───────────────────────────────────────────────

    def shown(self, row: Any, base: str, *, host: bool = False) -> dict[str, Any]:
        """A challenge; hosts see where its script lies."""
        config = {**_CHALLENGE_DEFAULTS, **json.loads(row["config"])}
        team = self._store.row("SELECT * FROM teams WHERE id = ?", row["host_team"])
        start, end = seconds(config["start_date"]), seconds(config["end_date"])
        kept = ("title", *TEXTS, *(key for key in _CHALLENGE_DEFAULTS if key != "tags"))
        return {
            "id": row["id"],
            **{key: config.get(key) for key in kept},
            **{key: config.get(key) in TRUE for key in _CHALLENGE_FLAGS},
            "image": self._links.file(row["image"], base),
            "start_date": whole(config["start_date"]),
            "end_date": whole(config["end_date"]),
            "creator": {"id": row["host_team"], "team_name": team["team_name"] if team else "", "team_url": ""},
            "list_tags": config.get("tags") or [],
            "has_prize": bool(config.get("prizes")),
            "has_sponsors": bool(config.get("sponsors")),
            # EvalAI's staff approves, and the host publishes; a rehearsal is for both to have happened.
            "published": True,
            "approved_by_admin": True,
            "is_active": start <= time.time() <= end,
            "evaluation_script": self._links.file(row["script"], base) if host else None,
            "slug": f"{slug(config['title'])}-{row['id']}",
            "queue": row["queue"],
            "github_repository": row["repository"],
        }

    def phase_shown(self, row: Any, base: str, *, host: bool) -> dict[str, Any]:
        """A phase; hosts see where its truth lies."""
        config = json.loads(row["config"])
        start, end = seconds(config["start_date"]), seconds(config["end_date"])
        flags = [key for key, field in PHASE.items() if field.kind == FLAG]
        numbers = ("max_submissions_per_day", "max_submissions_per_month", "max_submissions")
        shown = {
            "id": row["id"],
            "challenge": row["challenge_id"],
            "config_id": row["config_id"],
            "codename": row["codename"],
            "slug": row["slug"],
            "name": str(config["name"]),
            "description": config["description"],
            "start_date": whole(config["start_date"]),
            "end_date": whole(config["end_date"]),
            "is_active": start <= time.time() <= end,
            **{key: int(float(config[key])) for key in (*numbers, "max_concurrent_submissions_allowed")},
            **{key: config.get(key) in TRUE for key in flags},
            **{key: config.get(key) for key in ("allowed_submission_file_types", "submission_meta_attributes")},
            "default_submission_meta_attributes": config.get("default_submission_meta_attributes"),
            "annotations_uploaded_using_cli": bool(row["by_client"]),
        }
        if host:
            shown["test_annotation"] = self._links.file(row["annotation"], base)
            shown["environment_image"] = config.get("environment_image")
        return shown

    def split_shown(self, row: Any, phase: Any) -> dict[str, Any]:
        """A phase split."""
        return {
            "id": row["id"],
            "challenge_phase": phase["id"],
            "challenge_phase_name": str(json.loads(phase["config"])["name"]),
            "dataset_split": row["split_id"],
            "dataset_split_name": row["split_name"],
            "visibility": row["visibility"],
            "leaderboard_decimal_precision": row["decimals"],
            "is_leaderboard_order_descending": bool(row["descending"]),
            "show_execution_time": False,
            "show_leaderboard_by_latest_submission": False,
            "leaderboard_schema": json.loads(row["schema"]),
        }

    def log_lines(self, challenge: int) -> list[str]:
        """What the hosted worker wrote."""
        rows = self._store.rows("SELECT * FROM log WHERE challenge_id = ? ORDER BY id DESC LIMIT 1000", challenge)
        return [f"[{written(row['at'])}] {row['line']}" for row in reversed(rows)]


def slug(text: str) -> str:
    """A title as it stands in addresses."""
    return re.sub(r"[^a-z0-9]+", "-", str(text).lower()).strip("-") or "challenge"
