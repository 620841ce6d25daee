"""One sweep of a board: what the workflow runs for each issue, by the clock, and for the organisers.

Every open issue is looked at, since GitHub drops waiting runs of a workflow. An issue is closed last, so a sweep that
was killed is continued by the next one.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import shlex
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from segjudge.evaluation_script.files.problems import HostError
from segjudge.ledger.evaluator import SCORE, Evaluator, Queue
from segjudge.ledger.git_branch import GitBranch, run_git
from segjudge.ledger.ledger import Ledger
from segjudge.ledger.page import SubmissionState, describe_state, rank_boards
from segjudge.ledger.rows import LedgerEntry
from segjudge.ledger.rules import MOST_BYTES
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.evalai.client import ApiError
from segjudge.system.download import download
from segjudge.system.files import temporary_folder
from segjudge.system.processes import clean_environment

from .challenge import read_reveal, read_rules
from .forms import FormError, Submit, Withdraw, read_issue
from .issues import Issues

#: The branch of rows and page, and the private repository's name after the public one's.
BRANCH, PRIVATE = "ledger", "-private"
_SETTINGS = {
    "GITHUB_REPOSITORY": "OWNER/NAME of the public repository",
    "GITHUB_TOKEN": "the workflow's token",
    "GITHUB_API_URL": "the address of GitHub's API",
    "GITHUB_SERVER_URL": "the address of GitHub",
    "GITHUB_RUN_ID": "the number of the workflow's run",
    "PRIVATE_KEY": "the secret with the key of the private repository; HOSTING.md says how to make it",
}


@dataclass(frozen=True)
class BoardSettings:
    """The settings of a sweep, by the names of GitHub's variables."""

    repository: str
    api: str
    server: str
    run: str
    token: str = field(repr=False)
    key: str = field(repr=False)
    #: The file with the event that started the workflow.
    event: str = ""
    #: The folder with the public repository.
    folder: str = os.curdir

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> BoardSettings:
        """Read the settings of a workflow's run; raises HostError for missing ones."""
        missing = [f"{name} is not set: {about}" for name, about in _SETTINGS.items() if not environment.get(name)]
        if missing:
            raise HostError("\n".join(missing))
        repository, token, api, server, run, key = (environment[name] for name in _SETTINGS)
        event = environment.get("GITHUB_EVENT_PATH", "")
        return cls(repository, api.rstrip("/"), server.rstrip("/"), run, token, f"{key.strip()}\n", event)


def sweep(settings: BoardSettings) -> Iterator[str]:
    """Bring a board up to date; yields a line for each action, without hidden scores."""
    with temporary_folder("segjudge-") as folder:
        issues = _IssueQueue(settings, folder)
        yield from issues.obey()
        yield from issues.evaluator.sweep()


