"""What a release says of itself agrees, and its workflows hold commands that a shell and the toolkit understand."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from segjudge.evaluation_script.scoring import VERSION
from segjudge.system.errors import install_line
from tests.builders import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def test_the_version_stands_in_every_place_that_says_it() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == VERSION
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] in ("Unreleased", VERSION)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'version = { attr = "segjudge.evaluation_script.scoring.VERSION" }' in project


def test_the_tag_of_a_release_has_to_be_its_version(tmp_path: Path) -> None:
    steps = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]["publish"][
        "steps"
    ]
    (compared,) = [step["run"] for step in steps if "GITHUB_REF_NAME" in step.get("run", "")]
    for tag, fits in ((f"v{VERSION}", True), (f"v{VERSION}1", False), ("v", False)):
        done = subprocess.run(
            ["bash", "-c", compared], cwd=ROOT, env={"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"}, check=False
        )
        assert (done.returncode == 0) == fits, tag


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_hold_what_a_shell_reads(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert commands
    for command in commands:
        subprocess.run(["bash", "-n", "-c", re.sub(r"\$\{\{.*?\}\}", "x", command)], check=True)
    assert {
        needed
        for job in jobs.values()
        for needed in [job.get("needs", [])]
        for needed in ([needed] if isinstance(needed, str) else needed)
    } <= set(jobs)


def test_nothing_is_published_before_the_suite_the_wheels_and_the_site() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]
    publishing = {name for name, job in jobs.items() if "id-token" in job.get("permissions", {})}
    assert publishing == {"publish"}
    assert set(jobs["publish"]["needs"]) == set(jobs) - publishing
    assert jobs["publish"]["if"] == "github.event_name == 'push'"


def test_nobody_is_sent_to_a_package_index_for_this_project() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    code = [path for path in (ROOT / "segjudge").rglob("*") if path.suffix in (".py", ".html", ".jinja", ".yml")]
    deployed = [
        path
        for name in ("remote_challenge_evaluation", "code_upload_challenge_evaluation")
        for path in (ROOT / name).rglob("*")
    ]
    for path in [*pages, *code, *deployed]:
        if path.is_file() and path.suffix != ".pyc":
            asked = re.findall(
                r"""install [^\n`]*?(?<![\w./-])segjudge(?:\[|==|['"` ]|$)""", path.read_text(encoding="utf-8")
            )
            assert not asked, (path, asked)


@pytest.mark.parametrize(
    "extra", ["tables", "torch", "interactive", "cluster", "postgres", "environments", "agent", "aws"]
)
def test_the_line_that_installs_an_extra_names_packages_that_exist(extra: str) -> None:
    command, *packages = shlex.split(install_line(extra).removeprefix("pip "))
    assert command == "install"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert packages == project["optional-dependencies"][extra]


def test_an_extra_that_is_not_known_is_one_of_the_checkout() -> None:
    assert install_line("none") == "pip install '.[none]' in the checkout"
