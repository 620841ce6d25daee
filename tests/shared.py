"""The requirements of a test outside the repository, and its behaviour without them."""

from __future__ import annotations

import os

import pytest

from .data import SEQUENCES

IN_CI = os.environ.get("CI", "").lower() == "true"

if IN_CI and not SEQUENCES.is_dir():
    raise RuntimeError(f"CI needs the golden data, but {SEQUENCES} is absent (SEGJUDGE_SHARED)")

#: Marks what needs the golden data; on a user's machine it is skipped, and said so.
needs_shared = pytest.mark.skipif(not SEQUENCES.is_dir(), reason=f"GOLDEN DATA ABSENT: no {SEQUENCES}")