class _IssueQueue(Queue):
    """The issues of a board as the queue of its evaluator."""

    def __init__(self, settings: BoardSettings, folder: str) -> None:
        self._settings, self._folder = settings, folder
        self._issues = Issues(settings.api, settings.token, settings.repository)
        private = f"git@{urlsplit(settings.server).hostname}:{settings.repository}{PRIVATE}.git"
        with_key, clone = self._open_key(), os.path.join(folder, "private")
        run_git("clone", "--quiet", "--depth", "1", private, clone, folder=folder, environment=with_key)
        source = find_bundle(clone)
        rules = read_rules(source, read_reveal(settings.folder))
        public = GitBranch(
            f"{settings.server}/{settings.repository}.git", BRANCH, f"{folder}/public-ledger", self._open_token()
        )
        hidden = GitBranch(private, BRANCH, f"{folder}/private-ledger", with_key)
        self.evaluator = Evaluator(Ledger(public, hidden, rules), source, self, f"run {settings.run}")

    # ── access ──────────────────────────────────────────────────────────────

    def _open_key(self) -> dict[str, str]:
        """Return the environment in which git uses the key of the private repository."""
        key, hosts = (os.path.join(self._folder, name) for name in ("key", "known_hosts"))
        name = urlsplit(self._settings.server).hostname
        lines = "".join(f"{name} {line}\n" for line in self._issues.fetch_host_keys())
        for path, text in ((key, self._settings.key), (hosts, lines)):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
        options = f"-o IdentitiesOnly=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile={shlex.quote(hosts)}"
        return clean_environment("HOME", GIT_SSH_COMMAND=f"ssh -i {shlex.quote(key)} {options}")

    def _open_token(self) -> dict[str, str]:
        """Return the environment in which git uses the workflow's token, which no command line shows."""
        login = base64.b64encode(f"x-access-token:{self._settings.token}".encode()).decode()
        return clean_environment(
            "HOME",
            GIT_CONFIG_COUNT="1",
            GIT_CONFIG_KEY_0=f"http.{self._settings.server}/.extraheader",
            GIT_CONFIG_VALUE_0=f"AUTHORIZATION: basic {login}",
        )

    # ── organisers ──────────────────────────────────────────────────────────

    def obey(self) -> Iterator[str]:
        """Do what an organiser chose who started the workflow; only they may start it."""
        event: dict[str, Any] = {}
        if self._settings.event:
            with open(self._settings.event, encoding="utf-8") as file:
                event = json.load(file)
        inputs = event.get("inputs") or {}
        action, text = inputs.get("action", SCORE), str(inputs.get("submission") or "").strip()
        reason = str(inputs.get("reason") or "").strip()
        if text and not (text.isascii() and text.isdecimal()):
            raise HostError(f"the submission {text!r} is no number")
        yield from self.evaluator.obey(action, int(text or 0), reason, self._settings.run)

    # ── participants ────────────────────────────────────────────────────────

    def receive(self, ledger: Ledger) -> Iterator[str]:
        ledger.read()
        for issue in self._issues.list_open():
            number = int(issue["number"])
            if number in ledger.rows.entries:
                continue
            form = None
            try:
                form = read_issue(issue, self._settings.server)
                if form is None:
                    continue
                refusal = _accept(ledger, issue, number, form)
            except FormError as error:
                refusal = str(error)
            if refusal or isinstance(form, Withdraw):
                text = _quote(refusal) if refusal else "**Withdrawn.** The leaderboards no longer show the submission."
                yield from self._answer(number, str(issue.get("updated_at")), text)
            yield f"issue {number}: {'not accepted' if refusal else 'accepted'}"

    def fetch(self, entry: LedgerEntry, path: str) -> None:
        download(lambda: entry.address, path, MOST_BYTES, time.sleep, allows=self._is_allowed)

    def _is_allowed(self, peer: str) -> bool:
        """Return whether a file may come from an IP address: a public one, or GitHub's own."""
        server = urlsplit(self._settings.server)
        with suppress(OSError):
            if peer in {str(row[4][0]) for row in socket.getaddrinfo(server.hostname, server.port or 443)}:
                return True
        return ipaddress.ip_address(peer.partition("%")[0]).is_global

    # ── answers ─────────────────────────────────────────────────────────────

    def report(self, ledger: Ledger) -> Iterator[str]:
        rows, now = ledger.rows, ledger.now()
        runs = dict[int, int]()
        for issue in self._issues.list_open():
            number = int(issue["number"])
            run, _ = (number in rows.entries and rows.last_outcome(number)) or (0, None)
            if run or rows.is_removed(number):
                runs[number] = run
        boards = rank_boards(rows, ledger.rules, now) if runs else {}
        for number, run in runs.items():
            state = describe_state(rows, ledger.rules, boards, number, now)
            yield from self._answer(number, f"run {run}", _format(state))

    def _answer(self, number: int, occasion: str, text: str) -> Iterator[str]:
        """Write the comment of an issue, once for each occasion, and close the issue."""
        try:
            self._issues.answer(number, f"<!-- segjudge {number} {occasion} -->", text)
        except ApiError as error:  # no other issue waits for it, and the next sweep tries again
            yield f"issue {number}: not answered ({error})"


def _accept(ledger: Ledger, issue: Mapping[str, Any], number: int, form: Submit | Withdraw) -> str:
    """Return why an issue is not accepted, or ""."""
    user = issue.get("user")
    if not isinstance(user, dict):  # a removed account
        return "GitHub names no account for this issue."
    account = str(int(user["id"]))
    if isinstance(form, Withdraw):
        return ledger.withdraw(form.number, account)
    # The time of the last change: a link that was changed after a phase's end is late.
    at = str(issue["updated_at"]).replace("Z", "+00:00")
    team = str(user["login"])
    entry = LedgerEntry(number, account, team, form.method, form.phase, form.address, form.sha256, at)
    return ledger.enter([entry]).get(number, "")


def _format(state: SubmissionState) -> str:
    """Return what became of a submission as Markdown."""
    reason = ["", _quote(state.reason)] if state.reason else []
    lines = ["", *(f"- {line}" for line in state.lines)] if state.lines else []
    return "\n".join([f"**{state.about}.**", *reason, *lines])


def _quote(text: str) -> str:
    """Return text that may hold names of files as a block in which Markdown has no meaning."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"
