"""Shared by tests of bundles."""

from __future__ import annotations

import copy
import functools
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.builders import drawn, png, zipped
from tests.platforms.damages import Config, plain

START, END = plain("2026-01-01 00:00:00"), plain("2046-01-01 00:00:00")
CONFIG: Config = {
    "title": "Small challenge",
    "description": "text.html",
    "evaluation_details": "text.html",
    "terms_and_conditions": "text.html",
    "submission_guidelines": "text.html",
    "image": "logo.png",
    "evaluation_script": "script.zip",
    "start_date": START,
    "end_date": END,
    "published": False,
    "max_team_members": 5,
    "max_docker_image_size": 1000,
    "forum_url": "https://example.org/forum",
    "allowed_email_domains": ["example.org"],
    "banned_email_ids": ["a@example.org"],
    "worker_python_version": "3.9",
    "worker_image_url": "ami-0123",
    "use_fifo_sqs": False,
    "tags": ["one"],
    "domain": "CV",
    "prizes": [{"rank": 1, "amount": "10EUR", "description": "x"}],
    "sponsors": [],
    "leaderboard": [
        {
            "id": 1,
            "schema": {
                "labels": ["score", "loss"],
                "default_order_by": "score",
                "metadata": {"score": {"sort_ascending": False}, "loss": {"sort_ascending": True}},
            },
        }
    ],
    "challenge_phases": [
        {
            "id": 1,
            "name": "First",
            "codename": "first",
            "description": "text.html",
            "start_date": START,
            "end_date": END,
            "test_annotation_file": "truth.txt",
            "max_submissions_per_day": 5,
            "max_submissions_per_month": 50,
            "max_submissions": 500,
            "is_submission_public": False,
            "is_restricted_to_select_one_submission": False,
            "allowed_email_ids": None,
            "environment_image": None,
            "submission_meta_attributes": [
                {"name": "size", "description": "How large", "type": "radio", "options": ["small", "large"]}
            ],
            "default_submission_meta_attributes": [{"name": "method_name", "is_visible": True}],
        }
    ],
    "dataset_splits": [{"id": 1, "name": "Dev", "codename": "dev"}],
    "challenge_phase_splits": [
        {
            "challenge_phase_id": 1, "leaderboard_id": 1, "dataset_split_id": 1, "visibility": 3,
            "leaderboard_decimal_precision": 2, "is_leaderboard_order_descending": True,
        }
    ],
}  # fmt: skip
SCRIPT = {"__init__.py": "from .main import evaluate\n", "main.py": "def evaluate(*_):\n    return {}\n"}
FILES: dict[str, bytes] = {
    "text.html": b"<p>text</p>", "blank.html": b" \n", "nul.html": b"a\0b", "latin.html": b"\xe9",
    **dict.fromkeys(("empty.html", "empty.png", "empty.zip"), b""), "logo.png": png(drawn("#.")), "odd.png": b"odd",
    "truth.txt": b"1", "script.zip": zipped(SCRIPT), "odd.zip": b"odd",
    "bare.zip": zipped({"script/__init__.py": ""}), f"{'long/' * 17}s.zip": zipped(SCRIPT),
}  # fmt: skip


def read_files(path: Path) -> dict[str, bytes]:
    """Return the files of a zip by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_files(path: Path, files: Mapping[str, bytes | None]) -> str:
    """Write a zip, without the files that are None."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            if data is not None:
                archive.writestr(name, data)
    return str(path)


@functools.cache
def _parse(text: bytes) -> Any:
    return yaml.safe_load(text)


def config_in(files: Mapping[str, bytes]) -> Any:
    """Return the config of a bundle, which is parsed once for all tests, since that takes longer than most of them."""
    return copy.deepcopy(_parse(files["challenge_config.yaml"]))
