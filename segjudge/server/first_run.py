"""The first minutes of a server: people, teams, the challenge, and on request some submissions."""

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from typing import TextIO

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.build import list_samples
from segjudge.platforms.evalai.bundle.bundle_source import PICTURES_FOLDER
from segjudge.platforms.evalai.bundle.push import write_without_sponsors
from segjudge.system.files import hold_folder

from . import bundle_import
from .accounts import HOST, PARTICIPANT
from .actions import submitting
from .actions.submitting import PhaseTarget
from .services import Services
from .store import DATABASE
from .wire import Refusal, format_date, format_moment, parse_moment

#: The file that marks the folder of a server before it has a database, and its lock.
_MARK, _LOCK = ".segjudge-rehearsal", "lock"
HOST_NAME, HOST_TEAM = "host", "Hosts"
_PARTICIPANTS = {"aurora": "Aurora", "borealis": "Borealis"}


@dataclass(frozen=True)
class Person:
    """A user who can log in, with a password that is shown once."""

    username: str
    password: str
    token: str
    team: str
    team_id: int


def reset(folder: str) -> None:
    """Delete a server's data; rejects a folder that is not a server's."""
    _check_ours(folder, "so it is not emptied")
    hold_folder(folder, "rehearsal").close()
    shutil.rmtree(os.path.realpath(folder), ignore_errors=True)
    if os.path.isdir(folder) and os.listdir(folder):
        raise HostError(f"{folder}: could not be emptied")


def lock_folder(folder: str) -> TextIO:
    """Lock a folder for this process, make it private to this user, and return the lock."""
    _check_ours(folder, "so it is not used; name an empty folder with --data")
    lock: TextIO = hold_folder(folder, "rehearsal")
    os.chmod(folder, 0o700)
    with open(os.path.join(folder, _MARK), "w", encoding="ascii"):
        return lock


def _check_ours(folder: str, consequence: str) -> None:
    names = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    if not names & {DATABASE, _MARK} and names - {_LOCK}:
        raise HostError(f"{folder}: holds something other than a rehearsal, {consequence}")


def create_people(services: Services, hosts: Collection[str] = ()) -> list[Person]:
    """Create a host and two participants on the first start; later only new hosts."""
    created = []
    with services.store.write():
        if services.accounts.find_user(HOST_NAME) is None:
            created += [_create_person(services, HOST_NAME, HOST_TEAM, HOST)]
            created += [_create_person(services, name, team, PARTICIPANT) for name, team in _PARTICIPANTS.items()]
        for name in sorted(hosts):
            if services.accounts.find_user(name) is None:
                created.append(_create_person(services, name, f"{HOST_TEAM} {name}", HOST))
    return created


def _create_person(services: Services, username: str, team: str, kind: str) -> Person:
    if not re.fullmatch(r"[A-Za-z0-9_.@+-]{1,150}", username):
        raise HostError(f"--hosts {username!r}: is not a user's name; use letters, digits and @ . + - _")
    password = secrets.token_hex(6)
    user = services.accounts.create(username, password)
    number = services.accounts.create_team(user, kind, team)
    return Person(username, password, services.accounts.mint_token(user, "profile")[0], team, number)


def _first_team(services: Services, name: str, kind: str) -> int:
    user = services.accounts.find_user(name)
    assert user is not None  # noqa: S101 - `create_people` made it
    return services.accounts.teams(user, kind)[0].id


def create_challenge(services: Services, bundle: str, origin: str, folder: str) -> tuple[int, bool]:
    """Create or update the challenge of a bundle, and add both participants to it.

    `origin` is where the bundle lies: one from elsewhere is another challenge. Reports use the pictures in its folder.
    Return its number and whether it is new.
    """
    repository = f"rehearsal/{hashlib.sha256(os.path.realpath(origin).encode()).hexdigest()[:16]}"
    existing = bundle_import.find_challenge(services, repository)
    refusal = bundle_import.refuse_bundle(services, bundle, repository)
    if refusal:
        anew = " If it has become another challenge, --reset deletes the old one." if existing else ""
        raise HostError(f"EvalAI would reject this bundle:\n{refusal}\n`segjudge check` shows the lines.{anew}")
    if existing and write_without_sponsors(bundle, os.path.join(folder, "update.zip")):
        bundle = os.path.join(folder, "update.zip")  # as push does, since EvalAI fails on them
    try:
        host_team = _first_team(services, HOST_NAME, HOST)
        number, is_new = bundle_import.create_or_update(services, bundle, repository, host_team)
    except ValueError as error:
        raise HostError(str(error)) from None
    services.report_pages.pictures[number] = os.path.join(os.path.realpath(origin), PICTURES_FOLDER)
    for name in _PARTICIPANTS:
        submitting.record_participation(services, number, _first_team(services, name, PARTICIPANT))
    return number, is_new


def why_closed(services: Services, challenge: int, phase: int) -> str:
    """Return the reason why a phase is closed now; "" if it is open."""
    try:
        submitting.check_open(services, PhaseTarget(challenge, phase))
    except Refusal as refusal:
        return str(refusal)
    return ""


def find_open_date(services: Services, challenge: int, phase: int) -> str:
    """Return a date on which a phase and its challenge are open; "" without one."""
    configs = [row.config for row in submitting.require_target(services, PhaseTarget(challenge, phase))]
    opens = max(parse_moment(config["start_date"]) for config in configs)
    closes = min(parse_moment(config["end_date"]) for config in configs)
    return format_date((format_moment((opens + closes) / 2) or "")[:19]) if opens < closes else ""


def send_samples(services: Services, challenge: int, root: str) -> int:
    """Submit each sample with its own team to phases open to everybody; return the number of submissions.

    They are baselines: where the truth is public, participants may open their reports.
    """
    count = 0
    for phase in services.store.phases(challenge):
        is_for_all = phase.flag("is_public") and not phase.config.get("allowed_email_ids")
        if not is_for_all or why_closed(services, challenge, phase.id):
            continue
        for path in list_samples(root, phase.codename):
            name = os.path.basename(path)
            stem = name.partition(".")[0]
            user = services.accounts.find_user(stem)
            if user is None:
                user = services.accounts.create(stem, secrets.token_urlsafe(16))
                services.accounts.create_team(user, PARTICIPANT, stem.replace("-", " ").capitalize())
            team = services.accounts.teams(user, PARTICIPANT)[0]
            submitting.record_participation(services, challenge, team.id)
            if services.submissions.of_team(team.id, phase.id):
                continue  # sent at an earlier start
            with open(path, "rb") as file:
                file_id = services.files.keep(file, name, "input_file")
            fields = {"method_name": name, "is_public": "true"}
            number = submitting.send(services, user, PhaseTarget(challenge, phase.id), fields, file_id)
            services.submissions.update(number, is_baseline=True)
            count += 1
    return count
