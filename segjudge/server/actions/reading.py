"""The parts of a submission that users may read: its files, and the page of its report.

Our own scorers omit hidden splits from their files, as `check` and `push` ensure. A host's own script may not know
which splits are hidden, and EvalAI shows its files unchanged. Here participants do not see the output of such a script,
and only the visible splits in its result file.
"""

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from segjudge.evaluation_script.scoring.phase import DETAILS
from segjudge.platforms.evalai.bundle.bundle_source import UNREADABLE
from segjudge.platforms.evalai.bundle.secrecy import is_visible
from segjudge.platforms.evalai.hosted_worker.folder import has_our_modules
from segjudge.platforms.evalai.rows import FINISHED
from segjudge.server.leaderboards import teams_of_hosts
from segjudge.server.models import Challenge, ChallengePhase, ChallengePhaseSplit, Submission, Team, User
from segjudge.server.report_answers import SplitSummary
from segjudge.server.report_pages import HOSTS, VISITORS, PageOrder
from segjudge.server.report_program import COMPARED, FULL, LEVELS, SIDES, STORED
from segjudge.server.services import Services
from segjudge.server.submissions import REPORTED
from segjudge.server.wire import NOT_AUTHORIZED, Refusal

#: The maximum bytes and depth of a file; others are withheld completely.
_BYTES, _DEEPEST = 32 << 20, 200
_WITHHELD = "[withheld: only hosts may see some splits of this phase, and its script might print their scores here]"
_NOTHING = object()


@dataclass(frozen=True)
class _SplitNames:
    """The names of a phase's splits that are hidden from participants, and of the visible ones."""

    hidden: frozenset[str]
    visible: frozenset[str]


def file_for_participants(services: Services, submission: int, number: str) -> str | None:
    """Return a submission's file without parts hidden from its participants; None if they may read all of it."""
    row, file = services.submissions.get(submission), services.files.row(number)
    if file is None or file.kind == REPORTED:
        return None
    names = _names_of(services, row)
    if not names.hidden or _has_our_scorers(services, services.submissions.challenge_of(row)):
        return None
    if file.kind == "stderr_file":
        return f"{_kind_of_error(services.files.path(number))}{_WITHHELD}"
    if file.kind != "submission_result_file" or file.size > _BYTES:
        return _WITHHELD
    try:
        with open(services.files.path(number), "rb") as source:
            visible_content = _visible_part(json.load(source), names)
    except (ValueError, RecursionError):
        return _WITHHELD
    return _WITHHELD if visible_content is _NOTHING else json.dumps(visible_content)


def _has_our_scorers(services: Services, challenge: Challenge) -> bool:
    try:
        return _is_our_script(services.files.path(challenge.script))
    except UNREADABLE:
        return False


@lru_cache(maxsize=64)
def _is_our_script(path: str) -> bool:
    with zipfile.ZipFile(path) as files:
        return has_our_modules(files.namelist())


def _names_of(services: Services, submission: Submission) -> _SplitNames:
    splits = services.store.splits_of(submission.phase_id)
    hidden = _name_splits(split for split in splits if not is_visible(split.visibility))
    return _SplitNames(hidden, _name_splits(split for split in splits if is_visible(split.visibility)) - hidden)


def _name_splits(splits: Iterable[ChallengePhaseSplit]) -> frozenset[str]:
    return frozenset(name for split in splits for name in (split.dataset_split.codename, split.dataset_split.name))


def _kind_of_error(path: str) -> str:
    """Return the kind of the exception at the end of some text, such as `ValueError: `; "" without one."""
    with open(path, "rb") as source:
        lines = source.read(_BYTES).decode("utf-8", "replace").rstrip().splitlines()
    kind, colon, _ = (lines[-1] if lines else "").partition(":")
    return f"{kind}: " if colon and kind.replace(".", "").isidentifier() else ""


def _visible_part(value: object, names: _SplitNames, depth: int = 0) -> object:
    """Return the part of a value below the name of a visible split, or in a row that names one."""
    if depth > _DEEPEST:
        return _NOTHING
    if isinstance(value, list):
        cells = {item for item in value if isinstance(item, str)}
        if _is_row(cells, names):
            return value
        items = [_visible_part(item, names, depth + 1) for item in value]
        return [item for item in items if item is not _NOTHING] or _NOTHING
    if not isinstance(value, dict):
        return _NOTHING
    if _is_row({item for item in value.values() if isinstance(item, str)}, names):
        return value
    parts = {
        key: item if key in names.visible else _visible_part(item, names, depth + 1)
        for key, item in value.items()
        if key not in names.hidden
    }
    return {key: item for key, item in parts.items() if item is not _NOTHING} or _NOTHING


def _is_row(cells: set[str], names: _SplitNames) -> bool:
    """Return whether the texts of one row name a visible split and no hidden one."""
    return bool(cells & names.visible) and not cells & names.hidden


