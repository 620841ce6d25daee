"""A host's own `evaluate()`: where it is, and the phases that it scores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.agreement import splits_of
from segjudge.platforms.evalai.bundle.build import read_config
from segjudge.platforms.evalai.bundle.bundle_source import SCRIPT_FOLDER, BundleSource, find_bundle
from segjudge.platforms.evalai.bundle.fields import CONFIG_NAMES
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.problems import mappings_in

from . import host_program
from .scoring_messages import ScoredPhase, ScorerChoice

#: Where the starter keeps the `evaluate()` of remote challenges.
_REMOTE_FILE = os.path.join("remote_challenge_evaluation", "evaluate.py")
_SECONDS_TO_LOAD = 300.0


def describe_phases(choice: ScorerChoice) -> dict[str, ScoredPhase]:
    """Return the phases of a host's challenge; raises `HostError` if its `evaluate()` cannot be used."""
    source = _bundle_of(choice)
    config = _config_of(source)
    own = (os.path.abspath(choice["evaluate"]), source.root) if choice["evaluate"] else _evaluate_in(source, config)
    command = [choice["scorer_python"] or sys.executable, "-I", host_program.__file__, *own]
    form = _form(command)
    phases: dict[str, ScoredPhase] = {}
    for phase in mappings_in(config, "challenge_phases"):
        schemas, _ = splits_of(config, phase)
        annotation = _annotation(phase.get("test_annotation_file"), str(phase.get("codename")), choice)
        phases[str(phase.get("codename"))] = {
            "annotation": annotation,
            "labels": {str(split): [str(label) for label in schema["labels"]] for split, schema in schemas.items()},
            "seconds": choice["scoring_seconds"],
            "command": command,
            "hidden": _splits_of_hosts(config, phase),
            "needs_annotation": form == host_program.HOSTED,
        }
    return phases


def _splits_of_hosts(config: dict[str, object], phase: dict[str, object]) -> list[str]:
    """Return the splits of a phase that EvalAI shows to hosts alone."""
    names = {split.get("id"): str(split.get("codename")) for split in mappings_in(config, "dataset_splits")}
    rows = mappings_in(config, "challenge_phase_splits")
    own = [row for row in rows if row.get("challenge_phase_id") == phase.get("id")]
    return [names.get(row.get("dataset_split_id"), "") for row in own if str(row.get("visibility")) == "1"]


def _bundle_of(choice: ScorerChoice) -> BundleSource:
    """Return the named bundle, else the one around the file with `evaluate()`."""
    if choice["bundle"]:
        return find_bundle(choice["bundle"])
    for folder in Path(choice["evaluate"]).resolve().parents:
        if any((folder / name).is_file() for name in CONFIG_NAMES):
            return find_bundle(str(folder))
    raise HostError(f"{choice['evaluate']}: no bundle is around it; name its folder with --bundle")


def _config_of(source: BundleSource) -> dict[str, Any]:
    if not source.archive:
        return read_config(source.root)
    with Bundle(source.archive, for_evalai=False) as bundle:
        return bundle.config


def _evaluate_in(source: BundleSource, config: dict[str, Any]) -> tuple[str, str]:
    """Return the file or package with `evaluate()`, or the name of its zip, and the repository or bundle it is in."""
    remote, script = (os.path.join(source.root, name) for name in (_REMOTE_FILE, SCRIPT_FOLDER))
    if os.path.isfile(remote):
        return remote, source.root
    if source.archive:
        return str(config.get("evaluation_script")), source.archive
    if os.path.isfile(os.path.join(script, "__init__.py")):
        return script, source.root
    raise HostError(f"{source.root}: has neither {_REMOTE_FILE} nor {SCRIPT_FOLDER}; name a file with --evaluate")


def _form(command: list[str]) -> str:
    """Return the form of an `evaluate()`, which is loaded for that."""
    path, words = command[-2], [*command, "describe"]
    try:
        with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
            done = subprocess.run(
                words, cwd=folder, capture_output=True, text=True, timeout=_SECONDS_TO_LOAD, check=False
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"{path}: cannot be loaded ({error})") from None
    if done.returncode:
        raise HostError(f"{path}: cannot be loaded:\n{done.stderr.strip()[-3000:]}")
    return str(json.loads(done.stdout)["form"])


def _annotation(named: object, codename: str, choice: ScorerChoice) -> str:
    """Return the name of a phase's annotation file: the YAML's, else the one that is called as the phase."""
    if isinstance(named, str) and named:
        return os.path.basename(named)
    folder = Path(choice["annotations"])
    found = sorted(folder.glob(f"{codename}.*")) if folder.is_dir() else []
    return found[0].name if len(found) == 1 else ""
