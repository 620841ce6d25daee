"""Requests that cannot be answered, numbers that nobody gave, files that come too late, and databases of others."""

from __future__ import annotations

import contextlib
import io
import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from segjudge.server import bundle_import, first_run, leaderboards, store
from segjudge.server.actions import hosting, submitting
from segjudge.server.models import Challenge, StoredFile, StoredMessage
from tests.calls import outcome

from .scenario import bundle_of, config_of
from .staged import Stage, _answer


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("odd")
    config = config_of("Lakes")
    practice, final, *_ = config["challenge_phases"]
    del practice["max_submissions_per_month"], final["max_submissions"]
    (folder / "lakes.zip").write_bytes(bundle_of(config))
    with Stage(folder, folder / "lakes.zip") as made:
        yield made


JSON, FORM = ({"Content-Type": f"application/{kind}"} for kind in ("json", "x-www-form-urlencoded"))
LOGIN, TEAMS, SUBMIT = (
    "/api/auth/login",
    "/api/participants/participant_team",
    "/api/jobs/challenge/1/challenge_phase/1/submission/",
)
UPDATE = {"submission": 10**30, "submission_status": "FAILED", "challenge_phase": 1}
FILE = {"input_file": ("a.json", b"{}")}
FIELD = '400 {"detail":"Multipart form parse error - Field exceeded maximum size of 4KB."}'
LARGE = '413 {"detail":"The body is larger than 16 kB, the limit of this request."}'
HALF = '400 {"detail":"Text contains an incomplete character: \'\\\\ud800\'"}'


