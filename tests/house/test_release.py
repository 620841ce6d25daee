"""A release's statements agree, and its workflows contain commands that a shell and the toolkit understand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from segjudge.evaluation_script.scoring import VERSION
from tests.builders import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
#: The extras whose packages are locked; torch is larger than everything else together.
EXTRAS = ("host", "serve", "interactive", "agents", "tables", "cluster", "aws", "hub")
#: All files of the repository that can name an action.
PINNING = [
    ROOT / name
    for name in subprocess.check_output(
        ["git", "ls-files", "*.yml", "*.yaml", "*.yml.jinja"], cwd=ROOT, text=True
    ).split()
    if "uses:" in (ROOT / name).read_text(encoding="utf-8")
]


def test_the_version_stands_in_every_place_that_says_it() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == VERSION
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] in ("Unreleased", VERSION)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'version = { attr = "segjudge.evaluation_script.scoring.VERSION" }' in project
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    shown = {
        (path.name, version)
        for path in pages
        for version in re.findall(
            r"(?:[Ss]egjudge |[Ss]egjudge@|scores as of )v?(\d+\.\d+\.\d+)", path.read_text(encoding="utf-8")
        )
    }
    assert {version for _, version in shown} == {VERSION}, shown


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


@pytest.mark.parametrize("path", PINNING, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_actions_of_other_owners_are_pinned_by_commit(path: Path) -> None:
    used = re.findall(r"^\s*(?:- )?uses:\s*(\S.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    for action in used:
        ours = action.startswith(("./", "OWNER/segjudge@"))
        assert ours or re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+(: .+)?", action), action


def test_locks_have_hashes_and_what_the_project_asks_for() -> None:
    pins: dict[str, dict[str, list[str]]] = {}
    for path in (ROOT / "packaging/locks").glob("*.txt"):
        for block in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
            line, *hashes = block.split(" --hash=")
            assert hashes, block
            assert all(re.fullmatch(r"sha256:[0-9a-f]{64} *", digest) for digest in hashes), block
            requirement = Requirement(line)
            assert re.fullmatch(r"==[\w.]+", str(requirement.specifier)), line
            versions = pins.setdefault(path.stem, {}).setdefault(canonicalize_name(requirement.name), [])
            versions.append(str(requirement.specifier)[2:])
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [
        *extras["dependencies"],
        *(line for name in (*EXTRAS, "test") for line in extras["optional-dependencies"][name]),
    ]
    for requirement in map(Requirement, asked):
        if requirement.name != "segjudge":
            versions = pins["toolkit"][canonicalize_name(requirement.name)]
            assert any(requirement.specifier.contains(version, prereleases=True) for version in versions), requirement
    worker = ROOT / "segjudge/platforms/evalai/bundle/worker-3.9.txt"
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)", worker.read_text(encoding="utf-8"), re.MULTILINE))
    assert {name: versions for name, versions in pins["worker"].items() if name in pinned} == {
        name: [pinned[name]] for name in pins["worker"] if name in pinned
    }


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


@pytest.mark.long
def test_the_script_that_linux_and_windows_compare_scores_packs_reports_compares_and_ranks(tmp_path: Path) -> None:
    for folder in ("annotations", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    program = tmp_path / "bin/segjudge"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m segjudge "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "SEGJUDGE_KERNEL": "off"}
    for out in ("linux", "windows"):
        command = ["bash", str(ROOT / ".github/daily.sh"), out]
        subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    first, second = (
        {path.relative_to(tmp_path / out): path.read_bytes() for path in (tmp_path / out).rglob("*.*")}
        for out in ("linux", "windows")
    )
    assert {Path("zip.json"), Path("truth.zip"), Path("page.html"), Path("methods.json"), Path("ranking.html")} <= {
        *first
    }
    assert first == second


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


def test_an_older_python_is_refused_before_a_dependency_is_fetched() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    for line in project["dependencies"]:
        marker = Requirement(line).marker
        assert marker is not None, line
        systems = {"platform_machine": "x86_64"}
        assert not marker.evaluate({**systems, "python_version": "3.9"})
        assert marker.evaluate({**systems, "python_version": oldest})


def test_the_toolkit_takes_nothing_from_a_newer_python_than_the_oldest() -> None:
    newer = re.compile(
        r"datetime\.UTC|import UTC|hashlib\.file_digest|^from typing import .*(Self|NotRequired|Unpack)|^import tomllib",
        re.MULTILINE,
    )
    folders = ("segjudge", "remote_challenge_evaluation", "code_upload_challenge_evaluation")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert [path.name for path in paths if newer.search(path.read_text(encoding="utf-8"))] == []
