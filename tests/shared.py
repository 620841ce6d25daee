"""Where the real masks and golden numbers are, outside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("LINEJUDGE_SHARED", ROOT.parent / "shared"))
SEQUENCES = SHARED / "data" / "sequences"
INSTANCES = SHARED / "data" / "instances"
IN_CI = os.environ.get("CI", "").lower() == "true"

if IN_CI and not SEQUENCES.is_dir():
    raise RuntimeError(f"CI needs the golden data, but {SEQUENCES} is absent (LINEJUDGE_SHARED)")

#: Marks what needs the golden data; on a user's machine it is skipped, and said so.
needs_shared = pytest.mark.skipif(not SEQUENCES.is_dir(), reason=f"GOLDEN DATA ABSENT: no {SEQUENCES}")
