"""What a board's Space does: it stores submissions as requests, and shows what the ledger has of them."""

from __future__ import annotations

import datetime
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from segjudge.evaluation_script.files.problems import quantity
from segjudge.ledger.hub_dataset import HubDataset
from segjudge.ledger.page import describe_state, rank_boards
from segjudge.ledger.rows import Remark, Rows, read_rows
from segjudge.ledger.rules import MOST_BYTES
from segjudge.ledger.storage import MovedError
from segjudge.report.boards import Board
from segjudge.report.page import templates
from segjudge.system.files import digest_of_bytes

from .requests import FILES, RESULTS, SUBMISSIONS, Request, clean_file, clean_text, read_requests
from .settings import SpaceSettings

if TYPE_CHECKING:
    from huggingface_hub import HfApi

#: The limits of an account, by the periods of the ledger's rules.
_LIMITS = {"day": "submissions per day", "month": "per month", "all": "in all"}
#: The seconds for which what was read is shown again, and the attempts at a request while others are made.
_SECONDS, _TRIES = 10.0, 30
_BUSY = "Too many submissions arrive at this moment. Submit again in a minute."


@dataclass(frozen=True)
class Account:
    """Who is logged in: the stable identifier, and the name, which may change."""

    key: str
    name: str


class Space:
    """The submissions and results of one challenge."""

    def __init__(
        self,
        settings: SpaceSettings,
        submissions: HubDataset,
        results: HubDataset,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.timezone.utc),
    ) -> None:
        self.settings, self._submissions, self._results, self._now = settings, submissions, results, now
        self._lock, self._rows, self._read_at = threading.Lock(), Rows(), 0.0

    @classmethod
    def open(cls, settings: SpaceSettings, api: HfApi) -> Space:
        """Open the Space on the Hub."""
        submissions = HubDataset(api, settings.repository + SUBMISSIONS, ignored=FILES)
        return cls(settings, submissions, HubDataset(api, settings.repository + RESULTS))

    # ── what is shown ───────────────────────────────────────────────────────

    def list_boards(self) -> list[Board]:
        """Return the public leaderboards."""
        return list(self._rank(self._show()).values())

    def list_submissions(self, account: Account) -> list[dict[str, object]]:
        """Return the submissions of an account, the newest first, with what became of each."""
        rows = self._show()
        waiting = {number: place for place, number in enumerate(rows.list_waiting())}
        boards, rules, now = self._rank(rows), self.settings.rules, self._now()

        def describe(number: int) -> str:
            if number in waiting:
                return f"waiting, {quantity(waiting[number], 'submission')} before it" if waiting[number] else "next"
            about, reason, lines = describe_state(rows, rules, boards, number, now)
            return ": ".join(filter(None, (about, reason, "; ".join(lines))))

        return [
            {
                "submission": number,
                "state": describe(number),
                "phase": entry.phase,
                "method": entry.method,
                "submitted": entry.at[:16].replace("T", " "),
            }
            for number, entry in sorted(rows.entries.items(), reverse=True)
            if entry.account == account.key
        ]

    def _rank(self, rows: Rows) -> dict[tuple[str, str], Board]:
        """Return the public leaderboards by phase and split."""
        return rank_boards(rows, self.settings.rules, self._now())

    # ── what is asked ───────────────────────────────────────────────────────

    def submit(self, account: Account, method: str, phase: str, path: str) -> str:
        """Store a submission; return the sentence about it, which says why it is not accepted."""
        method = clean_text(method)
        if not method:
            return "Write the name of your method."
        if not path:
            return "Choose a file."
        name, endings = os.path.basename(path), self.settings.endings.get(phase, ())
        if endings and not name.lower().endswith(tuple(endings)):
            return f"{name} is no {' or '.join(endings)} file; {phase} accepts no other."
        if os.path.getsize(path) > MOST_BYTES:
            return f"{name} is larger than {MOST_BYTES:,} bytes. Send a smaller file."
        team, sha256 = clean_text(account.name), digest_of_bytes(path)

        def make(number: int, rows: Rows) -> tuple[Request, str]:
            at = self._now().isoformat(timespec="seconds")
            request = Request(number, account.key, team, at, method, phase, clean_file(name), sha256)
            return request, self.settings.rules.explain_refusal(request.to_entry(), rows)

        number, refusal = self._add(make, Path(path))
        return refusal or f"Submission {number} was stored. My submissions shows what becomes of it."

    def withdraw(self, account: Account, text: str) -> str:
        """Store the withdrawal of the submission with a number; return the sentence about it."""
        if not (text.isascii() and text.isdecimal()):
            return "Write the number of the submission, such as 12."
        number = int(text)

        def make(free: int, rows: Rows) -> tuple[Request, str]:
            entry, at = rows.entries.get(number), self._now().isoformat(timespec="seconds")
            refusal = "" if entry and entry.account == account.key else f"Your account has no submission {number}."
            refusal = f"Submission {number} was withdrawn." if number in rows.withdrawals else refusal
            return Request(free, account.key, clean_text(account.name), at, withdraws=number), refusal

        _, refusal = self._add(make)
        return refusal or f"Submission {number} was withdrawn."

    def _add(self, make: Callable[[int, Rows], tuple[Request, str]], file: Path | None = None) -> tuple[int, str]:
        """Store the request that is made for the state as read, unless it is refused; return its number and why not."""
        with self._lock:  # the requests of this process do not compete
            for _ in range(_TRIES):
                requests = self._read()
                number = max((request.number for request in requests), default=0) + 1
                request, refusal = make(number, self._rows)
                if refusal:
                    return 0, refusal
                files: dict[str, bytes | Path | None] = {request.path: request.to_bytes()}
                if file:
                    files[request.file_path] = file
                try:
                    self._submissions.write(files, f"Request {number}")
                except MovedError:
                    continue
                self._read_at = 0.0
                return number, ""
        return 0, _BUSY

    # ── the state ───────────────────────────────────────────────────────────

    def _show(self) -> Rows:
        """Return the rows as they were read some seconds ago, or now."""
        with self._lock:
            if time.monotonic() > self._read_at + _SECONDS or not self._read_at:
                self._read()
            return self._rows

    def _read(self) -> list[Request]:
        """Read the ledger, and add the requests that its evaluator has not read yet."""
        requests = read_requests(self._submissions.read())
        rows = read_rows(self._results.read())
        for request in requests:
            if not request.withdraws:
                rows.entries.setdefault(request.number, request.to_entry())
            elif (entry := rows.entries.get(request.withdraws)) and entry.account == request.account:
                rows.withdrawals.setdefault(request.withdraws, Remark(request.at, number=request.withdraws))
        self._rows, self._read_at = rows, time.monotonic()
        return requests


