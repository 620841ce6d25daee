"""What a host's own script writes is shown to participants only below the names of splits that they may see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from segjudge.server.actions import reading
from segjudge.server.models import Challenge, StoredFile, Submission

from .scenario import bundle_of, config_of
from .staged import Stage

WITHHELD = "[withheld: only hosts may see some splits of this phase, and its script might print their scores here]"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield a server with a submission to a phase whose split lakes is visible and whose split ponds is hidden."""
    folder = tmp_path_factory.mktemp("withheld")
    (folder / "lakes.zip").write_bytes(bundle_of(config_of("Lakes", remote_evaluation=True)))
    with Stage(folder, folder / "lakes.zip") as opened:
        path = "/api/jobs/challenge/1/challenge_phase/1/submission/"
        opened.call("POST", path, "aurora", files={"input_file": ("a.zip", b"x")})
        yield opened


def read(stage: Stage, column: str) -> str:
    """Return a file of the submission as its participants read it."""
    url = stage.get("/api/jobs/submission/1", "aurora").json()[column]
    return stage.get(url.removeprefix(stage.address)).text


@pytest.mark.parametrize(
    ("column", "text", "shown"),
    [
        ("stderr_file", "Traceback\n  ponds: 0.3\nValueError: ponds 0.3", f"ValueError: {WITHHELD}"),
        ("stderr_file", "x\na.b.Error: x\n\n", f"a.b.Error: {WITHHELD}"),
        ("stderr_file", "ponds 0.3: x", WITHHELD),
        ("stdout_file", "ponds 0.3", WITHHELD),
        ("submission_result_file", "{", WITHHELD),
        ("submission_result_file", '"lakes"', WITHHELD),
        ("submission_result_file", '[{"ponds": 1}]', WITHHELD),
        ("submission_result_file", '[{"lakes": {"a": 1}}, {"ponds": {"a": 2}}, {"Lakes": [1], "Ponds": 2}]',
         '[{"lakes": {"a": 1}}, {"Lakes": [1]}]'),
        ("submission_result_file", '[["lakes", 1], ["ponds", 2], ["lakes", "ponds"], {"split": "lakes", "a": [3]}, {"split": "Ponds"}]',
         '[["lakes", 1], {"split": "lakes", "a": [3]}]'),
        ("submission_result_file", '{"x": {"y": {"lakes": {"ponds": 1}, "z": 3}}, "ponds": {"lakes": 1}}', '{"x": {"y": {"lakes": {"ponds": 1}}}}'),
        ("submission_result_file", "[" * 201 + '{"lakes": 1}' + "]" * 201, WITHHELD),
        ("submission_result_file", "[" * 200 + '{"lakes": 1}' + "]" * 200, "[" * 200 + '{"lakes": 1}' + "]" * 200),
        ("submission_result_file", "[" * 100_000, WITHHELD),
    ],
    ids=range(13),
)  # fmt: skip
def test_only_what_belongs_to_a_visible_split_is_shown(column: str, text: str, shown: str, stage: Stage) -> None:
    stage.services.submissions.keep_texts(1, **{column: text})
    assert read(stage, column) == shown


def test_a_large_file_and_one_of_a_script_that_cannot_be_read_are_withheld(stage: Stage) -> None:
    services = stage.services
    services.submissions.keep_texts(1, submission_result_file='{"lakes": 1}')
    row = services.store.require(Submission, 1)
    for size, shown in ((32 << 20, '{"lakes": 1}'), ((32 << 20) + 1, WITHHELD)):
        services.store.change(StoredFile, row.submission_result_file, size=size)
        assert read(stage, "submission_result_file") == shown
    Path(services.files.path(services.store.require(Challenge, 1).script)).write_bytes(b"no zip")
    reading._is_our_script.cache_clear()
    assert read(stage, "stdout_file") == WITHHELD
