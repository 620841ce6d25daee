"""Submissions: who may send one, what becomes of it, what of it is shown."""

from __future__ import annotations

import json
import math
import time
from contextlib import AbstractContextManager
from typing import Any

from segjudge.bundle.field_values import TRUE
from segjudge.evalai.jobs import CANCELLED, FAILED, FINISHED, RUNNING

from .accounts import User
from .challenges import Challenges
from .queue import MessageQueues
from .signed_urls import SignedUrls
from .store import Store
from .timestamps import seconds, since, written

#: Statuses that will change, and count against a team's concurrent submissions.
OPEN = ("submitted", "submitting", "resuming", "queued", RUNNING)
STATUSES = (*OPEN, FINISHED, FAILED, CANCELLED, "partially_evaluated", "archived")
_NOT_COUNTED = (FAILED, CANCELLED)
_ATTRIBUTES = 1 << 16
#: The kind of a result file that holds nothing but what participants may see.
REPORTED = "reported_result"
_TEXTS = ("method_name", "method_description", "project_url", "publication_url")


class Refusal(Exception):
    """An answer other than the one that was asked for."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(str(body))
        self.status = status
        self.body = body if isinstance(body, dict) else {"error": body}


class Submissions:
    """All submissions, by their numbers."""

    def __init__(self, store: Store, challenges: Challenges, queue: MessageQueues, links: SignedUrls) -> None:
        self._store, self._challenges, self._queue, self._links = store, challenges, queue, links

    # ── sending ─────────────────────────────────────────────────────────────

    def opened(self, challenge: int, phase: int) -> tuple[Any, Any]:
        """Challenge and phase, when both are open now."""
        held, stage = self._challenges.row(challenge), self._challenges.phase_row(phase)
        if held is None:
            raise Refusal(400, "Challenge does not exist")
        if stage is None or stage["challenge_id"] != challenge:
            raise Refusal(400, "Challenge Phase does not exist")
        config, now = json.loads(stage["config"]), time.time()
        whole = json.loads(held["config"])
        if not seconds(whole["start_date"]) <= now <= seconds(whole["end_date"]):
            raise Refusal(406, "Challenge is not active")
        if not seconds(config["start_date"]) <= now <= seconds(config["end_date"]):
            raise Refusal(406, "Sorry, cannot accept submissions since challenge phase is not active")
        if config.get("is_submission_paused") in TRUE:
            words = "Submissions are currently paused for this challenge phase. Please try again later."
            raise Refusal(406, words)
        return held, stage

    def admitted(self, user: User, challenge: int, phase: int) -> tuple[Any, Any, Any]:
        """Challenge, phase and team, when the server would take a submission now; it asks in this order."""
        held, stage = self.opened(challenge, phase)
        config, now = json.loads(stage["config"]), time.time()
        host = self._challenges.is_host(user, challenge)
        if config.get("is_public") not in TRUE and not host:
            raise Refusal(403, "Sorry, cannot accept submissions since challenge phase is not public")
        if config.get("allowed_email_ids") and user.email not in config["allowed_email_ids"] and not host:
            raise Refusal(403, "Sorry, you are not allowed to participate in this challenge phase")
        team = self._challenges.team_of(user, challenge)
        if team is None:
            raise Refusal(403, "You haven't participated in the challenge")
        if user.email in (json.loads(held["config"]).get("banned_email_ids") or []):
            words = "You're a part of participant team and it has been banned from this challenge."
            raise Refusal(403, f"{words} Please contact the challenge host.")
        self._within_limits(team["id"], phase, config, now)
        return held, stage, team

    def _within_limits(self, team: int, phase: int, config: dict[str, Any], now: float) -> None:
        marks = ", ".join("?" * len(OPEN))
        waiting = self._store.value(
            f"SELECT count(*) FROM submissions WHERE team_id = ? AND phase_id = ? AND status IN ({marks})",  # noqa: S608
            team,
            phase,
            *OPEN,
        )
        if waiting >= int(config["max_concurrent_submissions_allowed"]):
            raise Refusal(
                406,
                f"You have {waiting} submissions that are being processed. "
                "                           Please wait for them to finish and then try again.",
            )
        for limit, words, start in (
            ("max_submissions", "The maximum number of submissions has been reached", 0.0),
            (
                "max_submissions_per_month",
                "The maximum number of submission for this month has been reached",
                since("month", now),
            ),
            (
                "max_submissions_per_day",
                "The maximum number of submission for today has been reached",
                since("day", now),
            ),
        ):
            if self.counted(team, phase, start) >= int(config[limit]):
                raise Refusal(403, words)

    def counted(self, team: int, phase: int, start: float) -> int:
        """Submissions since a moment that count against a limit."""
        found: int = self._store.value(
            "SELECT count(*) FROM submissions WHERE team_id = ? AND phase_id = ? AND submitted_at >= ? "
            "AND status NOT IN (?, ?)",
            team,
            phase,
            start,
            *_NOT_COUNTED,
        )
        return found

    def create(self, user: User, challenge: int, phase: int, data: dict[str, Any], file: str | None) -> int:
        """A new submission, not yet in the queue; raises `Refusal` where the server would not take it."""
        with self._store.write() as db:
            # Inside, so that two at once cannot both be the last that is allowed.
            _, stage, team = self.admitted(user, challenge, phase)
            config = json.loads(stage["config"])
            public = config.get("is_submission_public") in TRUE
            if config.get("leaderboard_public") in TRUE and data.get("is_public") not in (None, ""):
                public = data["is_public"] in TRUE
            texts = [clean(data.get(key)) for key in _TEXTS]
            cursor = db.execute(
                "INSERT INTO submissions (phase_id, team_id, created_by, status, input_file, is_public, submitted_at, "  # noqa: S608 - our names
                f"attributes, {', '.join(_TEXTS)}) VALUES (?, ?, ?, 'submitted', ?, ?, ?, ?, ?, ?, ?, ?)",
                (phase, team["id"], user.id, file, public, time.time(), _attributes(data), *texts),
            )
        return int(cursor.lastrowid or 0)

    def send(self, user: User, phase: tuple[int, int], data: dict[str, Any], file: str, image: str = "") -> int:
        """A new submission and its message, both or neither; the file is dropped where it is refused."""
        try:
            with self._store.write():
                number = self.create(user, *phase, data, file)
                self.enqueue(number, image)
        except BaseException:
            self._store.drop(file)
            raise
        return number

    def enqueue(self, submission: int, image: str = "") -> None:
        """Tell the workers."""
        row = self.row(submission)
        challenge = self.challenge_of(row)
        body: dict[str, Any] = {
            "challenge_pk": str(challenge["id"]),
            "phase_pk": str(row["phase_id"]),
            "is_static_dataset_code_upload_submission": _is(challenge, "is_static_dataset_code_upload")
            and not row["submission_input_file"],
            "submission_pk": submission,
        }
        if image:
            body["submitted_image_uri"] = image
        self._queue.send(challenge["queue"], body)

    def image_of(self, challenge: int, file: Any) -> str:
        """For a challenge that runs code the file is JSON with the image's address; "" for any other."""
        if not _is(self._challenges.row(challenge), "is_docker_based"):
            return ""
        try:
            return str(json.loads(file.read(1 << 16))["submitted_image_uri"])
        except (ValueError, KeyError, TypeError) as error:
            raise Refusal(400, f"Error {error} in submitted_image_uri from submission file") from None
        finally:
            file.seek(0)

    # ── looking ─────────────────────────────────────────────────────────────

    def row(self, submission: int) -> Any:
        """One submission; refuses with the server's words where there is none."""
        found = self._store.row("SELECT * FROM submissions WHERE id = ?", submission)
        if found is None:
            raise Refusal(404, f"Submission {submission} does not exist")
        return found

    def challenge_of(self, row: Any) -> Any:
        """The challenge of a submission."""
        return self._challenges.row(self._challenges.phase_row(row["phase_id"])["challenge_id"])

    def may_see(self, user: User | None, row: Any) -> bool:
        """Its team and the hosts, nobody else."""
        if user is None:
            return False
        challenge = self.challenge_of(row)["id"]
        mine = self._store.row("SELECT 1 FROM members WHERE team_id = ? AND user_id = ?", row["team_id"], user.id)
        return bool(mine) or self._challenges.is_host(user, challenge)

    def of_team(self, team: int, phase: int) -> list[Any]:
        """A team's submissions to a phase, the newest first."""
        return self._store.rows(
            "SELECT * FROM submissions WHERE team_id = ? AND phase_id = ? ORDER BY id DESC", team, phase
        )

    def of_challenge(self, challenge: int, status: str = "", after: float = 0.0, before: float = math.inf) -> list[Any]:
        """What hosts list."""
        return self._store.rows(
            "SELECT submissions.* FROM submissions JOIN phases ON phases.id = phase_id WHERE challenge_id = ? "
            "AND (? = '' OR status = ?) AND submitted_at >= ? AND submitted_at <= ? ORDER BY submissions.id DESC",
            challenge,
            status,
            status,
            after,
            before if before < math.inf else 1e15,
        )

    def shown(self, row: Any, base: str, *, host: bool = False) -> dict[str, Any]:
        """As the API shows it."""
        team = self._store.value("SELECT team_name FROM teams WHERE id = ?", row["team_id"])
        files = ("input_file", "submission_input_file", "stdout_file", "stderr_file", "submission_result_file")
        took = row["completed_at"] - row["started_at"] if row["completed_at"] and row["started_at"] else None
        shown = {
            "id": row["id"],
            "participant_team": row["team_id"],
            "participant_team_name": team,
            "execution_time": "None" if took is None else took,
            "challenge_phase": row["phase_id"],
            "created_by": row["created_by"],
            "status": row["status"],
            # The team's own files, and what was written about them: that may be less for it than for the hosts.
            **{key: self._links.file(row[key], base, 0 if host or key in files[:2] else row["id"]) for key in files},
            **{key: written(row[key]) for key in ("started_at", "completed_at", "submitted_at", "rerun_resumed_at")},
            **{key: row[key] for key in _TEXTS},
            **{key: bool(row[key]) for key in ("is_public", "is_flagged", "is_baseline")},
            "ignore_submission": False,
            "when_made_public": None,
            "is_verified_by_host": False,
            "job_name": json.loads(row["job_name"]),
            "submission_metadata": json.loads(row["attributes"]) if row["attributes"] else None,
            "environment_log_file": self._links.file(row["environment_log_file"], base) if host else None,
        }
        if host:
            shown["submission_metadata_file"] = self._links.file(row["metadata_file"], base)
        return shown

    # ── changing ────────────────────────────────────────────────────────────

    def together(self) -> AbstractContextManager[Any]:
        """Reads and writes that belong together."""
        return self._store.write()

    def update(self, submission: int, **values: Any) -> None:
        """Set columns; their names come from our code alone."""
        names = ", ".join(f"{name} = ?" for name in values)
        with self._store.write() as db:
            db.execute(f"UPDATE submissions SET {names} WHERE id = ?", (*values.values(), submission))  # noqa: S608

    def begin(self, submission: int) -> bool:
        """A worker begins with it; not where it was cancelled meanwhile."""
        with self._store.write() as db:
            return bool(
                db.execute(
                    "UPDATE submissions SET status = ?, started_at = ? WHERE id = ? AND status != ?",
                    (RUNNING, time.time(), submission, CANCELLED),
                ).rowcount
            )

    def give_back(self, submission: int, queue: str, handle: str) -> None:
        """A worker that stops leaves it to the next one, as if it had not begun."""
        with self._store.write() as db:
            if self._queue.give_back(queue, handle):
                db.execute(
                    "UPDATE submissions SET status = 'submitted', started_at = NULL WHERE id = ? AND status = ?",
                    (submission, RUNNING),
                )

    def is_cancelled(self, submission: int) -> bool:
        """A cancelled submission stays cancelled, whatever is reported of it afterwards."""
        return bool(self.row(submission)["status"] == CANCELLED)

    def keep_texts(self, submission: int, **texts: str) -> None:
        """Store streams and results as files, in the place of earlier ones."""
        row = self.row(submission)
        for column, text in texts.items():
            old = row[column]
            name = f"{column.removesuffix('_file')}.{'json' if column in _JSON else 'txt'}"
            self.update(submission, **{column: self._store.keep(text.encode("utf-8", "replace"), name, column)})
            self._store.drop(old)

    def keep_reported(self, submission: int, shown: str) -> None:
        """Store what a remote worker reported of splits that participants may see."""
        old = self.row(submission)["submission_result_file"]
        kept = self._store.keep(shown.encode("utf-8", "replace"), "submission_result.json", REPORTED)
        self.update(submission, submission_result_file=kept)
        self._store.drop(old)

    def keep_results(self, submission: int, rows: list[tuple[int, dict[str, Any], dict[str, Any] | None]]) -> None:
        """One leaderboard row for each phase split; earlier ones no longer count."""
        with self._store.write() as db:
            db.execute("UPDATE results SET disabled = 1 WHERE submission_id = ?", (submission,))
            for split, result, error in {row[0]: row for row in rows}.values():  # of two for one split the later
                db.execute(
                    "INSERT INTO results (submission_id, phase_split_id, result, error, disabled) "
                    "VALUES (?, ?, ?, ?, 0)",
                    (submission, split, json.dumps(result), json.dumps(error) if error else None),
                )

    def results(self, submission: int) -> dict[int, dict[str, Any]]:
        """Phase split → values of the rows that count."""
        rows = self._store.rows("SELECT * FROM results WHERE submission_id = ? AND disabled = 0", submission)
        return {row["phase_split_id"]: json.loads(row["result"]) for row in rows}

    def all_results(self, submission: int) -> list[tuple[int, dict[str, Any]]]:
        """Phase split and values of every row, those of earlier runs too."""
        rows = self._store.rows("SELECT * FROM results WHERE submission_id = ?", submission)
        return [(row["phase_split_id"], json.loads(row["result"])) for row in rows]

    def rerun(self, submission: int) -> int:
        """As EvalAI does it: the old one is cancelled, and a new one has the same file."""
        row = self.row(submission)
        columns = "phase_id, team_id, created_by, input_file, attributes, is_public, is_baseline, " + ", ".join(_TEXTS)
        with self._store.write() as db:
            db.execute("UPDATE submissions SET status = ? WHERE id = ?", (CANCELLED, submission))
            cursor = db.execute(
                f"INSERT INTO submissions (status, submitted_at, rerun_resumed_at, {columns}) "  # noqa: S608 - our names
                f"SELECT 'submitted', ?, ?, {columns} FROM submissions WHERE id = ?",
                (row["submitted_at"], time.time(), submission),
            )
            number = int(cursor.lastrowid or 0)
            self.enqueue(number)
        return number

    def resume(self, submission: int) -> None:
        """Only for a remote challenge that allows it, and only for what failed."""
        row = self.row(submission)
        challenge = self.challenge_of(row)
        if not _is(challenge, "remote_evaluation") or not _is(challenge, "allow_resuming_submissions"):
            raise Refusal(406, "Challenge does not allow resuming submissions")
        if row["status"] != FAILED:
            raise Refusal(400, "Only failed submissions can be resumed")
        with self._store.write():
            self.update(submission, status="resuming", rerun_resumed_at=time.time(), deaths=0)
            self.enqueue(submission)


_JSON = ("submission_result_file", "metadata_file")


def clean(value: Any) -> str:
    """A text that can be stored and shown."""
    return str(value or "")[:1000].encode("utf-8", "replace").decode().replace("\0", "")


def _is(challenge: Any, key: str) -> bool:
    return json.loads(challenge["config"]).get(key) in TRUE


def _attributes(data: dict[str, Any]) -> str | None:
    """The answers to a phase's questions; a client sends them as a JSON text."""
    told = data.get("submission_metadata")
    if told in (None, "", "null"):
        return None
    try:
        kept = json.dumps(json.loads(told) if isinstance(told, str) else told, allow_nan=False)
        plain = json.loads(kept.encode("utf-8", "replace"))
        json.dumps(plain, ensure_ascii=False).encode("utf-8")  # half a character cannot be shown again
    except (ValueError, RecursionError):
        raise Refusal(406, {"submission_metadata": ["Value must be valid JSON."]}) from None
    if len(kept) > _ATTRIBUTES:
        raise Refusal(406, {"submission_metadata": [f"Ensure this field has no more than {_ATTRIBUTES} characters."]})
    return kept
