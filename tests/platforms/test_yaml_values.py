"""For any YAML value at a key of a config, `check` answers with problems: for EvalAI and for Codabench."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.platforms.codabench.check import check as check_competition
from segjudge.platforms.evalai.bundle.check import check as check_bundle
from segjudge.system.errors import UsageError
from tests.builders import ROOT, written, zipped
from tests.platforms.evalai.bundles import CONFIG as BUNDLE
from tests.platforms.evalai.bundles import FILES
from tests.platforms.yaml_values import ODD_VALUES, VALUES, replace_each

_QUESTION = {
    "key": "q", "type": "text", "title": "t", "selection": "", "is_required": "true", "is_on_leaderboard": "false",
}  # fmt: skip
_KEY = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
#: A competition with every key.
COMPETITION: dict[str, Any] = {
    "version": 2, "title": "Small", "description": "d", "image": "logo.png", "terms": "terms.md",
    "docker_image": "codalab/codalab-legacy:py312", "registration_auto_approve": True, "queue": _KEY, "reward": "r",
    "contact_email": "a@b.org", "competition_type": "competition", "fact_sheet": {"q": _QUESTION},
    "pages": [{"title": "Overview", "file": "terms.md"}],
    "tasks": [
        {"index": 0, "name": "T", "description": "d", "scoring_program": "a.zip", "reference_data": "a.zip",
         "input_data": "a.zip", "ingestion_program": "a.zip", "ingestion_only_during_scoring": False},
        {"index": 1, "key": _KEY},
    ],
    "solutions": [{"index": 0, "tasks": [0], "path": "a.zip", "name": "s", "description": "d"}],
    "phases": [
        {"index": 0, "name": "P", "description": "d", "start": "2026-01-01", "end": "2036-01-01", "tasks": [0],
         "public_data": "a.zip", "starting_kit": "a.zip", "max_submissions": 3, "max_submissions_per_day": 2,
         "execution_time_limit": 60, "auto_migrate_to_this_phase": False, "hide_output": False},
    ],
    "leaderboards": [
        {"title": "Results", "key": "main", "submission_rule": "Force_Best", "primary_index": 0, "hidden": False, "columns": [
            {"title": "A", "key": "a", "index": 0},
            {"title": "B", "key": "b", "index": 1, "sorting": "desc", "precision": 2, "hidden": False, "computation": "avg",
             "computation_indexes": [0]},
        ]},
    ],
}  # fmt: skip


def check_each(folder: Path, configs: dict[str, bytes], platform: str) -> list[str]:
    """Return the configs without messages, or with other ones than problems."""
    silent: list[str] = []
    for name, text in configs.items():
        try:
            if platform == "codabench":
                (folder / "competition.yaml").write_bytes(text)
                problems = check_competition(str(folder))
            else:
                (folder / "bundle.zip").write_bytes(zipped({**FILES, "challenge_config.yaml": text}, 0))
                problems = check_bundle(str(folder / "bundle.zip"))
        except UsageError:  # a version of CodaLab's
            continue
        silent += [name for problem in problems if not (problem.subject and str(problem))]
    return silent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = zipped({"metadata.yaml": b"command: python3 s.py", "s.py": b""})
    files = {"terms.md": "text", "logo.png": (ROOT / "logo.png").read_bytes(), "a.zip": program}
    return written(tmp_path / "competition", files)


@pytest.mark.parametrize(
    "block",
    [*(pytest.param(block, marks=pytest.mark.long) for block in ("", "tasks")), "solutions", "phases", "leaderboards"],
)
def test_odd_values_in_a_competition_are_problems(block: str, folder: Path) -> None:
    """Sets, dates, bytes and recursive values: in a block, or next to the blocks."""
    configs = dict(replace_each(COMPETITION, ODD_VALUES))
    blocks = [key for key, value in COMPETITION.items() if isinstance(value, list) and key != "pages"]
    chosen = {name: text for name, text in configs.items() if name.startswith(f"('{block}'") or not (
        block or name.startswith(tuple(f"('{block}', " for block in blocks)))}  # fmt: skip
    assert len(chosen) > len(ODD_VALUES)
    assert check_each(folder, chosen, "codabench") == []


@pytest.mark.parametrize("key", ["title", "leaderboard", "challenge_phases"])
def test_odd_values_in_a_bundle_are_problems(key: str, tmp_path: Path) -> None:
    first_blocks = {name: value[:1] if isinstance(value, list) else value for name, value in BUNDLE.items()}
    configs = {name: text for name, text in replace_each(first_blocks, ODD_VALUES) if name.startswith(f"('{key}'")}
    assert len(configs) >= len(ODD_VALUES)
    assert check_each(tmp_path, configs, "evalai") == []


@pytest.mark.long
@pytest.mark.parametrize("platform", ["codabench", "evalai"])
def test_every_value_at_every_key_is_problems(platform: str, folder: Path) -> None:
    config = COMPETITION if platform == "codabench" else BUNDLE
    assert check_each(folder, dict(replace_each(config, VALUES)), platform) == []


def test_a_bundle_that_holds_itself_is_refused(tmp_path: Path) -> None:
    config = copy.deepcopy(BUNDLE)
    schema: dict[str, Any] = {"labels": ["A"], "default_order_by": "A"}
    schema["metadata"] = {"A": schema}
    config["leaderboard"][0]["schema"] = schema
    (tmp_path / "bundle.zip").write_bytes(zipped({**FILES, "challenge_config.yaml": yaml.safe_dump(config).encode()}))
    problems = [str(problem) for problem in check_bundle(str(tmp_path / "bundle.zip"))]
    assert [text for text in problems if "holds itself" in text]
