"""The pages of submissions: made one at a time by a sandboxed process, and stored."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import shutil
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial

from segjudge.evaluation_script.scoring import VERSION
from segjudge.platforms.evalai.hosted_worker.folder import WorkerFolder
from segjudge.system import IMPORT_ROOT, sandbox
from segjudge.system.bounds import TreeBounds, run_bounded
from segjudge.system.files import open_output
from segjudge.system.processes import clean_environment
from segjudge.system.sandbox import ProcessLimits

from . import report_program
from .background import Background
from .report_answers import ProgramAnswer, SplitSummary, read_answer
from .store import Store, outage_of, unless_away
from .stored_files import FileStore
from .wire import Refusal

#: The limits of the process, and the maximum bytes of a page.
_LIMITS = ProcessLimits(seconds=600, memory=2 << 30)
_PAGE_BYTES = 16 << 20
#: The maximum bytes of cached pages; the least recently read ones are removed.
_KEPT_BYTES = 256 << 20
#: The maximum number of waiting orders; readers' next requests add more.
_MOST_WAITING = 16
#: The number of remembered failures, and the seconds until a reader may try again.
_FAILURES, _FAILED_SECONDS = 256, 300.0
#: The maximum characters of a failure's sentence, and of a defect in the log.
_SENTENCE, _LOGGED = 4000, 16 << 10
#: Replacements for a team: hosts, visitors without a team, and pages for summaries of splits.
HOSTS, VISITORS, _SUMMARIES = 0, -1, -2
#: The version of stored answers; raise it when their form changes.
_FORMAT = 3
#: The number of summaries of splits that stay in memory.
_REMEMBERED = 256
_IDLE = 0.3
_DEFECT = "The report could not be created; the workers' log on the hosts' page gives the reason."


@dataclass(frozen=True)
class PageOrder:
    """The order of the program: the page to make, and its inputs."""

    kind: str
    challenge: int
    #: Stored files, by their names in the order.
    files: dict[str, str]
    #: Texts that the program reads from files, by their names in the order.
    texts: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return the digest of a report's inputs; a stored file never changes and counts by its id."""
        return hashlib.sha256(json.dumps([VERSION, _FORMAT, asdict(self)], sort_keys=True).encode()).hexdigest()


