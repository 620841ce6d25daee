"""A rehearsal as a host starts it: the command in a separate process, accessed over HTTP."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import requests
import yaml

from segjudge.platforms.evalai.bundle.build import build
from segjudge.server.services import Services
from segjudge.server.store import Store

from .builders import ROOT, zipped

FINAL = ("finished", "failed", "cancelled")
#: Signatures, names of files, ports, moments and durations of an answer.
_VARYING = re.compile(
    r"""[0-9a-f]{32,}|(?:expires|signature)=[\w-]+|:\d{4,5}\b|\d\d:\d\d:\d\d\.\d+|"execution_time": ?[\d.]+"""
    r"|<dt>Duration</dt><dd>[\d.]+ s"
)

#: The servers that nobody has stopped yet.
running: set[Rehearsal] = set()


@dataclass(eq=False)
class Rehearsal:
    """A running server and its users."""

    data: Path
    options: tuple[str, ...] = ()
    root: Path = ROOT
    address: str = ""
    people: dict[str, dict[str, str]] = field(default_factory=dict)
    output: str = ""
    process: Any = None
    bundle: Path | None = None
    #: As a terminal starts it: Ctrl-C reaches everything in its process group.
    grouped: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    #: SEED:RATE of the faults that calls of the API and the queue meet; "" for none.
    faults: str = ""

    def start(self, *more: str) -> Rehearsal:
        program = ["tests.faulty_rehearsal", self.faults] if self.faults else ["segjudge"]
        command = [sys.executable, "-m", *program, "rehearse", "--port", "0", "--data", str(self.data)]
        self.log = open(self.data.parent / f"{self.data.name}.log", "ab")  # noqa: SIM115 - closed by stop()
        if self.bundle is not None or self.root != ROOT:
            command.append(str(self.bundle or self.root))
        environment = {**os.environ, **self.environment}
        environment["SEGJUDGE_WORKER_PYTHON"] = sys.executable
        self.process = subprocess.Popen(
            [*command, *self.options, *more], cwd=ROOT, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env=environment, start_new_session=self.grouped,
        )  # fmt: skip
        running.add(self)
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if "The rehearsal runs at" in line:
                break
        self.output = "".join(lines)
        match = re.search(r"runs at (http://\S+)", self.output)
        if not match:
            self.stop()
            raise AssertionError(self.output + self.errors())
        self.address = match.group(1)
        for name, password, team, token in re.findall(
            r"^  (\w+) +password (\S+)  team [^(]+\((\d+)\)  token (\S+)$", self.output, re.MULTILINE
        ):
            self.people[name] = {"password": password, "team": team, "token": token}
        return self

    def stop(self, number: int = signal.SIGTERM) -> None:
        self.end(number)
        if "services" in vars(self):
            vars(self).pop("services").store.close()
        assert "SAWarning" not in self.errors(), "a query joins what does not belong together"

    def end(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait(120)
        running.discard(self)
        self.process.stdout.close()
        self.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        assert "Traceback" not in self.errors()

    @functools.cached_property
    def services(self) -> Services:
        """The server's actions, carried out next to it until it stops."""
        return Services(str(self.data))

    @contextlib.contextmanager
    def store(self) -> Iterator[Store]:
        """Yield the server's database, read from outside."""
        opened = Store(str(self.data))
        try:
            yield opened
        finally:
            opened.close()

    def errors(self) -> str:
        return (self.data.parent / f"{self.data.name}.log").read_text()

    def call(self, method: str, path: str, who: str = "", **options: Any) -> requests.Response:
        headers = {**options.pop("headers", {})}
        if who:
            token = self.people[who]["token"] if who in self.people else who
            headers["Authorization"] = f"Bearer {token}"
        return requests.request(method, self.address + path, headers=headers, timeout=60, **options)

    def get(self, path: str, who: str = "", **options: Any) -> requests.Response:
        return self.call("GET", path, who, **options)

    def session(self, who: str) -> requests.Session:
        """Return a user's browser, logged in."""
        made = requests.Session()
        form = {"username": who, "password": self.people[who]["password"], "next": "/"}
        answer = made.post(f"{self.address}/login", data=form, headers={"Origin": self.address}, timeout=60)
        assert answer.status_code == 200, answer.text
        return made

    def submit(self, who: str, file: str | bytes | Path, phase: int = 1, challenge: int = 1, **data: Any) -> Any:
        content = file if isinstance(file, bytes) else Path(file).read_bytes()
        name = "submission.zip" if isinstance(file, bytes) else Path(file).name
        return self.call(
            "POST",
            f"/api/jobs/challenge/{challenge}/challenge_phase/{phase}/submission/",
            who,
            data={"status": "submitting", "submission_metadata": "[]", **data},
            files={"input_file": (name, content)},
        )

    def settled(self, number: int, who: str = "host", seconds: float = 60) -> dict[str, Any]:
        def final() -> Any:
            results = self.get(f"/api/jobs/submission/{number}", who).json()
            return results if results["status"] in FINAL else None

        return waited(final, seconds)

    def text(self, url: str | None) -> str:
        assert url
        return requests.get(url, timeout=60).text

    def push(self, bundle: Path, who: str = "host", repository: str = "me/challenge", verb: str = "") -> Any:
        path = verb or "create_or_update_github_challenge"
        team = self.people["host"]["team"]
        return self.call(
            "POST",
            f"/api/challenges/challenge/challenge_host_team/{team}/{path}/",
            who,
            data={"GITHUB_REPOSITORY": repository},
            files={"zip_configuration": ("challenge_config.zip", bundle.read_bytes())},
        )


