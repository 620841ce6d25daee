"""Challenges as the rehearsal holds them: made from a bundle by EvalAI's rules, shown as its API shows them."""

from __future__ import annotations

import datetime
import json
import re
import secrets
import time
from typing import Any

from linejudge.bundle.check import refusal, server_rules
from linejudge.bundle.fields import FLAG, PHASE, TEXTS
from linejudge.bundle.finding import items
from linejudge.bundle.opened import Bundle, RefusedError
from linejudge.bundle.state import State, state_of
from linejudge.bundle.values import TRUE

from .accounts import Accounts, User
from .links import Links
from .store import Store
from .times import seconds, whole, written

#: What EvalAI assumes of a phase where the YAML says nothing.
_LIMIT = 100_000
_PHASE_DEFAULTS: dict[str, Any] = {
    "max_submissions_per_day": _LIMIT,
    "max_concurrent_submissions_allowed": 3,
    "allowed_submission_file_types": ".json, .zip, .txt, .tsv, .gz, .csv, .h5, .npy",
    "allowed_email_ids": [],
    "submission_artifact_retention_policy": "keep_forever",
    "environment_image": None,
    "submission_meta_attributes": None,
    "default_submission_meta_attributes": None,
}
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
_WHOLE = (
    "max_submissions_per_day",
    "max_submissions_per_month",
    "max_submissions",
    "max_concurrent_submissions_allowed",
)
#: Keys that an update without them sets back; all others keep what they were.
_RESET = ("tags", "domain", "prizes", "sponsors")
_RESET_OF_PHASE = ("submission_meta_attributes", "default_submission_meta_attributes", "max_submissions_per_month")
_FLAGS = ("published", "remote_evaluation", "is_docker_based", "is_static_dataset_code_upload", "cpu_only_jobs")
_CHALLENGE_FLAGS = (
    *_FLAGS,
    "anonymous_leaderboard",
    "allow_resuming_submissions",
    "allow_host_cancel_submissions",
    "allow_cancel_running_submissions",
    "allow_participants_resubmissions",
)
_UNSAVED = "Error in creating challenge: {}. Please check the yaml configuration!"


