"""One scoring shared by many processes: parts are counted anywhere and merged."""

import json
import logging
import os
import queue
import socket
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from segjudge.evaluation_script.families import engine_of, plugins_of
from segjudge.evaluation_script.families.base.family import FamilyProtocol, Progress
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.runner.parallel import Part, cores
from segjudge.evaluation_script.scoring import VERSION
from segjudge.scoring.parts import has_known_rules, merge_parts, read_name
from segjudge.scoring.request import PartCounter, PreparedScoring, ScoreRequest, prepare
from segjudge.scoring.scores import Scores
from segjudge.system.addresses import AddressError
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import redact, redact_address

#: The maximum number of retries of a failed part.
_MOST_RETRIES = 2
#: The seconds after which a cluster without workers is abandoned.
_PATIENCE = 300.0
#: The maximum seconds for a scheduler to answer and to have a worker.
SECONDS = 15
#: The exceptions that mean a fault of the part itself; any other exception is a worker's failure.
_FINAL: dict[str, type[Exception]] = {
    error.__name__: error for error in (SubmissionError, HostError, UsageError, OptionError)
}
#: The names of an executor's final failures: a broken pool, a lost scheduler, a part that ended several of Dask's
#: workers.
_LOST = ("BrokenExecutor", "CancelledError", "KilledWorker")


class DaskClient(Protocol):
    """The part of Dask's client that is used."""

    def get_executor(self, *, pure: bool) -> Executor:
        """Return an executor whose tasks run on the cluster's workers."""

    def nthreads(self) -> dict[str, int]:
        """Return how many tasks each worker does at a time."""


class _Held(threading.local):
    """The scoring that a worker's thread opened last, kept because one scoring has many parts or submissions."""

    run = ""
    counter: PartCounter | None = None
    prepared: PreparedScoring | None = None


_HELD = _Held()


def _begin(run: str) -> None:
    """Close what this thread holds of another run."""
    if _HELD.run != run:
        if _HELD.counter is not None:
            _HELD.counter.close()
        _HELD.counter, _HELD.prepared, _HELD.run = None, None, run


def _find_counter(run: str, request: ScoreRequest) -> PartCounter:
    """Return the counter of a scoring's parts in this thread."""
    _begin(run)
    if _HELD.counter is None:
        _HELD.counter = PartCounter(prepare(request))
    return _HELD.counter


def _find_prepared(run: str, request: ScoreRequest) -> PreparedScoring:
    """Return the opened truth of a run's submissions in this thread."""
    _begin(run)
    if _HELD.prepared is None:
        _HELD.prepared = prepare(request)
    return _HELD.prepared


def _describe_version(protocol: FamilyProtocol) -> str:
    """Return the versions of Segjudge and of the plug-ins that a protocol needs."""
    return " with ".join([VERSION, *plugins_of([protocol.name]).values()])


def count_part(version: str, run: str, request: ScoreRequest, number: int, count: int, attempt: int) -> bytes:
    """Return part `number` of a scoring as bytes, or a problem as JSON; this runs on a worker.

    `attempt` tells Dask that a repeated call is a different one.
    """
    del attempt

    def count_and_read() -> bytes:
        with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
            out = os.path.join(folder, "part")
            _find_counter(run, request).write(Part(number, count), out, refuse=False)
            with open(out, "rb") as file:
                return file.read()

    return _answer(version, request.protocol, count_and_read)


def score_item(
    version: str,
    run: str,
    request: ScoreRequest,
    item: Any,
    score_one: Callable[[PreparedScoring, Any], dict[str, Any]],
    attempt: int,
) -> bytes:
    """Return as JSON what `score_one` returns for an item, or a problem; this runs on a worker."""
    del attempt
    return _answer(
        version, request.protocol, lambda: json.dumps(score_one(_find_prepared(run, request), item)).encode()
    )