def without_sandbox(folder: Path) -> dict[str, str]:
    """Return an environment in which `bwrap` does not work."""
    folder.mkdir(exist_ok=True)
    fake = folder / "bwrap"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def steady_port() -> int:
    """Return a port outside the range that the system assigns, so that it is still free when a server restarts."""
    chosen = random.SystemRandom()
    while True:
        port = chosen.randrange(20_000, 32_000)
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


def omit_varying_digits(text: str) -> str:
    """Leave out what may have the digits of a score by chance."""
    return _VARYING.sub("", text)


def waited(look: Callable[[], Any], seconds: float = 30) -> Any:
    """Return the first non-empty result of a check, within four times these seconds, since a machine may be busy.

    It pauses four times as long as a check takes, but at most half a second.
    """
    until = time.monotonic() + 4 * seconds
    while (begun := time.monotonic()) < until:
        results = look()
        if results:
            return results
        time.sleep(min(0.5, max(0.05, 4 * (time.monotonic() - begun))))
    raise AssertionError("waited in vain")


def leave_photographs_out(config: Any) -> None:
    """Leave the demo's small phases, with ids from 1."""
    config["challenge_phases"] = [
        item for item in config["challenge_phases"] if not item["codename"].startswith("photo-")
    ]
    ids = {phase["id"]: number for number, phase in enumerate(config["challenge_phases"], 1)}
    rows = [row for row in config["challenge_phase_splits"] if row["challenge_phase_id"] in ids]
    config["challenge_phase_splits"] = rows
    for phase in config["challenge_phases"]:
        phase["id"] = ids[phase["id"]]
    for row in rows:
        row["challenge_phase_id"] = ids[row["challenge_phase_id"]]


def bundle_with(
    folder: Path, change: Callable[[Any], None] = lambda _config: None, script: dict[str, bytes] | None = None
) -> Path:
    """Return the demo's bundle without its photographs, with another config, or with another evaluation script."""
    path = Path(build(str(ROOT), str(folder / "made.zip")).path)
    with zipfile.ZipFile(path) as files:
        content = {name: files.read(name) for name in files.namelist()}
    config = yaml.safe_load(content["challenge_config.yaml"])
    leave_photographs_out(config)
    change(config)
    content["challenge_config.yaml"] = yaml.safe_dump(config).encode()
    if script is not None:
        inner = folder / "script.zip"
        with zipfile.ZipFile(inner, "w") as files:
            for name, data in script.items():
                files.writestr(name, data)
        content["evaluation_script.zip"] = inner.read_bytes()
    with zipfile.ZipFile(path, "w") as files:
        for name, data in content.items():
            files.writestr(name, data)
    return path


def edit_phases(bundle: Path, *changes: tuple[str, str]) -> None:
    """Replace texts in the `phases.py` of a built bundle; each of them must exist."""
    with zipfile.ZipFile(bundle) as files:
        content = {name: files.read(name) for name in files.namelist()}
    with zipfile.ZipFile(io.BytesIO(content["evaluation_script.zip"])) as files:
        script = {name: files.read(name) for name in files.namelist()}
    text = script["phases.py"].decode()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    script["phases.py"] = text.encode()
    content["evaluation_script.zip"] = zipped(script)
    bundle.write_bytes(zipped(content))


#: Runs what a submission says, and tells what came of it: the worst script that a host could push.
SCRIPT = b"""
import glob, json, os, socket, subprocess, sys

def evaluate(truth, submission, phase, **kwargs):
    scope = {"glob": glob, "os": os, "socket": socket, "subprocess": subprocess, "sys": sys, "submission": submission,
             "truth": truth, "metadata": kwargs["submission_metadata"]}
    exec(open(submission).read(), scope)
    print("TOLD" + json.dumps(scope.get("answers"), default=repr))
    return {"result": [{"dev": {"J&F-Mean": 0.5}}]}
"""


def many(config: Any) -> None:
    for phase in config["challenge_phases"]:
        phase.update(max_submissions_per_day=1000, max_concurrent_submissions_allowed=1000)


def started(folder: Path, *options: str, script: bytes = SCRIPT, change: Any = many, **more: Any) -> Rehearsal:
    bundle = bundle_with(folder, change, {"__init__.py": script})
    wide = ("--requests-per-minute", "100000", *options)
    return Rehearsal(folder / "data", wide, bundle=bundle, **more).start()


def private(config: Any) -> None:
    many(config)
    config["challenge_phases"][1]["is_public"] = False
    config["challenge_phases"][2]["leaderboard_public"] = False
