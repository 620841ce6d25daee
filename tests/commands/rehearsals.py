"""The messages and files of `rehearse` at its starts and ends, as one text.

No server runs: its content is noted where it would start, and a signal follows.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import stat
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import uvicorn

from segjudge.commands import rehearse
from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.hosted_worker.interpreter import PINNED_PYTHON, Interpreter
from segjudge.server import first_run, server, services, workers
from segjudge.server.background import Background
from segjudge.server.models import Challenge, Submission, User
from segjudge.system import bounds
from tests.answers import Answers
from tests.builders import written
from tests.server.scenario import bundle_of, config_of
from tests.transcript import run

FILE = Path(__file__).with_name("rehearsals.txt")
#: Command lines, run one after the other in one folder; a line that begins with a colon names an event between.
COMMANDS = """
rehearse lakes
rehearse lakes
rehearse lakes --seed-demo --workers 2 --requests-per-minute 7 --visibility 5 --seconds 8 --python other
rehearse lakes --seed-demo --workers 0
rehearse lakes --hosts dora,emil --hosts ,dora,
rehearse lakes --hosts dora
rehearse lakes --hosts a/b
rehearse lakes --now 2019-01-01
rehearse lakes --now 2030-05-01T12:00:00Z --port 0
rehearse lakes --now 2030-13-01
rehearse lakes --now tomorrow
rehearse lakes --port 80
rehearse lakes --agents agents.toml
rehearse lakes --agents empty.toml --require-sandbox
rehearse lakes --agents absent.toml
rehearse code --agents agents.toml --data code/data
:there is no sandbox
rehearse lakes
rehearse lakes --require-sandbox
:EvalAI's Python is here
rehearse lakes
:CPU is limited
rehearse lakes
:the bundle has sponsors
rehearse lakes
:the bundle has another leaderboard
rehearse lakes
rehearse lakes --reset
rehearse lakes --data full
rehearse lakes --data full --reset
rehearse lakes --data marked
rehearse lakes --data marked --reset
:another server runs
rehearse lakes
rehearse lakes --reset
:it has stopped
rehearse lakes.zip --data packed
rehearse odd
rehearse lakes --bundle odd
rehearse absent
:it is stopped before it serves
rehearse lakes --reset
:a failure comes of that
rehearse lakes
"""
_AGENTS = "[images.one]\ncommand = ['x']\n[images.another]\ncommand = ['y']\n"


class _World:
    """Replacements for processes, ports and signals."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.version, self.is_limited, self.next = "3.11.4", False, ""
        self.box: str | None = "bwrap"
        self.handlers: dict[int, Any] = {}
        self._drawn = itertools.count(1)
        self._other: Any = None
        self._stack = stack
        for owner, name, value in (
            (rehearse, "listen", self.listen), (Interpreter, "for_worker", self.find_python), (bounds, "missing_bounds", lambda box: [f"Of {box} something is missing."]),
            (uvicorn.Server, "run", lambda ours, sockets: self.serve(ours, sockets[0])), (Background, "start", lambda _loops: None), (Background, "stop", lambda loops: print(f"stops {type(loops).__name__}")),
            (Background, "give_up", lambda loops: print(f"{type(loops).__name__} gives up")), (signal, "signal", self.handle), (signal, "getsignal", self.handler_of),
            (workers, "ResourceGroup", lambda **asked: SimpleNamespace(holds_bound=lambda _kind: self.is_limited, close=lambda: None)),
        ):  # fmt: skip
            stack.enter_context(patch.object(owner, name, value))
        stack.enter_context(patch("secrets.token_hex", lambda size: f"{next(self._drawn):0{2 * size}}"))
        stack.enter_context(patch("secrets.token_urlsafe", lambda size: f"{next(self._drawn):0{size}}"))
        stack.enter_context(patch.dict("segjudge.server.accounts._SCRYPT", {"n": 2}))  # hashing is slow on purpose
        stack.enter_context(patch.object(uvicorn.Config, "configure_logging"))
        make_scorer = workers.JobScorer
        stack.enter_context(patch.object(workers, "JobScorer", lambda *words: _note_scorer(make_scorer, *words)))
        make_services, create_app = services.Services, server.create_app
        stack.enter_context(
            patch.object(services, "Services", lambda *words: self.note_services(make_services, *words))
        )
        stack.enter_context(patch.object(server, "create_app", lambda *words: self.note_app(create_app, *words)))

    def listen(self, host: str, port: int) -> Any:
        if port == 80:
            raise rehearse.UsageError("port 80 is taken")
        print(f"listens at {host}:{port}")
        return SimpleNamespace(getsockname=lambda: (host, port or 4711), close=lambda: None)

    def find_python(self, name: str | None, root: str) -> Any:
        def find_sandbox(*, required: bool) -> str | None:
            if required and not self.box:
                raise HostError("no sandbox was found")
            return self.box

        print(f"looks for Python {name} in {os.path.basename(root).partition('-')[0]}")
        if self.next:
            event, self.next = self.next, ""
            try:
                self.handlers[signal.SIGINT](signal.SIGINT, None)
            except SystemExit:
                if event == "it is stopped before it serves":
                    raise
            raise RuntimeError("it failed")
        return SimpleNamespace(version=self.version, find_sandbox=find_sandbox)

    def handler_of(self, number: int) -> object:
        return signal.SIG_IGN if number == signal.SIGHUP else self.handlers.get(number)

    def handle(self, number: int, handler: Any) -> None:
        self.handlers[number] = handler

    def note_services(self, make: Any, folder: str, visibility: float, hosts: Any, *more: Any) -> Any:
        database, clock = more
        date = "now" if clock is time.time else datetime.fromtimestamp(round(clock(), -1), UTC)
        print(f"keeps it for {visibility} s, hosts {sorted(hosts)} {database!r}, {date}")
        self.services = make(folder, visibility, hosts, *more)
        self._stack.callback(self.services.store.close)
        return self.services

    def note_app(self, create_app: Any, services: Any, options: Any) -> Any:
        rows = [len(services.store.find(kind)) for kind in (User, Challenge, Submission)]
        print(f"serves {options.requests_per_minute} a minute; users, challenges, submissions: {rows}")
        self.stopping = options.stopping
        return create_app(services, options)

    def serve(self, ours: Any, port: Any) -> None:
        """Act as a server during which the user presses Ctrl-C twice."""
        folder = Path(self.services.store.folder)
        paths = [path for path in (folder, *sorted(folder.iterdir())) if "-" not in path.name]
        modes = ", ".join(f"{path.name} {stat.S_IMODE(path.stat().st_mode):o}" for path in paths)
        print(f"runs at {port.getsockname()}, {modes}, {[signal.Signals(each).name for each in self.handlers]}")
        config = ours.config
        kinds = f"{config.http.__name__}, {config.ws}, {config.lifespan}, {config.log_level}, {config.access_log}, {config.server_header}"
        print(
            f"as {kinds}; ends within {config.timeout_graceful_shutdown} s, and what is idle after {config.timeout_keep_alive} s"
        )
        ours.handle_exit(signal.SIGTERM, None)
        print(f"ends {ours.should_exit} {self.stopping()}")
        ours.should_exit = False
        self.handlers[signal.SIGTERM](signal.SIGTERM, None)
        print(f"ends {ours.should_exit} {self.stopping()}")

    def change(self, event: str) -> None:
        """Trigger an event."""
        config = config_of("Lakes", remote_evaluation=False)
        if event == "there is no sandbox":
            self.box = None
        elif event == "EvalAI's Python is here":
            self.version = PINNED_PYTHON
        elif event == "CPU is limited":
            self.is_limited = True
        elif event == "the bundle has sponsors":
            _write_bundle("lakes", {**config, "sponsors": [{"name": "a", "website": "https://a.org"}]})
        elif event == "the bundle has another leaderboard":
            boards = [{"id": 2, "schema": config["leaderboard"][0]["schema"]}]
            splits = [{**split, "leaderboard_id": 2} for split in config["challenge_phase_splits"]]
            _write_bundle("lakes", {**config, "leaderboard": boards, "challenge_phase_splits": splits})
        elif event == "another server runs":
            self._other = first_run.lock_folder(os.path.abspath("lakes/.segjudge/rehearsal"))
        elif event == "it has stopped":
            self._other.close()
        else:
            self.next = event


