"""A built bundle in EvalAI's worker, extracted as on the server; the trial of its requirements and samples."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.hosted_worker.folder import WorkerFolder
from segjudge.platforms.evalai.hosted_worker.interpreter import PINNED_PYTHON, Interpreter
from segjudge.platforms.evalai.hosted_worker.process import (
    SCRIPT,
    SECONDS,
    DiedError,
    UnloadableError,
    WorkerProcess,
    WorkerTerms,
)
from segjudge.platforms.evalai.hosted_worker.requirements import (
    INDEX_UNREACHED,
    PINS,
    REQUIREMENTS,
    install_requirements,
)
from segjudge.platforms.rules.problems import BundleProblems, breaks_later, mappings_in, warning

from .build import list_samples
from .bundle_source import CONFIG_NAMES
from .opened_bundle import Bundle
from .phase_splits import splits_of

_CHALLENGE_PK = 1
#: The file with the checksums of requirements that pip accepted.
_ACCEPTED = os.path.join(".segjudge", "requirements")
#: The kinds of wheels that the worker's Debian (glibc 2.31) accepts.
_PLATFORMS = [f"manylinux{kind}_x86_64" for kind in ("_2_31", "_2_28", "_2_17", "2014", "2010", "1")]
_OFFLINE = re.compile(r"Retrying|Could not fetch URL|Connection|timed out", re.IGNORECASE)


@dataclass(frozen=True)
class SubmissionOutcome:
    """The status, streams and numbers of one submission."""

    status: str
    stdout: str
    stderr: str
    #: Split → label → value, if it finished; a host's own `evaluate()` may have returned anything instead.
    result: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] = field(default_factory=dict)
    #: Split -> the labels without a value, for which a leaderboard shows 0.
    undefined: dict[str, list[str]] = field(default_factory=dict)


class HostedWorker:
    """A worker process with a bundle loaded."""

    seconds = SECONDS

    def __init__(self, config: dict[str, Any], folder: WorkerFolder, process: WorkerProcess) -> None:
        self.config, self._folder, self._process = config, folder, process

    def evaluate(self, phase: dict[str, Any], submission: str, number: int) -> SubmissionOutcome:
        """Submit a file to a phase, and return the outcome."""
        request = {
            "annotation": phase["annotation"],
            "submission": self._folder.add_submission(number, submission, os.path.splitext(submission)[1]),
            "phase": phase["codename"],
            "splits": [split.codename for split in splits_of(self.config, phase)],
            "metadata": {"id": number, "status": "running", "participant_team_name": "Host_demo_Team"},
        }
        answer = self._ask(request)
        self._folder.remove_submission(number)
        return SubmissionOutcome(
            answer["status"],
            answer["stdout"],
            answer["stderr"],
            {split: values for entry in answer["result"] or [] for split, values in entry.items()},
            {split: values for entry in answer.get("error") or [] for split, values in entry.items()},
            _read_undefined(answer.get("submission_metadata")),
        )

    def load(self) -> None:
        """Wait until the script is imported; raise `HostError` with the reason if it cannot be."""
        self._ask({"ready": True})

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._process.ask(request, self.seconds)
        except UnloadableError as error:
            raise HostError(f"{error}") from None
        except DiedError as death:
            message = f"on EvalAI every submission would stay `running`: {death}. Its log:"
            raise HostError(f"{message}\n{self.log()}") from None

    def log(self) -> str:
        return self._process.log()


def _read_undefined(metadata: str | None) -> dict[str, list[str]]:
    """Return the labels without values by split; empty for foreign answers."""
    with suppress(TypeError, ValueError):
        fault = json.loads(metadata or "")
        labels_of = fault.get("undefined") if isinstance(fault, dict) else None
        if isinstance(labels_of, dict) and all(isinstance(labels, list) for labels in labels_of.values()):
            return {split: [str(label) for label in labels] for split, labels in labels_of.items()}
    return {}


@contextmanager
def open_hosted_worker(
    bundle: str, python: str | Interpreter = sys.executable, notice: Callable[[str], object] = lambda _text: None
) -> Iterator[HostedWorker]:
    """Yield a worker with a loaded bundle, extracted as on the server.

    `notice` gets a sentence before packages are installed for the first time.
    """
    python = python if isinstance(python, Interpreter) else Interpreter.open(python)
    folder = WorkerFolder()
    with ExitStack() as cleanup:
        cleanup.callback(folder.remove)
        config = _extract(bundle, folder)
        box = python.find_sandbox()
        try:
            python = install_requirements(python, folder, _CHALLENGE_PK, box, notice)
        except UnloadableError as error:
            raise HostError(str(error)) from None
        process = WorkerProcess(python, folder, _CHALLENGE_PK, WorkerTerms(sandbox_program=box))
        cleanup.callback(process.close)
        yield HostedWorker(config, folder, process)


def _extract(path: str, folder: WorkerFolder) -> dict[str, Any]:
    """Fill a worker's folder from the config zip; return the config, with the paths of the annotations."""
    import yaml

    with zipfile.ZipFile(path) as bundle:
        name = next(name for name in CONFIG_NAMES if name in bundle.namelist())
        config: dict[str, Any] = yaml.safe_load(bundle.read(name))
        with zipfile.ZipFile(io.BytesIO(bundle.read(config["evaluation_script"]))) as script:
            folder.add_script(_CHALLENGE_PK, script)
        for phase in config["challenge_phases"]:
            name = phase.get("test_annotation_file")
            if name is None:
                raise HostError(f"{phase['codename']}: has no annotation file, without which EvalAI's worker dies")
            phase["annotation"] = folder.annotation_path(_CHALLENGE_PK, phase["id"], os.path.splitext(name)[1])
            Path(phase["annotation"]).write_bytes(bundle.read(name))
    return config


