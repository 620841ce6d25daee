"""Results that come in: from the hosted worker as `evaluate()` returned them, from remote workers as they PUT them."""

import json
import re
import time
from typing import IO

from segjudge.evalai.jobs import CANCELLED, FAILED, FINISHED, RUNNING
from segjudge.rehearsal.challenges import HOST_ONLY, Challenges
from segjudge.rehearsal.column_types import JsonObject
from segjudge.rehearsal.models import Challenge, ChallengePhaseSplit, Submission, User
from segjudge.rehearsal.refusal import NOT_AUTHORIZED, Refusal
from segjudge.rehearsal.store import Store
from segjudge.rehearsal.stored_files import FileStore
from segjudge.rehearsal.submissions import REPORTED, SUBMITTED, SplitScores, Submissions

from .permissions import Permissions

_FINAL = (FINISHED, FAILED, CANCELLED)
_PARTIAL = "partially_evaluated"
#: A score is smaller; larger numbers are not floats.
_MOST = 10**300


class WorkerReports:
    """The actions of a worker: it begins, finishes or fails, and its results are stored or refused."""

    def __init__(self, store: Store, files: FileStore, submissions: Submissions, permissions: Permissions) -> None:
        self._store, self._files = store, files
        self._submissions, self._permissions = submissions, permissions
        self._challenges = Challenges(store)

    # ── remote workers ──────────────────────────────────────────────────────

    def check_worker(self, user: User, challenge: int, fields: JsonObject) -> Challenge:
        """Return the challenge that a worker reports to; refuses who does not host it or reports on another's."""
        row = self._challenges.get(challenge)
        if row is None:
            raise Refusal(404, {"detail": f"Challenge {challenge} does not exist"})
        self._permissions.check_host(user, challenge, Refusal(400, NOT_AUTHORIZED))
        if "submission" in fields:
            # EvalAI asks for neither; a host of one challenge could read and overwrite those of another.
            submission = self._submissions.get(_number_of(fields["submission"]))
            phase = self._challenges.phase(_number_of(fields.get("challenge_phase", submission.phase_id)))
            ours = self._submissions.phase_of(submission).challenge_id == challenge
            if not ours or phase is None or phase.challenge_id != challenge:
                raise Refusal(400, NOT_AUTHORIZED)
        return row

    def start(self, fields: JsonObject) -> Submission:
        """Note that a worker has begun, or has put the submission into a queue of its own."""
        status = str(fields.get("submission_status", "")).lower()
        if status not in ("queued", RUNNING):
            raise Refusal(400, "Sorry, submission status is invalid")
        row = self._submissions.get(_number_of(fields.get("submission")))
        names = [*row.job_name, *([str(fields["job_name"])[:200]] if fields.get("job_name") else [])]
        if row.status == CANCELLED:
            return row
        self._submissions.update(row.id, status=status, started_at=time.time(), job_name=names)
        return self._submissions.get(row.id)

    def pod_started(self, user: User, submission: int) -> Submission:
        """Note when the pod of a code upload began."""
        if not self._permissions.may_see_submission(user, self._submissions.get(submission)):
            raise Refusal(403, NOT_AUTHORIZED)
        self._submissions.update(submission, started_at=time.time())
        return self._submissions.get(submission)

    def take_product(self, fields: JsonObject, file: IO[bytes], name: str) -> Submission:
        """Keep what a static code upload wrote, which EvalAI's own worker then scores."""
        row = self._submissions.get(_number_of(fields.get("submission")))
        kept = self._files.keep(file, name, "submission_input_file")
        with self._store.write():
            if self._submissions.is_cancelled(row.id):
                self._files.drop(kept)
            else:
                self._submissions.update(row.id, submission_input_file=kept, status=SUBMITTED)
                self._submissions.enqueue(row.id)
        return self._submissions.get(row.id)

    def finish(self, fields: JsonObject, *, partial: bool = False) -> None:
        """Store what a worker found.  After a refusal nothing is changed."""
        status = str(fields.get("submission_status", "")).lower()
        if status not in (*_FINAL, *((_PARTIAL,) if partial else ())):
            raise Refusal(400, "Sorry, submission status is invalid")
        row = self._submissions.get(_number_of(fields.get("submission")))
        phase = _number_of(fields.get("challenge_phase"))
        texts = {key: fields.get(key, "") for key in ("stdout", "stderr", "environment_log")}
        if not all(isinstance(text, str) for text in texts.values()):
            raise Refusal(500, "stdout, stderr and environment_log must be texts")
        finished = status in (FINISHED, _PARTIAL)
        scores, shown = self._read(phase, fields.get("result"), partial=partial) if finished else ([], [])
        with self._store.write():
            if self._submissions.is_cancelled(row.id):
                return
            environment_log = texts.pop("environment_log")
            self._submissions.keep_texts(row.id, **{f"{key}_file": text for key, text in texts.items()})
            if environment_log:
                self._submissions.keep_texts(row.id, environment_log_file=environment_log)
            if finished:
                self._submissions.keep_scores(row.id, scores)
                self._submissions.keep_texts(row.id, REPORTED, submission_result_file=str(shown))
                self._submissions.keep_texts(row.id, metadata_file=str(fields.get("metadata", "")))
            self._submissions.update(row.id, status=status, completed_at=time.time())

    def merge(self, fields: JsonObject) -> Submission:
        """Merge a partial result into the one that an earlier PUT stored."""
        status = str(fields.get("submission_status", "")).lower()
        if status == RUNNING:
            return self.start(fields)
        if status not in (_PARTIAL, FINISHED):
            raise Refusal(400, "Sorry, submission status is invalid")
        row = self._submissions.get(_number_of(fields.get("submission")))
        phase = _number_of(fields.get("challenge_phase"))
        scores, _ = self._read(phase, fields.get("result"), partial=True)
        streams = {key: fields.get(key) for key in ("stdout", "stderr")}
        texts = {f"{key}_file": text for key, text in streams.items() if isinstance(text, str) and text}
        with self._store.write():
            if not self._submissions.is_cancelled(row.id):
                self._merge(row.id, phase, scores)
                self._submissions.keep_texts(row.id, **texts)
                self._submissions.update(row.id, status=status, completed_at=time.time())
        return self._submissions.get(row.id)

    def _merge(self, submission: int, phase: int, scores: list[SplitScores]) -> None:
        stored = self._submissions.scores(submission)
        new = {row.phase_split: row.values for row in scores}
        if set(new) - set(stored):
            words = f"Leaderboard Data does not exist with phase_id: {phase} andsubmission id: {submission}"
            raise Refusal(400, words)
        merged = [SplitScores(split, {**values, **new.get(split, {})}) for split, values in stored.items()]
        self._submissions.keep_scores(submission, merged)

    def _read(self, phase: int, text: object, *, partial: bool) -> tuple[list[SplitScores], list[JsonObject]]:
        """Return the scores that a remote worker sent, and those of them that it lets participants see."""
        splits: dict[str, list[ChallengePhaseSplit]] = {}
        for split in self._challenges.splits_of(phase):
            splits.setdefault(split.dataset_split.codename, []).append(split)
        row = self._challenges.phase(phase)
        loose = partial and row is not None and row.flag("is_partial_submission_evaluation_enabled")
        scores, shown = list[SplitScores](), list[JsonObject]()
        for name, values, public in _entries(text):
            mapped = splits.get(name, []) if isinstance(name, str) else []
            if len(mapped) != 1 or not isinstance(values, dict):
                words = f"Challenge Phase Split does not exist with phase_id: {phase} andsplit codename: {name}"
                raise Refusal(400 if len(mapped) < 2 else 500, words)
            _check_values(values, mapped[0].labels, loose=loose)
            scores.append(SplitScores(mapped[0].id, values))
            # EvalAI shows whatever the worker says.
            if public and mapped[0].visibility != HOST_ONLY:
                shown.append(values)
        return scores, shown

    # ── the hosted worker ───────────────────────────────────────────────────

    def hosted(self, submission: int, answer: JsonObject) -> None:
        """Store what came of `evaluate()` in the hosted worker's process; nothing of a cancelled submission."""
        phase = self._submissions.phase_of(self._submissions.get(submission))
        finished, silent = answer["status"] == FINISHED, phase.flag("disable_logs")
        texts = {} if silent else {"stdout_file": answer["stdout"]}
        if answer["status"] == FAILED and not silent:
            texts["stderr_file"] = answer["stderr"]
        scores = self._hosted_scores(phase.id, answer) if finished else []
        columns = {"submission_result": "submission_result_file", "submission_metadata": "metadata_file"}
        texts |= {columns[key]: answer[key] for key in columns if finished and key in answer}
        with self._store.write():
            if self._submissions.is_cancelled(submission):
                return
            if finished:
                self._submissions.keep_scores(submission, scores)
            self._submissions.keep_texts(submission, **texts)
            self._submissions.update(submission, status=answer["status"], completed_at=time.time())

    def _hosted_scores(self, phase: int, answer: JsonObject) -> list[SplitScores]:
        splits = {split.dataset_split.codename: split.id for split in self._challenges.splits_of(phase)}
        # Only the first key of each entry is read.
        errors = {name: values for entry in answer.get("error") or [] for name, values in list(entry.items())[:1]}
        return [
            SplitScores(splits[name], entry[name], errors.get(name))
            for entry in answer["result"]
            for name in list(entry)[:1]
        ]

    def failed(self, submission: int, words: str) -> None:
        """End a submission that EvalAI would leave as it is."""
        with self._store.write():
            if not self._submissions.is_cancelled(submission):
                self._submissions.keep_texts(submission, stdout_file="", stderr_file=words)
                self._submissions.update(submission, status=FAILED, completed_at=time.time())