def _answer(version: str, protocol: FamilyProtocol, work: Callable[[], bytes]) -> bytes:
    """Return the bytes of some work, or as JSON the kind and the text of its problem."""
    try:
        own_version = _describe_version(protocol)
        if version != own_version:
            worker = f"a worker on {socket.gethostname()} has segjudge {own_version}; this is {version}"
            raise UsageError(f"{worker}; install the same version everywhere")
        return work()
    except AddressError:
        raise  # and is tried again
    except tuple(_FINAL.values()) as error:
        kind = next(base.__name__ for base in type(error).__mro__ if base.__name__ in _FINAL)
        return json.dumps([kind, str(error)]).encode()


def score_by_workers(executor: Executor | DaskClient, request: ScoreRequest, progress: Progress) -> Scores:
    """Score by the workers of an executor or of a Dask client."""
    protocol = _check_rules(request)
    request = _with_absolute_paths(request)
    pool, workers = _pool_of(executor)
    each = engine_of(protocol.family).parts_each
    count = request.jobs if isinstance(request.jobs, int) else each * max(1, workers())
    run = os.urandom(16).hex()

    def call(number: int, attempt: int) -> Future[bytes]:
        return pool.submit(count_part, _describe_version(protocol), run, request, number, count, attempt)

    progress("", 0, count)
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        paths = []
        for number, data in _receive_parts(call, count, workers):
            _raise_problem(data)
            paths.append(os.path.join(folder, f"part {number}"))
            with open(paths[-1], "wb") as file:
                file.write(data)
            progress(f"part {number}", len(paths), count)
        try:
            return Scores(*merge_parts(paths), request.results, partial(prepare, request), name=read_name(paths[0]))
        except UsageError as error:
            raise UsageError(str(error).replace(folder + os.sep, "")) from None


