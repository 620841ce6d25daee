"""The worker's reaction to the ends of a scorer, of a phase, and of a journal in trouble: parts of `parts`."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sqlite3
import stat
import sys
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.platforms.evalai.hosted_worker.process import DiedError, HungError, UnloadableError, UnwantedError
from segjudge.remote_challenge_evaluation import evaluate, journal, scorer_process, worker

if TYPE_CHECKING:
    from .parts import Page

SCRIPT: Any = {"python": "python3.9", "file": "evaluate.py", "root": "/repository"}


def the_ends_of_a_scorer(page: Page) -> None:
    answers: list[Any] = []
    said = set[str]()

    def say_once(*words: object) -> None:
        if str(words) not in said:
            said.add(str(words))
            page.say(*words)

    def start(python: list[str], order: Any, terms: Any) -> Any:
        shown = {name: value for name, value in terms.environment.items() if os.environ.get(name) != value}
        assert terms.folder
        say_once("starts", python, order, shown, terms.passed, terms.bounds)
        if isinstance(answers[0], OSError):
            raise answers[0]

        def ask(fields: Any, seconds: float, is_over: Any = None) -> Any:
            say_once("asks", fields, seconds, is_over)
            if isinstance(answers[0], Exception):
                raise answers[0]
            return answers[0]

        return SimpleNamespace(
            ask=ask,
            close=lambda: page.say("closes"),
            streams=lambda: ("out", "err"),
            log=lambda: "a long log " * 400,
        )

    request = scorer_process.ScoringRequest("s.zip", "dev", "dev.zip", {"id": 4}, 7, "bundle.zip", hidden=("secret",))
    hosts = scorer_process.ScoringRequest("s.zip", "dev", "", {"id": 4}, 0, "bundle.zip", SCRIPT)
    with (
        mock.patch.object(scorer_process, "ScoringProcess", start), mock.patch.object(scorer_process, "IMPORT_ROOT", "ROOT"),
        mock.patch.dict(os.environ, {"TMPDIR": "T", "HOME": "H", "TOKEN": "secret"}, clear=True),
    ):  # fmt: skip
        for about, answer in (
            ("scores", {"accuracies": [1], "metadata": 2}), ("a refusal", {"refused": "No masks."}), ("an incident", {"incident": 17}), ("nothing", {}),
            ("hangs", HungError("slow")), ("unwanted", UnwantedError("over")), ("unloadable", UnloadableError("no module")), ("died", DiedError("killed by 9")),
            ("a defect", KeyError("x")), ("no start", OSError(2, "no such file")),
        ):  # fmt: skip
            answers[:] = [answer]
            for asked in (request, hosts):
                page.try_in_a_line(
                    f"{about}, {asked.annotation or 'own truth'}",
                    lambda asked=asked: {
                        name: value
                        for name, value in vars(scorer_process.run_scorer(asked, "in", 60.0, 5, None)).items()
                        if value
                    },
                )
        for about, answer in (("hosted", {"form": "hosted"}), ("unloadable", UnloadableError("no module")), ("died", DiedError("killed by 9")),
                              ("no start", OSError(2, "no such file"))):  # fmt: skip
            answers[:] = [answer]
            page.try_in_a_line(f"the form, {about}", lambda: scorer_process.read_form(SCRIPT))

    page.lines[:] = [
        re.sub(r"(a long log ?)+", lambda match: f"{len(match[0])} letters of a log", line) for line in page.lines
    ]


def a_phase_as_starters_ask_for_it(page: Page) -> None:
    (page.folder / "annotations").mkdir()
    (page.folder / "annotations/truth.zip").touch()
    splits = (PhaseSplit("val", "davis2017", ("J",)), PhaseSplit("secret", "davis2017", ("J",), hidden=True))
    phases = {
        name: Phase(name, f"deep/{path}", splits, report=True)
        for name, path in (("dev", "truth.zip"), ("late", "gone.zip"))
    }
    namespace = SimpleNamespace(phases=lambda: [phases["late"], Phase("own", "deep/truth.zip", splits[:1])])

    def score(phase: Any, truth: str, submission: str, metadata: object) -> Any:
        page.say("scores", phase.codename, phase.report, truth, submission, metadata)
        warnings.warn_explicit("odd numbers", UserWarning, "file.py", 3)
        return {"result": [{"val": {"J": 0.5}}, {"secret": {"J": 0.25}}], "submission_metadata": {"seconds": 1}}

    for name, truth, variables in (
        ("dev", None, {}), ("dev", "mine.zip", {}), ("dev", None, {"ANNOTATIONS": "elsewhere"}), ("late", None, {}), ("nobody", None, {}), ("own", None, {}),
        ("own", None, {"BUNDLE": "b"}), ("dev", None, {"BUNDLE": "b"}),
    ):  # fmt: skip
        with (
            mock.patch.multiple(evaluate, evaluate_phase=score, phase_named=phases.__getitem__), mock.patch.dict(os.environ, variables),
            mock.patch("segjudge.platforms.evalai.bundle.bundle_source.find_bundle", lambda path: namespace if path == "b" else None),
            mock.patch.object(sys, "__stderr__", io.StringIO()) as errors, warnings.catch_warnings(),
        ):  # fmt: skip
            warnings.simplefilter("always")
            page.try_in_a_line(
                f"{name} {truth} {variables}",
                lambda name=name, truth=truth, errors=errors: _evaluate(name, truth, errors, page),
            )
    with (
        mock.patch.object(sys, "__stderr__", None),
        contextlib.redirect_stderr(io.StringIO()) as errors,
        contextlib.suppress(HostError),
    ):
        evaluate._annotation(phases["late"], "annotations")
    page.say("without a terminal:", errors.getvalue())


def _evaluate(name: str, truth: str | None, errors: io.StringIO, page: Page) -> object:
    try:
        return evaluate.evaluate("s.zip", name, truth, submission_metadata={"id": 4}, more=1)
    finally:
        page.say("to the operator:", errors.getvalue().strip())


def a_journal_in_trouble(page: Page) -> None:
    folder = page.folder / "machine"
    path, output = folder / journal.NAME, list[str]()
    clock = SimpleNamespace(monotonic=lambda: waits[-1], sleep=lambda seconds: waits.append(waits[-1] + seconds),
                            strftime=lambda form: form.replace("%", ""), time=lambda: 1000.0)  # fmt: skip
    waits = [0.0]

    def open_journal() -> Any:
        return journal.Journal(str(folder), lambda: output.append("looks"), output.append)

    with mock.patch.object(journal, "time", clock), mock.patch.object(journal.os, "getpid", return_value=7):
        page.try_out("none", lambda: repr(journal.Journal.problem_in(str(folder))))
        item = open_journal()
        page.try_out("a new one", lambda: repr(journal.Journal.problem_in(str(folder))))
        page.say({each.name: stat.filemode(each.stat().st_mode) for each in sorted(folder.iterdir())})
        path.rename(folder / "away")
        item.file.follow_replacement()
        item.file.follow_replacement()
        page.say("replaced:", output, path.exists())
        output.clear()
        item.close()
        path.write_bytes(b"no journal" * 500)
        page.try_out("damaged", lambda: journal.Journal.problem_in(str(folder)))
        item = open_journal()
        page.say("opened anew:", output, sorted(each.name for each in folder.iterdir()))
        output.clear()
        item.close()
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA user_version = 99")
        page.try_out("of another version", open_journal)
        page.try_out("of another version", lambda: journal.Journal.problem_in(str(folder)))
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute(f"PRAGMA user_version = {journal.VERSION}")
        item = open_journal()
        with (
            contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db,
            mock.patch.object(journal, "_LONG_BUSY_SECONDS", 0.5),
        ):
            db.execute("BEGIN EXCLUSIVE")
            page.try_out("locked", lambda: item.set("key", 1.0))
            page.say([round(each, 1) for each in waits], output)
            db.execute("ROLLBACK")
        item.set("key", 1.5)
        page.say(item.numbers(), item.counts(), item.progress())
        for error in (
            (),
            (sqlite3.SQLITE_CORRUPT,),
            (sqlite3.SQLITE_NOTADB | 256,),
            (sqlite3.SQLITE_BUSY | 512,),
            (sqlite3.SQLITE_LOCKED,),
            (sqlite3.SQLITE_FULL,),
        ):
            page.try_out(str(error), lambda error=error: _raise_within(str(folder), *error))
        locks, folders = folder / "locks", [folder / name for name in (journal.DOWNLOADS, journal.FETCHED)]
        for number, each in enumerate(folders):
            each.mkdir()
            for name in (f"a-{item.worker}", "b-0123abcd", "c-0123abcd.partial", "d-0123abcde", "e"):
                (each / name).mkdir() if number else (each / name).touch()
        (folders[1] / "b-0123abcd/file").touch()
        for name in ("0123abcd", "zz"):
            (locks / name).touch()
        page.say(
            "alive:",
            item.owners.is_alive(item.worker),
            item.owners.is_alive("fedcba98"),
            item.owners.is_alive("../x"),
            item.owners.is_alive("0123abcd"),
        )
        (locks / "0123abcd").touch()
        page.say("removed:", *[each.replace(item.worker, "MINE") for each in item.owners.remove_abandoned()])
        page.say(
            "left:",
            sorted(
                each.relative_to(folder).as_posix().replace(item.worker, "MINE")
                for each in folder.rglob("*")
                if each.parent != folder
            ),
        )
        item.close()
        page.say("after the end:", sorted(each.name for each in locks.iterdir()))


def a_journal_that_others_take(page: Page) -> None:
    item, locks = journal.Journal(str(page.folder / "machine")), page.folder / "machine/locks"
    with mock.patch.object(journal.os.path, "samestat", side_effect=[False, True]):
        name, lock = item.owners._take_lock()
    page.say("a lock that was taken away:", len(list(locks.iterdir())), name != item.worker)
    os.close(lock)
    for each in locks.glob("?" * 8):
        if each.name != item.worker:
            each.unlink()
    with mock.patch.object(item, "number", return_value=0.0):  # as it was read before another took the turn
        page.say("turns:", item.take_turn("turn_at", 60), item.take_turn("turn_at", 60))
    damaged: Any = SimpleNamespace(execute=lambda query: SimpleNamespace(fetchone=lambda: [journal.VERSION if "version" in query else "row 3 is missing"]))  # fmt: skip
    page.try_out("a page that is damaged", lambda: journal._check(damaged, "f"))
    item.close()


def submissions_that_a_sweep_finds(page: Page) -> None:
    """A sweep asks about each submission again, and skips those that have ended or cannot be scored."""
    for status, problem, in_hand in (
        ("submitted", "", False), ("running", "", False), ("running", "", True), ("queued", "no truth", False), ("finished", "", False),
        ("cancelled", "no truth", False), ("failed", "", False), ("resuming", "", False),
    ):  # fmt: skip
        row = {"id": 4, "status": status, "challenge_phase": 2}
        fake: Any = SimpleNamespace(
            _jobs=SimpleNamespace(fetch_submission=lambda number, row=row: page.say("asks for", number) or row),
            scoring=SimpleNamespace(problem_of=lambda phase, problem=problem: page.say("looks at phase", phase) or problem),
            _claim=lambda row, *, again, in_hand=in_hand: page.say("claims", row["id"], again) or (None if in_hand else SimpleNamespace(submission=4)),
            _log=lambda *words, **fields: page.say("logs", words, fields), _guard=lambda _job, work: work(),
            _begin=lambda _job, row, message: page.say("begins", row["id"], message),
        )  # fmt: skip
        page.try_in_a_line(f"{status} {problem} {in_hand}", lambda fake=fake: worker.Worker.take_lost(fake, {"id": 4}))  # type: ignore[misc]


def _raise_within(folder: str, *codes: int) -> None:
    with journal._journal_errors(folder):
        error = sqlite3.OperationalError("it went wrong")
        for code in codes:
            error.sqlite_errorcode = code
        raise error


PARTS = (
    submissions_that_a_sweep_finds,
    the_ends_of_a_scorer,
    a_phase_as_starters_ask_for_it,
    a_journal_in_trouble,
    a_journal_that_others_take,
)
