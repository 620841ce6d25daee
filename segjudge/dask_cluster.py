"""A Dask cluster as the executor of a scoring."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from segjudge.errors import UsageError
from segjudge.sharing import DaskClient

#: Seconds within which a scheduler answers and has a worker.
SECONDS = 15


@contextmanager
def connected(address: str) -> Iterator[DaskClient]:
    """Yield a client of the scheduler at this address, such as tcp://host:8786; Dask's configuration says how for TLS.

    Dask reports in many lines what is reported here in one, so its own messages are turned off.
    """
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("--scheduler needs Dask: pip install 'segjudge[cluster]'") from None
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        has_workers = asyncio.run(asyncio.wait_for(_has_workers(address), 2 * SECONDS))
    except Exception as error:  # noqa: BLE001 - whatever Dask, asyncio or TLS raise, one line says it
        what = str(error.__cause__ or error).partition("\n")[0].rpartition(">: ")[2] or "nothing came back"
        raise UsageError(f"the scheduler {address} does not answer as one ({what[:300]})") from None
    if not has_workers:
        raise UsageError(f"the scheduler {address} has no worker; start some with `dask worker {address}`")
    client = Client(address, timeout=SECONDS, set_as_default=False)
    try:
        yield client
    finally:
        client.close()


async def _has_workers(address: str) -> bool:
    """Return whether a scheduler has a worker, which may be about to start; a client would wait for ever for some."""
    from distributed import Security
    from distributed.core import rpc

    security = Security().get_connection_args("client")
    async with rpc(address, timeout=SECONDS, connection_args=security) as scheduler:
        for _ in range(5 * SECONDS):
            if (await scheduler.identity(n_workers=-1))["workers"]:
                return True
            await asyncio.sleep(0.2)
    return False
