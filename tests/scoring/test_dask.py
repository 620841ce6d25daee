"""A real Dask cluster, with scheduler and workers as processes, scores like one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import get_client

from segjudge import HostError, score
from segjudge.scoring.sharing import connect
from tests.clusters import Cluster, cluster
from tests.scoring.shares import write_sequences
from tests.scoring.test_executors import content

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("dask")) as made:
        yield made


@pytest.fixture
def given(tmp_path: Path) -> tuple[str, str]:
    return write_sequences(tmp_path)


def test_a_client_and_its_executor_give_the_bits_of_one_process(two: Cluster, given: tuple[str, str]) -> None:
    expected = content(score(*given))
    with connect(two.address) as client:
        with pytest.raises(ValueError, match="No (global )?client"):
            get_client()  # what else the caller computes stays where it was
        assert content(score(*given, executor=client)) == expected
        assert content(score(*given, executor=client.get_executor(pure=True), jobs=20)) == expected


def test_the_part_of_a_killed_worker_is_done_again(tmp_path: Path, given: tuple[str, str]) -> None:
    expected = content(score(*given))
    with cluster(tmp_path / "dask", workers=3) as made, connect(made.address) as client:
        client.wait_for_workers(3, timeout=60)  # type: ignore[attr-defined]
        victims = made.processes[1:3]

        def kill(_name: str, done: int, _count: int) -> None:
            if done in (1, 20):
                victims.pop().kill()

        assert content(score(*given, executor=client, jobs=60, progress=kill)) == expected
        assert not victims
        assert len(client.nthreads()) == 1


def test_a_lost_scheduler_is_reported_in_bounded_time(tmp_path: Path, given: tuple[str, str]) -> None:
    with cluster(tmp_path / "dask", workers=1) as made, connect(made.address) as client:

        def kill(_name: str, done: int, _count: int) -> None:
            if done == 1:
                made.processes[0].kill()

        started = time.monotonic()
        with pytest.raises(HostError, match="workers were lost"):
            score(*given, executor=client, jobs=60, progress=kill)
        assert time.monotonic() - started < 60


def test_ctrl_c_ends_the_command_and_cancels_what_waits(two: Cluster, given: tuple[str, str]) -> None:
    arguments = ["score", given[0], "--truth", given[1], "--protocol", "davis2017", "--jobs", "256"]
    command = [sys.executable, "-m", "segjudge", *arguments, "--scheduler", two.address]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process, connect(two.address) as client:
        deadline = time.monotonic() + 60
        while not any(client.processing().values()):  # type: ignore[attr-defined]
            assert time.monotonic() < deadline
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        deadline = time.monotonic() + 30
        while any(client.processing().values()):  # type: ignore[attr-defined]
            assert time.monotonic() < deadline


def test_a_cluster_is_reached_over_tls_by_those_with_certificates(tmp_path: Path, given: tuple[str, str]) -> None:
    from distributed import Security

    made = Security.temporary()
    for name, text in (
        ("ca.pem", made.tls_ca_file),
        ("own.pem", made.tls_client_cert),
        ("own.key", made.tls_client_key),
    ):
        (tmp_path / name).write_text(text)
    prefix = "DASK_DISTRIBUTED__COMM__TLS"
    tls = {f"{prefix}__CA_FILE": str(tmp_path / "ca.pem"), "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        tls |= {
            f"{prefix}__{role}__CERT": str(tmp_path / "own.pem"),
            f"{prefix}__{role}__KEY": str(tmp_path / "own.key"),
        }
    arguments = [
        sys.executable, "-m", "segjudge", "score", given[0], "--truth", given[1], "--protocol", "davis2017",
        "--json", "-",
    ]  # fmt: skip
    alone = subprocess.run(arguments, capture_output=True, check=True)
    with cluster(tmp_path / "dask", workers=1, protocol="tls", **tls) as cluster_of_tls:
        arguments += ["--scheduler", cluster_of_tls.address]
        shared = subprocess.run(arguments, capture_output=True, check=True, env={**os.environ, **tls})
        assert shared.stdout == alone.stdout
        without = subprocess.run(arguments, check=False, capture_output=True)
        assert (without.returncode, len(without.stderr.splitlines())) == (2, 1)
        assert b"TLS" in without.stderr