def score_each_by_workers(
    executor: Executor | DaskClient,
    request: ScoreRequest,
    items: Sequence[Any],
    score_one: Callable[[PreparedScoring, Any], dict[str, Any]],
    progress: Progress,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each item and what `score_one`, a function of a module, returns for it on a worker.

    An item names a submission; the request has none.
    """
    version, run = _describe_version(_check_rules(request)), os.urandom(16).hex()
    request = _with_absolute_paths(request)
    pool, workers = _pool_of(executor)

    def call(number: int, attempt: int) -> Future[bytes]:
        return pool.submit(score_item, version, run, request, items[number - 1], score_one, attempt)

    for done, (number, data) in enumerate(_receive_parts(call, len(items), workers, "submission"), 1):
        _raise_problem(data)
        progress(f"submission {number}", done, len(items))
        yield number - 1, json.loads(data)


def _check_rules(request: ScoreRequest) -> FamilyProtocol:
    """Return the protocol of a request; raises UsageError if workers do not know its rules."""
    if not has_known_rules(request.protocol):
        raise UsageError(f"the rules of {request.protocol.name} were changed; an executor scores only by its own rules")
    return request.protocol


def _raise_problem(data: bytes) -> None:
    """Raise the problem that a worker sent, if it is one."""
    if data.startswith(b"["):
        kind, text = json.loads(data)
        raise _FINAL.get(kind, HostError)(text)


def _with_absolute_paths(request: ScoreRequest) -> ScoreRequest:
    """Return the request with absolute paths, for workers in other folders."""

    def make_absolute(path: str) -> str:
        return os.path.abspath(path) if path and "://" not in path else path

    source = request.truth
    paths = {name: make_absolute(getattr(source, name)) for name in ("path", "unseen", "categories")}
    return replace(request, results=make_absolute(request.results), truth=source._replace(**paths))


def _pool_of(executor: Executor | DaskClient) -> tuple[Executor, Callable[[], int]]:
    """Return an executor, and how to count its workers."""
    if isinstance(executor, Executor):
        return executor, cores  # it does not say how many workers it has
    if not hasattr(executor, "get_executor"):
        raise UsageError("the executor is neither from concurrent.futures nor a Dask client")
    client = executor
    return client.get_executor(pure=False), lambda: sum(client.nthreads().values())


def _receive_parts(
    call: Callable[[int, int], Future[bytes]], count: int, workers: Callable[[], int], noun: str = "part"
) -> Iterator[tuple[int, bytes]]:
    """Yield the parts as they arrive; a part of a failed worker is counted again, and an error cancels the waiting
    ones.
    """
    pending: dict[Future[bytes], int] = {}
    done: queue.SimpleQueue[Future[bytes]] = queue.SimpleQueue()
    failures: Counter[int] = Counter()

    def begin(number: int) -> None:
        try:
            future = call(number, failures[number])
        except (BrokenExecutor, RuntimeError) as error:
            raise _worker_loss_error(error) from None
        pending[future] = number
        future.add_done_callback(done.put)

    try:
        for number in range(1, count + 1):
            begin(number)
        while pending:
            future = _wait_for_next(done, workers)
            number = pending.pop(future)
            try:
                data = future.result()
            except (Exception, CancelledError) as error:
                failures[number] += 1
                names = {kind.__name__ for kind in type(error).__mro__}
                if names & set(_LOST):
                    raise _worker_loss_error(error) from None
                if failures[number] > _MOST_RETRIES:
                    what = redact(f"{type(error).__name__}: {error}".splitlines()[0])[:300]
                    raise HostError(f"{noun} {number} of {count} failed {failures[number]} times: {what}") from error
                begin(number)
            else:
                yield number, data
    finally:
        for future in pending:
            future.cancel()


def _wait_for_next(done: queue.SimpleQueue[Future[bytes]], workers: Callable[[], int]) -> Future[bytes]:
    """Return the next finished future; raises HostError if no worker remains."""
    without = 0
    while True:
        try:
            return done.get(timeout=_PATIENCE / 10)
        except queue.Empty:
            without = 0 if workers() else without + 1
            if without >= 10:
                raise HostError(f"the cluster has had no worker for {_PATIENCE:.0f} seconds; start some") from None


def _worker_loss_error(error: BaseException) -> HostError:
    what = redact(f"{type(error).__name__}: {error}".splitlines()[0])[:300].removesuffix(": ")
    return HostError(f"the executor's workers were lost ({what}); create a new executor and score again")


@contextmanager
def connect(address: str) -> Iterator[DaskClient]:
    """Yield a client of the scheduler at this address, such as tcp://host:8786; Dask's configuration sets TLS.

    Dask's own messages are disabled, because errors are reported in one line.
    """
    import asyncio

    try:
        from distributed import Client
    except ImportError:
        from segjudge.system.extras import make_error

        raise make_error("cluster", "--scheduler", "distributed") from None
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        has_workers = asyncio.run(asyncio.wait_for(_has_workers(address), 2 * SECONDS))
    except Exception as error:  # noqa: BLE001 - whatever Dask, asyncio or TLS raise, one line says it
        what = str(error.__cause__ or error).partition("\n")[0].rpartition(">: ")[2] or "no answer arrived"
        raise UsageError(
            f"the scheduler {redact_address(address)} does not answer as a scheduler ({redact(what)[:300]})"
        ) from None
    if not has_workers:
        scheduler = redact_address(address)
        raise UsageError(f"the scheduler {scheduler} has no worker; start some with `dask worker {scheduler}`")
    client = Client(address, timeout=SECONDS, set_as_default=False)
    try:
        yield client
    finally:
        client.close()


async def _has_workers(address: str) -> bool:
    """Return whether a scheduler has or soon gets a worker; without one, a client would wait forever."""
    import asyncio

    from distributed import Security
    from distributed.core import rpc

    security = Security().get_connection_args("client")
    async with rpc(address, timeout=SECONDS, connection_args=security) as scheduler:
        for _ in range(5 * SECONDS):
            if (await scheduler.identity(n_workers=-1))["workers"]:
                return True
            await asyncio.sleep(0.2)
    return False
