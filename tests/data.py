"""The folders of the golden numbers: small, free ones in the repository, those on real masks outside it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("SEGJUDGE_SHARED", ROOT.parent / "shared"))
GOLDEN = ROOT / "tests" / "golden"
SEQUENCES = SHARED / "data" / "sequences"
INSTANCES = SHARED / "data" / "instances"
CODABENCH = SHARED / "data" / "codabench"
EVALAI = SHARED / "data" / "evalai"
INTERACTIVE = SHARED / "data" / "interactive"
TRACKS_DATA = SHARED / "data" / "tracks"
REPORTS = SHARED / "data" / "reports"
FAMILIES_DATA = SHARED / "data" / "families"


def copy_files(source: Path, target: Path) -> None:
    """Copy a folder without its permissions: the golden data may be read-only."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            (target / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / path.relative_to(source))