def _note_scorer(make: Any, python: Any, *bounds_of_jobs: Any) -> Any:
    print(f"scores within {bounds_of_jobs}")
    return make(python, *bounds_of_jobs)


def _write_bundle(name: str, config: dict[str, Any]) -> None:
    for phase in config["challenge_phases"]:
        phase |= {"test_annotation_file": "truth.json", "start_date": "2020-01-01 00:00:00"}
    Path(f"{name}.zip").write_bytes(bundle_of({**config, "start_date": "2020-01-01 00:00:00"}, "truth"))
    shutil.unpack_archive(f"{name}.zip", name, "zip")


def write_rehearsals() -> str:
    """Run the commands in a new folder; return everything that they print."""
    cases = Answers()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="segjudge-"))
        stack.enter_context(contextlib.chdir(folder))
        stack.callback(os.umask, os.umask(0o022))
        world = _World(stack)
        _write_bundle("lakes", config_of("Lakes", remote_evaluation=False))
        _write_bundle("code", config_of("Code", remote_evaluation=False, is_docker_based=True))
        _write_bundle("odd", config_of(""))
        samples = (
            "practice/one-good.zip",
            "practice/two.json",
            "final/three.zip",
            "invited/four.zip",
            "over/five.zip",
            "other/six.zip",
        )
        written(Path("lakes"), {f"examples/{name}": b"x" for name in samples})
        written(Path(), {"agents.toml": _AGENTS, "empty.toml": "", "full/file": "x", "marked/.segjudge-rehearsal": ""})
        for line in filter(None, COMMANDS.splitlines()):
            if line.startswith(":"):
                world.change(line[1:])
                cases.happen(line[1:])
                continue
            os.umask(0o022)
            output = run(line)
            cases.add(f"segjudge {line}", _settle(output.replace(folder, "FOLDER")))
    return "\n".join(cases.texts)


def _settle(text: str) -> str:
    text = re.sub(r"(?m)^── .* ──\n\(not shown\)\n?", "", text)
    text = re.sub(r"(\S+-rehearsal-)[0-9a-f]{8}", r"\1ID", text)
    text = re.sub(r'(?m)^  File ".*\n(    .*\n)*', "", text)
    return re.sub(r"\b0{9,}(\d+)\b", r"DRAWN-\1", text)


if __name__ == "__main__":
    FILE.write_text(write_rehearsals(), encoding="utf-8")