# ── HTML, in which all texts are escaped ────────────────────────────────────


def render_boards(boards: list[Board], most: int | None = None) -> str:
    """Return leaderboards as HTML, each with all or at most some rows."""
    parts = [
        Markup("<h2>{}</h2>").format(board.name)
        + (
            _render_table(board.name, board.rows[:most])
            if board.rows
            else _paragraph(board.about or "No submissions yet.")
        )
        for board in boards
    ]
    return _wrap(Markup("").join(parts))


def render_list(rows: list[dict[str, object]]) -> str:
    """Return the submissions of an account as HTML."""
    return _wrap(_render_table("Your submissions", rows) if rows else _paragraph("You have not submitted yet."))


def render_text(text: str, title: str = "") -> str:
    """Return a text as HTML, below a title."""
    return _wrap((Markup("<h1>{}</h1>").format(title) if title else Markup()) + _paragraph(text))


def render_rules(settings: SpaceSettings) -> str:
    """Return the phases with their dates and limits, and the pages of the host, as HTML."""
    rows: list[dict[str, object]] = [
        {
            "phase": phase.codename,
            "from (UTC)": f"{phase.start:%Y-%m-%d %H:%M}",
            "until (UTC)": f"{phase.end:%Y-%m-%d %H:%M}",
            **{_LIMITS[period]: limit for period, limit in phase.limits.items()},
        }
        for phase in settings.rules.phases
    ]
    texts = [Markup("<h2>{}</h2>").format(title) + Markup(text) for title, text in settings.texts.items()]  # noqa: S704 - the host's own pages
    return _wrap(_render_table("Phases", rows) + Markup("").join(texts))


def _paragraph(text: str) -> Markup:
    return Markup('<p role="status">{}</p>').format(text)


def _render_table(caption: str, rows: list[dict[str, object]]) -> Markup:
    macros: Any = templates().get_template("parts.html").module
    widest = max(rows, key=len)
    columns = list(widest)
    cells = [[row.get(column) for column in columns] for row in rows]
    return Markup(macros.table(f"table-{abs(hash(caption))}", caption, columns, cells, find=False))  # noqa: S704 - a template escaped it


def _wrap(content: Markup) -> str:
    return str(Markup('<div class="board">{}</div>').format(content))
