"""A bundle on its way in: refused by EvalAI's rules, or kept as a challenge."""

from __future__ import annotations

import datetime
import json
import secrets
from typing import Any

from segjudge.bundle.check import refusal, server_rules
from segjudge.bundle.field_values import TRUE, as_integer
from segjudge.bundle.fields import TEXTS
from segjudge.bundle.opened_bundle import Bundle, BundleRefusedError
from segjudge.bundle.problems import mappings_in
from segjudge.bundle.server_state import ServerState, state_after_push

from .challenges import slug
from .store import Store

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
_WHOLE = (
    "max_submissions_per_day",
    "max_submissions_per_month",
    "max_submissions",
    "max_concurrent_submissions_allowed",
)
#: Keys that an update without them sets back; all others keep what they were.
_RESET = ("tags", "domain", "prizes", "sponsors")
_RESET_OF_PHASE = ("submission_meta_attributes", "default_submission_meta_attributes", "max_submissions_per_month")
_UNSAVED = "Error in creating challenge: {}. Please check the yaml configuration!"


class BundleImport:
    """Makes challenges of bundles, and brings them up to date."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def refused(self, bundle: str, repository: str, *, saving: bool = True) -> str:
        """What EvalAI would say against a bundle, as it validates or saves it; nothing when it takes it."""
        held = self._store.row("SELECT config FROM challenges WHERE repository = ?", repository)
        state: ServerState | None = state_after_push(json.loads(held["config"]), source="here") if held else None
        try:
            with Bundle(bundle) as opened:
                return refusal(list(server_rules(opened, state)), saving=saving)
        except BundleRefusedError as error:
            return refusal([error.problem]) or str(error.problem)

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
                    queue = f"{slug(merged['title'])[:40]}-{number}-rehearsal-{secrets.token_hex(4)}"
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
        for board in mappings_in(config, "leaderboard"):
            self._upsert("leaderboards", challenge, board["id"], {"schema": json.dumps(board["schema"])})
        for split in mappings_in(config, "dataset_splits"):
            values = {"name": str(split["name"]), "codename": str(split["codename"])}
            self._upsert("splits", challenge, split["id"], values)
        for phase in mappings_in(config, "challenge_phases"):
            self._save_phase(challenge, phase, files)
        with self._store.write() as db:
            for row in mappings_in(config, "challenge_phase_splits"):
                places = [
                    db.execute(
                        f"SELECT id FROM {table} WHERE challenge_id = ? AND config_id = ?",  # noqa: S608 - our tables
                        (challenge, as_integer(row[key])),
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
                        as_integer(row["visibility"]),
                        as_integer(row["leaderboard_decimal_precision"]),
                        row["is_leaderboard_order_descending"] in TRUE,
                    ),
                )

    def _save_phase(self, challenge: int, phase: dict[str, Any], files: _Files) -> None:
        found = self._store.row(
            "SELECT * FROM phases WHERE challenge_id = ? AND config_id = ?", challenge, as_integer(phase["id"])
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
            "slug": f"{str(merged['name']).split()[0].lower()}-{slug(str(merged['codename']))}-{challenge}",
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
                (challenge, as_integer(number), *values.values()),
            )


class _Files:
    """Files of a bundle on their way into the store, each kept once."""

    def __init__(self, store: Store, bundle: Bundle) -> None:
        self._store, self._bundle = store, bundle
        self.texts: dict[str, str] = {}
        for phase in mappings_in(bundle.config, "challenge_phases"):
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
