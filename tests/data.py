"""Where the golden numbers are: small and free ones here, those on real masks outside the repository."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("SEGJUDGE_SHARED", ROOT.parent / "shared"))
GOLDEN = ROOT / "tests" / "golden"
SEQUENCES = SHARED / "data" / "sequences"
INSTANCES = SHARED / "data" / "instances"
CODABENCH = SHARED / "data" / "codabench"
INTERACTIVE = SHARED / "data" / "interactive"
TRACKS_DATA = SHARED / "data" / "tracks"
REPORTS = SHARED / "data" / "reports"
FAMILIES_DATA = SHARED / "data" / "families"
