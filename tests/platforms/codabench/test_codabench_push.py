"""Uploads to Codabench, whose API is simulated over real HTTP."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from segjudge.cli import main
from segjudge.platforms.codabench import push
from segjudge.platforms.codabench.push import CodabenchAccount, CompetitionPush
from tests.codabench_server import TOKEN, CodabenchServer, codabench_server

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


def test_a_split_that_is_hidden_since_its_upload_is_named_while_the_competition_exists(
    server: CodabenchServer, bundle: Path, tmp_path: Path
) -> None:
    uploads = uploader(server, tmp_path)
    for name in ("dev.zip", "test.zip"):
        stem = name.removesuffix(".zip")
        pushed = uploads.upload(name, str(bundle), [f"{stem}/val", f"{stem}/hard"])
        uploads.wait_for_outcome(name, pushed)
    server.competitions.remove(102)
    (warning,) = uploads.describe_withdrawn(["dev/val", "other/val"])
    assert warning == (
        "warning: competition 101 still shows the scores of dev/hard, now hidden. Its leaderboard and Codabench's API "
        f"serve them to everybody. Delete the competition on its page, {server.address}/competitions/101/, then push "
        "with --again."
    )


@pytest.fixture
def challenge(tmp_path: Path) -> Path:
    """Return a copy of the demo, so that this checkout stores nothing."""
    folder = tmp_path / "challenge"
    shutil.copytree(
        ROOT / "evaluation_script", folder / "evaluation_script", ignore=shutil.ignore_patterns("*.so*", "__pycache__")
    )
    for name in ("annotations", "templates", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("challenge_config.yaml", "logo.png"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def pushed(challenge: Path, *arguments: str) -> int:
    return main(["push", "--platform", "codabench", "--bundle", str(challenge), *arguments])


def test_what_check_refuses_is_not_uploaded(server: CodabenchServer, tmp_path: Path) -> None:
    (tmp_path / "competition.yaml").write_text("version: 2\n")
    assert pushed(tmp_path) == 3
    assert server.calls == []


def test_a_bundle_with_the_same_files_has_not_changed(server: CodabenchServer, tmp_path: Path) -> None:
    """Dates, order and compression differ between machines; files in zips count one by one."""

    def write(path: Path, names: list[str], compression: int, year: int, truth: bytes = b"truth") -> Path:
        inner = io.BytesIO()
        with zipfile.ZipFile(inner, "w", compression) as archive:
            archive.writestr(zipfile.ZipInfo("truth.txt", (year, 1, 1, 0, 0, 0)), truth)
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name in names:
                archive.writestr(name, inner.getvalue() if name.endswith(".zip") else name)
        return path

    first = write(tmp_path / "first.zip", ["competition.yaml", "ref.zip"], zipfile.ZIP_STORED, 2000)
    other_way = write(tmp_path / "second.zip", ["ref.zip", "competition.yaml"], zipfile.ZIP_DEFLATED, 2020)
    changed = write(tmp_path / "third.zip", ["competition.yaml", "ref.zip"], zipfile.ZIP_STORED, 2000, b"another")
    pushed = uploader(server, tmp_path).upload("dev", str(first))
    assert pushed.is_of(str(other_way))
    assert not pushed.is_of(str(changed))
