"""The pages of what submissions scored: who may see which, and what each is made of."""

import json

from segjudge.evaluation_script.scoring.phase import DETAILS
from segjudge.platforms.evalai.rows import FINISHED
from segjudge.server.hidden_splits import file_for_participants, has_our_scorers
from segjudge.server.models import Challenge, ChallengePhase, Submission, Team, User
from segjudge.server.refusal import Refusal
from segjudge.server.report_pages import HOSTS, PageOrder
from segjudge.server.report_program import FULL, LEVELS, STORED
from segjudge.server.services import Services


def why_no_report(services: Services, row: Submission) -> str:
    """Return why there is no page of a submission; nothing where there is one."""
    challenge, phase = services.submissions.challenge_of(row), services.submissions.phase_of(row)
    if not has_our_scorers(services, challenge):
        return "this challenge has scorers of its own."
    if row.status != FINISHED:
        return f"this submission is {row.status}."
    if not _results(challenge, row):
        return "this submission is code, and left no results here."
    if not phase.annotation:
        return "the truth of this phase is not on this server. Where it is, `segjudge report` makes the page."
    return ""


def report_page(services: Services, user: User, submission: int) -> str | None:
    """Return the page of a submission as a user may see it, None while it is being made; refuses where there is none.

    Hosts see everything.  So do participants where the phase's detail is `all` and all of its splits are public;
    elsewhere they see a page of what the phase left for them.
    """
    row = services.submissions.get(submission)
    services.permissions.check_may_see_submission(user, row)
    reason = why_no_report(services, row)
    if reason:
        raise Refusal(404, f"There is no report: {reason}")
    challenge, phase = services.submissions.challenge_of(row), services.submissions.phase_of(row)
    if services.permissions.is_host(user, challenge.id):
        return services.report_pages.made(_full_order(services, challenge, phase, row), HOSTS)
    splits = services.store.splits_of(phase.id)
    if len(services.permissions.visible_splits(user, phase)) == len(splits):
        levels = services.report_pages.made(PageOrder(LEVELS, challenge.id, {"script": challenge.script}), row.team_id)
        if levels is None:
            return None
        if json.loads(levels).get(phase.codename) == [DETAILS[-1], []]:
            return services.report_pages.made(_full_order(services, challenge, phase, row), row.team_id)
    return services.report_pages.made(_stored_order(services, challenge, row), row.team_id)


def _results(challenge: Challenge, row: Submission) -> str:
    """Return the file that was scored; nothing for code that left none here."""
    return row.submission_input_file or (not challenge.flag("is_docker_based") and row.input_file) or ""


def _full_order(services: Services, challenge: Challenge, phase: ChallengePhase, row: Submission) -> PageOrder:
    """Return what makes the page of a submission and its truth."""
    files = {"script": challenge.script, "truth": phase.annotation or "", "submission": _results(challenge, row)}
    values = {"phase": phase.codename, "title": _title(services, row)}
    return PageOrder(FULL, challenge.id, files, values=values)


def _stored_order(services: Services, challenge: Challenge, row: Submission) -> PageOrder:
    """Return what makes the page of what a phase left of a submission for its participants."""
    result = row.submission_result_file
    if not result:
        raise Refusal(404, "There is no report: this phase left nothing of the submission.")
    redacted = file_for_participants(services, row.id, result)
    values = {"title": _title(services, row)}
    if redacted is None:
        return PageOrder(STORED, challenge.id, {"result": result}, values=values)
    return PageOrder(STORED, challenge.id, {}, {"result": redacted}, values)


def _title(services: Services, row: Submission) -> str:
    team = services.store.one(Team, row.team_id).team_name
    return f"Submission {row.id} of {team}" + (f": {row.method_name}" if row.method_name else "")
