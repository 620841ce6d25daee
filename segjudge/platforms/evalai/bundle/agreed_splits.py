"""The agreement of the YAML and `phases.py` on splits, which writing any bundle requires; it needs no packages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.rules.problems import BundleProblems, breaks_later, mappings_in

from .bundle_source import PHASES_FILE, SCRIPT_FOLDER, BundleSource
from .phase_splits import splits_of
from .secrecy import check_secrecy

if TYPE_CHECKING:
    from segjudge.evaluation_script.scoring.phase import Phase


def find_other_splits(config: dict[str, Any], configured: dict[str, Any], phase: Phase) -> BundleProblems:
    """Yield a problem if a phase has other splits in `phases.py` than in the YAML."""
    names = [*dict.fromkeys(split.codename for split in splits_of(config, configured))]
    if {*names} != {split.codename for split in phase.splits}:
        fault = f"its splits differ from the YAML's ({', '.join(names)})"
        yield breaks_later(f"phases.py, {phase.codename}", fault, "Make them agree")


def check_splits(config: dict[str, Any], phases: Iterable[Phase]) -> None:
    """Raise `HostError` if `phases.py` lacks a phase of the YAML, or has or hides other splits."""
    script_phases = {phase.codename: phase for phase in phases}
    problems: list[str] = []
    for configured in mappings_in(config, "challenge_phases"):
        codename = str(configured.get("codename"))
        if codename not in script_phases:
            raise HostError(f"{SCRIPT_FOLDER}/{PHASES_FILE}: lacks the phase {codename}; run `segjudge check`")
        problems += map(str, find_other_splits(config, configured, script_phases[codename]))
    if problems:
        raise HostError("\n".join(problems))
    check_secrecy(config, script_phases.values())


def check_splits_of(source: BundleSource) -> None:
    """Raise `HostError` if a bundle's YAML and `phases.py` disagree on splits; `check` reports other faults."""
    try:
        phases, config = source.script_phases(), source.config()
    except HostError:
        return
    check_splits(config, phases)
