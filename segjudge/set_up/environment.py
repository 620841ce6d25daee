"""The environments of a checkout: what they are made from, and which of them exist."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
ENVIRONMENTS = os.path.join(CHECKOUT, ".environments")
#: The files that decide what is in an environment.
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
    """Raised, with a sentence for the user, when an environment cannot be made."""


@dataclass(frozen=True)
class PythonEnvironment:
    """One of the three environments, with the extra that it needs."""

    kind: str
    extra: str = ""

    @property
    def link(self) -> str:
        return os.path.join(CHECKOUT, LINKS[self.kind])

    @property
    def tag(self) -> str:
        return WORKER_TAG if self.kind == "worker" else str(sys.implementation.cache_tag)

    @property
    def log(self) -> str:
        return os.path.join(ENVIRONMENTS, f"{self.kind}.log")

    def name(self) -> str:
        """Return the kind with a digest of everything that decides what is in the environment."""
        digest = hashlib.sha256(repr((CHECKOUT, self.tag, sys.platform, os.uname().machine)).encode())
        for file in FILES[self.kind]:
            digest.update(b"\0" + Path(CHECKOUT, file).read_bytes())
        return f"{self.kind}-{digest.hexdigest()[:12]}"

    def paths(self) -> list[str]:
        """Return the paths that the environment may have: another one each time it is made again beside one in use."""
        first = os.path.join(ENVIRONMENTS, self.name())
        return [first, *(f"{first}-{number}" for number in range(2, 10))]

    def folders(self) -> list[str]:
        """Return the paths that exist, the newest first."""
        first, *others = self.paths()
        return [path for path in (*reversed(others), first) if os.path.isdir(path)]

    def ready_folder(self) -> str:
        """Return a complete folder that has the packages of the extra; "" when there is none."""
        supersets = {extra for extra in ("", "all", "test") if requirements(self.extra) <= requirements(extra)}
        for folder in self.folders():
            record = read_record(folder)
            if record and (self.kind != "toolkit" or record.get("extra") in supersets) and works(folder, self.tag):
                return folder
        return ""


def python_in(folder: str) -> str:
    """Return the interpreter of an environment."""
    return os.path.join(folder, "bin", "python")


def works(folder: str, tag: str) -> bool:
    """Return whether the interpreter runs and is still the one that the packages were installed for."""
    return printed_by(python_in(folder), "import sys; print(sys.implementation.cache_tag)") == tag


def printed_by(python: str, code: str) -> str:
    """Return what an interpreter prints; "" for one that does not run."""
    try:
        done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def read_record(folder: str) -> dict[str, str]:
    """Return what `write_record` wrote; nothing for an environment that is not complete."""
    try:
        record = json.loads(Path(folder, "stamp").read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def write_record(folder: str, record: dict[str, str]) -> None:
    """Mark an environment as complete, in one step, with the extra that it has."""
    path = os.path.join(folder, "stamp")
    Path(f"{path}.new").write_text(json.dumps(record), encoding="utf-8")
    os.replace(f"{path}.new", path)


def requirements(extra: str) -> set[str]:
    """Return the packages of an extra, with those of the extras that it names."""
    project = tomllib.loads(Path(CHECKOUT, "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project.get("optional-dependencies", {})
    packages: set[str] = set()
    pending = [extra] if extra else []
    while pending:
        for line in extras.get(pending.pop(), []):
            nested = re.fullmatch(rf"{re.escape(project['name'])}\[(.+)\]", line.replace(" ", ""))
            if nested:
                pending += nested.group(1).split(",")
            else:
                packages.add(line)
    return packages


def say(text: str) -> None:
    """Print a message to the user."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
