"""`build`, `check` and `push` for the Hub, by the real client against the stand-in."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from segjudge.cli import main
from segjudge.platforms.hugging_face.build import GRADIO
from segjudge.platforms.hugging_face.settings import SpaceSettings
from segjudge.platforms.hugging_face.space import Account, Space
from segjudge.system.errors import UsageError
from tests.builders import ROOT
from tests.hub.played import FAULTS, PlayedHub

from .boards import OWNER, REPOSITORY, make_challenge, open_hub, push

REPOSITORIES = {
    ("dataset", f"{REPOSITORY}-private"): True,
    ("dataset", f"{REPOSITORY}-submissions"): True,
    ("dataset", f"{REPOSITORY}-results"): False,
    ("space", REPOSITORY): False,
}


@pytest.fixture(scope="module")
def challenge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_challenge(tmp_path_factory.mktemp("new") / "cats")


@pytest.fixture
def hub() -> Iterator[PlayedHub]:
    with open_hub() as played:
        yield played


def commits(hub: PlayedHub) -> list[int]:
    return [len(repository.commits) for repository in hub.repositories.values()]


def test_a_push_creates_the_board_and_its_repetition_changes_nothing(
    hub: PlayedHub, challenge: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = push(challenge)
    assert {key: each.private for key, each in hub.repositories.items()} == REPOSITORIES
    assert hub.repositories["space", REPOSITORY].sdk == "gradio"
    assert (
        hub.read(f"{REPOSITORY}-private", "bundle/annotations/val.zip")
        == (challenge / "annotations/val.zip").read_bytes()
    )
    assert "Make two fine-grained tokens" in output
    before = commits(hub)

    token = hub.add_token(OWNER, {f"{REPOSITORY}-submissions": "write"})
    monkeypatch.setenv("SUBMISSIONS_TOKEN", token)
    assert push(challenge).splitlines()[0] == f"set the secret SUBMISSIONS_TOKEN of {REPOSITORY}"
    space = hub.repositories["space", REPOSITORY]
    assert (space.secrets, space.variables) == ({"SUBMISSIONS_TOKEN": token}, {})
    assert push(challenge) == f"{hub.url}/spaces/{REPOSITORY}\n"
    monkeypatch.delenv("SUBMISSIONS_TOKEN")
    assert push(challenge) == f"{hub.url}/spaces/{REPOSITORY}\n"
    assert commits(hub) == before


def test_a_push_replaces_the_files_of_an_earlier_one_and_no_others(
    hub: PlayedHub, challenge: Path, tmp_path: Path
) -> None:
    from huggingface_hub import HfApi

    push(challenge)
    api = HfApi()
    for name, kind, path in (
        ("cats", "space", "old.whl"),
        ("cats-private", "dataset", "bundle/old.zip"),
        ("cats-private", "dataset", "results/1.1.json"),
        ("cats-results", "dataset", "page/index.html"),
    ):
        api.upload_file(path_or_fileobj=b"old", path_in_repo=path, repo_id=f"{OWNER}/{name}", repo_type=kind)
    changed = tmp_path / "cats"
    shutil.copytree(challenge, changed)
    (changed / "board.yaml").write_text("reveal:\n  val: 2099-01-01\n")
    push(changed)
    assert "old.whl" not in hub.list_files(REPOSITORY, "space")
    assert "page/index.html" in hub.list_files(f"{REPOSITORY}-results")
    private = hub.list_files(f"{REPOSITORY}-private")
    assert {"bundle/board.yaml", "results/1.1.json"} <= set(private)
    assert "bundle/old.zip" not in private
    assert json.loads(hub.read(REPOSITORY, "space.json", "space"))["rules"]["phases"][0]["reveal"] == "2099-01-01"


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_push_gets_through_while_the_hub_is_in_trouble(hub: PlayedHub, challenge: Path, fault: str) -> None:
    hub.first_fault = FAULTS[fault]
    push(challenge)
    assert "bundle/annotations/val.zip" in hub.list_files(f"{REPOSITORY}-private")
    assert "app.py" in hub.list_files(REPOSITORY, "space")


def test_a_push_uploads_nothing_to_a_repository_that_is_public_by_mistake(hub: PlayedHub, challenge: Path) -> None:
    push(challenge)
    hub.repositories["dataset", f"{REPOSITORY}-private"].private = False
    before = commits(hub)
    (challenge / "board.yaml").write_text("reveal:\n")
    assert f"{REPOSITORY}-private: is public" in push(challenge, code=3)
    (challenge / "board.yaml").unlink()
    assert commits(hub) == before


@pytest.mark.parametrize(
    ("rights", "fault"),
    [
        ({f"{REPOSITORY}-submissions": "write", f"{REPOSITORY}-private": "read"}, f"may read {REPOSITORY}-private"),
        ({"*": "write"}, f"may read {REPOSITORY}-private"),
        ({f"{REPOSITORY}-results": "write"}, f"may not read {REPOSITORY}-submissions"),
    ],
)
def test_a_token_that_may_do_too_much_or_too_little_is_no_secret_of_the_space(
    hub: PlayedHub, challenge: Path, monkeypatch: pytest.MonkeyPatch, rights: dict[str, str], fault: str
) -> None:
    push(challenge)
    token = hub.add_token(OWNER, rights)
    monkeypatch.setenv("SUBMISSIONS_TOKEN", token)
    output = push(challenge, code=3)
    assert fault in output
    assert token not in output
    assert not hub.repositories["space", REPOSITORY].secrets


def test_public_repositories_know_nothing_of_hidden_splits_and_phases(hub: PlayedHub, tmp_path: Path) -> None:
    challenge = make_challenge(
        tmp_path / "cats", "--protocol", "davis2017", "--truth", str(ROOT / "annotations/sequences-test.zip")
    )
    config, phases = challenge / "challenge_config.yaml", challenge / "evaluation_script/phases.py"
    before, _, after = config.read_text().rpartition("visibility: 3")
    config.write_text(f"{before}visibility: 1{after}")
    before, _, after = phases.read_text().rpartition("LABELS)")
    phases.write_text(f"{before}LABELS, hidden=True){after}")
    push(challenge)
    for (kind, name), is_private in REPOSITORIES.items():
        assert ("test-hard" in hub.history(name, kind)) == is_private * name.endswith("-private")
        stored = hub.repositories[kind, name].commits[-1].files.values()
        truths = {file.sha256 for file in stored} & {hub_digest(challenge / "annotations/all.zip")}
        assert bool(truths) == name.endswith("-private")

    config.write_text(config.read_text().replace("is_public: True", "is_public: False"))
    assert "no phase is public" in push(challenge, code=3)


def hub_digest(path: Path) -> str:
    from segjudge.system.files import digest_of_bytes

    return digest_of_bytes(path)


def test_a_board_of_an_ended_event_becomes_a_static_space(hub: PlayedHub, challenge: Path) -> None:
    from huggingface_hub import HfApi

    push(challenge)
    assert f"{REPOSITORY}-results: has no page" in push(challenge, "--static", code=3)
    api, name = HfApi(), f"{REPOSITORY}-results"
    for path in ("page/index.html", "page/val-val.csv", "results/1.1.json"):
        api.upload_file(path_or_fileobj=b"page", path_in_repo=path, repo_id=name, repo_type="dataset")
    assert "costs nothing" in push(challenge, "--static")
    assert hub.list_files(REPOSITORY, "space") == [".gitattributes", "README.md", "index.html", "val-val.csv"]
    assert b"\nsdk: static\n" in hub.read(REPOSITORY, "README.md", "space")


@pytest.mark.long
def test_each_submission_starts_a_job_that_scores_it(
    hub: PlayedHub, challenge: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import HfApi

    assert "EVALUATOR_TOKEN is not set" in push(challenge, "--evaluator", "job", code=3)
    rights = {f"{REPOSITORY}-submissions": "read", f"{REPOSITORY}-results": "write"}
    monkeypatch.setenv("EVALUATOR_TOKEN", hub.add_token(OWNER, rights))
    assert f"EVALUATOR_TOKEN: may not read {REPOSITORY}-private" in push(challenge, "--evaluator", "job", code=3)
    token = hub.add_token(OWNER, {**rights, f"{REPOSITORY}-private": "write"})
    monkeypatch.setenv("EVALUATOR_TOKEN", token)
    assert "the first one, 1, runs now" in push(challenge, "--evaluator", "job")
    assert "starts a Job" not in push(challenge, "--evaluator", "job")

    settings = SpaceSettings.from_json(hub.read(REPOSITORY, "space.json", "space").decode())
    sample = next((challenge / "examples/val").iterdir())
    assert "was stored" in Space.open(settings, HfApi()).submit(Account("a1", "ann"), "net", "val", str(sample))
    install, _, command = hub.jobs[1]["command"][2].partition(" && exec segjudge ")
    assert shlex.split(install)[-1] == hub.read(REPOSITORY, "requirements.txt", "space").decode().splitlines()[0]
    assert not any(hub.history(name, kind).count(token) for kind, name in REPOSITORIES)
    monkeypatch.setenv("HF_TOKEN", hub.jobs[1]["secrets"]["HF_TOKEN"])
    assert main(shlex.split(command)) == 0
    assert json.loads(hub.read(f"{REPOSITORY}-results", "results/1.1.json"))["scores"]["val"]


def test_build_and_check_need_no_hub(challenge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    out = tmp_path / "built"
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        options = ["--platform", "hugging-face", "--owner", OWNER]
        assert main(["build", str(challenge), *options, "--out", str(out)]) == 0
        assert main(["check", str(challenge), *options]) == 0
    assert "would work on the Hub" in shown.getvalue()
    assert sorted(path.name for path in out.iterdir()) == ["cats", "cats-private", "cats-submissions"]
    (wheel,) = (out / "cats").glob("segjudge-*.whl")
    assert zipfile.is_zipfile(wheel)
    line = (out / "cats/requirements.txt").read_text()
    assert line.startswith(
        f"segjudge[hub] @ https://huggingface.co/spaces/{REPOSITORY}/resolve/main/{wheel.name}#sha256="
    )
    assert f"gradio=={GRADIO} " in (ROOT / "packaging/locks/toolkit.txt").read_text()


@pytest.mark.parametrize("owner", ["my lab", "-lab", "a" * 96, "../x", "a--b"])
def test_names_that_the_hub_refuses_are_refused_first(challenge: Path, owner: str) -> None:
    from segjudge.platforms.hugging_face.settings import name_repository

    with pytest.raises(UsageError):
        name_repository(owner, "cats")