# ── the trial ───────────────────────────────────────────────────────────────────────────────────────────────────────


class UntriedError(Exception):
    """Raised, with the reason, when something cannot be tried on this machine."""


def try_requirements(root: str, bundle: str) -> BundleProblems:
    """Ask pip whether the worker could install the requirements; raises `UntriedError` when pip does not work."""
    with Bundle(bundle) as opened:
        text = opened.script.get(REQUIREMENTS, b"")
    checksum = hashlib.sha256(text + Path(PINS).read_bytes()).hexdigest()
    accepted = Path(root, _ACCEPTED)
    with suppress(OSError):
        if checksum in accepted.read_text(encoding="utf-8"):
            return
    error = _pip_error(text)
    if error:
        fault = f"cannot be installed by EvalAI's worker (Python {PINNED_PYTHON}, no compiler): {error}"
        subject = f"evaluation_script/{REQUIREMENTS}"
        yield breaks_later(subject, fault, "Name releases that have a wheel and fit its pins")
        return
    with suppress(OSError):  # without a writable folder, the check is repeated
        accepted.parent.mkdir(parents=True, exist_ok=True)
        accepted.write_text(checksum + "\n", encoding="utf-8")


def try_samples(root: str, bundle: str, python: str | Interpreter = sys.executable) -> BundleProblems:
    """Load the script, and score every sample submission in its phase; yield the failures."""
    with Bundle(bundle) as opened:
        if opened.is_evaluated_elsewhere:
            raise UntriedError("the samples, because EvalAI's worker does not score this variant")
    try:
        with open_hosted_worker(bundle, python) as worker:
            worker.load()
            yield from _score_samples(worker, root)
    except HostError as error:
        if INDEX_UNREACHED in str(error):
            raise UntriedError(f"the samples, because {INDEX_UNREACHED}") from None
        fault = str(error).replace("\n", " ").removeprefix(f"{SCRIPT} ")
        yield breaks_later(SCRIPT, fault, "Correct evaluation_script")


