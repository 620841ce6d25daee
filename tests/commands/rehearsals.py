"""The messages of `rehearse` up to its start, as one text.  No server runs."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import uvicorn

from segjudge.commands import rehearse
from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.hosted_worker.interpreter import PINNED_PYTHON, Interpreter
from segjudge.server import first_run, services, workers
from segjudge.server.background import Background
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
rehearse lakes --hosts a/b
rehearse lakes --now 2019-01-01
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
rehearse lakes --data marked --reset
:another server runs
rehearse lakes
rehearse lakes --reset
:it has stopped
rehearse odd
rehearse lakes --bundle odd
"""
_AGENTS = "[images.one]\ncommand = ['x']\n[images.another]\ncommand = ['y']\n"


class _World:
    """Replacements for processes, ports and signals."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.version, self.is_limited = "3.11.4", False
        self.box: str | None = "bwrap"
        self._drawn = itertools.count(1)
        self._other: Any = None
        self._stack, make_services = stack, services.Services
        for owner, name, value in (
            (rehearse, "listen", self.listen), (Interpreter, "for_worker", self.find_python), (bounds, "missing_bounds", lambda box: [f"Of {box} something is missing."]),
            (uvicorn.Server, "run", lambda *_, **__: None), (Background, "start", lambda _loops: None), (Background, "stop", lambda _loops: None), (signal, "signal", lambda *_: None),
            (workers, "ResourceGroup", lambda **asked: SimpleNamespace(holds_bound=lambda _kind: self.is_limited, close=lambda: None)),
            (services, "Services", lambda *words: self.open_services(make_services, *words)),
        ):  # fmt: skip
            stack.enter_context(patch.object(owner, name, value))
        stack.enter_context(patch("secrets.token_hex", lambda size: f"{next(self._drawn):0{2 * size}}"))
        stack.enter_context(patch("secrets.token_urlsafe", lambda size: f"{next(self._drawn):0{size}}"))
        stack.enter_context(patch.dict("segjudge.server.accounts._SCRYPT", {"n": 2}))  # hashing is slow on purpose
        stack.enter_context(patch.object(uvicorn.Config, "configure_logging"))

    def listen(self, host: str, port: int) -> Any:
        if port == 80:
            raise rehearse.UsageError("port 80 is taken")
        return SimpleNamespace(getsockname=lambda: (host, port or 4711), close=lambda: None)

    def find_python(self, _name: str | None, _root: str) -> Any:
        def find_sandbox(*, required: bool) -> str | None:
            if required and not self.box:
                raise HostError("no sandbox was found")
            return self.box

        return SimpleNamespace(version=self.version, find_sandbox=find_sandbox)

    def open_services(self, make: Any, *words: Any) -> Any:
        made = make(*words)
        self._stack.callback(made.store.close)
        return made

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
        else:
            self._other.close()


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
            "practice/one-good.zip", "practice/two.json", "final/three.zip", "invited/four.zip", "over/five.zip",
            "other/six.zip",
        )  # fmt: skip
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
    return re.sub(r"\b0{9,}(\d+)\b", r"DRAWN-\1", text)


if __name__ == "__main__":
    FILE.write_text(write_rehearsals(), encoding="utf-8")