def _why_no_report(services: Services, challenge: Challenge, phase: ChallengePhase, row: Submission) -> str:
    """Return why a submission has no page; "" if it has one."""
    if not _has_our_scorers(services, challenge):
        return "this challenge has its own scorers."
    if row.status != FINISHED:
        return f"the status of this submission is {row.status}."
    if not _find_results(challenge, row):
        return "this submission is code; its results are not stored here."
    if not phase.annotation:
        return "the truth of this phase is not on this server. Run `segjudge report` where the truth is."
    return ""


def find_report_page(services: Services, user: User | None, submission: int) -> str | None:
    """Return the page of a submission as a user may see it, None while it is being made; raises a refusal if there is
    none.

    Hosts see everything. If the phase's detail is `all` and all of its splits are public, everybody sees the full page
    of their own submissions and of those on the leaderboards. In other phases participants see only their own page,
    with the permitted detail.
    """
    order = _order_for_reader(services, user, services.submissions.get(submission))
    answer = order and services.report_pages.find_or_order(*order)
    return answer.page if answer else None


def find_split_summaries(services: Services, user: User | None, row: Submission) -> Mapping[str, SplitSummary] | None:
    """Return the summaries on a submission's page for the splits that a user sees; None while it is made.

    It is empty for users who may not open the page.  A missing page is made after the pages that readers wait for.
    """
    with suppress(Refusal):
        order = _order_for_reader(services, user, row)
        split_summaries = services.report_pages.find_split_summaries(order[0]) if order else None
        visible = services.accounts.visible_splits(user, services.submissions.phase_of(row))
        codenames = {split.dataset_split.codename for split in visible}
        return split_summaries and {
            split: split_summary for split, split_summary in split_summaries.items() if split in codenames
        }
    return {}


def _order_for_reader(services: Services, user: User | None, row: Submission) -> tuple[PageOrder, int] | None:
    """Return the order of a submission's page for its reader, and its waiting readers; None during the lookup."""
    challenge, phase = services.submissions.challenge_of(row), services.submissions.phase_of(row)
    reader = _reader_of(services, user, phase, row)
    reason = _why_no_report(services, challenge, phase, row)
    if reason:
        raise Refusal(404, f"There is no report: {reason}")
    sees_all, reader = _sees_all(services, user, phase, reader)
    if sees_all is None:
        return None
    if not sees_all:
        _check_may_see(services, user, row)
    order = _order_for_hosts(services, challenge, phase, row) if sees_all else _order_for_participants(services, row)
    return order, reader


def find_comparison_page(
    services: Services, user: User | None, split: ChallengePhaseSplit, numbers: list[int]
) -> str | None:
    """Return the page that compares two submissions on a split, None while it is being made.

    Only users who may see both reports completely may see it.
    """
    numbers = list(dict.fromkeys(numbers))
    if len(numbers) != 2:
        raise Refusal(400, "Select two submissions.")
    rows = [services.submissions.get(number) for number in numbers]
    phase = services.store.require(ChallengePhase, split.phase_id)
    challenge = services.store.require(Challenge, phase.challenge_id)
    reader = HOSTS
    for row in rows:
        reader = _reader_of(services, user, services.submissions.phase_of(row), row)
        if row.phase_id != phase.id:
            raise Refusal(400, f"Submission {row.id} belongs to another phase.")
        reason = _why_no_report(services, challenge, phase, row)
        if reason:
            raise Refusal(404, f"Submission {row.id} cannot be compared: {reason}")
    sees_all, reader = _sees_all(services, user, phase, reader)
    if sees_all is None:
        return None
    if not sees_all:
        for row in rows:
            _check_may_see(services, user, row)
        raise Refusal(403, "This phase hides too much to compare two submissions.")
    files = {"script": challenge.script, "truth": phase.annotation or ""}
    values = {"phase": phase.codename, "split": split.dataset_split.codename}
    for side, row, name in zip(SIDES, rows, _name_distinctly(services, rows), strict=True):
        files[side], values[f"{side}_name"] = _find_results(challenge, row), name
    values["images"] = services.report_pages.find_pictures(challenge.id, phase.codename)
    answer = services.report_pages.find_or_order(PageOrder(COMPARED, challenge.id, files, values=values), reader)
    return answer.page if answer else None


def _opens_all_reports(services: Services, user: User | None, phase: ChallengePhase) -> bool:
    """Return whether a user may open the reports of a phase's leaderboards; False until that is looked up."""
    if not _sees_all_boards(services, user, phase):
        return False
    team = services.accounts.team_of(user, phase.challenge_id)
    with suppress(Refusal):
        return bool(_sees_all(services, user, phase, team.id if team else VISITORS)[0])
    return False


