"""A ledger in branches of git repositories: limits, writers at once, hidden scores, and decisions of organisers."""

from __future__ import annotations

import datetime
import os
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from segjudge.evaluation_script.files.problems import HostError
from segjudge.ledger.git_branch import GitBranch
from segjudge.ledger.ledger import MOST_CLAIMS, Ledger
from segjudge.ledger.page import render_pages
from segjudge.ledger.rows import ENTRIES, LedgerEntry, RunOutcome, read_rows, row_path, to_bytes
from segjudge.ledger.rules import BoardRules, PhaseRules, Rules
from segjudge.ledger.storage import MovedError

UTC = datetime.UTC
START = datetime.datetime(2026, 3, 1, 12, tzinfo=UTC)
SCORES = {"dev": {"AP": 0.25, "AR": 0.5}, "secret": {"AP": 0.123456789, "AR": 0.987654321}}
OPEN = BoardRules("dev", "dev", ("AP", "AR"), "AP", descending=True, decimals=3, public=True)
HIDDEN = BoardRules("secret", "secret", ("AP", "AR"), "AP", descending=True, decimals=3, public=False)
LIMITS = {"day": 2, "month": 3, "all": 4}


def make_rules(*boards: BoardRules, reveal: datetime.date | None = None, limits: Mapping[str, int] = LIMITS) -> Rules:
    start, end = START - datetime.timedelta(days=1), START + datetime.timedelta(days=100)
    return Rules("Cats", [PhaseRules("test", start, end, boards or (OPEN,), limits, reveal=reveal)])


