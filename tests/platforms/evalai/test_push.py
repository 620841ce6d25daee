"""`segjudge push` and EvalAI's API, simulated by the rehearsal: the real command over real HTTP."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.push import RejectedError, find_repository, write_without_sponsors
from segjudge.platforms.evalai.client import EvalAISettings
from tests.builders import ROOT
from tests.hostile_network import Network
from tests.rehearsals import Rehearsal, waited


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    options = ("--requests-per-minute", "10000", "--workers", "0", "--hosts", "aurora")
    running = Rehearsal(tmp_path_factory.mktemp("push") / "data", options).start()
    yield running
    running.stop()
    assert "Traceback" not in running.errors()


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns(".*", "dist", "*.egg-info", "__pycache__", "tests", "benchmarks", "docs")
    return Path(shutil.copytree(ROOT, tmp_path / "fork", symlinks=True, ignore=ignored))


def known_environment(fork: Path, server: Rehearsal) -> dict[str, str]:
    """Return the environment variables of a host's shell."""
    known = {
        "EVALAI_TOKEN": server.people["host"]["token"],
        "EVALAI_HOST_TEAM": str(server.people["host"]["team"]),
        "EVALAI_HOST": server.address,
        "HOME": str(fork.parent),
    }
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("EVALAI_", "GITHUB_"))}
    return {**kept, **known}