def _sees_all_boards(services: Services, user: User | None, phase: ChallengePhase) -> bool:
    splits = services.store.splits_of(phase.id)
    return bool(splits) and all(services.accounts.may_see_board(user, phase, split) for split in splits)


def _is_on_boards(services: Services, phase: ChallengePhase, row: Submission) -> bool:
    """Return whether the leaderboards of a public phase list a submission; hosts' own are there as baselines."""
    is_shown = row.is_public and not row.is_flagged and row.status == FINISHED
    return is_shown and (row.is_baseline or row.team_id not in teams_of_hosts(services.store, phase.challenge_id))


def may_open_report(services: Services, user: User | None, phase: ChallengePhase, row: Submission) -> bool:
    """Return whether a user who may see a submission may also open its page."""
    challenge = services.store.require(Challenge, phase.challenge_id)
    return (
        services.accounts.may_see_submission(user, row)
        and not _why_no_report(services, challenge, phase, row)
        and bool(row.submission_result_file or services.accounts.is_host(user, challenge.id))
    )


def find_open_reports(
    services: Services, user: User | None, phase: ChallengePhase, submissions: list[int]
) -> dict[int, Submission]:
    """Return the submissions whose page a user may open."""
    challenge = services.store.require(Challenge, phase.challenge_id)
    rows = services.store.find(Submission, Submission.id.in_(submissions))
    opens_all = _opens_all_reports(services, user, phase)
    return {
        row.id: row
        for row in rows
        if may_open_report(services, user, phase, row)
        or (opens_all and _is_on_boards(services, phase, row) and not _why_no_report(services, challenge, phase, row))
    }


def _reader_of(services: Services, user: User | None, phase: ChallengePhase, row: Submission) -> int:
    """Return the team for which a submission's page is made; rejects other readers."""
    team = services.accounts.team_of(user, phase.challenge_id)
    if not (_is_on_boards(services, phase, row) and _sees_all_boards(services, user, phase)):
        _check_may_see(services, user, row)
    return team.id if team else VISITORS


def _check_may_see(services: Services, user: User | None, row: Submission) -> None:
    """Reject readers who may not see a submission; ask visitors to log in."""
    if user is None:
        raise Refusal(401, NOT_AUTHORIZED)
    services.accounts.check_may_see_submission(user, row)


def _sees_all(services: Services, user: User | None, phase: ChallengePhase, reader: int) -> tuple[bool | None, int]:
    """Return whether a user sees all of a phase (None during the lookup), and for whom pages are made.

    A split that only `phases.py` has is hidden.
    """
    if services.accounts.is_host(user, phase.challenge_id):
        return True, HOSTS
    splits = services.store.splits_of(phase.id)
    if len(services.accounts.visible_splits(user, phase)) < len(splits):
        return False, reader
    challenge = services.store.require(Challenge, phase.challenge_id)
    order = PageOrder(LEVELS, challenge.id, {"script": challenge.script})
    answer = services.report_pages.find_or_order(order, reader)
    shows_all = [DETAILS[-1], [], sorted(split.dataset_split.codename for split in splits)]
    return None if answer is None else answer.levels.get(phase.codename) == shows_all, reader


def _find_results(challenge: Challenge, row: Submission) -> str:
    """Return the scored file; None for code without one here."""
    return row.submission_input_file or (not challenge.flag("is_docker_based") and row.input_file) or ""


def _order_for_hosts(services: Services, challenge: Challenge, phase: ChallengePhase, row: Submission) -> PageOrder:
    files = {"script": challenge.script, "truth": phase.annotation or "", "submission": _find_results(challenge, row)}
    pictures = services.report_pages.find_pictures(challenge.id, phase.codename)
    values = {"phase": phase.codename, "title": _title(services, row), "images": pictures}
    return PageOrder(FULL, challenge.id, files, values=values)


def _order_for_participants(services: Services, row: Submission) -> PageOrder:
    challenge, result = services.submissions.challenge_of(row), row.submission_result_file
    if not result:
        raise Refusal(404, "There is no report: this phase stored no details of the submission.")
    redacted = file_for_participants(services, row.id, result)
    values = {"title": _title(services, row)}
    if redacted is None:
        return PageOrder(STORED, challenge.id, {"result": result}, values=values)
    return PageOrder(STORED, challenge.id, {}, {"result": redacted}, values)


def _title(services: Services, row: Submission) -> str:
    return f"Submission {row.id} of {_team_name(services, row)}" + (f": {row.method_name}" if row.method_name else "")


def _team_name(services: Services, row: Submission) -> str:
    return services.store.require(Team, row.team_id).team_name


def _name_distinctly(services: Services, rows: Sequence[Submission]) -> list[str]:
    """Return short names of compared submissions: teams, else methods, else numbers."""
    for names in ([_team_name(services, row) for row in rows], [row.method_name for row in rows]):
        if all(names) and len(set(names)) == len(names):
            return names
    return [f"submission {row.id}" for row in rows]
