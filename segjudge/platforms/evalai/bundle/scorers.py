"""The protocols that a bundle's scorers know, including plug-ins that are not installed here."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS
from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.runner.guard import CrashError, run_guarded

from .bundle_source import SCRIPT_FOLDER

#: The module that lists the plug-ins of a bundle, and the one that reads it.
PLUGINS_FILE, FAMILIES_FILE = "families/plugins.py", "families/__init__.py"
#: The limits for importing the families of a bundle.
_SECONDS, _BYTES = 60.0, 1 << 30


class ScoredProtocol(NamedTuple):
    """A protocol as the scorers of a bundle have it."""

    name: str
    family: str
    revision: int
    metrics: tuple[str, ...]
    #: Its family scores with pycocotools or SciPy.
    needs_packages: bool


def list_protocols(script: Mapping[str, bytes], names: Iterable[str]) -> dict[str, ScoredProtocol]:
    """Return the named protocols that these scorers know.

    If all are known here and the bundle has no plug-in, this Segjudge answers, else the bundle's scorers. Raises
    HostError if the bundle's families cannot be imported.
    """
    wanted = list(dict.fromkeys(names))
    if PLUGINS_FILE not in script and (FAMILIES_FILE not in script or all(name in PROTOCOLS for name in wanted)):
        return {name: _describe_protocol(PROTOCOLS[name], FAMILIES) for name in wanted if name in PROTOCOLS}
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        for name, data in script.items():
            target = Path(folder, SCRIPT_FOLDER, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        try:
            rows = run_guarded(
                lambda _say: _import_protocols(folder, wanted), memory=_BYTES, seconds=_SECONDS, say=_ignore
            )
        except (CrashError, SubmissionError) as error:
            line = " ".join(str(error).split())
            raise HostError(f"{SCRIPT_FOLDER}: its families cannot be imported ({line})") from None
    return {row[0]: ScoredProtocol(row[0], row[1], row[2], tuple(row[3]), row[4]) for row in rows}


def _import_protocols(folder: str, names: list[str]) -> list[ScoredProtocol]:
    """Import the scorers of a bundle under their own name, beside the running ones."""
    for module in [name for name in sys.modules if name.partition(".")[0] == SCRIPT_FOLDER]:
        del sys.modules[module]
    sys.path.insert(0, folder)
    families = import_module(f"{SCRIPT_FOLDER}.families")
    if not os.path.samefile(str(Path(families.__file__ or "").parents[1]), os.path.join(folder, SCRIPT_FOLDER)):
        raise ImportError("other scorers were imported instead")
    protocols = families.PROTOCOLS
    return [_describe_protocol(protocols[name], families.FAMILIES) for name in names if name in protocols]


def _describe_protocol(protocol: FamilyProtocol, families: Mapping[str, object]) -> ScoredProtocol:
    needs_packages = bool(getattr(families[protocol.family], "needs_packages", False))
    return ScoredProtocol(protocol.name, protocol.family, protocol.revision, tuple(protocol.metrics), needs_packages)


def _ignore(_line: str) -> None:
    """Ignore a line that a plug-in prints."""
