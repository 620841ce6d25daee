"""Try a bundle: its requirements under the worker's pins, its sample submissions in a worker."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress

from segjudge.evaluation_script.errors import HostError
from segjudge.hosted_worker.worker import HostedWorker

from . import examples
from .opened_bundle import Bundle
from .problems import BundleProblems, items, later
from .script_rules import PINS, PYTHON, REQUIREMENTS

#: Where the requirements that were found good are noted, by their checksum.
_KNOWN = os.path.join(".segjudge", "requirements")
#: Kinds of wheels that the worker's Debian (glibc 2.31) takes.
_PLATFORMS = [f"manylinux{kind}_x86_64" for kind in ("_2_31", "_2_28", "_2_17", "2014", "2010", "1")]
_OFFLINE = re.compile(r"Retrying|Could not fetch URL|Connection|timed out", re.IGNORECASE)


class UntriedError(Exception):
    """Something could not be tried here, and says why."""


def requirements(root: str, bundle: str) -> BundleProblems:
    """Ask pip whether the worker could install what the scorers need; raises `UntriedError` when it cannot be asked."""
    text = _requirements(bundle)
    with open(PINS, "rb") as file:
        known = hashlib.sha256(text + file.read()).hexdigest()
    note = os.path.join(root, _KNOWN)
    with suppress(OSError), open(note, encoding="utf-8") as file:
        if known in file.read():
            return
    trouble = _asked(text)
    if trouble:
        found = f"cannot be installed by EvalAI's worker (Python {_version()}, no compiler): {trouble}"
        yield later(f"evaluation_script/{REQUIREMENTS}", found, "Name releases that have a wheel and fit its pins")
        return
    os.makedirs(os.path.dirname(note), exist_ok=True)
    with open(note, "w", encoding="utf-8") as file:
        file.write(known + "\n")


def samples(root: str, bundle: str, python: str = sys.executable) -> BundleProblems:
    """Every file of `examples/` must score in the phase whose folder it lies in."""
    with Bundle(bundle) as opened:
        if opened.scored_elsewhere:
            raise UntriedError("the samples, since EvalAI's worker does not score this variant")
    number = 0
    with HostedWorker(bundle, python) as stage:
        for phase in items(stage.config, "challenge_phases"):
            for sample in examples.samples(root, str(phase["codename"])):
                number += 1
                where = os.path.relpath(sample, root)
                try:
                    outcome = stage.evaluate(phase, sample, number)
                except HostError as error:
                    yield later(where, str(error).replace("\n", " "), "Correct evaluation_script")
                    return
                if outcome.status != "finished":
                    told = (outcome.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
                    yield later(where, f"does not score: {told}", "Correct the sample, or the truth")


def _version() -> str:
    return ".".join(map(str, PYTHON))


def _requirements(bundle: str) -> bytes:
    with Bundle(bundle) as opened:
        data = opened.read(str(opened.config.get("evaluation_script")))
    with zipfile.ZipFile(io.BytesIO(data)) as script:
        return script.read(REQUIREMENTS) if REQUIREMENTS in script.namelist() else b""


def _asked(text: bytes) -> str:
    """What keeps pip from installing it; nothing when it can."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, REQUIREMENTS)
        with open(path, "wb") as file:
            file.write(text)
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--disable-pip-version-check", "--retries", "1"]
        command += ["--timeout", "10", "--target", os.path.join(folder, "none"), "--only-binary=:all:"]
        command += ["--python-version", _version(), "--implementation", "cp", "-r", path, "-c", PINS]
        for platform in _PLATFORMS:
            command += ["--platform", platform]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.returncode:
        return ""
    if "No module named pip" in done.stderr:
        raise UntriedError("whether the requirements install, since pip is not here")
    if _OFFLINE.search(done.stdout + done.stderr):
        raise UntriedError("whether the requirements install, since the package index was not reached")
    lines = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.startswith("ERROR:")]
    return " ".join(lines[:1]).rstrip(".") or "pip says no more"
