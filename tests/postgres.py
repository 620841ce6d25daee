"""A PostgreSQL of Debian's package, for as long as a test needs it."""

from __future__ import annotations

import contextlib
import glob
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
    """The folder of `initdb` and `pg_ctl`; without it the test is skipped, but in CI it fails."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    found = shutil.which("pg_ctl")
    if found or folders:
        return os.path.dirname(found) if found else folders[-1]
    words = "PostgreSQL is not installed, so nothing is known of the rehearsal on it: apt-get install postgresql"
    if os.environ.get("CI") == "true":
        pytest.fail(words)
    pytest.skip(words)


@contextlib.contextmanager
def running() -> Iterator[str]:
    """The URL of a server of our own, in a short folder: the path of a socket is short."""
    tools = binaries()
    folder = tempfile.mkdtemp(prefix="pg", dir="/tmp")
    # PostgreSQL refuses to run as root.
    as_user: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "timeout": 300}
    if os.geteuid() == 0:
        shutil.chown(folder, USER, USER)
        as_user |= {"user": USER, "group": USER, "extra_groups": []}
    data = os.path.join(folder, "data")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c max_connections=200"
    try:
        subprocess.run(
            [f"{tools}/initdb", "-D", data, "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync"],
            check=True,
            **as_user,
        )
        log = os.path.join(folder, "log")
        subprocess.run([f"{tools}/pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "start"], check=True, **as_user)
        try:
            yield f"postgresql://{USER}@/?host={folder}"
        finally:
            subprocess.run([f"{tools}/pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"], check=True, **as_user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(server: str) -> str:
    """The URL of an empty database."""
    import psycopg

    name = f"r{uuid.uuid4().hex}"
    with psycopg.connect(server.replace("@/?", "@/postgres?"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("@/?", f"@/{name}?")
