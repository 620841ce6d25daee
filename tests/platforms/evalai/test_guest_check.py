"""`check` of bundles with their own scorers: the server's rules and the worker's traps, and none of ours."""

from __future__ import annotations

from pathlib import Path

from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.check import check
from segjudge.platforms.rules.problems import ERROR, BundleProblem
from tests import guests


def problems_of(folder: Path) -> list[BundleProblem]:
    return check(build(str(folder), str(folder / "b.zip"), lenient=True).path)


def errors_of(folder: Path) -> list[str]:
    return [str(problem) for problem in problems_of(folder) if problem.severity == ERROR]


def test_hosted_and_remote_bundles_of_the_starters_form_are_accepted(tmp_path: Path) -> None:
    assert problems_of(guests.starter(tmp_path / "hosted")) == []
    assert problems_of(guests.remote(tmp_path / "remote")) == []


def test_an_older_python_is_its_hosts_choice(tmp_path: Path) -> None:
    assert errors_of(guests.starter(tmp_path, config=guests.CONFIG + "worker_python_version: 3.8\n")) == []
