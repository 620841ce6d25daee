"""`segjudge board`: leaderboards as a page, CSV and badges, for a project's site."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from segjudge.cli import main
from segjudge.commands.shared import listen
from segjudge.report.boards import Board
from segjudge.server.server import LOOPBACK, make_server_config
from segjudge.server.submissions import SplitScores
from tests.server.scenario import bundle_of, config_of
from tests.server.staged import Stage

#: Scores of leaderboards that everybody sees, and of all others.
PUBLIC, SECRET = 0.7512987, 0.4312765
ERROR = 0.0134567


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield a server with a submission to each phase; the second leaderboard is not public, nor the third phase."""
    folder = tmp_path_factory.mktemp("boards")
    (folder / "lakes.zip").write_bytes(bundle_of(config_of("Lakes", remote_evaluation=True)))
    with Stage(folder, folder / "lakes.zip") as opened:
        for phase in opened.services.store.phases(1):
            number = opened.call(
                "POST", f"/api/jobs/challenge/1/challenge_phase/{phase.id}/submission/", "host",
                data={"is_public": "true"}, files={"input_file": ("a.zip", b"masks")},
            ).json().get("id")  # fmt: skip
            if number is None:  # the phase takes none any more
                continue
            scores = []
            for split in opened.services.store.splits_of(phase.id):
                is_public = phase.codename not in ("final", "secret") and split.visibility == 3
                values = dict.fromkeys(split.labels, PUBLIC if is_public else SECRET)
                errors = {f"error_{label}": ERROR for label in split.labels}
                scores.append(SplitScores(split.id, values, errors))
            opened.services.submissions.end(number, "finished", scores)
            opened.services.submissions.update(number, is_public=True, is_baseline=True)
        yield opened


@pytest.fixture(scope="module")
def address(stage: Stage) -> Iterator[str]:
    """Yield the server, answering on a port."""
    port = listen(LOOPBACK, 0)
    server = uvicorn.Server(make_server_config(stage._app))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [port]})
    thread.start()
    yield f"http://{LOOPBACK}:{port.getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture(autouse=True)
def host(stage: Stage, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the variables that `push` needs."""
    monkeypatch.setenv("EVALAI_HOST", address)
    monkeypatch.setenv("EVALAI_TOKEN", stage.people["host"]["token"])
    monkeypatch.setenv("EVALAI_HOST_TEAM", stage.people["host"]["team"])
    monkeypatch.setattr(time, "sleep", lambda _seconds: pytest.fail("the server was busy"))


def files_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def test_a_board_shows_what_an_anonymous_visitor_sees_though_a_host_writes_it(tmp_path: Path, capsys: Any) -> None:
    assert main(["board", "1", "--out", str(tmp_path / "board")]) == 0
    files = files_of(tmp_path / "board")
    assert not [name for name, text in files.items() if "43.1" in text or "0.43" in text or "Hidden results" in text]
    assert f"{PUBLIC},{ERROR}" in files["1.csv"]
    assert "± is half a 95 % interval, from the standard error." in files["index.html"]
    assert f"{1.96 * ERROR:.3f}" in files["index.html"]
    assert "0.75" in files["1.svg"]
    assert "Final" not in files["index.html"]
    assert "Ponds" not in files["index.html"]
    assert "Secret" not in files["index.html"]
    assert "hidden" not in capsys.readouterr().err


def test_places_are_possible_unless_intervals_are_apart() -> None:
    def list_places(*pairs: tuple[float, object]) -> list[str]:
        rows = [{"rank": 1, "Score": value, **({} if error is None else {"Score ±": error})} for value, error in pairs]
        return Board(1, "Test / Lakes", "Score", 2, rows).list_places()

    assert list_places((0.9, 0.01), (0.89, 0.01), (0.5, 0.02)) == ["1–2", "1–2", "3"]
    assert list_places((0.1, 0.01), (0.5, 0.01)) == ["1", "2"]  # where smaller is better
    assert list_places((0.5, 0.0), (0.5, 0.0), (0.4, 0.0)) == ["1–2", "1–2", "3"]
    # 2.24 standard errors for two rows, 2.39 for three.
    assert list_places((0.545, 0.01), (0.5, 0.01)) == ["1", "2"]
    assert list_places((0.545, 0.01), (0.5, 0.01), (0.1, 0.0)) == ["1–2", "1–2", "3"]
    assert list_places((0.9, 0.01), (0.8, None)) == []
    assert list_places() == []


def test_a_board_of_a_host_says_that_it_holds_hidden_results(tmp_path: Path, capsys: Any) -> None:
    assert main(["board", "1", "--out", str(tmp_path / "board"), "--as-host"]) == 0
    files, output = files_of(tmp_path / "board"), capsys.readouterr().err
    secret_files = [name for name, text in files.items() if "4312" in text]
    assert len(secret_files) > 3
    assert all("hidden" in name for name in secret_files if name != "index.html")
    assert "This page contains results that the server hides from visitors. Do not publish it." in files["index.html"]
    assert all("hidden Score" in text for name, text in files.items() if name.endswith("hidden.svg"))
    assert "holds hidden results" in output
    assert "Secret / Lakes" in output


def test_a_board_of_a_host_needs_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.delenv("EVALAI_TOKEN")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["board", "1", "--out", str(tmp_path / "board"), "--as-host"]) == 3
    assert "EVALAI_TOKEN" in capsys.readouterr().err
    assert not (tmp_path / "board").exists()
