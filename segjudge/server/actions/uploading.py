"""Large uploads: a submission's file, or a truth, that comes in parts."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from segjudge.platforms.evalai.rows import PLACEHOLDER
from segjudge.server.models import Challenge, ChallengePhase, MultipartUpload, UploadPart, User
from segjudge.server.queue import MessageQueues
from segjudge.server.refusal import JsonObject, Refusal
from segjudge.server.store import Store
from segjudge.server.stored_files import FileStore
from segjudge.server.submissions import SUBMITTED, Submissions

from .permissions import Permissions
from .submitting import PhaseTarget, Submitting

_MOST_PARTS = 10_000


class Uploading:
    """The steps of a large upload."""

    def __init__(
        self, store: Store, files: FileStore, queue: MessageQueues, permissions: Permissions, submitting: Submitting
    ) -> None:
        self._store, self._files, self._queue = store, files, queue
        self._submissions = Submissions(store, files, queue)
        self._permissions, self._submitting = permissions, submitting

    # ── a submission's file ─────────────────────────────────────────────────

    def start(self, user: User, phase: int, fields: JsonObject) -> tuple[int, str]:
        """Create a submission with a placeholder as its file; return its number and the upload's id."""
        row = self._visible_phase(user, phase)
        part_count(fields)
        name = str(fields.get("file_name") or "submission")
        file = self._files.keep(PLACEHOLDER, name, "input_file")
        try:
            submission = self._submitting.create(user, PhaseTarget(row.challenge_id, row.id), fields, file)
        except BaseException:
            self._files.abandon(file)
            raise
        return submission, self._start(user, row, submission, fields)

    def finish(self, user: User, phase: int, submission: int, upload: str, parts: object) -> None:
        """Join the parts, in the place of the placeholder."""
        self._submitting.check_open(self._target(user, phase))
        with self._joined(user, phase, submission, upload, parts) as file:
            self._files.drop(self._submissions.get(submission).input_file)
            self._submissions.update(submission, input_file=file)

    def send(self, user: User, phase: int, submission: int) -> None:
        """Put the submission into the queue, whether or not its file has come."""
        row = self._submissions.get(submission)
        if not self._permissions.may_see_submission(user, row) or row.phase_id != phase:
            raise Refusal(403, "Sorry, this submission is not yours")
        challenge, _ = self._submitting.check_open(self._target(user, phase))
        with self._store.write():
            # EvalAI takes it again and again, and would score it as often.
            waiting = self._queue.waiting(challenge.queue)
            queued = any(message.get("submission_pk") == submission for message in waiting)
            if queued or self._submissions.get(submission).status != SUBMITTED:
                raise Refusal(400, "This submission was sent already.")
            self._submissions.enqueue(submission)

    # ── a truth ─────────────────────────────────────────────────────────────

    def start_annotation(self, user: User, phase: int, fields: JsonObject) -> str:
        """Return the id of an upload of a phase's truth, by a host who may push."""
        return self._start(user, self._host_phase(user, phase), None, fields)

    def finish_annotation(self, user: User, phase: int, upload: str, parts: object) -> None:
        """Replace the truth of a phase; a push does not change it any more."""
        row = self._host_phase(user, phase)
        with self._joined(user, phase, None, upload, parts) as file:
            self._store.change(ChallengePhase, row.id, annotation=file, by_client=True)
            self._store.one(Challenge, row.challenge_id).version += 1

    # ── both ────────────────────────────────────────────────────────────────

    def arrived(self, key: tuple[str, int], file: str, tag: str) -> None:
        """Keep a part that has arrived, in the place of an earlier one."""
        with self._store.write():
            part = self._store.get(UploadPart, key)
            if part is None:  # the upload was finished meanwhile
                self._files.drop(file)
                return
            self._files.drop(part.file)
            part.file, part.etag = file, tag

    def _visible_phase(self, user: User, phase: int) -> ChallengePhase:
        """Return a phase that a user may see; refuses where there is none."""
        row = self._permissions.visible_phase(user, phase)
        if row is None:
            raise Refusal(404, {"detail": f"ChallengePhase {phase} does not exist"})
        return row

    def _host_phase(self, user: User, phase: int) -> ChallengePhase:
        self._permissions.check_may_push(user)
        row = self._visible_phase(user, phase)
        self._permissions.check_host(user, row.challenge_id)
        return row

    def _target(self, user: User, phase: int) -> PhaseTarget:
        return PhaseTarget(self._visible_phase(user, phase).challenge_id, phase)

    def _start(self, user: User, phase: ChallengePhase, submission: int | None, fields: JsonObject) -> str:
        parts, name = part_count(fields), str(fields.get("file_name") or "file")[:200]
        upload = MultipartUpload(
            id=secrets.token_hex(16), phase_id=phase.id, submission_id=submission, user_id=user.id, name=name
        )
        with self._store.write() as session:
            session.add(upload)
            session.flush()
            session.add_all(UploadPart(upload_id=upload.id, number=number + 1) for number in range(parts))
        return upload.id

    @contextmanager
    def _joined(self, user: User, phase: int, submission: int | None, number: str, sent: object) -> Iterator[str]:
        """Give the file that the parts of an upload make, in the transaction with which the upload is over."""
        upload = self._store.get(MultipartUpload, number)
        if upload is None or (upload.user_id, upload.phase_id, upload.submission_id) != (user.id, phase, submission):
            raise Refusal(403, "Sorry, this upload is not yours")
        parts, tags = self._store.find(UploadPart, UploadPart.upload_id == upload.id), _tags(sent)
        files = [part.file for part in parts if part.file is not None and tags.get(part.number) == part.etag]
        if len(files) < len(parts):
            raise Refusal(400, "One or more of the specified parts could not be found")
        file = self._files.joined(files, upload.name)
        try:
            with self._store.write():
                for part in files:
                    self._files.drop(part)
                self._store.remove(UploadPart, UploadPart.upload_id == upload.id)
                self._store.remove(MultipartUpload, MultipartUpload.id == upload.id)
                yield file
        except BaseException:
            self._files.abandon(file)
            raise


def _tags(sent: object) -> dict[int, str]:
    """Return the tag of each part by its number, from a list or its JSON as a client sends it."""
    try:
        parts = json.loads(sent) if isinstance(sent, str) else sent
        if not isinstance(parts, list):
            raise TypeError
        return {int(part["PartNumber"]): str(part["ETag"]).strip('"') for part in parts}
    except (TypeError, ValueError, KeyError):
        raise Refusal(400, "parts must be a list of PartNumber and ETag") from None


def part_count(fields: JsonObject) -> int:
    """Return the number of parts that a client announces."""
    text = str(fields.get("num_file_chunks", ""))
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_PARTS:
        raise Refusal(400, "num_file_chunks must be a number from 1 to 10000")
    return int(text)
