"""A competition leaves Codabench, and a dump leaves CodaLab; a local server plays Codabench's API and storage."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from segjudge.archive.codabench import export_codabench
from segjudge.archive.codalab import export_codalab
from segjudge.archive.collecting import Collector
from segjudge.archive.event import EventInfo, EventWriter, Exported, describe_missing, open_event
from segjudge.cli import main
from segjudge.evaluation_script.files import HostError
from segjudge.platforms.codabench.push import CodabenchClient


def pack(files: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data if isinstance(data, bytes) else yaml.safe_dump(data))
    return out.getvalue()


DATA = pack({"truth.txt": b"1"})
#: A dump of Codabench that names a program which the storage lost.
DUMP = pack({
    "competition.yaml": {
        "version": "2",
        "title": "Cups",
        "terms": "terms.md",
        "tasks": [{"name": "Task", "reference_data": "reference_data-1.zip", "scoring_program": "scoring_program-1.zip"}],
        "phases": [{"name": "Dev", "tasks": [0]}],
    },
    "terms.md": b"terms",
    "reference_data-1.zip": DATA,
})  # fmt: skip


class Site:
    """The part of Codabench's API that an export calls, and its storage."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.storage_tokens: set[str] = set()
        self.address = ""
        self.dumps: list[dict[str, str]] = []
        #: The looks for a dump until there is one.
        self.looks = 2
        self.arrivals = 1
        self.storage = {"bundle.zip": pack({"competition.yaml": {"title": "Cups", "version": 2}}), "dump.zip": DUMP}
        self.rows = [self.row(7, "ada", 0.5), self.row(8, "bob", 0.75), self.row(9, "ada", 0.1, on_leaderboard=False)]

    def row(self, number: int, owner: str, score: float, **values: Any) -> dict[str, Any]:
        self.storage |= {f"{number}.zip": f"PK {number}".encode(), f"{number}.log": b"scored"}
        return {
            "id": number,
            "owner": owner,
            "status": "Finished",
            "status_details": "",
            "created_when": "2026-01-01 00:00",
            "is_public": False,
            "on_leaderboard": True,
            "scores": [{"column_key": "iou", "score": f"{score:.10f}"}, {"column_key": "error", "score": "0.25"}],
            **values,
        }

    def answer(self, method: str, path: str) -> tuple[int, Any]:
        url = f"{self.address}/storage"
        if path == "/api/competitions/5/":
            columns = [{"key": "iou", "sorting": "desc"}, {"key": "error", "sorting": "asc", "hidden": False}]
            return 200, {"title": "Cups", "leaderboards": [{"columns": columns}], "phases": [{"id": 3, "name": "Dev"}]}
        if path == "/api/competitions/5/get_files/":
            self.looks -= self.looks > 0 and bool(self.dumps)
            dumps = self.dumps if not self.looks else []
            return 200, {"bundle": {"name": "bundle", "url": f"{url}/bundle.zip?signed=1"}, "dumps": dumps}
        if path == "/api/competitions/5/create_dump/" and method == "POST":
            self.dumps = [{"name": "dump", "url": f"{url}/dump.zip?signed=1"}]
            return 201, {"status": "Success."}
        if path == "/api/participants/":
            people = [{"id": 1, "username": "ada", "email": "ada@example.org", "status": "approved"}]
            return 200, people
        if path == "/api/submissions/":
            if self.arrivals:
                self.arrivals -= 1
                rows, self.rows = self.rows, [*self.rows, self.row(10, "bob", 0.2, is_soft_deleted=True)]
                return 200, rows
            return 200, self.rows
        number = path.split("/")[3] if path.endswith("/get_details/") else ""
        if number in ("7", "8", "9"):
            logs = [{"name": "scoring_stdout", "data_file": f"{url}/{number}.log?signed=1"}]
            return 200, {"data_file": f"{url}/{number}.zip?signed=1", "logs": logs, "scoring_result": None}
        return 404, {"detail": "Not found."}


@pytest.fixture
def site() -> Iterator[Site]:
    played = Site()

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path, token = urlsplit(self.path).path, self.headers.get("Authorization", "")
            played.calls.append((self.command, path))
            if path.startswith("/storage/"):
                played.storage_tokens.add(token)
                data = played.storage.get(path.rpartition("/")[2])
                status, data = (404, b"<Error><Code>NoSuchKey</Code></Error>") if data is None else (200, data)
            else:
                status, answer = played.answer(self.command, path) if token == "Token secret" else (401, {})
                data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _handle  # noqa: N815 - the names of the base class

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    played.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield played
    server.shutdown()
    server.server_close()
    thread.join()


def export(site: Site, target: Path, *, people: bool = False) -> Exported:
    writer = EventWriter(f"{target}.partial")
    collector = Collector(CodabenchClient(site.address, "secret"), writer.folder, 10**9, lambda _seconds: None)
    exported = export_codabench(collector, writer, 5, lambda _text: None, people=people)
    writer.write_records(EventInfo("segjudge", "codabench", "site", 5, exported.title), exported)
    writer.finish(str(target))
    return exported


