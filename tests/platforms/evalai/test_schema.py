"""The published JSON Schema agrees with the table of fields, and the demo's YAML satisfies it."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from segjudge.cli import main
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.evalai.bundle.fields import SCHEMA_PATH, json_schema
from tests.builders import ROOT


def as_an_editor_reads(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: as_an_editor_reads(value) for key, value in node.items()}
    if isinstance(node, list):
        return [as_an_editor_reads(value) for value in node]
    return str(node) if isinstance(node, datetime.date) else node


def test_the_published_schema_is_the_tables() -> None:
    assert (ROOT / SCHEMA_PATH).read_text(encoding="utf-8") == json_schema(), "run: ./run.sh schema"


def test_the_command_says_where_it_wrote_the_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--out", str(tmp_path / "config.json")]) == 0
    assert (tmp_path / "config.json").read_text(encoding="utf-8") == json_schema()
    assert capsys.readouterr().out == f"Wrote {os.path.relpath(tmp_path / 'config.json')}\n"


def test_the_demos_config_fulfils_it() -> None:
    jsonschema.Draft7Validator.check_schema(json.loads(json_schema()))
    jsonschema.validate(as_an_editor_reads(find_bundle(str(ROOT)).config()), json.loads(json_schema()))


@pytest.mark.parametrize(
    "change",
    [
        {"titel": "x"},
        {"title": "x" * 101},
        {"worker_python_version": "3.10"},
        {"start_date": "2026-01-01"},
        {"published": "maybe"},
        {"leaderboard": [{"id": 1, "schema": {"labels": ["J"]}}]},
    ],
    ids=str,
)
def test_an_editor_marks_mistakes(change: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(
            as_an_editor_reads({**find_bundle(str(ROOT)).config(), **change}), json.loads(json_schema())
        )


def test_the_yaml_names_its_schema() -> None:
    assert (ROOT / "challenge_config.yaml").read_text().startswith(f"# yaml-language-server: $schema={SCHEMA_PATH}\n")