@pytest.mark.parametrize(
    ("request_", "who", "options", "expected"),
    [
        (f"GET /api/challenges/challenge/{10**30}/", "", {}, '404 {"detail":"Not found."}'),
        ("PUT /api/jobs/challenge/1/update_submission/", "host", {"json": UPDATE}, f'404 {{"error":"Submission {10**30} does not exist"}}'),
        (f"POST {LOGIN}", "", {"data": {"username": "x" * (4 << 10)}}, FIELD),
        (f"POST {LOGIN}", "", {"data": {"username": "x" * (5 << 10)}}, FIELD),
        (f"POST {LOGIN}", "", {"data": {"username": "x" * (17 << 10)}}, LARGE),
        (f"POST {LOGIN}", "", {"data": [b"x" * 9000, b"x" * 9000], "headers": FORM}, LARGE),  # without its length
        (f"POST {TEAMS}", "aurora", {"data": b'{"team_name": ["a", {"b": "\\ud800"}]}', "headers": JSON}, HALF),
        (f"POST {TEAMS}", "aurora", {"data": b'{"\\ud800": 1}', "headers": JSON}, HALF),
        (f"POST {TEAMS}", "aurora", {"data": b"[1]", "headers": JSON}, '400 {"detail":"JSON parse error - an object is expected"}'),
        (f"POST {TEAMS}", "aurora", {"data": b" ", "headers": JSON}, '400 {"team_name":["This field may not be blank."]}'),
        (
            f"POST {SUBMIT}", "aurora", {"data": {"submission_metadata": f'["{"x" * ((1 << 16) - 3)}"]'}, "files": FILE},
            '406 {"submission_metadata":["Ensure this field has no more than 65536 characters."]}',
        ),
        (
            f"POST {SUBMIT}", "aurora", {"data": {"submission_metadata": "[NaN]"}, "files": FILE},
            '406 {"submission_metadata":["Value must be valid JSON."]}',
        ),
    ],
    ids=range(12),
)  # fmt: skip
def test_a_request_that_cannot_be_answered_is_refused(
    request_: str, who: str, options: dict[str, Any], expected: str, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer_in_parts(app: Any, request: Any) -> Any:
        request.body = b"".join(request.body)
        return await _answer(app, request)

    if isinstance(options.get("data"), list):
        options = {**options, "data": iter(options["data"])}
        monkeypatch.setattr("tests.server.staged._answer", answer_in_parts)
    answer = stage.call(*request_.split(), who, **options)
    assert f"{answer.status_code} {answer.text}" == expected


def test_an_approved_challenge_is_approved_again(stage: Stage) -> None:
    with patch.object(stage.services.store, "exists", return_value=True):
        answer = stage.get("/api/challenges/1/request_approval", "host")
    assert (answer.status_code, answer.text) == (200, '{"message":"Approval request sent!"}')


def test_phases_have_limits_that_nobody_gave(stage: Stage) -> None:
    phases = stage.services.store.phases(1)[:3]
    limits = {
        p.codename: [p.config.get(f"max_submissions{end}") for end in ("", "_per_month", "_per_day")] for p in phases
    }
    assert limits == {"practice": [40, 40, 9], "final": [100000, 2, 2], "secret": [100000, 90, 100000]}


@pytest.mark.parametrize(
    ("value", "key"), [(0.5, 0.5), (3, 3.0), (True, 1.0), (math.nan, 0.0), (math.inf, 0.0), (-math.inf, 0.0), ("0.5", 0.0), (None, 0.0)]
)  # fmt: skip
def test_a_leaderboard_sorts_by_numbers(value: Any, key: float) -> None:
    entry = store.BoardEntry(1, {"a": value}, {"error_a": value}, 1, 1, "t", "m", False, 0.0)
    for descending, sign in ((True, -1), (False, 1)):
        keys = [leaderboards._sort_key(entry, name, descending=descending) for name in "ab"]
        assert keys == [(sign * key, key), (sign * 0.0, 0.0)]


def test_an_update_cannot_take_the_address_of_a_renamed_phase(stage: Stage, tmp_path: Path) -> None:
    config = config_of("Lakes")
    phases = config["challenge_phases"]
    phases.append({**phases[0], "id": 7, "codename": "Practice"})
    phases[0]["codename"] = "practise"  # its address on the server keeps the earlier codename
    (tmp_path / "lakes.zip").write_bytes(bundle_of(config))
    repository = stage.services.store.require(Challenge, 1).repository
    refused = bundle_import.refuse_bundle(stage.services, str(tmp_path / "lakes.zip"), repository)
    assert "slug" in refused
    assert bundle_import.refuse_bundle(stage.services, str(tmp_path / "lakes.zip"), "new/one") == ""


def board_of(rows: list[tuple[int, dict[str, float], bool]], order: str = "", **flags: bool) -> tuple[list[str], Any]:
    """Return teams and ranks of a board with these rows (team, result, baseline), and the board; team 1 is the host's."""
    entries = [
        store.BoardEntry(number, result, {"error_a": result.get("error", 0.0)}, number, team, f"t{team}", "m", baseline, -float(number))
        for number, (team, result, baseline) in enumerate(rows)
    ]  # fmt: skip
    read: list[tuple[str, ...]] = []
    stored: Any = SimpleNamespace(
        board_entries=lambda _split, statuses: read.append(statuses) or entries,  # type: ignore[func-returns-value]
        require=lambda *_: SimpleNamespace(host_team=1),
        find=lambda *_: [SimpleNamespace(user_id=1, team_id=1)],
    )
    schema = {"default_order_by": "a", "metadata": {"b": {"sort_ascending": True}}}
    split: Any = SimpleNamespace(
        id=1, labels=["a", "b"], descending=True, decimals=2, leaderboard=SimpleNamespace(schema=schema)
    )
    phase: Any = SimpleNamespace(challenge_id=1, flag=lambda name: flags.get(name, False))
    board = leaderboards.board_of(stored, phase, split, order)
    assert read == [
        ("finished", "partially_evaluated") if flags.get("is_partial_submission_evaluation_enabled") else ("finished",)
    ]
    return [f"{rank} {row.team_name}" for rank, row in zip(board.ranks, board.rows, strict=True)], board


def test_a_board_ranks_the_best_row_of_each_team() -> None:
    rows = [
        (2, {"a": 0.5, "b": 3.0}, False),
        (3, {"a": 0.5, "b": 1.0}, False),
        (2, {"a": 0.4, "b": 0.5}, False),
        (4, {"a": 0.5, "error": 0.1}, False),
    ]
    ranked, board = board_of(rows)
    assert ranked == ["1 t2", "1 t3", "3 t4"]
    assert (board.order, board.descending, board.labels, board.decimals) == ("a", True, ["a", "b"], 2)
    assert [entry.id for entry in board.history] == [3, 2, 1, 0], "by time of submission"
    ranked, board = board_of(rows[:3], "b")
    assert (ranked, board.order, board.descending) == (["1 t2", "2 t3"], "b", False)
    assert [row.id for row in board.rows] == [2, 1]
    assert board_of(rows, "none")[1].order == "a"


def test_hosts_are_on_a_public_board_only_by_their_baselines() -> None:
    rows = [(1, {"a": 0.9}, False), (1, {"a": 0.3}, True), (2, {"a": 0.5}, False)]
    assert board_of(rows, is_public=True)[0] == ["1 t2", "2 t1"]
    assert board_of(rows, is_public=False, is_partial_submission_evaluation_enabled=True)[0] == ["1 t1", "2 t2"]
    assert len(board_of(rows, is_public=True)[1].history) == 2


@pytest.mark.parametrize(
    ("dots", "descending", "ascending"),
    [
        ([], "", ""),
        ([(1.0, 2.0)], "M1.0 2.0H628", "M1.0 2.0H628"),
        ([(1.0, 2.0), (3.0, 2.0), (4.0, 1.0), (5.0, 3.0)], "M1.0 2.0H4.0V1.0H628", "M1.0 2.0H5.0V3.0H628"),
    ],
)
def test_the_best_score_is_a_line_of_steps(dots: Any, descending: str, ascending: str) -> None:
    for is_descending, path in ((True, descending), (False, ascending)):
        board: Any = SimpleNamespace(descending=is_descending)
        assert leaderboards._best_score_path(dots, board) == path


def test_files_that_come_too_late_are_not_kept(stage: Stage) -> None:
    services = stage.services
    file = services.files.keep(b"part", "part 1", "part")
    submitting.keep_part(services, ("gone", 1), file, "tag")
    assert (services.files.row(file), outcome(lambda: services.files.path(file))) == (None, f"KeyError: '{file}'")
    answer = stage.call("POST", SUBMIT, "aurora", files=FILE)
    number = int(answer.json()["id"])
    for status, ends, names in (("cancelled", "cancelled", []), ("running", "submitted", ["product.json"])):
        services.submissions.update(number, status=status)
        hosting.take_product(services, {"submission": number}, io.BytesIO(b"x"), "product.json")
        row = services.submissions.get(number)
        queued = [message.body["submission_pk"] for message in services.store.find(StoredMessage)]
        kept = [each.name for each in services.store.find(StoredFile, StoredFile.kind == "submission_input_file")]
        assert (row.status, bool(row.submission_input_file), kept) == (ends, bool(names), names)
        assert queued == [number] * (1 + bool(names))
    for name, jobs in (("n" * 201, ["n" * 200]), ("", ["n" * 200]), ("pod", ["n" * 200, "pod"])):
        hosting.start_scoring(services, {"submission": number, "submission_status": "RUNNING", "job_name": name})
        assert services.submissions.get(number).job_name == jobs


# ── databases ───────────────────────────────────────────────────────────────


def test_a_database_is_opened_by_its_version_only(tmp_path: Path) -> None:
    data, start = str(tmp_path / "data"), "Start over with --reset, which deletes what is stored, or"
    path = f"{data}/{store.DATABASE}"
    for _ in range(2):
        store.Store(data).close()
    for version, age, remedy in (
        (1, "an older", f"{start} use the version that made it"),
        (3, "a newer", f"{start} update segjudge to the version that made it"),
    ):
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE settings SET value = ? WHERE key = 'schema'", (version,))
        error = f"was made by {age} version of the rehearsal (schema {version}, this one has 2). {remedy}"
        assert outcome(lambda: store.Store(data)) == f"HostError: {path}: {error}"
    (tmp_path / "no" / store.DATABASE).mkdir(parents=True)
    error = "cannot be used as a database (unable to open database file)"
    assert outcome(lambda: store.Store(str(tmp_path / "no"))) == f"HostError: {tmp_path}/no/{store.DATABASE}: {error}"


@pytest.mark.parametrize(
    ("names", "removed"), [(["letter"], False), ([".segjudge-rehearsal", "letter"], True), (["lock"], True)]
)
def test_only_folders_of_rehearsals_are_removed(names: list[str], removed: bool, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in names:
        (data / name).touch()
    error = f"HostError: {data}: holds something other than a rehearsal, so it is not emptied"
    assert outcome(lambda: first_run.reset(str(data))) == (None if removed else error)
    assert data.exists() is not removed


def test_a_folder_that_stays_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".segjudge-rehearsal").touch()
    monkeypatch.setattr(first_run.shutil, "rmtree", lambda *_, **_named: None)
    assert outcome(lambda: first_run.reset(str(tmp_path))) == f"HostError: {tmp_path}: could not be emptied"
