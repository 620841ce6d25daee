"""The action for pull requests scores, compares, comments and fails; the docs' workflow passes what it needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.evaluation_script.scoring import VERSION
from tests.builders import ROOT

WORKFLOW = ROOT / "docs/examples/compare.yml"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"]}
INSTALL, SCORE, COMPARE, COMMENT, FAIL = STEPS
PULL_REQUEST = {"github.event.pull_request.number": "7", "github.token": "secret"}


class Runner:
    """Run the action's steps like GitHub's runner, with its files and variables."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        """Create the files of a pull request, and programs that replace GitHub's."""
        self.folder = folder
        self.temporary = folder / "temporary directory"
        self.path = [str(folder / "bin"), os.path.dirname(sys.executable), *os.environ["PATH"].split(os.pathsep)]
        defaults = {name: row["default"] for name, row in ACTION["inputs"].items() if "default" in row}
        self.values = PULL_REQUEST | {f"inputs.{name}": value for name, value in {**defaults, **inputs}.items()}
        examples = ROOT / "examples/sequences-dev"
        (folder / "results").mkdir()
        for name, source in (("main", "lagging"), ("branch", "strong")):
            shutil.copy(examples / f"{source}.zip", folder / f"results/{name}.zip")
        shutil.copy(ROOT / "annotations/sequences-dev.zip", folder / "the truth.zip")
        self.add_program("gh", 'printf "%s\\n" "$GH_TOKEN" "$@" > gh.txt')

    def add_program(self, name: str, text: str) -> None:
        """Put a shell script in PATH."""
        program = self.folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        program.chmod(0o755)

    def use_checkout(self) -> None:
        """Let `segjudge` be this checkout, instead of the step that installs it."""
        (self.temporary / "segjudge").mkdir(parents=True)
        self.values["steps.install.outputs.folder"] = str(self.temporary / "segjudge")
        self.add_program("segjudge", f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -P -m segjudge "$@"')

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run a step; keep the outputs and the PATH that it sets."""
        step = STEPS[name]
        files = {key: self.folder / f"{key}.txt" for key in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
        for key in ("GITHUB_OUTPUT", "GITHUB_PATH"):
            files[key].write_text("")
        self.temporary.mkdir(exist_ok=True)
        settings = {
            "PATH": os.pathsep.join(self.path),
            "HOME": os.environ.get("HOME", str(self.folder)),
            "PIP_COMPILE": "0",
            "SEGJUDGE_KERNEL": "off",  # the wheel's own tests compile it
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_ACTION_PATH": str(self.folder / "action"),
            "GITHUB_REPOSITORY": "team/method",
            **{key: str(path) for key, path in files.items()},
            **{key: self.evaluate(text) for key, text in step.get("env", {}).items()},
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder, env=settings, capture_output=True, text=True, check=False,
        )  # fmt: skip
        for line in files["GITHUB_OUTPUT"].read_text().splitlines():
            key, value = line.split("=", 1)
            self.values[f"steps.{step['id']}.outputs.{key}"] = value
        self.path[:0] = files["GITHUB_PATH"].read_text().splitlines()
        return done

    def evaluate(self, text: str) -> str:
        """Replace the expressions of a setting, which name only inputs, outputs and facts of the event."""
        while True:
            expression = re.search(r"\$\{\{ ([\w.-]+) \}\}", text)
            if expression is None:
                return text
            text = text.replace(expression[0], self.values[expression[1]])


def inputs(**changed: str) -> dict[str, str]:
    return {
        "results": "results/branch.zip",
        "baseline": "results/main.zip",
        "truth": "the truth.zip",
        "protocol": "davis2017",
        **changed,
    }


def test_the_workflow_uses_pinned_actions_and_no_secret() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    (job,) = document["jobs"].values()
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    ours = f"OWNER/segjudge@v{VERSION}"
    assert [name for name in used if name != ours and not re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name)] == []
    assert "secrets." not in text
    assert document["permissions"] == {"contents": "read", "pull-requests": "write"}
    (given,) = [set(step["with"]) for step in job["steps"] if step.get("uses") == ours]
    required = {name for name, row in ACTION["inputs"].items() if row.get("required")}
    assert required <= given <= set(ACTION["inputs"])
    assert set(re.findall(r"steps\.segjudge\.outputs\.(\w+)", text)) <= set(ACTION["outputs"])


def test_no_expression_of_the_action_is_put_into_a_shell() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert [name for name, step in STEPS.items() if "${{" in step["run"] or step["shell"] != "bash"] == []


def test_the_page_lists_every_input_of_the_action() -> None:
    page = (ROOT / "docs/pull-requests.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([\w-]+)` \| (.+?) \|", page, re.MULTILINE))
    assert {name: listed.get(name) for name in ACTION["inputs"]} == {
        name: "required" if row.get("required") else f"`{row['default']}`" if row["default"] else "none"
        for name, row in ACTION["inputs"].items()
        if name != "token"
    } | {"token": "the workflow's"}


def test_the_action_scores_compares_comments_and_passes(tmp_path: Path) -> None:
    runner = Runner(tmp_path, **inputs(**{"fail-below": "-0.005"}))
    runner.use_checkout()
    for name in (SCORE, COMPARE, COMMENT, FAIL):
        done = runner.run(name)
        assert done.returncode == 0, (name, done.stderr)
    folder = runner.temporary / "segjudge"
    markdown = (folder / "comparison.md").read_text(encoding="utf-8")
    assert markdown.startswith("### J&F-Mean: ")
    assert (tmp_path / "GITHUB_STEP_SUMMARY.txt").read_text(encoding="utf-8") == markdown
    assert (tmp_path / "gh.txt").read_text().splitlines() == [
        "secret", "pr", "comment", "7", "--repo", "team/method", "--edit-last", "--create-if-none",
        "--body-file", str(folder / "comparison.md"),
    ]  # fmt: skip
    assert {path.name for path in folder.iterdir()} == {
        "scores.json", "scores.segjudge", "comparison.md", "comparison.html",
    }  # fmt: skip


@pytest.mark.long
def test_the_action_fails_with_the_sentence_if_a_file_is_missing(tmp_path: Path) -> None:
    runner = Runner(tmp_path, **inputs(baseline="nowhere.zip"))
    runner.use_checkout()
    assert runner.run(SCORE).returncode == 0
    assert "nowhere.zip" in runner.run(COMPARE).stderr
    assert runner.run(COMMENT).returncode == 0
    assert not (tmp_path / "gh.txt").exists()
    assert runner.run(FAIL).returncode == 2


@pytest.mark.long
def test_the_action_installs_the_segjudge_of_its_own_commit(tmp_path: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not tracked:
        pytest.skip("NO GIT CHECKOUT: the files of the project are not known")
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).exists() and not name.startswith(("tests/", "demo/", "pictures/")):
            target = tmp_path / "action" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target, follow_symlinks=False)
    runner = Runner(tmp_path, **inputs())
    for name in (INSTALL, SCORE, COMPARE, FAIL):
        done = runner.run(name)
        assert done.returncode == 0, (name, done.stderr)
    assert (runner.temporary / "segjudge/comparison.md").exists()
