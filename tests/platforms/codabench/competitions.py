"""A small competition for Codabench, which tests damage."""

from __future__ import annotations

import io
import json

import numpy as np
from PIL import Image

from tests.builders import drawn, png, zipped
from tests.platforms.damages import Config

#: The key of something on the site.
UUID = "01234567-89ab-cdef-0123-456789abcdef"
CONFIG: Config = {
    "version": 2,
    "title": "Small",
    "description": "text",
    "image": "logo.png",
    "terms": "text.md",
    "docker_image": "codalab/codalab-legacy:py312",
    "registration_auto_approve": True,
    "contact_email": "a@example.org",
    "fact_sheet": {"size": {"key": "size", "type": "text", "title": "Size", "selection": "", "is_required": "false", "is_on_leaderboard": "false"}},
    "pages": [{"title": "Overview", "file": "text.md"}],
    "tasks": [{"index": 0, "name": "T", "scoring_program": "program.zip", "reference_data": "truth.zip"}],
    "solutions": [{"index": 0, "name": "S", "tasks": [0], "path": "truth.zip"}],
    "phases": [
        {
            "index": 0,
            "name": "P",
            "description": "",
            "start": "2026-01-01",
            "end": "2046-01-01",
            "tasks": [0],
            "execution_time_limit": 600,
            "max_submissions_per_day": None,
            "max_submissions": None,
        }
    ],
    "leaderboards": [
        {
            "title": "Results",
            "key": "main",
            "primary_index": 0,
            "submission_rule": "Force_Best",
            "columns": [
                {"title": "A", "key": "a", "index": 0, "sorting": "desc", "precision": 3},
                {"title": "B", "key": "b", "index": 1, "computation": "avg", "computation_indexes": [0]},
            ],
        }
    ],
}  # fmt: skip
PROGRAM = {"metadata.yaml": "command: python3 score.py", "score.py": "import numpy, os, helper\n", "helper.py": ""}
DOCUMENT = json.dumps({"columns": [{"key": "a"}], "seconds": 300})


def _save_bitmap() -> bytes:
    out = io.BytesIO()
    Image.new("L", (3, 2)).save(out, "BMP")
    return out.getvalue()


FILES: dict[str, bytes] = {
    "logo.png": png(drawn("#.", ".#")), "wide.png": png(np.zeros((1, 200), np.uint8)), "logo.bmp": b"BM",
    "picture.bmp": _save_bitmap(), "half.png": png(np.arange(4096, dtype=np.uint8).reshape(64, 64))[:-40],
    "text.md": b"text", "empty.md": b"", "nul.md": b"a\n\0b", "latin.md": b"\xe9", "folder/file.md": b"text",
    "program.zip": zipped(PROGRAM), "truth.zip": zipped({"truth.txt": "1"}), "odd.zip": b"odd",
}  # fmt: skip


def encrypt(data: bytes) -> bytes:
    """Mark the first file of a zip as encrypted."""
    encrypted = bytearray(data)
    encrypted[6] |= 1
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    return bytes(encrypted)
