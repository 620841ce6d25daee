"""The phases and annotations of a challenge, for a worker that imports neither scorers nor bundles.

usage: python -m segjudge.remote_challenge_evaluation.challenge describe|annotations CHOICE
CHOICE is a `ScorerChoice` as JSON. The output is JSON too: the phases by codename, or the content of their annotation
files.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.bundle_source import CONFIG_NAMES, SCRIPT_FOLDER, BundleSource, find_bundle
from segjudge.platforms.evalai.bundle.phase_splits import splits_of
from segjudge.platforms.evalai.bundle.secrecy import find_hidden_splits
from segjudge.platforms.rules.problems import mappings_in
from segjudge.system.errors import UsageError

from .scorer_process import read_form
from .settings import HostScript, ScoredPhase, ScorerChoice

if TYPE_CHECKING:
    from segjudge.evaluation_script.scoring.phase import Phase

#: The starter's file with the `evaluate()` of remote challenges.
_REMOTE_FILE = os.path.join("remote_challenge_evaluation", "evaluate.py")


def main() -> None:
    """Print the requested description of the challenge."""
    describe = {"describe": _describe_phases, "annotations": _read_annotations}[sys.argv[1]]
    try:
        answer = describe(json.loads(sys.argv[2]))
    except (HostError, UsageError) as error:
        raise SystemExit(str(error)) from None
    sys.stdout.write(json.dumps(answer) + "\n")


# ── phases that our scorers score ───────────────────────────────────────────


def _describe_phases(choice: ScorerChoice) -> dict[str, ScoredPhase]:
    if choice["evaluate"] or (choice["bundle"] and find_bundle(choice["bundle"]).is_foreign):
        return _describe_host_phases(choice)
    return {
        phase.codename: {
            "annotation": os.path.basename(phase.annotations),
            "labels": {split.codename: list(split.metrics) for split in phase.splits},
            "seconds": phase.seconds,
        }
        for phase in _phases_of(choice["bundle"])
    }


def _phases_of(bundle: str) -> tuple[Phase, ...]:
    """Return the phases of the bundle, or the installed ones."""
    if bundle:
        return find_bundle(bundle).phases()
    from segjudge.evaluation_script.phases import PHASES

    return PHASES


def _read_annotations(choice: ScorerChoice) -> dict[str, list[str]]:
    """Return the content or problem of each phase's annotation file, reading every mask."""
    facts, problems = list[str](), list[str]()
    for phase in sorted(_phases_of(choice["bundle"]), key=lambda phase: phase.codename):
        path = os.path.join(choice["annotations"], os.path.basename(phase.annotations))
        try:
            facts.append(f"annotations of {phase.codename}: {_annotation_facts(phase, path)}")
        except HostError as error:
            problems.append(str(error) if path in str(error) else f"{path}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever a damaged file does to its reader
            problems.append(f"{path}: cannot be read ({type(error).__name__}: {error})")
    return {"facts": facts, "problems": problems}


def _annotation_facts(phase: Phase, path: str) -> str:
    from segjudge.evaluation_script.main import open_truth
    from segjudge.evaluation_script.scoring.scorer import phase_scorers

    truths = open_truth(path, phase)
    scorers = phase_scorers(phase, truths)
    return ", ".join(f"{scorer.split} {scorer.truth.read_through()}" for scorer in scorers)


# ── phases that a host's own `evaluate()` scores ────────────────────────────


def _describe_host_phases(choice: ScorerChoice) -> dict[str, ScoredPhase]:
    """Return the phases of the host's `evaluate()`; raises `HostError` if it is unusable."""
    source = _bundle_of(choice)
    config = source.config()
    python = choice["scorer_python"] or sys.executable
    if choice["evaluate"]:
        script: HostScript = {"python": python, "file": os.path.abspath(choice["evaluate"]), "root": source.root}
    else:
        file, root = _evaluate_in(source, config)
        script = {"python": python, "file": file, "root": root}
    form = read_form(script)
    phases: dict[str, ScoredPhase] = {}
    for phase in mappings_in(config, "challenge_phases"):
        splits = splits_of(config, phase)
        codename = str(phase.get("codename"))
        phases[codename] = {
            "annotation": _annotation_name(phase.get("test_annotation_file"), codename, choice["annotations"]),
            "labels": {split.codename: [str(label) for label in split.schema["labels"]] for split in splits},
            "seconds": choice["scoring_seconds"],
            "script": script,
            "hidden": sorted(find_hidden_splits(config, codename)),
            "needs_annotation": form == "hosted",
        }
    return phases


def _bundle_of(choice: ScorerChoice) -> BundleSource:
    """Return the named bundle, else the one around the file with `evaluate()`."""
    if choice["bundle"]:
        return find_bundle(choice["bundle"])
    for folder in Path(choice["evaluate"]).resolve().parents:
        if any((folder / name).is_file() for name in CONFIG_NAMES):
            return find_bundle(str(folder))
    raise HostError(f"{choice['evaluate']}: is not in the folder of a bundle; name the bundle with --bundle")


def _evaluate_in(source: BundleSource, config: dict[str, Any]) -> tuple[str, str]:
    """Return the file, package or zip with `evaluate()`, and its repository or bundle."""
    remote, script = (os.path.join(source.root, name) for name in (_REMOTE_FILE, SCRIPT_FOLDER))
    if os.path.isfile(remote):
        return remote, source.root
    if source.archive:
        return str(config.get("evaluation_script")), source.archive
    if os.path.isfile(os.path.join(script, "__init__.py")):
        return script, source.root
    raise HostError(f"{source.root}: has neither {_REMOTE_FILE} nor {SCRIPT_FOLDER}; name a file with --evaluate")


def _annotation_name(name: object, codename: str, folder: str) -> str:
    if isinstance(name, str) and name:
        return os.path.basename(name)
    paths = sorted(Path(folder).glob(f"{codename}.*")) if os.path.isdir(folder) else []
    return paths[0].name if len(paths) == 1 else ""


if __name__ == "__main__":
    main()
