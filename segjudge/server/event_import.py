"""The import of an archive: its teams, submissions, files and scores arrive in a challenge made from its bundle."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Mapping

from segjudge.archive.event import FILES, METHOD, Event, EventSubmission
from segjudge.evaluation_script.files.problems import HostError

from . import models
from .accounts import PARTICIPANT
from .actions.submitting import record_participation
from .first_run import HOST_NAME
from .models import DatasetSplit, LeaderboardData, Membership, Setting, Team
from .services import Services
from .submissions import OPEN, SUBMITTED
from .wire import parse_moment

#: The columns of a submission's files by their names in an archive.
_COLUMNS = {name: column for column, name in FILES.items()} | {"metadata": "metadata_file"}
_METHOD_COLUMNS = {name: column for column, name in METHOD.items()}


def import_event(services: Services, event: Event, challenge: int) -> int:
    """Add an archive's submissions to a challenge, unless an earlier start did; return their number.

    Submissions keep their numbers where these are free. Unfinished ones are queued again.
    """
    key = f"imported {challenge}"
    if services.store.get(Setting, key) is not None:
        return 0
    host = services.accounts.find_user(HOST_NAME)
    phases = {phase.codename: phase.id for phase in services.store.phases(challenge)}
    # One transaction: a killed import leaves nothing, and files without a row are swept at the next start.
    with services.store.write() as session:
        teams = {number: _add_team(services, event, number, challenge, host) for number in event.teams}
        for submission in event.submissions.values():
            try:
                _add_submission(services, event, submission, phases, teams)
            except (KeyError, ValueError, OverflowError) as error:  # an unknown team, phase or file; a wrong time
                raise HostError(f"{event.path}: submission {submission.id} cannot be imported ({error})") from None
        session.add(Setting(key=key, value=event.path))
    return len(event.submissions)


def _add_team(services: Services, event: Event, number: int, challenge: int, host: models.User | None) -> Team:
    """Return a team with a user of its own, whose password nobody knows, and with the host if the hosts' team."""
    team = event.teams[number]
    with services.store.write() as session:
        row = services.store.find_first(Team, Team.kind == PARTICIPANT, Team.team_name == team.name)
        if row is None:
            user = services.accounts.create(f"imported-{secrets.token_hex(4)}", secrets.token_urlsafe(16))
            row = Team(kind=PARTICIPANT, team_name=team.name, created_by=user.id)
            session.add(row)
            session.flush()
            session.add(Membership(team_id=row.id, user_id=user.id))
            if team.is_host and host is not None:
                session.add(Membership(team_id=row.id, user_id=host.id))
    if team.approved:
        record_participation(services, challenge, row.id)
    return row


def _add_submission(
    services: Services, event: Event, submission: EventSubmission, phases: Mapping[str, int], teams: Mapping[int, Team]
) -> None:
    team = teams[submission.team or 0]
    waits, free = submission.status in OPEN, services.store.get(models.Submission, submission.id) is None
    columns = {"input_file": submission.file, **{_COLUMNS[name]: path for name, path in submission.extra_files.items()}}
    row = models.Submission(
        id=submission.id if free else None,
        phase_id=phases[submission.phase],
        team_id=team.id,
        created_by=team.created_by,
        status=SUBMITTED if waits else submission.status,
        is_public=submission.is_public,
        is_baseline=submission.is_baseline,
        is_flagged=submission.is_ignored,
        submitted_at=parse_moment(submission.submitted),
        started_at=parse_moment(submission.started) if submission.started else None,
        completed_at=parse_moment(submission.completed) if submission.completed else None,
        **{_METHOD_COLUMNS[name]: text for name, text in submission.method.items()},
        **{column: _keep(services, event, path, column) for column, path in columns.items() if path},
    )
    with services.store.write() as session:
        session.add(row)
        session.flush()
        for split in services.store.splits_of(row.phase_id):
            codename = services.store.require(DatasetSplit, split.split_id).codename
            if numbers := submission.scores.get(codename):
                errors = event.errors.get((submission.id, submission.phase, codename), {})
                bars = {f"error_{label}": value for label, value in errors.items()}  # EvalAI's names
                session.add(
                    LeaderboardData(submission_id=row.id, phase_split_id=split.id, result=numbers, error=bars or None)
                )
        if waits and submission.file:
            services.submissions.enqueue(row.id)


def _keep(services: Services, event: Event, path: str, column: str) -> str:
    with tempfile.TemporaryFile() as file:
        file.writelines(event.read_chunks(path))
        file.seek(0)
        return services.files.keep(file, os.path.basename(path), column)