def test_a_competition_leaves_codabench(site: Site, tmp_path: Path) -> None:
    exported = export(site, tmp_path / "event.zip")
    assert exported.is_complete
    assert [call for call in site.calls if call[0] != "GET"] == [("POST", "/api/competitions/5/create_dump/")]
    assert site.storage_tokens == {""}
    with open_event(str(tmp_path / "event.zip")) as event:
        assert event.names("bundle/") == ["bundle/dump.zip", "bundle/uploaded.zip"]
        assert [row.scores["Dev"]["iou"] for row in event.submissions.values()] == [0.5, 0.75, 0.1, 0.2]
        assert event.read(str(event.submissions[7].file)) == b"PK 7"
        assert event.read(event.submissions[8].extra_files["scoring_stdout"]) == b"scored"
        assert event.submissions[9].number == 2
        (board,) = event.boards
        assert [row.submission for row in board.places()] == [8, 7, 10]
        assert (board.labels, board.ascending, board.hidden) == (["iou", "error"], ["error"], False)
        assert [(team.name, team.approved, team.members) for team in event.teams.values()] == [
            ("ada", True, []),
            ("bob", False, []),
        ]
    assert describe_missing(exported.missing) == [
        "Dev: no files of submission 10: withdrawn by its owner, which destroyed its files",
        "Task: no scoring_program: the dump names scoring_program-1.zip but lacks it: the site could not read it",
    ]


def test_addresses_of_people_leave_codabench_only_on_request(site: Site, tmp_path: Path) -> None:
    exported = export(site, tmp_path / "event", people=True)
    assert exported.teams[0].members == [{"name": "ada", "email": "ada@example.org"}]


def test_a_dump_that_never_comes_is_named(site: Site, tmp_path: Path) -> None:
    site.looks = 10**6
    exported = export(site, tmp_path / "event.zip")
    assert "challenge: no dump: the platform names none" in describe_missing(exported.missing)


# ── CodaLab ─────────────────────────────────────────────────────────────────


def codalab(**changes: Any) -> dict[str, Any]:
    """Return the YAML of a dump, as CodaLab writes it: with aliases, and without a version."""
    board = {"label": "Results", "rank": 1}
    return {
        "title": "Cups",
        "image": "logo.png",
        "html": {"overview": "overview.html", "terms": "terms.html"},
        "phases": {
            0: {"label": "Dev", "reference_data": "reference_data_1.zip", "scoring_program": "scoring_program_1.zip"},
            1: {"label": "Final", "reference_data": "reference_data_2.zip", "scoring_program": "scoring_program_1.zip"},
        },
        "leaderboard": {
            "leaderboards": {"results": board},
            "columns": {
                "error": {"leaderboard": board, "label": "Error", "rank": 2, "sort": "asc"},
                "iou": {"leaderboard": board, "label": "IoU", "rank": 1, "sort": "desc"},
            },
        },
        **changes,
    }


FILES = {
    "logo.png": b"\x89PNG", "overview.html": b"o", "terms.html": b"t", "reference_data_1.zip": DATA,
    "scoring_program_1.zip": b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>",
}  # fmt: skip


def test_a_dump_leaves_codalab_with_missing_files_by_phase(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.zip"
    dump.write_bytes(pack({"competition.yaml": codalab(), **FILES}))
    assert main(["leave", "codalab", str(dump), "--out", str(tmp_path / "event.zip")]) == 0
    printed = capsys.readouterr().err
    no_zip = "scoring_program_1.zip is no zip; it may be an error of the site's storage"
    assert f"missing: Dev: no scoring_program: {no_zip}" in printed
    assert "missing: Final: no reference_data: the dump names reference_data_2.zip but lacks it" in printed
    with open_event(str(tmp_path / "event.zip")) as event:
        assert event.info.platform == "codalab"
        assert event.read("bundle/reference_data_1.zip") == DATA
        assert [(board.phase, board.labels, board.ascending) for board in event.boards] == [
            ("Dev", ["iou", "error"], ["error"]),
            ("Final", ["iou", "error"], ["error"]),
        ]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {
                "competition.yaml": codalab(
                    phases={0: {"label": "Dev", "reference_data": "0" * 8 + "-0000" * 3 + "-" + "0" * 12}}
                )
            },
            "Dev names reference_data by a key. This dump holds keys; make one with files",
        ),
        ({"competition.yaml": codalab(version="2")}, "is a bundle of Codabench. Use `segjudge leave codabench NUMBER`"),
        ({"readme.txt": b"x"}, r"lacks competition\.yaml at its top"),
        ({"competition.yaml": b"phases: ["}, r"competition\.yaml"),
    ],
)
def test_other_zips_are_refused_in_a_sentence(tmp_path: Path, files: dict[str, Any], words: str) -> None:
    (tmp_path / "dump.zip").write_bytes(pack(files))
    with pytest.raises(HostError, match=words):
        export_codalab(str(tmp_path / "dump.zip"), EventWriter(tmp_path / "event.partial"))