def _entries(text: object) -> list[tuple[object, object, object]]:
    """Return split, scores and whether to show them, of each entry of a result."""
    try:
        entries = json.loads(text)  # type: ignore[arg-type]  # what is not a text is refused here
        return [(entry.get("split"), entry.get("accuracies"), entry.get("show_to_participant")) for entry in entries]
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        words = f"`result` key contains invalid data with error {error}.Please try again with correct format."
        raise Refusal(400, words) from None


def _check_values(values: JsonObject, labels: list[str], *, loose: bool) -> None:
    unknown = [name for name in values if name not in labels]
    if unknown and not loose:
        raise Refusal(400, f"Following metrics are missing in theleaderboard data: {unknown}")
    wrong = [(name, type(value)) for name, value in values.items() if not isinstance(value, (int, float))]
    if wrong:
        raise Refusal(400, f"Values for following metrics are not offloat/int: {wrong}")
    if not all(-_MOST < value < _MOST for value in values.values()):  # NaN is not
        raise Refusal(400, {"result": ["Value must be valid JSON."]})


def _number_of(value: object) -> int:
    """Return a submission's number as a client sends it."""
    text = str(value)[:100]
    if not re.fullmatch(r"\d{1,18}", text):
        raise Refusal(404, f"Submission {text} does not exist")
    return int(text)
