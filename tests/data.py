"""Where the real masks and golden numbers are, outside the repository."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("LINEJUDGE_SHARED", ROOT.parent / "shared"))
SEQUENCES = SHARED / "data" / "sequences"
INSTANCES = SHARED / "data" / "instances"
INTERACTIVE = SHARED / "data" / "interactive"
