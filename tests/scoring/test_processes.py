"""The number of processes for `auto`: one for files that are counted quickly."""

from __future__ import annotations

from pathlib import Path

import pytest

from segjudge.scoring import request

MEGABYTE = 1 << 20


@pytest.fixture(autouse=True)
def three_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "cores", lambda: 3)


def write(path: Path, megabytes: int) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(megabytes * MEGABYTE)
    return str(path)


def test_auto_is_one_process_where_files_are_small(tmp_path: Path) -> None:
    results, truth = write(tmp_path / "results.zip", 20), write(tmp_path / "truth.zip", 11)
    assert request.count_processes("auto", results, truth) == 1
    assert request.count_processes("auto", results, write(tmp_path / "larger.zip", 12)) == 3


def test_folders_have_the_bytes_of_all_their_files(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / f"results/a/b{number}/frame.png", 4)
    (tmp_path / "results/a/again").symlink_to(tmp_path / "results")
    assert request.count_processes("auto", str(tmp_path / "results"), write(tmp_path / "t", 15)) == 1
    assert request.count_processes("auto", str(tmp_path / "results"), write(tmp_path / "u", 16)) == 3
    assert request.count_processes("auto", str(tmp_path / "absent"), str(tmp_path / "t")) == 1


def test_a_number_is_kept_and_one_core_has_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = write(tmp_path / "a", 1), write(tmp_path / "b", 64)
    assert [request.count_processes(jobs, small, small) for jobs in (None, 1, 5)] == [1, 1, 5]
    monkeypatch.setattr(request, "cores", lambda: 1)
    assert request.count_processes("auto", large, large) == 1
