"""Uploads to Codabench, whose API is played over real HTTP."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from segjudge.cli import main
from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.codabench import push
from segjudge.platforms.codabench.push import CodabenchAccount, CompetitionPush, NotUnpackedError
from tests.codabench_server import TOKEN, CodabenchServer, codabench_server
from tests.demo_challenge import CODENAMES

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[CodabenchServer]:
    with codabench_server() as played:
        monkeypatch.setenv("CODABENCH_HOST", played.address)
        monkeypatch.setenv("CODABENCH_TOKEN", TOKEN)
        monkeypatch.setattr(push, "_PAUSE", 0.01)
        yield played


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "dev.zip"
    path.write_bytes(b"the bytes of a bundle")
    return path


def uploader(server: CodabenchServer, root: Path) -> CompetitionPush:
    return CompetitionPush(CodabenchAccount(server.address, TOKEN), str(root))


def test_a_bundle_is_uploaded_and_its_outcome_waited_for(server: CodabenchServer, bundle: Path, tmp_path: Path) -> None:
    server.looks = 3
    uploads = uploader(server, tmp_path)
    done = uploads.wait_for_outcome("dev.zip", uploads.upload("dev.zip", str(bundle)))
    assert done.number == 101
    (data_set,) = server.data_sets.values()
    assert data_set["type"] == "competition_bundle"
    assert data_set["bytes"] == b"the bytes of a bundle"
    assert data_set["file_size"] == len(data_set["bytes"])
    assert [call[:2] for call in server.calls].count(("GET", "/api/competitions/1/creation_status/")) == 4


def test_the_token_does_not_go_to_the_storage(server: CodabenchServer, bundle: Path, tmp_path: Path) -> None:
    uploader(server, tmp_path).upload("dev.zip", str(bundle))
    assert [token for _, path, token in server.calls if path.startswith("/storage/")] == [""]


def test_what_was_pushed_is_remembered_until_it_is_deleted_there(
    server: CodabenchServer, bundle: Path, tmp_path: Path
) -> None:
    uploads = uploader(server, tmp_path)
    done = uploads.wait_for_outcome("dev.zip", uploads.upload("dev.zip", str(bundle)))
    assert uploader(server, tmp_path).find_last_upload("dev.zip") == done
    server.competitions.clear()
    assert uploader(server, tmp_path).find_last_upload("dev.zip") is None


def test_servers_are_remembered_apart(server: CodabenchServer, bundle: Path, tmp_path: Path) -> None:
    uploader(server, tmp_path).upload("dev.zip", str(bundle))
    elsewhere = CompetitionPush(CodabenchAccount("https://codabench.example", TOKEN), str(tmp_path))
    assert elsewhere.find_last_upload("dev.zip") is None


def test_an_upload_is_remembered_before_its_outcome(server: CodabenchServer, bundle: Path, tmp_path: Path) -> None:
    server.looks = 10_000
    uploads = uploader(server, tmp_path)
    pushed = uploads.upload("dev.zip", str(bundle))
    with pytest.raises(HostError, match="still unpacks upload 1"):
        uploads.wait_for_outcome("dev.zip", pushed, patience=0.1)
    assert uploader(server, tmp_path).find_last_upload("dev.zip") == pushed


def test_a_refusal_comes_in_codabenchs_words_and_is_not_remembered(
    server: CodabenchServer, bundle: Path, tmp_path: Path
) -> None:
    server.refusal = "Unable to find image: logo.png"
    uploads = uploader(server, tmp_path)
    pushed = uploads.upload("dev.zip", str(bundle))
    with pytest.raises(NotUnpackedError, match="Unable to find image"):
        uploads.wait_for_outcome("dev.zip", pushed)
    assert uploads.find_last_upload("dev.zip") is None


@pytest.mark.parametrize("status", [300, 307, 403, 500])
def test_a_storage_that_refuses_ends_the_push_before_a_competition(
    server: CodabenchServer, bundle: Path, tmp_path: Path, status: int
) -> None:
    server.storage_status = status
    with pytest.raises(HostError, match=rf"the storage refuses the bundle \({status}: .*nothing was created"):
        uploader(server, tmp_path).upload("dev.zip", str(bundle))
    assert server.uploads == []


def test_a_token_is_got_by_name_and_password(server: CodabenchServer) -> None:
    found = {"CODABENCH_HOST": server.address, "CODABENCH_USERNAME": "host", "CODABENCH_PASSWORD": "secret"}
    assert CodabenchAccount.read(found, "/no/such/file").token == TOKEN
    with pytest.raises(HostError, match="Unable to log in"):
        CodabenchAccount.read({**found, "CODABENCH_PASSWORD": "wrong"}, "/no/such/file")
    assert server.calls == [("POST", "/api/api-token-auth/", "")] * 2, "not even an empty header"


@pytest.mark.long
def test_a_challenge_is_pushed_by_name_and_password(
    server: CodabenchServer, challenge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CODABENCH_TOKEN")
    monkeypatch.setenv("CODABENCH_USERNAME", "host")
    monkeypatch.setenv("CODABENCH_PASSWORD", "secret")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))  # whose entry would become a header of its own
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else\n")
    (tmp_path / "netrc").chmod(0o600)
    assert pushed(challenge) == 0
    assert len(server.uploads) == len(CODENAMES)
    assert {token for _, path, token in server.calls if "token-auth" in path} == {""}


def test_a_login_that_nobody_answers_is_not_blamed_on_the_password() -> None:
    found = {"CODABENCH_HOST": "http://127.0.0.1:9", "CODABENCH_USERNAME": "host", "CODABENCH_PASSWORD": "secret"}
    with pytest.raises(HostError, match="does not answer.*Try again later"):
        CodabenchAccount.read(found, "/no/such/file")


def test_a_wrong_token_is_said_without_showing_it(server: CodabenchServer, bundle: Path, tmp_path: Path) -> None:
    uploads = CompetitionPush(CodabenchAccount(server.address, "verysecret"), str(tmp_path))
    with pytest.raises(HostError, match="Your token is wrong") as raised:
        uploads.upload("dev.zip", str(bundle))
    assert "verysecret" not in str(raised.value)


def test_no_token_goes_over_http_to_another_machine() -> None:
    with pytest.raises(HostError, match="over https only"):
        CodabenchAccount.read({"CODABENCH_HOST": "http://codabench.example", "CODABENCH_TOKEN": TOKEN}, "/no/such/file")


@pytest.fixture
def challenge(tmp_path: Path) -> Path:
    """A copy of the demo, so that nothing is remembered in this checkout."""
    folder = tmp_path / "challenge"
    shutil.copytree(
        ROOT / "evaluation_script", folder / "evaluation_script", ignore=shutil.ignore_patterns("*.so*", "__pycache__")
    )
    for name in ("annotations", "templates", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("challenge_config.yaml", "logo.png"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def pushed(challenge: Path, *words: str) -> int:
    return main(["push", "--platform", "codabench", "--bundle", str(challenge), *words])


@pytest.mark.long
def test_a_second_push_makes_no_second_competition(
    server: CodabenchServer, challenge: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pushed(challenge) == 0
    assert "sequences-dev.zip: became competition 101" in capsys.readouterr().out
    assert pushed(challenge) == 0
    assert "sequences-dev.zip: is competition 101" in capsys.readouterr().out
    assert len(server.uploads) == len(CODENAMES)
    state = json.loads((challenge / ".segjudge" / "codabench.json").read_text())
    numbers = [row["number"] for row in state[server.address].values()]
    assert numbers == [101 + place for place in range(len(CODENAMES))]


@pytest.mark.long
def test_a_changed_bundle_is_not_uploaded_again_unasked(
    server: CodabenchServer, challenge: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pushed(challenge) == 0
    (challenge / "templates" / "description.html").write_text("<p>changed</p>")
    assert pushed(challenge) == 3
    assert "has changed since" in capsys.readouterr().err
    assert len(server.uploads) == len(CODENAMES)
    assert pushed(challenge, "--again") == 0
    assert len(server.uploads) == 2 * len(CODENAMES)


def test_what_check_refuses_is_not_uploaded(server: CodabenchServer, tmp_path: Path) -> None:
    (tmp_path / "competition.yaml").write_text("version: 2\n")
    assert pushed(tmp_path) == 3
    assert server.calls == []


@pytest.mark.long
def test_a_dry_run_asks_nobody(server: CodabenchServer, challenge: Path) -> None:
    assert pushed(challenge, "--dry-run") == 0
    assert server.calls == []
