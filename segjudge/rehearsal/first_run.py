"""The first minutes of a rehearsal: people, teams, the challenge, and on request some submissions."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from segjudge.bundle.build import samples
from segjudge.bundle.push import without_sponsors
from segjudge.evaluation_script.errors import HostError
from segjudge.files import locked

from .accounts import HOST, PARTICIPANT, User
from .services import Services

#: The repository under which the folder's own bundle is known here.
REPOSITORY = "rehearsal/bundle"
_DATABASE, _LOCK = "rehearsal.sqlite3", {"lock"}
HOST_NAME, HOST_TEAM = "host", "Hosts"
PARTICIPANTS = {"aurora": "Aurora", "borealis": "Borealis"}


@dataclass(frozen=True)
class Person:
    """Somebody who can log in; shown once."""

    username: str
    password: str
    token: str
    team: str
    team_id: int


def reset(folder: str) -> None:
    """Forget everything; refuses a folder that is none of ours."""
    _ours(folder, "so it is not emptied")
    locked(folder, "rehearsal").close()
    shutil.rmtree(os.path.realpath(folder), ignore_errors=True)
    if os.path.isdir(folder) and os.listdir(folder):
        raise HostError(f"{folder}: could not be emptied")


def taken(folder: str) -> Any:
    """The rehearsal's folder, for this process alone and for no other user to read; its lock."""
    _ours(folder, "so it is not used; name an empty one with --data")
    lock = locked(folder, "rehearsal")
    os.chmod(folder, 0o700)
    return lock


def _ours(folder: str, so: str) -> None:
    if (
        os.path.isdir(folder)
        and not os.path.exists(os.path.join(folder, _DATABASE))
        and set(os.listdir(folder)) - _LOCK
    ):
        raise HostError(f"{folder}: holds something else than a rehearsal, {so}")


def people(services: Services, hosts: Collection[str] = ()) -> list[Person]:
    """A host and two participants, on the first start; later those hosts who are new."""
    made = []
    with services.store.write():
        if services.accounts.named(HOST_NAME) is None:
            made += [_person(services, HOST_NAME, HOST_TEAM, HOST)]
            made += [_person(services, name, team, PARTICIPANT) for name, team in PARTICIPANTS.items()]
        for name in sorted(hosts):
            user = services.accounts.named(name)
            if user is None:
                made.append(_person(services, name, f"{HOST_TEAM} {name}", HOST))
    return made


def _person(services: Services, username: str, team: str, kind: str) -> Person:
    if not re.fullmatch(r"[A-Za-z0-9_.@+-]{1,150}", username):
        raise HostError(f"--hosts {username!r}: is not a user's name; use letters, digits and @ . + - _")
    password = secrets.token_hex(6)
    user = services.accounts.create(username, password)
    number = services.accounts.new_team(user, kind, team)
    return Person(username, password, services.accounts.mint(user, "profile")[0], team, number)


def host_team(services: Services) -> int:
    """The team that hosts the folder's bundle."""
    host = services.accounts.named(HOST_NAME)
    if host is None:
        raise HostError(f"{services.store.folder}: its host is gone; start anew with --reset")
    return int(services.accounts.teams(host, HOST)[0]["id"])


def take(services: Services, bundle: str, folder: str) -> tuple[int, bool]:
    """The challenge of a bundle, new or brought up to date; both participants take part."""
    held = services.store.row("SELECT 1 FROM challenges WHERE repository = ?", REPOSITORY)
    refused = services.intake.refused(bundle, REPOSITORY)
    if refused:
        anew = " If it is another challenge by now, --reset forgets the old one." if held else ""
        raise HostError(f"EvalAI would not take this bundle:\n{refused}\n`./run.sh check` tells the lines.{anew}")
    if held and without_sponsors(bundle, os.path.join(folder, "update.zip")):
        bundle = os.path.join(folder, "update.zip")  # as push does: EvalAI fails on them
    try:
        number, new = services.intake.create_or_update(bundle, REPOSITORY, host_team(services))
    except ValueError as error:
        raise HostError(str(error)) from None
    for name in PARTICIPANTS:
        user = services.accounts.named(name)
        if user is not None:
            _enter(services, user, number)
    return number, new


def _enter(services: Services, user: User, challenge: int) -> None:
    team = services.accounts.teams(user, PARTICIPANT)[0]["id"]
    with services.store.write() as db:
        db.execute("INSERT OR IGNORE INTO participants VALUES (?, ?)", (challenge, team))


def seed(services: Services, challenge: int, root: str) -> int:
    """A team for each sample submission, which sends it; how many were sent."""
    sent = 0
    for phase in services.store.rows("SELECT * FROM phases WHERE challenge_id = ? ORDER BY config_id", challenge):
        for path in samples(root, phase["codename"]):
            name = os.path.basename(path)
            stem = os.path.splitext(name)[0]
            user = services.accounts.named(stem)
            if user is None:
                user = services.accounts.create(stem, secrets.token_urlsafe(16))
                services.accounts.new_team(user, PARTICIPANT, stem.replace("-", " ").capitalize())
            _enter(services, user, challenge)
            if services.submissions.of_team(services.challenges.team_of(user, challenge)["id"], phase["id"]):
                continue  # sent at an earlier start
            with open(path, "rb") as file:
                kept = services.store.keep(file, name, "input_file")
            data = {"method_name": name, "is_public": "true"}
            services.submissions.send(user, (challenge, phase["id"]), data, kept)
            sent += 1
    return sent
