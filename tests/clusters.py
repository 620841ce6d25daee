"""A Dask scheduler and its workers, each a process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .builders import ROOT
from .rehearsals import steady_port, waited


class Cluster:
    """A scheduler at an address, and workers with one thread each."""

    def __init__(self, folder: Path, protocol: str = "tcp", **environment: str) -> None:
        self.folder, self._environment = folder, environment
        port = steady_port()
        self.address = f"{protocol}://127.0.0.1:{port}"
        self.processes = [
            self._start(
                "scheduler", "--host", f"{protocol}://127.0.0.1", "--port", str(port), "--no-dashboard", "--no-show"
            )
        ]
        waited(lambda: _listens(port), 60)

    def add_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder)]
        self.processes.append(self._start("worker", self.address, *options, **environment))
        return self.processes[-1]

    def _start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{arguments[0]}.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments],
                stdout=log, stderr=log, cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), **self._environment, **environment},
            )  # fmt: skip

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def cluster(folder: Path, *, workers: int = 2, protocol: str = "tcp", **environment: str) -> Iterator[Cluster]:
    """Yield a cluster that ends with the block."""
    folder.mkdir(exist_ok=True)
    made = Cluster(folder, protocol, **environment)
    try:
        for _ in range(workers):
            made.add_worker()
        yield made
    finally:
        made.close()
