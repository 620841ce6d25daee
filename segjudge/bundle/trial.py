"""Trying a bundle: its requirements under the worker's pins, its sample submissions in a worker."""

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
from segjudge.hosted_worker.worker import hosted_worker

from .build import samples
from .opened_bundle import Bundle
from .problems import BundleProblems, breaks_later, mappings_in
from .script_rules import PINS, PYTHON, REQUIREMENTS

#: The file with the checksums of requirements that pip accepted.
_ACCEPTED = os.path.join(".segjudge", "requirements")
#: The kinds of wheels that the worker's Debian (glibc 2.31) takes.
_PLATFORMS = [f"manylinux{kind}_x86_64" for kind in ("_2_31", "_2_28", "_2_17", "2014", "2010", "1")]
_OFFLINE = re.compile(r"Retrying|Could not fetch URL|Connection|timed out", re.IGNORECASE)


class UntriedError(Exception):
    """Raised, with the reason, when something cannot be tried on this machine."""


def try_requirements(root: str, bundle: str) -> BundleProblems:
    """Ask pip whether the worker could install the requirements; raises `UntriedError` when pip does not work."""
    text = _requirements_of(bundle)
    with open(PINS, "rb") as file:
        checksum = hashlib.sha256(text + file.read()).hexdigest()
    accepted = os.path.join(root, _ACCEPTED)
    with suppress(OSError), open(accepted, encoding="utf-8") as file:
        if checksum in file.read():
            return
    error = _pip_error(text)
    if error:
        found = f"cannot be installed by EvalAI's worker (Python {_version()}, no compiler): {error}"
        yield breaks_later(
            f"evaluation_script/{REQUIREMENTS}", found, "Name releases that have a wheel and fit its pins"
        )
        return
    os.makedirs(os.path.dirname(accepted), exist_ok=True)
    with open(accepted, "w", encoding="utf-8") as file:
        file.write(checksum + "\n")


def try_samples(root: str, bundle: str, python: str = sys.executable) -> BundleProblems:
    """Score every sample submission in its phase; yield those that fail."""
    with Bundle(bundle) as opened:
        if opened.evaluated_elsewhere:
            raise UntriedError("the samples, since EvalAI's worker does not score this variant")
    number = 0
    with hosted_worker(bundle, python) as worker:
        for phase in mappings_in(worker.config, "challenge_phases"):
            for sample in samples(root, str(phase["codename"])):
                number += 1
                where = os.path.relpath(sample, root)
                try:
                    outcome = worker.evaluate(phase, sample, number)
                except HostError as error:
                    yield breaks_later(where, str(error).replace("\n", " "), "Correct evaluation_script")
                    return
                if outcome.status != "finished":
                    last_line = (outcome.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
                    yield breaks_later(where, f"does not score: {last_line}", "Correct the sample, or the truth")


def _version() -> str:
    return ".".join(map(str, PYTHON))


def _requirements_of(bundle: str) -> bytes:
    with Bundle(bundle) as opened:
        data = opened.read(str(opened.config.get("evaluation_script")))
    with zipfile.ZipFile(io.BytesIO(data)) as script:
        return script.read(REQUIREMENTS) if REQUIREMENTS in script.namelist() else b""


def _pip_error(text: bytes) -> str:
    """Return why pip cannot install the requirements for the worker; "" when it can."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, REQUIREMENTS)
        with open(path, "wb") as file:
            file.write(text)
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--disable-pip-version-check", "--retries", "1"]
        command += ["--timeout", "10", "--target", os.path.join(folder, "none"), "--only-binary=:all:"]
        command += ["--python-version", _version(), "--implementation", "cp", "-r", path, "-c", PINS]
        for platform in _PLATFORMS:
            command += ["--platform", platform]
        pip = subprocess.run(command, capture_output=True, text=True, check=False)
    if not pip.returncode:
        return ""
    if "No module named pip" in pip.stderr:
        raise UntriedError("whether the requirements install, since pip is not here")
    if _OFFLINE.search(pip.stdout + pip.stderr):
        raise UntriedError("whether the requirements install, since the package index was not reached")
    lines = [line.removeprefix("ERROR: ") for line in pip.stderr.splitlines() if line.startswith("ERROR:")]
    return " ".join(lines[:1]).rstrip(".") or "pip says no more"
