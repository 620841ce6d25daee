"""What the environments are made from, and which of them are there."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PLACE = os.path.join(HERE, ".environments")
FILES = {
    "toolkit": ("pyproject.toml",),
    "client": ("tests/client-pinned.txt", "tests/client-requirements.txt"),
    "worker": (
        "segjudge/bundle/worker-3.9.txt",
        "evaluation_script/requirements.txt",
        "tests/worker-requirements.txt",
    ),
}
LINKS = {"toolkit": ".venv", "client": ".venv-client", "worker": ".venv-worker"}
WORKER_TAG = "cpython-39"


class SetUpError(Exception):
    """Raised when an environment cannot be made, with a sentence for the user."""


@dataclass(frozen=True)
class PythonEnvironment:
    """One of the three, with the extras that are wanted of it."""

    kind: str
    extra: str = ""

    @property
    def link(self) -> str:
        return os.path.join(HERE, LINKS[self.kind])

    @property
    def tag(self) -> str:
        return WORKER_TAG if self.kind == "worker" else str(sys.implementation.cache_tag)

    @property
    def log(self) -> str:
        return os.path.join(PLACE, f"{self.kind}.log")

    def name(self) -> str:
        """The kind and a digest of everything that decides what is in it."""
        digest = hashlib.sha256(repr((HERE, self.tag, sys.platform, os.uname().machine)).encode())
        for file in FILES[self.kind]:
            with open(os.path.join(HERE, file), "rb") as content:
                digest.update(b"\0" + content.read())
        return f"{self.kind}-{digest.hexdigest()[:12]}"

    def folders(self) -> list[str]:
        """The places of this name, the newest first; there are several when one had to be made again beside another."""
        first = os.path.join(PLACE, self.name())
        return [path for path in (*(f"{first}-{number}" for number in range(9, 1, -1)), first) if os.path.isdir(path)]


def record_of(folder: str) -> dict[str, str]:
    """What is noted in a whole environment; nothing for one that was never finished."""
    try:
        with open(os.path.join(folder, "stamp"), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def works(folder: str, tag: str) -> bool:
    """Whether its interpreter runs and is still the one that its packages were installed for."""
    ask = "import sys; sys.stdout.write(sys.implementation.cache_tag)"
    try:
        done = subprocess.run([python_in(folder), "-I", "-c", ask], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.returncode == 0 and done.stdout == tag


def found(wanted: PythonEnvironment) -> str:
    """The folder that holds what is wanted, or ""."""
    holders = {extra for extra in ("", "all", "test") if requirements(wanted.extra) <= requirements(extra)}
    for folder in wanted.folders():
        record = record_of(folder)
        if record and (wanted.kind != "toolkit" or record.get("extra") in holders) and works(folder, wanted.tag):
            return folder
    return ""


def python_in(folder: str) -> str:
    """The interpreter of an environment."""
    return os.path.join(folder, "bin", "python")


def requirements(extra: str) -> set[str]:
    """The packages of an extra, with those of the extras that it names."""
    with open(os.path.join(HERE, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)["project"]
    listed = project.get("optional-dependencies", {})
    whole: set[str] = set()
    open_ = [extra] if extra else []
    while open_:
        for line in listed.get(open_.pop(), []):
            inner = re.fullmatch(rf"{re.escape(project['name'])}\[(.+)\]", line.replace(" ", ""))
            if inner:
                open_ += inner.group(1).split(",")
            else:
                whole.add(line)
    return whole


def say(text: str) -> None:
    """Tell the user."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def write_record(folder: str, record: dict[str, str]) -> None:
    """Note in one step that an environment is whole, and what it holds."""
    path = os.path.join(folder, "stamp")
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(record, file)
    os.replace(f"{path}.new", path)