class Bench:
    """A public and a private repository, and ledgers in them at a time that a test sets."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now, self._count = folder, START, 0
        for name in ("public", "private"):
            subprocess.run(["git", "init", "--quiet", "--bare", folder / f"{name}.git"], check=True)

    def branch(self, name: str = "public") -> GitBranch:
        self._count += 1
        return GitBranch(f"{self.folder}/{name}.git", "ledger", f"{self.folder}/copy-{self._count}", os.environ)

    def ledger(self, rules: Rules | None = None) -> Ledger:
        return Ledger(self.branch(), self.branch("private"), rules or make_rules(), lambda: self.now)

    def history(self) -> str:
        """Return all that the public repository ever held, including messages."""
        log = ["git", "log", "--all", "-p", "--format=%B"]
        return subprocess.run(log, cwd=self.folder / "public.git", capture_output=True, text=True, check=True).stdout


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def entry(number: int, account: str = "7", at: datetime.datetime = START, **fields: str) -> LedgerEntry:
    values = {"team": f"team-{account}", "method": "m", "phase": "test", "address": "https://a.test/x", **fields}
    return LedgerEntry(number=number, account=account, at=at.isoformat(timespec="seconds"), sha256="", **values)


def enter(ledger: Ledger, row: LedgerEntry) -> str:
    """Return why a submission is not accepted, or ""."""
    return ledger.enter([row]).get(row.number, "")


def claim(ledger: Ledger, number: int, worker: str = "w") -> int:
    """Return the run of a submission that is claimed; 0 without one."""
    return ledger.claim([number], worker, 60).get(number, 0)


def scored(ledger: Ledger, number: int, value: float | None = None, account: str = "7", **fields: str) -> None:
    """Enter a submission and settle it."""
    assert enter(ledger, entry(number, account, START, **fields)) == ""
    scores = SCORES if value is None else {"dev": {"AP": value, "AR": 0.5}}
    ledger.settle({(number, claim(ledger, number)): RunOutcome(ledger.stamp(), scores, version="1.2.3")})


def page(ledger: Ledger) -> str:
    return ledger._files["page/index.html"].decode()


def teams(ledger: Ledger) -> list[str]:
    """Return the rank and team of each row of the first leaderboard."""
    lines = ledger._files["page/test-dev.csv"].decode().splitlines()[1:]
    return [" ".join(line.split(",")[:2]) for line in lines]


# ── the board ───────────────────────────────────────────────────────────────


def test_each_account_has_its_best_row_and_ties_share_a_place(bench: Bench) -> None:
    ledger = bench.ledger()
    for number, (account, value) in enumerate([("1", 0.25), ("2", 0.75), ("2", 0.5), ("3", 0.25), ("4", 0.125)], 1):
        scored(ledger, number, value, account)
    assert teams(ledger) == ["1 team-2", "2= team-1", "2= team-3", "4 team-4"]
    assert "0.25,0.5,2026-03-01,1" in ledger._files["page/test-dev.csv"].decode()
    assert "Segjudge 1.2.3" in page(ledger)


def test_what_participants_wrote_is_text_on_the_page(bench: Bench) -> None:
    ledger = bench.ledger()
    scored(ledger, 1, 0.5, team="<script>x</script>", method='=HYPERLINK("x")')
    assert "<script>x" not in page(ledger)
    assert "&lt;script&gt;x" in page(ledger)
    assert "'=HYPERLINK" in ledger._files["page/test-dev.csv"].decode()
    assert "<script>x" not in ledger._files["page/test-dev.svg"].decode()


def test_a_change_that_changes_nothing_is_no_commit(bench: Bench) -> None:
    ledger = bench.ledger()
    scored(ledger, 1)
    before = bench.history()
    assert enter(ledger, entry(1, method="another")) == ""
    ledger.settle({(1, 1): RunOutcome(ledger.stamp(), {"dev": {"AP": 1.0, "AR": 1.0}})})
    assert claim(ledger, 1) == 0
    ledger.publish()
    assert bench.history() == before
    assert ledger.rows.entries[1].method == "m"


# ── limits ──────────────────────────────────────────────────────────────────


def test_limits_hold_by_day_month_and_phase(bench: Bench) -> None:
    ledger, day = bench.ledger(), datetime.timedelta(days=1)
    sentences = [
        enter(ledger, entry(number, at=START + days * day)) for number, days in enumerate([0, 0, 0, 1, 2, 31, 32], 1)
    ]
    used = "Your account has used its {} submissions {}."
    assert sentences == [
        "", "", used.format(2, "today (UTC)"), "", used.format(3, "this month (UTC)"), "", used.format(4, "in this phase"),
    ]  # fmt: skip
    assert enter(ledger, entry(9, account="8")) == ""


def test_a_rejected_file_does_not_count_but_tries_are_limited(bench: Bench) -> None:
    ledger = bench.ledger(make_rules(limits={"day": 1}))
    for number in (1, 2, 3):
        assert enter(ledger, entry(number)) == ""
        ledger.settle({(number, claim(ledger, number)): RunOutcome(ledger.stamp(), refused="is no zip")})
    assert enter(ledger, entry(4)) == "Too many of your files were rejected today (UTC)."


def test_a_phase_has_its_name_and_dates(bench: Bench) -> None:
    ledger = bench.ledger()
    late = START + datetime.timedelta(days=200)
    assert enter(ledger, entry(1, at=late)) == "The phase test ended on 2026-06-09 12:00 UTC."
    assert enter(ledger, entry(1, at=START - datetime.timedelta(days=2))).startswith(
        "The phase test begins on 2026-02-28"
    )
    assert enter(ledger, entry(1, phase="x")) == "This challenge has no such phase; its phases are: test."
    assert ledger.rows.entries == {}


# ── several writers, and killed ones ────────────────────────────────────────


@pytest.mark.long
def test_no_row_is_lost_when_writers_meet(bench: Bench) -> None:
    def run(start: int) -> None:
        ledger = bench.ledger(make_rules(limits={}))
        for number in range(start, start + 2):
            scored(ledger, number, number / 100, str(number))

    threads = [threading.Thread(target=run, args=(start,)) for start in (10, 20, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger = bench.ledger(make_rules(limits={}))
    ledger.read()
    assert sorted(ledger.rows.entries) == [10, 11, 20, 21, 30, 31]
    assert len(teams(ledger)) == 6


def test_an_older_state_is_not_written_over_a_newer_one(bench: Bench) -> None:
    first, second = bench.branch(), bench.branch()
    first.read()
    second.read()
    first.write({"a": b"1"}, "a")
    with pytest.raises(MovedError):
        second.write({"a": b"2"}, "a")
    assert second.read() == {"a": b"1"}
    second.write({"a": None, "b": b""}, "b")
    assert first.read() == {"b": b""}


def test_one_worker_scores_a_submission_until_its_time_is_up(bench: Bench) -> None:
    ledger = bench.ledger()
    enter(ledger, entry(1))
    assert claim(ledger, 1, "one") == 1
    assert claim(ledger, 1, "two") == 0
    assert claim(ledger, 1, "one") == 1  # its re-run
    bench.now += datetime.timedelta(seconds=61)
    assert claim(ledger, 1, "two") == 1
    ledger.settle({(1, 1): RunOutcome(ledger.stamp(), {"dev": {"AP": 0.5, "AR": 0.5}})})
    ledger.settle({(1, 1): RunOutcome(ledger.stamp(), {"dev": {"AP": 0.75, "AR": 0.5}})})  # the slow first worker
    assert ledger.rows.scores_of(1)["dev"]["AP"] == 0.5


def test_a_submission_that_stops_its_workers_fails_with_a_reason(bench: Bench) -> None:
    ledger = bench.ledger()
    enter(ledger, entry(1))
    for _ in range(MOST_CLAIMS):
        assert claim(ledger, 1) == 1
    assert claim(ledger, 1) == 0
    assert ledger.rows.outcomes[1, 1].incident.startswith("the evaluator was stopped")
    assert enter(ledger, entry(2)) == enter(ledger, entry(3)) == ""  # it does not count


def test_a_push_whose_answer_is_lost_counts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    branch = bench.branch()
    real = branch._git

    def lose(*arguments: str, stdin: bytes = b"") -> bytes:
        answer = real(*arguments, stdin=stdin)
        if arguments[0] == "push":
            raise HostError("the connection was reset")
        return answer

    monkeypatch.setattr(branch, "_git", lose)
    branch.read()
    branch.write({"a": b"1"}, "a")
    assert bench.branch().read() == {"a": b"1"}


# ── hidden scores ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["hidden split", "blind phase"])
def test_the_public_repository_never_had_a_hidden_score(way: str, bench: Bench) -> None:
    blind = way == "blind phase"
    hidden = BoardRules("secret", "secret", ("AP", "AR"), "AP", descending=True, decimals=3, public=blind)
    ledger = bench.ledger(make_rules(OPEN, hidden, reveal=datetime.date(2026, 4, 1) if blind else None))
    scored(ledger, 1)
    ledger.publish()
    for digits in ("0.1234", "0.123", "12.3", "0.9876", "0.988"):
        assert digits not in bench.history()
    assert ("0.25" in bench.history()) != blind
    assert ("appear on 2026-04-01" in page(ledger)) == blind
    assert read_rows(bench.branch("private").read()).outcomes[1, 1].scores["secret"] == SCORES["secret"]


def test_scores_are_published_on_their_day(bench: Bench) -> None:
    ledger = bench.ledger(make_rules(OPEN, HIDDEN, reveal=datetime.date(2026, 4, 1)))
    scored(ledger, 1)
    bench.now = datetime.datetime(2026, 3, 31, 23, 59, tzinfo=UTC)
    ledger.publish()
    assert "page/test-dev.csv" in ledger._files
    assert "secret" not in bench.history()
    assert teams(ledger) == []
    bench.now = datetime.datetime(2026, 4, 1, tzinfo=UTC)
    ledger.publish()
    assert teams(ledger) == ["1 team-7"]
    assert "0.1234" not in bench.history()


def test_a_split_follows_the_challenge_when_it_is_shown_or_hidden(bench: Bench) -> None:
    ledger = bench.ledger(make_rules(OPEN, HIDDEN))
    scored(ledger, 1)
    assert "page/test-secret.csv" not in ledger._files
    shown = BoardRules("secret", "secret", ("AP", "AR"), "AP", descending=True, decimals=3, public=True)
    ledger.rules = make_rules(OPEN, shown)
    ledger.publish()
    assert b"0.123456789" in ledger._files["page/test-secret.csv"]
    ledger.rules = make_rules(OPEN, HIDDEN)
    ledger.publish()
    assert "page/test-secret.csv" not in ledger._files


def test_hidden_scores_need_a_private_storage(bench: Bench) -> None:
    ledger = Ledger(bench.branch(), None, make_rules(OPEN, HIDDEN), lambda: bench.now)
    with pytest.raises(HostError, match="no private storage"):
        scored(ledger, 1)
    assert (1, 1) not in ledger.rows.outcomes


# ── decisions ───────────────────────────────────────────────────────────────


def test_a_team_withdraws_only_its_own_submissions(bench: Bench) -> None:
    ledger = bench.ledger()
    scored(ledger, 1, 0.5)
    assert ledger.withdraw(1, "8") == "Your account has no submission 1."
    assert ledger.withdraw(2, "7") == "Your account has no submission 2."
    assert teams(ledger) == ["1 team-7"]
    assert ledger.withdraw(1, "7") == ""
    assert teams(ledger) == []


def test_a_disqualification_shows_its_reason(bench: Bench) -> None:
    ledger = bench.ledger()
    scored(ledger, 1, 0.5)
    ledger.disqualify(1, "trained on <the> test set")
    assert teams(ledger) == []
    assert "trained on &lt;the&gt; test set" in page(ledger)
    with pytest.raises(HostError, match="no submission 5"):
        ledger.disqualify(5, "x")


def test_all_are_scored_again_and_keep_their_results_meanwhile(bench: Bench) -> None:
    ledger = bench.ledger()
    scored(ledger, 1, 0.5, "1")
    scored(ledger, 2, 0.25, "2")
    for _ in range(2):
        ledger.score_again(0, "a corrected truth", "order 1")
    assert ledger.rows.list_waiting() == [1, 2]
    assert teams(ledger) == ["1 team-1", "2 team-2"]
    assert "2 results above will be replaced" in page(ledger)
    for number, value in ((1, 0.1), (2, 0.2)):
        run = claim(ledger, number)
        assert run == 2
        ledger.settle({(number, run): RunOutcome(ledger.stamp(), {"dev": {"AP": value, "AR": 0.5}})})
    assert teams(ledger) == ["1 team-2", "2 team-1"]
    assert ledger.rows.outcomes[1, 1].scores["dev"]["AP"] == 0.5


def test_a_damaged_row_is_named(bench: Bench) -> None:
    branch = bench.branch()
    branch.read()
    branch.write({row_path(ENTRIES, 4): b"{}"}, "x")
    with pytest.raises(HostError, match=r"submissions/4\.json: is not a row"):
        bench.ledger().read()


def test_a_missing_repository_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segjudge.ledger.git_branch.pauses", lambda _tries: [])
    with pytest.raises(HostError, match="git ls-remote failed"):
        GitBranch(str(tmp_path / "none.git"), "ledger", str(tmp_path / "copy"), os.environ).read()


def test_two_thousand_rows_are_ranked_within_two_seconds() -> None:

    rows = read_rows(
        {
            path: data
            for number in range(1, 2001)
            for path, data in (
                (row_path(ENTRIES, number), to_bytes(entry(number, str(number)))),
                (
                    f"results/{number}.1.json",
                    to_bytes(RunOutcome("2026-03-01", {"dev": {"AP": number / 3000, "AR": 0.5}})),
                ),
            )
        }
    )
    began = time.process_time()
    pages = render_pages(rows, make_rules(), START)
    assert time.process_time() - began < 2
    assert len(pages["page/test-dev.csv"].splitlines()) == 2001