class ReportPages(Background):
    """Makes and stores the report pages of submissions."""

    def __init__(self, store: Store, files: FileStore) -> None:
        super().__init__(store, "report pages")
        self._files = files
        self._folder = os.path.join(store.folder, "reports")
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        self._lock = threading.Lock()
        self._orders: queue.Queue[PageOrder] = queue.Queue(_MOST_WAITING)
        #: For a challenge from a folder on this machine, its folder of pictures.
        self.pictures: dict[int, str] = {}
        #: Key of an order -> the team that waits for it.
        self._under_way: dict[str, int] = {}
        self._failures: dict[str, tuple[float, str]] = {}
        #: Key of an order -> its summaries of splits; the most recently read one comes last.
        self._split_summaries: dict[str, Mapping[str, SplitSummary]] = {}
        self._add(self._turn)

    def find_or_order(self, order: PageOrder, team: int) -> ProgramAnswer | None:
        """Return the ordered page, or None while it is made; raises Refusal with a sentence if that failed.

        Each team has at most one order in progress, so no team waits for all orders of another.
        """
        key = order.key
        with self._lock:
            failed, sentence = self._failures.get(key, (0.0, ""))
            if time.monotonic() < failed + _FAILED_SECONDS and sentence:
                raise Refusal(404, sentence)
            if key in self._under_way:
                return None
            text = self._read(key)
            if text is None and team not in self._under_way.values():
                with suppress(queue.Full):
                    self._orders.put_nowait(order)
                    self._under_way[key] = team
        try:
            return None if text is None else read_answer(text)
        except ValueError:  # a damaged file: readers try again and order it again
            with suppress(FileNotFoundError):
                os.remove(os.path.join(self._folder, key))
            return None

    def find_split_summaries(self, order: PageOrder) -> Mapping[str, SplitSummary] | None:
        """Return the summaries of a page's splits; None while it is made, {} if that failed.

        A page that failed is ordered again only by readers who open it: each view of a board asks for summaries.
        """
        key = order.key
        with self._lock:
            if key in self._failures:
                return {}
            split_summaries = self._split_summaries.pop(key, None)
        if split_summaries is None:
            answer = self.find_or_order(order, _SUMMARIES)
            if answer is None:
                return None
            split_summaries = answer.split_summaries
        with self._lock:
            self._split_summaries[key] = split_summaries
            while len(self._split_summaries) > _REMEMBERED:
                del self._split_summaries[next(iter(self._split_summaries))]
        return split_summaries

    def find_pictures(self, challenge: int, phase: str) -> str:
        """Return the folder with a phase's pictures; "" without one."""
        folder = self.pictures.get(challenge, "")
        return os.path.join(folder, phase) if os.path.isdir(folder) and phase in os.listdir(folder) else ""

    # ── in the background ────────────────────────────────────────────────────

    def _turn(self) -> bool:
        with suppress(queue.Empty):
            self._complete_order(self._orders.get(timeout=_IDLE))
        return True

    def _complete_order(self, order: PageOrder) -> None:
        sentence = _DEFECT
        try:
            self._write_page(order.key, self._make_product(order))
            sentence = ""
        except Refusal as refusal:
            sentence = str(refusal)
        except Exception as error:
            if outage_of(error) is not None:
                sentence = ""  # readers try again and order it again
                raise
            unless_away(partial(self._store.log, order.challenge, f"a report could not be created: {error}"))
        finally:
            with self._lock:
                self._under_way.pop(order.key, None)
                self._failures.pop(order.key, None)
                if sentence:
                    self._failures[order.key] = time.monotonic(), sentence
                    self._failures = dict(list(self._failures.items())[-_FAILURES:])

    def _make_product(self, order: PageOrder) -> str:
        # The workers' next start removes leftovers of a killed server.
        folder = WorkerFolder(self._store.note_folder)
        try:
            self._fill(order, folder.temporary)
            return self._answer(folder.temporary, order.values.get("images", ""))
        finally:
            folder.remove()
            unless_away(partial(self._store.forget_folder, folder.path))

    def _fill(self, order: PageOrder, folder: str) -> None:
        arguments = {"kind": order.kind, **order.values}
        for name, number in order.files.items():
            arguments[name] = name + self._files.ending(number)
            shutil.copyfile(self._files.path(number), os.path.join(folder, arguments[name]))
        for name, text in order.texts.items():
            arguments[name] = name
            with open_output(os.path.join(folder, name)) as file:
                file.write(text)
        with open_output(os.path.join(folder, report_program.ORDER)) as file:
            json.dump(arguments, file)

    def _answer(self, folder: str, pictures: str) -> str:
        """Return the program's output; raises Refusal if the output is a sentence about a failure."""
        box = sandbox.find_sandbox()
        command = [sys.executable, "-P", "-m", report_program.__name__]
        run = run_bounded(
            sandbox.agent_command(
                box, command, folder, [(pictures, False)] if pictures else [], [self._store.folder], _LIMITS
            ),
            TreeBounds(_LIMITS.memory, _LIMITS.processes, sandbox.AGENT_TMPFS if box else ()),
            _LIMITS.seconds,
            _PAGE_BYTES,
            environment=clean_environment("HOME", PYTHONPATH=IMPORT_ROOT, TMPDIR="/tmp" if box else folder),  # noqa: S108
            folder=folder,
            check=self._check_running,
        )
        if run.code is None:
            raise Refusal(404, f"The report was not ready within {_LIMITS.seconds:.0f} seconds.")
        if run.code == report_program.REFUSED:
            raise Refusal(404, f"There is no report: {run.output[:_SENTENCE]}")
        if run.code or run.excess:
            reason = run.excess or f"its process {run.code.sentence}"
            raise ValueError(f"{reason}\n{run.errors[-_LOGGED:]}")
        try:
            read_answer(run.output)
        except ValueError as error:
            raise ValueError(f"its answer is not understood: {error}\n{run.errors[-_LOGGED:]}") from None
        return run.output

    def _check_running(self) -> None:
        if self._stop.is_set():
            raise InterruptedError("the rehearsal was stopped")

    # ── on the disk ──────────────────────────────────────────────────────────

    def _read(self, key: str) -> str | None:
        path = os.path.join(self._folder, key)
        with suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
            os.utime(path)
            return file.read()
        return None

    def _write_page(self, key: str, text: str) -> None:
        with self._lock:
            with open_output(os.path.join(self._folder, key)) as file:
                file.write(text)
            total = 0
            for entry in sorted(os.scandir(self._folder), key=lambda entry: -entry.stat().st_mtime):
                total += entry.stat().st_size
                if total > _KEPT_BYTES:
                    os.remove(entry.path)