def segjudge(fork: Path, server: Rehearsal, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    if arguments[0] == "push" and "--kernel" not in arguments:
        arguments = (*arguments, "--no-kernel")  # each test has a home of its own, so its compiler would be fetched
    return subprocess.run(
        [sys.executable, "-m", "segjudge", *arguments, "--bundle", str(fork)], cwd=ROOT,
        env={**known_environment(fork, server), **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("request_number", [3, 5])
def test_a_push_that_is_killed_in_the_middle_is_made_whole_by_the_next_one(
    server: Rehearsal, fork: Path, tmp_path: Path, request_number: int
) -> None:
    """The server has carried out the request when the client dies without an answer."""
    name, temporary = f"me/killed-{request_number}", tmp_path / "temporary"
    temporary.mkdir()
    late = Network(server.address, rate=1.0, patience=60.0, kinds=("late",), spared=request_number - 1)
    arguments = [sys.executable, "-m", "segjudge", "push", "--repository", name, "--no-kernel", "--bundle", str(fork)]
    environment = {**known_environment(fork, server), "EVALAI_HOST": late.address, "TMPDIR": str(temporary)}
    process = subprocess.Popen(arguments, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        waited(lambda: late.struck["late"] > 0 or process.poll() is not None)
        time.sleep(1)  # until the server has answered, and the network holds the answer back
        assert process.poll() is None, process.stdout and process.stdout.read()
    finally:
        process.kill()
        process.communicate()
        late.close()
    assert not [path.name for path in temporary.iterdir() if path.name.startswith("tmp")]
    again = segjudge(fork, server, "push", "--repository", name)
    assert again.returncode == 0, again.stdout + again.stderr
    number = next(line.split()[1] for line in again.stdout.splitlines() if line.startswith("challenge "))
    third = segjudge(fork, server, "push", "--repository", name)
    assert f"challenge  {number}\n" in third.stdout, third.stdout + third.stderr
    owned = server.get(f"/api/challenges/challenge_host_team/{server.people['host']['team']}/challenge", "host").json()
    assert len({item["id"] for item in owned["results"] if item["id"] >= int(number)}) == 1, "no second one"


def edit(fork: Path, change: Any) -> None:
    path = fork / "challenge_config.yaml"
    config = yaml.safe_load(path.read_text())
    change(config)
    path.write_text(yaml.safe_dump(config, sort_keys=False))


@pytest.mark.long
def test_the_token_is_shown_nowhere(server: Rehearsal, fork: Path) -> None:
    done = segjudge(fork, server, "push", "--repository", "me/quiet")
    kept = "".join(file.read_text() for file in (fork / ".segjudge/pushes").iterdir())
    token = server.people["host"]["token"]
    assert all(token not in text for text in (done.stdout, done.stderr, kept))
    assert token not in repr(EvalAISettings.read({"EVALAI_TOKEN": token}))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"title": "x", "sponsors": [{"name": "é"}], "domain": "CV"}', id="one-line"),
        pytest.param("{sponsors: [{name: x}], title: x, domain: CV}\n", id="first"),
        pytest.param("{title: x, domain: CV, sponsors: [{name: x}]} # end\n", id="last"),
        pytest.param("{title: x, sponsors: [ # ours, for now\n  {name: x}],\n # the rest\ndomain: CV}\n", id="lines"),
        pytest.param("  title: x\n  sponsors:\n    - name: x\n  domain: CV\n", id="indented"),
        pytest.param("title: |\n  x\nsponsors:\n    - name: x\ndomain: CV", id="after-a-block-text"),
        pytest.param("domain: CV\ntitle: x\nsponsors:\n- name: x", id="no-line-break-at-the-end"),
    ],
)
def test_sponsors_are_left_out_however_the_yaml_is_written(text: str, tmp_path: Path) -> None:
    bundle, out = str(tmp_path / "in.zip"), str(tmp_path / "out.zip")
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.writestr("challenge_config.yaml", text)
    assert write_without_sponsors(bundle, out)
    with Bundle(bundle) as before, Bundle(out) as after:
        assert after.config == {key: value for key, value in before.config.items() if key != "sponsors"}
        assert {*after.config} == {"title", "domain"}
        for key in after.config:
            assert after.lines.location(key) == before.lines.location(key)


def test_a_first_push_that_fails_without_a_reason_is_worth_a_second(fork: Path) -> None:
    body = {"error": "Error in creating challenge: None. Please check the yaml configuration!"}
    bundle = build(str(fork)).path
    (first,) = RejectedError(body).locate(bundle, is_new=True)
    assert first.remedy.startswith("Push once more without changes")
    assert "draws a team name" in first.fault
    (later,) = RejectedError(body).locate(bundle)
    assert "team" not in str(later)


def test_a_reason_that_is_given_twice_is_reported_once_with_a_key_that_is_there(fork: Path) -> None:
    reason = "challenge phase 5 :{'slug': [ErrorDetail(string='Enter a valid \"slug\"', code='invalid')]}"
    body = {"error": f"Error in creating challenge: {reason}. Please check!", "error_message": json.dumps(reason)}
    bundle = build(str(fork)).path
    results = list(RejectedError(body).locate(bundle))
    assert [problem.subject for problem in results] == ["challenge_phases[1].codename"]
    with Bundle(bundle) as opened:
        assert results[0].location == opened.lines.location("challenge_phases[1].codename")
    edit(fork, lambda config: config.update(title="MOSE/LVOS challenge"))
    assert [problem.subject for problem in RejectedError(body).locate(build(str(fork)).path)] == ["title"]


def test_the_repository_comes_from_the_remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with pytest.raises(HostError, match="no repository is known.*set GITHUB_REPOSITORY to OWNER/NAME"):
        find_repository("", str(tmp_path))
    for url in ("git@github.com:owner/name.git", "https://github.com/owner/name"):
        subprocess.run(["git", "-C", str(tmp_path), "remote", "remove", "origin"], check=False, capture_output=True)
        subprocess.run(["git", "-C", str(tmp_path), "remote", "add", "origin", url], check=True)
        assert find_repository("", str(tmp_path)) == "owner/name"
    monkeypatch.setenv("GITHUB_REPOSITORY", "from/actions")
    assert find_repository("", str(tmp_path)) == "from/actions"
    assert find_repository("given/here", str(tmp_path)) == "given/here"
    with pytest.raises(HostError, match="is not OWNER/NAME"):
        find_repository("nonsense", str(tmp_path))


def test_without_git_no_repository_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="no repository is known"):
        find_repository("", str(ROOT))


@pytest.mark.long
def test_the_workflow_never_gives_secrets_to_a_pull_request() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/evalai.yml").read_text())
    for name, job in workflow["jobs"].items():
        if "secrets." in json.dumps(job):
            assert job["if"] == "github.event_name == 'push'", name
    assert "pull_request_target" not in workflow[True]
    assert workflow[True]["push"]["branches"] == ["challenge"]