def _score_samples(worker: HostedWorker, root: str) -> BundleProblems:
    phases = mappings_in(worker.config, "challenge_phases")
    samples = [(phase, sample) for phase in phases for sample in list_samples(root, str(phase["codename"]))]
    outcomes: dict[str, list[SubmissionOutcome]] = {}
    for number, (phase, sample) in enumerate(samples, 1):
        outcome = worker.evaluate(phase, sample, number)
        outcomes.setdefault(str(phase["codename"]), []).append(outcome)
        subject = os.path.relpath(sample, root)
        if outcome.status == "finished":
            yield from find_unshown_scores(worker.config, phase, subject, outcome)
        else:
            last_line = (outcome.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
            yield breaks_later(subject, f"does not score: {last_line}", "Correct the sample, or the truth")

    for codename, of_phase in outcomes.items():
        yield from find_undefined_labels(codename, of_phase)


def find_undefined_labels(codename: str, outcomes: list[SubmissionOutcome]) -> BundleProblems:
    """Yield the labels without a value in all samples of a phase, because its truth has nothing to average."""
    finished = [outcome for outcome in outcomes if outcome.status == "finished"]
    for split in finished[0].result if finished else ():
        of_each = [outcome.undefined.get(split, []) for outcome in finished]
        if labels := [label for label in of_each[0] if all(label in labels for labels in of_each)]:
            fault = f"{split}: nothing to average for {', '.join(labels)} on this truth, so the leaderboard shows 0"
            yield warning(codename, fault, "Remove these labels from phases.py and the YAML")


def find_unshown_scores(
    config: dict[str, Any], phase: dict[str, Any], subject: str, outcome: SubmissionOutcome
) -> BundleProblems:
    """Yield the reasons why a finished submission's scores do not reach its leaderboards."""
    for split in splits_of(config, phase):
        name, labels, order = split.codename, split.schema.get("labels") or [], split.schema.get("default_order_by")
        scores, bars = outcome.result.get(name), outcome.error.get(name)
        if scores is None:
            fault = f"its result lacks the split {name}"
            yield warning(subject, fault, "Return {split: {label: value}} for each")
        elif not isinstance(scores, dict) or not _can_be_ordered(scores.get(order)):
            value = scores.get(order) if isinstance(scores, dict) else scores
            fault = f"{name}: {order} is {value!r:.40}, which EvalAI cannot sort: its leaderboard becomes an error 500"
            yield breaks_later(subject, fault, "Return a number")
        elif lacking := [label for label in labels if label not in scores]:
            fault = f"{name}: its result lacks {', '.join(lacking)}, so the leaderboard shows #"
            yield warning(subject, fault, "Return every label")
        if bars is not None and not all(isinstance(bars, dict) and f"error_{label}" in bars for label in labels):
            fault = f"{name}: its error lacks an error_LABEL, without which the leaderboard becomes an error 500"
            yield breaks_later(subject, fault, "Return an error for each label")


def _can_be_ordered(value: object) -> bool:
    """Test whether the server can order by a value; nothing counts as 0."""
    with suppress(ValueError):
        return value is None or math.isfinite(float(str(value)))
    return False


def _pip_error(text: bytes) -> str:
    """Return why pip cannot install the worker's requirements; "" if it can."""
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        path = os.path.join(folder, REQUIREMENTS)
        Path(path).write_bytes(text)
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--disable-pip-version-check", "--retries", "1"]
        command += ["--timeout", "10", "--target", os.path.join(folder, "none"), "--only-binary=:all:"]
        command += ["--python-version", PINNED_PYTHON, "--implementation", "cp", "-r", path, "-c", PINS]
        for platform in _PLATFORMS:
            command += ["--platform", platform]
        pip = subprocess.run(command, capture_output=True, text=True, check=False)
    if not pip.returncode:
        return ""
    if "No module named pip" in pip.stderr:
        raise UntriedError("whether the requirements install, because pip is not available")
    if _OFFLINE.search(pip.stdout + pip.stderr):
        raise UntriedError("whether the requirements install, because the package index could not be reached")
    lines = [line.removeprefix("ERROR: ") for line in pip.stderr.splitlines() if line.startswith("ERROR:")]
    return " ".join(lines[:1]).rstrip(".") or "pip gives no reason"
