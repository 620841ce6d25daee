"""`check` of the demo's bundle and of changed ones, beside the table of `test_damaged_bundles`."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.evalai.bundle.check import check
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.phase_splits import splits_of
from segjudge.platforms.evalai.bundle.secrecy import find_hidden_splits
from segjudge.platforms.evalai.bundle.server_state import ServerState
from segjudge.platforms.rules.problems import ERROR, WARNING, BundleProblem
from tests.builders import ROOT, zipped

from .bundles import config_in, read_files, write_files

EVALAI = "https://eval.ai"
PHASE, ROW = ("challenge_phases", 0), ("challenge_phase_splits", 0)
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class Timestamp(str):
    """A date that no YAML writer would write, but that the server's PyYAML reads."""

    __slots__ = ()


yaml.SafeDumper.add_representer(Timestamp, lambda dumper, value: dumper.represent_scalar(_TIMESTAMP, value))


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(build(str(ROOT), str(tmp_path_factory.mktemp("dist") / "challenge_config.zip")).path)


def changed(
    bundle: Path,
    tmp_path: Path,
    *changes: tuple[tuple[Any, ...], Any],
    files: Any = None,
    state: ServerState | None = None,
) -> list[BundleProblem]:
    """Return the problems of a bundle with other values in its config, or with other files."""
    content = read_files(bundle)
    if changes:
        config = config_in(content)
        for (*above, key), value in changes:
            holder = config
            for step in above:
                holder = holder[step]
            holder[key] = value
        content["challenge_config.yaml"] = yaml.safe_dump(config).encode()
    return check(write_files(tmp_path / "bundle.zip", {**content, **(files or {})}), state)


def errors(problems: list[BundleProblem]) -> list[BundleProblem]:
    return [problem for problem in problems if problem.severity == ERROR and not problem.accepted]


def test_the_bundle_of_this_repository_is_accepted(bundle: Path) -> None:
    assert [str(problem) for problem in check(str(bundle))] == []


def test_the_same_files_give_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    assert Path(build(str(ROOT), str(tmp_path / "again.zip")).path).read_bytes() == bundle.read_bytes()


def test_the_bundle_holds_what_the_config_names_and_no_more(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        names = set(archive.namelist())
        with zipfile.ZipFile(io.BytesIO(archive.read("evaluation_script.zip"))) as script:
            shown = {"__init__.py", "main.py", "phases.py", "requirements.txt"}
            assert {name for name in script.namelist() if "/" not in name} == shown
    config = find_bundle(str(ROOT)).config()
    values = [value for item in (config, *config["challenge_phases"]) for value in item.values()]
    named = {value for value in values if isinstance(value, str) and (ROOT / value).is_file()}
    assert names == {"challenge_config.yaml", "evaluation_script.zip", *named}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("is_docker_based",), "False"), (("banned_email_ids",), None), (("banned_email_ids",), [""]), (("job_memory",), ""),
        (("worker_disk_size",), -1), (("worker_disk_size",), None), (("worker_python_version",), ""), (("max_team_members",), "1_0"),
        ((*PHASE, "max_submissions_per_month"), None), ((*ROW, "visibility"), "3"), (("forum_url",), "http://\u00e4.de"),
        (("image",), "./logo.png"), (("tags",), "abc"), (("tags",), {"a": 1}), (("prizes",), ""), (("sponsors",), []),
        (("prizes",), [{"rank": True, "amount": "1EUR", "description": "x"}]),
        (("start_date",), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)),
        ((*PHASE, "end_date"), Timestamp("2036-01-01 00:00:00Z")),
        (("start_date",), Timestamp("2026-01-01 00:00:00 -25:90")),
    ],
    ids=str,
)  # fmt: skip
def test_what_the_server_takes_is_no_error(place: tuple[Any, ...], value: Any, bundle: Path, tmp_path: Path) -> None:
    assert errors(changed(bundle, tmp_path, (place, value))) == []


def test_an_update_says_which_annotation_files_the_server_keeps(bundle: Path, tmp_path: Path) -> None:
    config = config_in(read_files(bundle))
    config["challenge_phases"][0]["annotations_uploaded_using_cli"] = True
    state = ServerState.after_push(config, source="a")
    assert state.kept_truths == [config["challenge_phases"][0]["id"]]
    (problem,) = changed(bundle, tmp_path, state=state)
    assert (problem.severity, problem.subject) == (WARNING, "challenge_phases[0].test_annotation_file")
    assert "is ignored: EvalAI keeps the phase's annotation file" in problem.fault


