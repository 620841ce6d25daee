"""The workflow that docs offer is one that GitHub takes, pins what it uses, and gives its commands what they need."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.builders import ROOT

WORKFLOW = ROOT / "docs/examples/compare.yml"


def steps() -> list[dict[str, Any]]:
    (job,) = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def test_actions_are_pinned_and_no_secret_but_the_token_is_needed() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    assert [
        step["uses"] for step in steps() if "uses" in step and not re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
    ] == []
    assert set(re.findall(r"secrets\.(\w+)", text)) == {"GITHUB_TOKEN"}
    document = yaml.safe_load(text)
    assert document["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert [step for step in steps() if "run" in step and "${{" in step["run"]] == [], (
        "no expression is put into a shell"
    )


def test_its_comparison_writes_what_later_steps_post(tmp_path: Path) -> None:
    (run,) = [step["run"] for step in steps() if "segjudge compare" in step.get("run", "")]
    examples = ROOT / "examples/sequences-dev"
    (tmp_path / "results").mkdir()
    for name, source in (("main", "lagging"), ("branch", "strong")):
        (tmp_path / f"results/{name}.zip").write_bytes((examples / f"{source}.zip").read_bytes())
    (tmp_path / "truth.zip").write_bytes((ROOT / "annotations/sequences-dev.zip").read_bytes())
    program = f'segjudge() {{ {shlex.quote(sys.executable)} -P -m segjudge "$@"; }}\n{run}'
    for way, code in (("as it is", 0), ("the other way", 4)):
        if way != "as it is":
            names = [tmp_path / f"results/{name}.zip" for name in ("main", "branch")]
            first, second = (path.read_bytes() for path in names)
            names[0].write_bytes(second)
            names[1].write_bytes(first)
        done = subprocess.run(
            ["bash", "-e", "-c", program],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert (tmp_path / "comparison.md").read_text(encoding="utf-8").startswith("### J&F-Mean: ")
    assert (tmp_path / "comparison.html").exists()
