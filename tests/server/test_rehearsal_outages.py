"""An unreachable or locked database, and a full disk, are temporary states of the rehearsal, which then continues."""

from __future__ import annotations

import errno
import io
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from segjudge.server import store
from segjudge.server.models import StoredFile, Submission
from segjudge.server.services import Services
from tests.rehearsals import Rehearsal, waited
from tests.server.test_rehearsal_stop import slow_bundle


@contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Let another program write into the database."""
    with closing(sqlite3.connect(f"{folder}/rehearsal.sqlite3", isolation_level=None)) as second:
        second.execute("BEGIN IMMEDIATE")
        yield
        second.execute("ROLLBACK")


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """Yield a rehearsal whose writers soon lose patience."""
    monkeypatch.setattr(store, "_WAIT_SECONDS", 0.05)
    made = Services(str(tmp_path / "data"))
    yield made
    made.store.close()


def test_an_upload_that_cannot_be_stored_leaves_no_file(services: Services) -> None:
    class Breaking(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            if self.tell():
                raise OSError(errno.ENOSPC, "no space")
            self.seek(1)
            return b"the beginning"

    folder = Path(services.store.folder) / "files"
    with pytest.raises(OSError, match="no space"):
        services.files.keep(Breaking(), "x.zip", "input_file")
    with locked(services.store.folder), pytest.raises(OperationalError):
        services.files.keep(b"x", "x.zip", "input_file")
    assert list(folder.iterdir()) == []


def test_what_a_killed_server_left_is_swept(services: Services) -> None:
    folder = Path(services.store.folder)
    kept = services.files.keep(b"the input of nothing", "x.zip", "input_file")
    (folder / "files" / ("0" * 32)).write_bytes(b"without a row")
    (folder / "push-x").mkdir()
    services.files.sweep()
    assert list((folder / "files").iterdir()) == []
    assert not (folder / "push-x").exists()
    assert services.files.row(kept) is None


# ── a server ────────────────────────────────────────────────────────────────


def rehearsal(folder: Path, **more: Any) -> Rehearsal:
    options = ("--requests-per-minute", "100000", "--workers", "2", "--visibility", "4")
    return Rehearsal(folder / "data", options, bundle=slow_bundle(folder), **more).start()


def healthy(server: Rehearsal, status: int) -> Any:
    """Return the monitoring once the server's state has changed."""

    def look() -> Any:
        answer = server.get("/healthz")
        return answer.json() if answer.status_code == status else None

    return waited(look)


def goes_on(server: Rehearsal, numbers: list[int]) -> None:
    """Check that everything that was accepted is scored, and that nothing else is left."""
    for number in numbers:
        assert server.settled(number)["status"] == "finished"
    health = healthy(server, 200)
    assert [loop["name"] for loop in health["loops"]] == ["worker 1", "worker 2", "report pages"]
    page = server.session("host").get(f"{server.address}/challenges/1/host", timeout=60).text
    assert "Background loops last ran (UTC): worker 1 20" in page
    with server.store() as opened:
        rows = {file.id for file in opened.find(StoredFile)}
        assert rows == set(os.listdir(server.data / "files"))
    server.stop()
    assert "Traceback" not in server.errors()


@pytest.mark.long
def test_a_server_that_is_killed_under_uploads_leaves_no_file_behind(tmp_path: Path) -> None:
    server = rehearsal(tmp_path)
    ending = threading.Event()

    def upload() -> None:
        while not ending.is_set():
            with suppress(OSError):
                server.submit("aurora", b"0.5 0.1".ljust(1 << 20))

    for _ in range(4):
        threads = [threading.Thread(target=upload) for _ in range(6)]
        ending.clear()
        for thread in threads:
            thread.start()
        time.sleep(1)
        server.stop(signal.SIGKILL)
        ending.set()
        for thread in threads:
            thread.join()
        server.start()
    with server.store() as opened:
        rows = opened.find(Submission)
        files = {row.input_file for row in rows} <= set(os.listdir(server.data / "files"))
    assert files
    goes_on(server, [row.id for row in rows])