class Challenges:
    """All challenges, by their numbers."""

    def __init__(self, store: Store, accounts: Accounts, links: Links) -> None:
        self._store, self._accounts, self._links = store, accounts, links

    # ── making ──────────────────────────────────────────────────────────────

    def refused(self, bundle: str, repository: str) -> str:
        """What EvalAI would say against a bundle; nothing when it takes it."""
        held = self._store.row("SELECT config FROM challenges WHERE repository = ?", repository)
        state: State | None = state_of(json.loads(held["config"]), source="here") if held else None
        try:
            with Bundle(bundle) as opened:
                return refusal(list(server_rules(opened, state)))
        except RefusedError as error:
            return refusal([error.finding]) or str(error.finding)

    def create_or_update(self, bundle: str, repository: str, team: int) -> tuple[int, bool]:
        """Take a bundle that was not refused; the challenge's number and whether it is new."""
        with Bundle(bundle) as opened:
            files = _Files(self._store, opened)
            with self._store.write() as db:
                row = db.execute("SELECT * FROM challenges WHERE repository = ?", (repository,)).fetchone()
                old = json.loads(row["config"]) if row else {}
                config = _readable(opened)
                if row and old.get("sponsors") and config.get("sponsors"):
                    raise ValueError(_UNSAVED.format(None))
                merged = {**{key: value for key, value in old.items() if key not in _RESET}, **config}
                image = files.kept(config.get("image"), "image")
                script = files.kept(config.get("evaluation_script"), "script") or ""
                text = json.dumps(merged, default=_plain)
                if row:
                    number = int(row["id"])
                    db.execute(
                        "UPDATE challenges SET config = ?, image = ?, script = ?, version = version + 1 WHERE id = ?",
                        (text, image or row["image"], script, number),
                    )
                else:
                    cursor = db.execute(
                        "INSERT INTO challenges (host_team, repository, queue, config, image, script) "
                        "VALUES (?, ?, ?, ?, ?, ?)",
                        (team, repository, "", text, image, script),
                    )
                    number = int(cursor.lastrowid or 0)
                    queue = f"{_slug(merged['title'])[:40]}-{number}-rehearsal-{secrets.token_hex(4)}"
                    db.execute("UPDATE challenges SET queue = ? WHERE id = ?", (queue, number))
                    if not merged.get("is_docker_based"):
                        self._host_participates(number, team)
                self._save_blocks(number, merged, files)
        return number, row is None

    def _host_participates(self, challenge: int, team: int) -> None:
        """EvalAI lets the hosts of a new challenge submit at once, as a team of their own."""
        with self._store.write() as db:
            maker = db.execute("SELECT created_by FROM teams WHERE id = ?", (team,)).fetchone()[0]
            name = f"Host_{secrets.randbelow(10**5):05d}_Team"
            entered = db.execute(
                "INSERT INTO teams (kind, team_name, created_by) VALUES ('participant', ?, ?)", (name, maker)
            ).lastrowid
            db.execute("INSERT INTO members SELECT ?, user_id FROM members WHERE team_id = ?", (entered, team))
            db.execute("INSERT INTO participants VALUES (?, ?)", (challenge, entered))

    def _save_blocks(self, challenge: int, config: dict[str, Any], files: _Files) -> None:
        for board in items(config, "leaderboard"):
            self._upsert("leaderboards", challenge, board["id"], {"schema": json.dumps(board["schema"])})
        for split in items(config, "dataset_splits"):
            values = {"name": str(split["name"]), "codename": str(split["codename"])}
            self._upsert("splits", challenge, split["id"], values)
        for phase in items(config, "challenge_phases"):
            self._save_phase(challenge, phase, files)
        with self._store.write() as db:
            for row in items(config, "challenge_phase_splits"):
                places = [
                    db.execute(
                        f"SELECT id FROM {table} WHERE challenge_id = ? AND config_id = ?",  # noqa: S608 - our tables
                        (challenge, row[key]),
                    ).fetchone()[0]
                    for table, key in (
                        ("phases", "challenge_phase_id"),
                        ("leaderboards", "leaderboard_id"),
                        ("splits", "dataset_split_id"),
                    )
                ]
                db.execute(
                    "INSERT INTO phase_splits (phase_id, leaderboard_id, split_id, visibility, decimals, descending) "
                    "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET visibility = excluded.visibility, "
                    "decimals = excluded.decimals, descending = excluded.descending",
                    (
                        *places,
                        int(row["visibility"]),
                        int(row["leaderboard_decimal_precision"]),
                        row["is_leaderboard_order_descending"] in TRUE,
                    ),
                )

    def _save_phase(self, challenge: int, phase: dict[str, Any], files: _Files) -> None:
        found = self._store.row(
            "SELECT * FROM phases WHERE challenge_id = ? AND config_id = ?", challenge, int(phase["id"])
        )
        old = json.loads(found["config"]) if found else {}
        merged = {
            **_PHASE_DEFAULTS,
            **{key: value for key, value in old.items() if key not in _RESET_OF_PHASE},
            **phase,
        }
        merged.setdefault("max_submissions", _LIMIT)
        if merged.get("max_submissions_per_month") is None:
            merged["max_submissions_per_month"] = merged["max_submissions"]
        merged["description"] = files.texts.get(str(phase.get("description")), str(merged.get("description", "")))
        for key in _WHOLE:
            merged[key] = int(float(merged[key]))  # "5" and "5.0" are taken too
        at_once = merged["max_concurrent_submissions_allowed"]
        merged["max_concurrent_submissions_allowed"] = min(at_once, merged["max_submissions_per_day"])
        by_client = bool(found and found["by_client"])
        annotation = None if by_client else files.kept(phase.get("test_annotation_file"), "annotation")
        values = {
            "codename": str(merged["codename"]),
            "slug": f"{str(merged['name']).split()[0].lower()}-{_slug(str(merged['codename']))}-{challenge}",
            "config": json.dumps(merged, default=_plain),
            "annotation": annotation or (found["annotation"] if found else None),
        }
        self._upsert("phases", challenge, phase["id"], values)

    def _upsert(self, table: str, challenge: int, number: Any, values: dict[str, Any]) -> None:
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        renewed = ", ".join(f"{name} = excluded.{name}" for name in values)
        with self._store.write() as db:
            db.execute(
                f"INSERT INTO {table} (challenge_id, config_id, {names}) VALUES (?, ?, {marks}) "  # noqa: S608 - our names
                f"ON CONFLICT (challenge_id, config_id) DO UPDATE SET {renewed}",
                (challenge, int(number), *values.values()),
            )

    # ── looking ─────────────────────────────────────────────────────────────

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
        host = self.is_host(user, challenge)
        return [row for row in rows if host or json.loads(row["config"]).get("is_public") in TRUE]

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

    def shown(self, row: Any, base: str) -> dict[str, Any]:
        """A challenge."""
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
            "evaluation_script": self._links.file(row["script"], base),
            "slug": f"{_slug(config['title'])}-{row['id']}",
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
        }

    def log_lines(self, challenge: int) -> list[str]:
        """What the hosted worker wrote."""
        rows = self._store.rows("SELECT * FROM log WHERE challenge_id = ? ORDER BY id DESC LIMIT 1000", challenge)
        return [f"[{written(row['at'])}] {row['line']}" for row in reversed(rows)]


class _Files:
    """Files of a bundle on their way into the store, each kept once."""

    def __init__(self, store: Store, bundle: Bundle) -> None:
        self._store, self._bundle = store, bundle
        self.texts: dict[str, str] = {}
        for phase in items(bundle.config, "challenge_phases"):
            path = phase.get("description")
            if bundle.has(path) and str(path).endswith(".html"):
                self.texts[str(path)] = bundle.read(str(path)).decode("utf-8")

    def kept(self, path: Any, kind: str) -> str | None:
        """The id of a file that the YAML names; None when it names none."""
        if not self._bundle.has(path):
            return None
        return self._store.keep(self._bundle.read(str(path)), str(path), kind)


def _readable(bundle: Bundle) -> dict[str, Any]:
    """The config with texts in the place of their paths."""
    config = dict(bundle.config)
    for key in TEXTS:
        if bundle.has(config.get(key)):
            config[key] = bundle.read(str(config[key])).decode("utf-8")
    return config


def _plain(value: Any) -> str:
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    return str(value)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", str(text).lower()).strip("-") or "challenge"
