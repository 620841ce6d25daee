"""A PostgreSQL from Debian's package, for the duration of a test."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

#: The server in which each rehearsal of these tests gets a database of its own, as a URL without a database.
VARIABLE = "SEGJUDGE_TEST_POSTGRES"
USER = "postgres"


def binaries() -> str:
    """Return the folder of `initdb` and `pg_ctl`; without it the test is skipped, but in CI it fails."""
    control = shutil.which("pg_ctl")
    if control:
        return os.path.dirname(control)
    text = "POSTGRESQL ABSENT: install it, and put its folder of pg_ctl, such as /usr/lib/postgresql/15/bin, into PATH"
    if os.environ.get("CI") == "true":
        pytest.fail(text)
    pytest.skip(text)


def _as_user(folder: str) -> dict[str, Any]:
    """Return the way to run a program of PostgreSQL, which refuses to be root."""
    how: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "timeout": 300}
    return how | ({"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {})


def _start(folder: str, connections: int = 200) -> None:
    options = (
        f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c max_connections={connections}"
    )
    arguments = [f"{binaries()}/pg_ctl", "-D", f"{folder}/data", "-l", f"{folder}/log", "-o", options, "-w", "start"]
    subprocess.run(arguments, check=True, **_as_user(folder))


def _stop(folder: str, mode: str) -> None:
    subprocess.run(
        [f"{binaries()}/pg_ctl", "-D", f"{folder}/data", "-m", mode, "-w", "stop"], check=True, **_as_user(folder)
    )


@contextlib.contextmanager
def running(connections: int = 200) -> Iterator[str]:
    """Yield the URL of a server of our own, in a short folder, since a socket's path must be short."""
    tools = binaries()
    folder = tempfile.mkdtemp(prefix="pg", dir="/tmp")
    if os.geteuid() == 0:
        shutil.chown(folder, USER, USER)
    try:
        arguments = [f"{tools}/initdb", "-D", f"{folder}/data", "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C"]
        subprocess.run([*arguments, "--no-sync"], check=True, **_as_user(folder))
        _start(folder, connections)
        try:
            yield f"postgresql://{USER}@/?host={folder}"
        finally:
            _stop(folder, "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def away(server: str, mode: str) -> Iterator[None]:
    """Stop a server of our own for a while."""
    folder = server.partition("?host=")[2]
    _stop(folder, mode)
    try:
        yield
    finally:
        _start(folder)


def new_database(server: str) -> str:
    """Return the URL of an empty database."""
    import psycopg

    name = f"r{uuid.uuid4().hex}"
    with psycopg.connect(server.replace("@/?", "@/postgres?"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("@/?", f"@/{name}?")