def test_an_update_reads_numbers_and_flags_as_the_server_does(bundle: Path, tmp_path: Path) -> None:
    state = ServerState.after_push(config_in(read_files(bundle)), source="a test", approved=True)
    same = (((*ROW, "is_leaderboard_order_descending"), "True"), ((*ROW, "visibility"), "3"))
    assert errors(changed(bundle, tmp_path, *same, state=state)) == []
    assert errors(changed(bundle, tmp_path, (("title",), "J&F 2026"), state=state)) == [], "no phase is new"
    assert errors(changed(bundle, tmp_path, (("sponsors",), [{"name": "x"}]), state=state)) == [], "they are not sent"


@pytest.mark.parametrize("name", ["../evil.py", "/evil.py"])
def test_a_member_that_leads_out_of_the_script_is_refused(name: str, bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(read_files(bundle)["evaluation_script.zip"])) as script:
        members = {member: script.read(member) for member in script.namelist()}
    built = {"evaluation_script.zip": zipped({**members, name: b""})}
    problems = [problem for problem in changed(bundle, tmp_path, files=built) if "points outside" in problem.fault]
    assert [(problem.severity, problem.subject) for problem in problems] == [(ERROR, "evaluation_script.zip")]
    with Bundle(str(tmp_path / "bundle.zip")) as opened, pytest.raises(HostError, match="which points outside"):
        opened.read_script()


def test_what_a_push_remembers_is_kept_for_each_server_and_repository(bundle: Path, tmp_path: Path) -> None:
    root, rehearsal = str(tmp_path), "http://127.0.0.1:8899"
    assert ServerState.load(root, EVALAI, "me/x") is None
    state = ServerState.after_push(find_bundle(str(ROOT)).config(), source="a test", approved=True)
    path = Path(state.save(root, EVALAI, "me/x"))
    assert changed(bundle, tmp_path, state=ServerState.load(root, EVALAI, "me/x")) == []
    assert ServerState.load(root, EVALAI, "me/x") == state
    assert ServerState.load(root, EVALAI, "me/y") is ServerState.load(root, rehearsal, "me/x") is None
    names = {
        ServerState().save(root, server, name)
        for server in (EVALAI, "https://eval.ai:8443")
        for name in ("a/b-c", "a-b/c")
    }
    assert len(names) == 4, "nothing that looks alike in a file's name is mixed up"
    path.write_text("[]")
    with pytest.raises(HostError, match=re.escape(f"{path}: cannot be read")):
        ServerState.load(root, EVALAI, "me/x")


def test_the_line_is_that_of_the_file_that_the_host_edits(tmp_path: Path, bundle: Path) -> None:
    text = (ROOT / "challenge_config.yaml").read_text()
    line = next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith("image:"))
    broken = text.replace("image: logo.png", "image: nowhere.png").encode()
    problems = [str(problem) for problem in changed(bundle, tmp_path, files={"challenge_config.yaml": broken})]
    assert [problem.split(" names ")[0] for problem in problems] == [f"challenge_config.yaml:{line}:1: image:"]


def test_a_codename_that_is_a_number_is_the_text_that_evalai_keeps() -> None:
    row = {"challenge_phase_id": 1, "leaderboard_id": 2, "dataset_split_id": 3, "visibility": 1}
    phase = {"id": 1, "codename": 8}
    splits = [{"id": 3, "codename": 2019}]
    config = {"dataset_splits": splits, "challenge_phases": [phase], "challenge_phase_splits": [row]}
    assert [split.codename for split in splits_of(config, phase)] == ["2019"]
    assert find_hidden_splits(config, "8") == {"2019"}


def test_a_snippet_of_the_hosts_page_runs_as_pasted() -> None:
    text = (ROOT / "docs/hosts.md").read_text().partition("## phases.py")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("    ") or not line.strip()]
    code = "\n".join(line.removeprefix("    ") for line in lines)
    scope: dict[str, Any] = {"__package__": "evaluation_script", "__name__": "evaluation_script.pasted"}
    exec(compile(code, "docs/hosts.md", "exec"), scope)
    assert [phase.codename for phase in scope["PHASES"]] == ["my-phase"]
