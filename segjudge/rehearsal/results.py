"""Results that come in: from the hosted worker as `evaluate()` returned them, from remote workers as they PUT them."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from segjudge.bundle.field_values import TRUE
from segjudge.evalai.jobs import CANCELLED, FAILED, FINISHED, RUNNING

from .challenges import HOST_ONLY, Challenges
from .submissions import Refusal, Submissions

_FINAL = (FINISHED, FAILED, CANCELLED)
_PARTIAL = "partially_evaluated"
#: More than a float holds is no score.
_MOST = 10**300
Rows = list[tuple[int, dict[str, Any], dict[str, Any] | None]]


class ResultStore:
    """Writes results down, or says why not."""

    def __init__(self, challenges: Challenges, submissions: Submissions) -> None:
        self._challenges, self._submissions = challenges, submissions

    # ── remote workers ──────────────────────────────────────────────────────

    def start(self, data: dict[str, Any]) -> Any:
        """PATCH: a worker has begun, or has put it into a queue of its own."""
        status = str(data.get("submission_status", "")).lower()
        if status not in ("queued", RUNNING):
            raise Refusal(400, "Sorry, submission status is invalid")
        row = self._submissions.row(number_of(data.get("submission")))
        names = json.loads(row["job_name"])
        if data.get("job_name"):
            names.append(str(data["job_name"])[:200])
        if row["status"] == CANCELLED:
            return row
        changes = {"status": status, "started_at": time.time(), "job_name": json.dumps(names)}
        self._submissions.update(row["id"], **changes)
        return self._submissions.row(row["id"])

    def finish(self, data: dict[str, Any], *, partial: bool = False) -> None:
        """PUT: what a worker found.  After a refusal nothing is changed."""
        status = str(data.get("submission_status", "")).lower()
        if status not in (*_FINAL, *((_PARTIAL,) if partial else ())):
            raise Refusal(400, "Sorry, submission status is invalid")
        row = self._submissions.row(number_of(data.get("submission")))
        phase = number_of(data.get("challenge_phase"))
        texts = {key: data.get(key, "") for key in ("stdout", "stderr", "environment_log")}
        if not all(isinstance(text, str) for text in texts.values()):
            raise Refusal(500, "stdout, stderr and environment_log must be texts")
        rows: Rows = []
        shown: list[Any] = []
        if status in (FINISHED, _PARTIAL):
            rows, shown = self._read(phase, data.get("result"), partial=partial)
        with self._submissions.together():
            if not self._submissions.is_cancelled(row["id"]):
                self._finish(row, status, texts, (rows, shown, str(data.get("metadata", ""))))

    def _finish(self, row: Any, status: str, texts: dict[str, str], found: tuple[Rows, list[Any], str]) -> None:
        rows, shown, metadata = found
        self._submissions.keep_texts(row["id"], stdout_file=texts["stdout"], stderr_file=texts["stderr"])
        if texts["environment_log"]:
            self._submissions.keep_texts(row["id"], environment_log_file=texts["environment_log"])
        if status in (FINISHED, _PARTIAL):
            self._submissions.keep_results(row["id"], rows)
            self._submissions.keep_reported(row["id"], str(shown))
            self._submissions.keep_texts(row["id"], metadata_file=metadata)
        self._submissions.update(row["id"], status=status, completed_at=time.time())

    def merge(self, data: dict[str, Any]) -> Any:
        """PATCH of a partial result: into the row that an earlier PUT made."""
        status = str(data.get("submission_status", "")).lower()
        if status == RUNNING:
            return self.start(data)
        if status not in (_PARTIAL, FINISHED):
            raise Refusal(400, "Sorry, submission status is invalid")
        row, phase = self._submissions.row(number_of(data.get("submission"))), number_of(data.get("challenge_phase"))
        rows, _ = self._read(phase, data.get("result"), partial=True)
        texts = {
            f"{key}_file": data[key] for key in ("stdout", "stderr") if isinstance(data.get(key), str) and data[key]
        }
        with self._submissions.together():
            if not self._submissions.is_cancelled(row["id"]):
                self._merge(row, phase, rows)
                self._submissions.keep_texts(row["id"], **texts)
                self._submissions.update(row["id"], status=status, completed_at=time.time())
        return self._submissions.row(row["id"])

    def _merge(self, row: Any, phase: int, rows: Rows) -> None:
        held = self._submissions.results(row["id"])
        for split, _, _ in rows:
            if split not in held:
                words = f"Leaderboard Data does not exist with phase_id: {phase} andsubmission id: {row['id']}"
                raise Refusal(400, words)
        new = {split: values for split, values, _ in rows}
        self._submissions.keep_results(
            row["id"], [(split, {**values, **new.get(split, {})}, None) for split, values in held.items()]
        )

    def _read(self, phase: int, told: Any, *, partial: bool) -> tuple[Rows, list[Any]]:
        try:
            entries = json.loads(told)
            pairs = [(one.get("split"), one.get("accuracies"), one.get("show_to_participant")) for one in entries]
        except (TypeError, ValueError, AttributeError, RecursionError) as error:
            words = f"`result` key contains invalid data with error {error}.Please try again with correct format."
            raise Refusal(400, words) from None
        splits: dict[Any, list[Any]] = {}
        for row in self._challenges.splits_of(phase):
            splits.setdefault(row["split_codename"], []).append(row)
        stage = self._challenges.phase_row(phase)
        loose = partial and stage and _is_partial(stage)
        rows: Rows = []
        shown = []
        for name, values, public in pairs:
            mapped = splits.get(name, []) if isinstance(name, str) else []
            if len(mapped) != 1 or not isinstance(values, dict):
                words = f"Challenge Phase Split does not exist with phase_id: {phase} andsplit codename: {name}"
                raise Refusal(400 if len(mapped) < 2 else 500, words)
            _judge(values, json.loads(mapped[0]["schema"])["labels"], loose=loose)
            rows.append((mapped[0]["id"], values, None))
            # EvalAI shows whatever the worker says.
            shown += [values] if public and mapped[0]["visibility"] != HOST_ONLY else []
        return rows, shown

    # ── the hosted worker ───────────────────────────────────────────────────

    def hosted(self, submission: int, answer: dict[str, Any]) -> None:
        """What came of `evaluate()` in the hosted worker's process; nothing of a submission that was cancelled."""
        row = self._submissions.row(submission)
        stage = self._challenges.phase_row(row["phase_id"])
        silent = json.loads(stage["config"]).get("disable_logs") in TRUE
        texts = {} if silent else {"stdout_file": answer["stdout"]}
        if answer["status"] == FAILED and not silent:
            texts["stderr_file"] = answer["stderr"]
        rows: Rows = []
        if answer["status"] == FINISHED:
            rows = self._hosted_rows(row["phase_id"], answer)
            for key, column in (
                ("submission_result", "submission_result_file"),
                ("submission_metadata", "metadata_file"),
            ):
                if key in answer:
                    texts[column] = answer[key]
        with self._submissions.together():
            if self._submissions.is_cancelled(submission):
                return
            if answer["status"] == FINISHED:
                self._submissions.keep_results(submission, rows)
            self._submissions.keep_texts(submission, **texts)
            self._submissions.update(submission, status=answer["status"], completed_at=time.time())

    def _hosted_rows(self, phase: int, answer: dict[str, Any]) -> Rows:
        splits = {one["split_codename"]: one["id"] for one in self._challenges.splits_of(phase)}
        # Only the first key of each entry is read.
        errors = {name: values for one in answer.get("error") or [] for name, values in list(one.items())[:1]}
        return [(splits[name], one[name], errors.get(name)) for one in answer["result"] for name in list(one)[:1]]

    def failed(self, submission: int, words: str) -> None:
        """End a submission that EvalAI would leave as it is."""
        with self._submissions.together():
            if not self._submissions.is_cancelled(submission):
                self._submissions.keep_texts(submission, stdout_file="", stderr_file=words)
                self._submissions.update(submission, status=FAILED, completed_at=time.time())


def _judge(values: dict[str, Any], labels: list[str], *, loose: bool) -> None:
    unknown = [name for name in values if name not in labels]
    if unknown and not loose:
        raise Refusal(400, f"Following metrics are missing in theleaderboard data: {unknown}")
    wrong = [(name, type(value)) for name, value in values.items() if not isinstance(value, (int, float))]
    if wrong:
        raise Refusal(400, f"Values for following metrics are not offloat/int: {wrong}")
    if not all(-_MOST < value < _MOST for value in values.values()):  # NaN is not
        raise Refusal(400, {"result": ["Value must be valid JSON."]})


def _is_partial(stage: Any) -> bool:
    return json.loads(stage["config"]).get("is_partial_submission_evaluation_enabled") in TRUE


def number_of(value: Any) -> int:
    """A submission's number as a client sends it."""
    told = str(value)[:100]
    if not re.fullmatch(r"\d{1,18}", told):
        raise Refusal(404, f"Submission {told} does not exist")
    return int(told)
