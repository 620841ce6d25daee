"""The first minutes of a rehearsal: people, teams, the challenge, and on request some submissions."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from evaluation_script.errors import HostError
from linejudge.bundle import examples
from linejudge.bundle.push import without_sponsors
from linejudge.files import locked

from .accounts import HOST, PARTICIPANT, User
from .desk import Desk

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


def people(desk: Desk, hosts: Collection[str] = ()) -> list[Person]:
    """A host and two participants, on the first start; later those hosts who are new."""
    made = []
    with desk.store.write():
        if desk.accounts.named(HOST_NAME) is None:
            made += [_person(desk, HOST_NAME, HOST_TEAM, HOST)]
            made += [_person(desk, name, team, PARTICIPANT) for name, team in PARTICIPANTS.items()]
        for name in sorted(hosts):
            user = desk.accounts.named(name)
            if user is None:
                made.append(_person(desk, name, f"{HOST_TEAM} {name}", HOST))
    return made


def _person(desk: Desk, username: str, team: str, kind: str) -> Person:
    if not re.fullmatch(r"[A-Za-z0-9_.@+-]{1,150}", username):
        raise HostError(f"--hosts {username!r}: is not a user's name; use letters, digits and @ . + - _")
    password = secrets.token_hex(6)
    user = desk.accounts.create(username, password)
    number = desk.accounts.new_team(user, kind, team)
    return Person(username, password, desk.accounts.mint(user, "profile")[0], team, number)


def host_team(desk: Desk) -> int:
    """The team that hosts the folder's bundle."""
    host = desk.accounts.named(HOST_NAME)
    if host is None:
        raise HostError(f"{desk.store.folder}: its host is gone; start anew with --reset")
    return int(desk.accounts.teams(host, HOST)[0]["id"])


def take(desk: Desk, bundle: str, folder: str) -> tuple[int, bool]:
    """The challenge of a bundle, new or brought up to date; both participants take part."""
    held = desk.store.row("SELECT 1 FROM challenges WHERE repository = ?", REPOSITORY)
    refused = desk.intake.refused(bundle, REPOSITORY)
    if refused:
        anew = " If it is another challenge by now, --reset forgets the old one." if held else ""
        raise HostError(f"EvalAI would not take this bundle:\n{refused}\n`./run.sh check` tells the lines.{anew}")
    if held and without_sponsors(bundle, os.path.join(folder, "update.zip")):
        bundle = os.path.join(folder, "update.zip")  # as push does: EvalAI fails on them
    try:
        number, new = desk.intake.create_or_update(bundle, REPOSITORY, host_team(desk))
    except ValueError as error:
        raise HostError(str(error)) from None
    for name in PARTICIPANTS:
        user = desk.accounts.named(name)
        if user is not None:
            _enter(desk, user, number)
    return number, new


def _enter(desk: Desk, user: User, challenge: int) -> None:
    team = desk.accounts.teams(user, PARTICIPANT)[0]["id"]
    with desk.store.write() as db:
        db.execute("INSERT OR IGNORE INTO participants VALUES (?, ?)", (challenge, team))


def seed(desk: Desk, challenge: int, root: str) -> int:
    """A team for each sample submission, which sends it; how many were sent."""
    sent = 0
    for phase in desk.store.rows("SELECT * FROM phases WHERE challenge_id = ? ORDER BY config_id", challenge):
        for path in examples.samples(root, phase["codename"]):
            name = os.path.basename(path)
            stem = os.path.splitext(name)[0]
            user = desk.accounts.named(stem)
            if user is None:
                user = desk.accounts.create(stem, secrets.token_urlsafe(16))
                desk.accounts.new_team(user, PARTICIPANT, stem.replace("-", " ").capitalize())
            _enter(desk, user, challenge)
            if desk.submissions.of_team(desk.challenges.team_of(user, challenge)["id"], phase["id"]):
                continue  # sent at an earlier start
            with open(path, "rb") as file:
                kept = desk.store.keep(file, name, "input_file")
            data = {"method_name": name, "is_public": "true"}
            desk.submissions.send(user, (challenge, phase["id"]), data, kept)
            sent += 1
    return sent
