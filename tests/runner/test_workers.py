"""Work shared by several processes ends with them."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script.files.problems import Flaw, HostError
from segjudge.evaluation_script.runner import parallel
from segjudge.evaluation_script.runner.parallel import cores, results_of_processes, shares
from tests.runner.test_guard import is_gone

CODE = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from segjudge.evaluation_script.runner import parallel
from segjudge.evaluation_script.runner.parallel import cores, results_of_processes, shares
def work(number):
    os.write(1, b"%d\\n" % os.getpid())
    if sys.argv[2] == "sleeps":
        time.sleep(1000)
    while sys.argv[2] == "works":
        pass
    return b"x" * (16 << 20)  # more than a pipe holds
for result in results_of_processes(work, [1] * 3, 3, lambda number: None):
    time.sleep(1000)  # busy, and takes nothing more
"""


@pytest.mark.parametrize("doing", ["sleeps", "works", "sends"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_children_end_with_whoever_shares_the_work(doing: str, number: int) -> None:
    arguments = [sys.executable, "-c", CODE, str(Path(__file__).parents[2]), doing]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        assert parent.stdout is not None
        children = {int(parent.stdout.readline()) for _ in range(3)}
        parent.send_signal(number)
    assert len(children) == 3
    assert parent.pid not in children
    assert all(is_gone(child) for child in children)


@pytest.mark.parametrize("jobs", [1, 2, 3, 9])
def test_every_result_comes_with_its_item(jobs: int) -> None:
    items: list[int] = []
    ours = os.getpid()

    def work(number: int) -> tuple[int, bool]:
        return number, os.getpid() == ours

    results = list(results_of_processes(work, [1] * 5, jobs, items.append))
    assert results == [(number, jobs == 1) for number in items]
    assert sorted(items) == list(range(5))


def test_a_child_that_fails_or_is_killed_is_an_error() -> None:
    def fails(number: int) -> Any:
        raise ValueError("no")

    def refuses(number: int) -> Any:
        raise Flaw("is wrong", "Write it again")

    def blames(number: int) -> Any:
        raise HostError(f"item {number}")

    def dies(number: int) -> Any:
        os._exit(3)

    for work, kind, message in (
        (fails, RuntimeError, "ValueError: no"),
        (refuses, Flaw, "is wrong"),
        (blames, HostError, "item"),
        (dies, MemoryError, "was killed"),
    ):
        with pytest.raises(kind, match=message):
            list(results_of_processes(work, [1] * 3, 2, lambda _: None))


def test_results_of_one_process_come_where_no_other_may_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden() -> int:
        raise PermissionError(1, "no")

    monkeypatch.setattr(os, "fork", forbidden)
    assert sorted(results_of_processes(lambda number: b"%d" % number, [1] * 5, 4, lambda _: None)) == [
        b"0", b"1", b"2", b"3", b"4",
    ]  # fmt: skip


def test_shares_cost_about_the_same() -> None:
    costs = [7, 1, 1, 5, 9, 3, 2, 8]
    dealt = shares(costs, 3)
    assert sorted(number for share in dealt for number in share) == list(range(8))
    assert [sum(costs[number] for number in share) for share in dealt] == [12, 12, 12]
    assert shares([], 2) == [[], []]


def test_the_quota_of_the_control_group_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    for quota, allowed in ((0.5, 1), (2.5, 2), (float("inf"), 8)):
        monkeypatch.setattr(parallel, "_quota", lambda quota=quota: quota)
        monkeypatch.setattr(os, "sched_getaffinity", {0: set(range(8))}.__getitem__, raising=False)
        assert cores() == allowed
    monkeypatch.delattr(os, "sched_getaffinity")
    for count, allowed in ((6, 6), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert cores() == allowed


ROOT_GROUP, OLD_GROUP = "/sys/fs/cgroup", "/sys/fs/cgroup/cpu"
OF_OUR_OWN = {"/proc/self/cgroup": "no group\n1:cpu,cpuacct:/c\n0::/a/b:c\n"}


QUOTAS: Any = [
    ({}, float("inf")),
    ({f"{ROOT_GROUP}/cpu.max": "max 100000"}, float("inf")),
    ({f"{ROOT_GROUP}/cpu.max": "250000 100000\n"}, 2.5),
    ({f"{ROOT_GROUP}/cpu.max": "250000 0"}, float("inf")),
    ({f"{ROOT_GROUP}/cpu.max": "odd"}, float("inf")),
    ({**OF_OUR_OWN, f"{ROOT_GROUP}/cpu.max": "400000 100000", f"{ROOT_GROUP}/a/cpu.max": "300000 100000"}, 3.0),
    ({**OF_OUR_OWN, f"{ROOT_GROUP}/a/cpu.max": "300000 100000", f"{ROOT_GROUP}/a/b:c/cpu.max": "50000 100000"}, 0.5),
    ({**OF_OUR_OWN, f"{ROOT_GROUP}/a/cpu.max": "300000 100000", f"{ROOT_GROUP}/a/b:c/cpu.max": "900000 100000"}, 3.0),
    ({"/proc/self/cgroup": "0::/\n", f"{ROOT_GROUP}/a/cpu.max": "1 1"}, float("inf")),
    ({f"{OLD_GROUP}/cpu.cfs_quota_us": "150000\n", f"{OLD_GROUP}/cpu.cfs_period_us": "100000\n"}, 1.5),
    ({f"{OLD_GROUP}/cpu.cfs_quota_us": "-1", f"{OLD_GROUP}/cpu.cfs_period_us": "100000"}, float("inf")),
    ({f"{OLD_GROUP}/cpu.cfs_quota_us": "1", f"{OLD_GROUP}/cpu.cfs_period_us": "0"}, float("inf")),
    ({**OF_OUR_OWN, f"{OLD_GROUP}/c/cpu.cfs_quota_us": "1", f"{OLD_GROUP}/c/cpu.cfs_period_us": "2"}, 0.5),
]


@pytest.mark.parametrize(("files", "quota"), QUOTAS)
def test_the_least_quota_of_all_groups_counts(
    files: dict[str, str], quota: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: str, _mode: str) -> io.BytesIO:
        if path not in files:
            raise FileNotFoundError(path)
        return io.BytesIO(files[path].encode())

    monkeypatch.setattr(parallel, "open", read, raising=False)
    assert parallel._quota() == quota
