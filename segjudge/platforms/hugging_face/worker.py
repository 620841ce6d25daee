"""The evaluator of a board on the Hub, which runs anywhere: `segjudge worker --platform hugging-face OWNER/NAME`."""

from __future__ import annotations

import datetime
import fcntl
import itertools
import json
import os
import secrets
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from huggingface_hub import HfApi
from huggingface_hub.hf_api import RepoFile

from segjudge.evaluation_script.files.problems import HostError
from segjudge.ledger.evaluator import Evaluator, Queue
from segjudge.ledger.hub_dataset import HubDataset, repeat_call
from segjudge.ledger.ledger import Ledger
from segjudge.ledger.page import FOLDER, rank_boards, render_boards
from segjudge.ledger.rows import LedgerEntry, Rows
from segjudge.ledger.rules import MOST_BYTES, Rules
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.system.download import DiskError, GoneError, TooLargeError
from segjudge.system.files import file_name, temporary_folder

from .build import CARD, render
from .requests import FILES, PRIVATE, RESULTS, SUBMISSIONS, Request, read_requests
from .settings import BUNDLE, find_rules

#: The seconds between two looks at a quiet board, and after work or a failure: the Hub allows 128 commits in an hour,
#: and a sweep makes three.
_QUIET, _BUSY = 10.0, 90.0


def work(api: HfApi, repository: str, *, once: bool) -> Iterator[str]:
    """Score the submissions of a board, once or until stopped; yields a line for each action, without hidden scores."""
    with temporary_folder("segjudge-") as folder, _hold_name(repository) as worker:
        board = _Board(api, repository, folder, worker)
        while True:
            pause = _QUIET
            try:
                for line in board.open().sweep():
                    yield line
                    pause = _BUSY
            except HostError as error:
                if once:
                    raise
                yield f"{error}; trying again in {_BUSY:.0f} s"
                pause = _BUSY
            if once:
                return
            time.sleep(pause)


def decide(api: HfApi, repository: str, action: str, number: int, reason: str) -> Iterator[str]:
    """Do what an organiser decided; the evaluator scores later what waits again."""
    with temporary_folder("segjudge-") as folder:
        yield from _Board(api, repository, folder, "").open().obey(action, number, reason, secrets.token_hex(8))


@contextmanager
def _hold_name(repository: str) -> Iterator[str]:
    """Yield a name that no other evaluator on this machine has; a restarted one continues the claims of its name."""
    folder = os.path.join(tempfile.gettempdir(), f"segjudge-{os.getuid()}-{file_name(repository)}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for number in itertools.count(1):
        with open(os.path.join(folder, str(number)), "w", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield f"{socket.gethostname()} {number}"
            return


class HubQueue(Queue):
    """The requests of a board as the queue of its evaluator."""

    def __init__(self, api: HfApi, repository: str) -> None:
        self._api, self._name = api, repository + SUBMISSIONS
        self._storage = HubDataset(api, self._name, ignored=FILES)
        self._requests: dict[int, Request] = {}

    def receive(self, ledger: Ledger) -> Iterator[str]:
        ledger.read()
        rows = ledger.rows
        self._requests = {request.number: request for request in read_requests(self._storage.read())}
        new = [
            request
            for number, request in self._requests.items()
            if not ({number} & {*rows.entries, *rows.refusals} or request.withdraws in rows.withdrawals)
        ]
        entries = [request.to_entry() for request in new if not request.withdraws]
        refusals = ledger.enter(entries) if entries else {}
        for request in new:
            if request.withdraws and (refusal := ledger.withdraw(request.withdraws, request.account)):
                refusals[request.number] = refusal
        if refusals:
            ledger.refuse(refusals)
        for request in new:
            yield f"request {request.number}: {'not accepted' if request.number in refusals else 'accepted'}"

    def fetch(self, entry: LedgerEntry, path: str) -> None:
        request = self._requests.get(entry.number)
        stored = request and repeat_call(lambda: self._describe(request.file_path), self._name)
        if not request or not stored:
            raise GoneError(f"{self._name} no longer has it", lasting=True)
        if stored.size > MOST_BYTES:
            raise TooLargeError
        folder = os.path.dirname(path)
        try:
            source = repeat_call(
                lambda: self._api.hf_hub_download(self._name, request.file_path, repo_type="dataset", local_dir=folder),
                self._name,
            )
            os.replace(source, path)
        except OSError as error:
            raise DiskError(f"{path}: {error}") from None

    def _describe(self, path: str) -> RepoFile | None:
        """Return the facts about a file; None without it."""
        found = self._api.get_paths_info(self._name, [path], repo_type="dataset")
        return next((each for each in found if isinstance(each, RepoFile)), None)

    def report(self, ledger: Ledger) -> Iterator[str]:  # noqa: ARG002 - the Space shows the ledger
        yield from ()


class _Board:
    """A board with its challenge, which the host may replace at any time."""

    def __init__(self, api: HfApi, repository: str, folder: str, worker: str) -> None:
        self._api, self._repository, self._folder, self._worker = api, repository, folder, worker
        self._public = HubDataset(api, repository + RESULTS)
        self._private = HubDataset(api, repository + PRIVATE, ignored=BUNDLE)
        self._queue = HubQueue(api, repository)
        self._versions, self._tree = itertools.count(), list[tuple[str, str]]()

    def open(self) -> Evaluator:
        """Return the evaluator for the challenge as it is now."""
        name = self._repository + PRIVATE
        tree = repeat_call(self._list_challenge, name)
        if tree != self._tree:
            folder = os.path.join(self._folder, str(next(self._versions)))
            repeat_call(
                lambda: self._api.snapshot_download(
                    name, repo_type="dataset", allow_patterns=f"{BUNDLE}/*", local_dir=folder
                ),
                name,
            )
            source = find_bundle(os.path.join(folder, BUNDLE))
            ledger = Ledger(self._public, self._private, find_rules(source), render=self._render)
            self._evaluator, self._tree = Evaluator(ledger, source, self._queue, self._worker), tree
        return self._evaluator

    def _list_challenge(self) -> list[tuple[str, str]]:
        entries = self._api.list_repo_tree(self._repository + PRIVATE, BUNDLE, recursive=True, repo_type="dataset")
        return [(entry.path, entry.blob_id) for entry in entries if isinstance(entry, RepoFile)]

    def _render(self, rows: Rows, rules: Rules, now: datetime.datetime) -> dict[str, bytes]:
        """Return the page, the rows of each leaderboard for the Hub's viewer, and the card that names them."""
        boards, names = rank_boards(rows, rules, now), list[dict[str, str]]()
        files = render_boards(rules.title, boards.values(), rows)
        labels = {(phase.codename, board.split): board.labels for phase in rules.phases for board in phase.boards}
        for key, board in boards.items():
            path = f"{FOLDER}/{board.stem}.jsonl"
            if board.rows:
                names.append({"config_name": board.stem, "data_files": path})
                files[path] = "".join(f"{_to_line(row, labels[key])}\n" for row in board.rows).encode()
        address = f"{self._api.endpoint}/spaces/{self._repository}"
        files[CARD] = render("card-results.md", {"title": rules.title, "address": address, "configs": names}).encode()
        return files


def _to_line(row: Mapping[str, object], labels: Sequence[str]) -> str:
    values = {"name": row["method"], "team": row["team"], "submitted": row["submitted"]}
    return json.dumps({**values, **{label: row[label] for label in labels}})
