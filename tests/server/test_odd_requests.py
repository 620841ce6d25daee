"""Requests that cannot be answered, numbers that nobody gave, files that come too late, and databases of others."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segjudge.server import bundle_import, first_run
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
