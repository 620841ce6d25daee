"""`segjudge interactive serve`: sessions over HTTP, with the server's truth and clock."""

import asyncio
import logging
import os
import socket
import tempfile
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TypeVar

import uvicorn
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from segjudge.system.files import digest_of_file

from . import wire_format
from .reports import Summary
from .session_host import HostedSession, SessionHost
from .wire_format import Body, MaskSubmission

_log = logging.getLogger("segjudge.interactive")

#: The maximum seconds for receiving a submission.
_UPLOAD_SECONDS = 600.0
#: The maximum number of a session's simultaneous submissions: one, and its repetition.
_UPLOADS = 2

#: The maximum bytes of a submission that stays in memory while it arrives; a larger one is written to disk.
SMALL_BODY = 4 << 20

T = TypeVar("T")
_Handler = Callable[[Request], Awaitable[Response]]


def build_app(host: SessionHost) -> Starlette:
    handlers = _Handlers(host)
    routes = [
        (wire_format.HEALTH, handlers.health, "GET"),
        (wire_format.SESSION, handlers.begin, "POST"),
        (wire_format.NEXT, handlers.advance, "POST"),
        (wire_format.SCRIBBLES, handlers.scribbles, "GET"),
        (wire_format.INTERACTION, handlers.interaction, "POST"),
        (wire_format.REPORT, handlers.report, "GET"),
        (wire_format.FINISH, handlers.finish, "POST"),
    ]
    return Starlette(
        routes=[Route(f"/{path}", _with_errors(handler), methods=[method]) for path, handler, method in routes],
        exception_handlers={404: _unknown_route, 405: _unknown_route},
    )


def serve(host: SessionHost, listener: socket.socket) -> None:
    """Serve until a signal."""
    logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
    config = uvicorn.Config(
        build_app(host), log_level="warning", access_log=False, lifespan="off", server_header=False,
        timeout_graceful_shutdown=3, timeout_keep_alive=30,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listener])


async def _unknown_route(request: Request, _error: Exception) -> Response:
    return _error_response(LookupError(f"There is no {request.method} {request.url.path} here."))


def _with_errors(handler: _Handler) -> _Handler:
    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - the server must survive any error
            return _error_response(error)

    return handle


def _error_response(error: Exception) -> Response:
    body, status = wire_format.describe_error(error)
    if status == 500:
        _log.error("a defect", exc_info=error)
    # Unread bytes of a rejected body would be read as the next request.
    return JSONResponse(body, status, {"Connection": "close"} if status == 413 else None)


class _Handlers:
    """The handlers of the routes; slow work runs in threads."""

    def __init__(self, host: SessionHost) -> None:
        self._host = host
        self._threads = CapacityLimiter(max(2, os.cpu_count() or 1))
        self._large = asyncio.Semaphore(1)
        self._uploads: Counter[str] = Counter()

    async def health(self, _request: Request) -> Response:
        """Answer monitors, and clients that check the address."""
        terms = self._host.terms
        limits = {"subset": terms.subset, "max_time": terms.max_time, "max_nb_interactions": terms.max_nb_interactions}
        return JSONResponse({"health": "ok", "name": "segjudge interactive", "evaluation_parameters": limits})

    async def begin(self, request: Request) -> Response:
        user = self._host.find_user(request.headers.get(wire_format.USER_KEY, ""))
        request_key = request.headers.get(wire_format.REQUEST_KEY, "")[:64]

        def begin() -> dict[str, object]:
            key, session = self._host.begin(user, request_key)
            return {"session_key": key, **session.answer_terms()}

        return JSONResponse(await self._run_in_thread(begin))

    async def advance(self, request: Request) -> Response:
        """Answer whether there is another interaction, and which."""
        return JSONResponse(await self._with_session(request, HostedSession.answer_next))

    async def scribbles(self, request: Request) -> Response:
        """Answer with the scribbles; the time of the interaction begins with the first answer."""
        only_last = request.query_params.get("only_last", "") in ("1", "true")
        return JSONResponse(
            await self._with_session(request, lambda session: session.answer_scribbles(only_last=only_last))
        )

    async def interaction(self, request: Request) -> Response:
        """Receive masks; their time ends when the last byte has arrived."""
        user, key = self._keys(request)
        await self._run_in_thread(lambda: self._host.check_session(user, key))
        if self._uploads[key] >= _UPLOADS:
            raise BlockingIOError("Masks of this session are already being received.")
        self._uploads[key] += 1
        try:
            with tempfile.SpooledTemporaryFile(SMALL_BODY, dir=str(self._host.folder)) as body:
                in_time = await self._measure(request, body, user, key)
        except asyncio.TimeoutError:
            raise RuntimeError(f"The masks did not arrive within {_UPLOAD_SECONDS:.0f} seconds.") from None
        finally:
            self._uploads -= Counter([key])  # drops zero counts
        return Response(status_code=204, headers=None if in_time else {wire_format.LATE: "1"})

    async def _measure(self, request: Request, body: Body, user: str, key: str) -> bool:
        size = await asyncio.wait_for(self._receive(request, body), _UPLOAD_SECONDS)
        arrived = self._host.clock()

        def submit() -> bool:
            body.seek(0)
            checksum = digest_of_file(body)
            with self._host.use(user, key) as session:
                was_in_time = session.answer_repeat(checksum)
                if was_in_time is not None:
                    return was_in_time
                submission = MaskSubmission.read(body, self._host.most_marks)
                return session.take_masks(submission, self._host.limits.runs, checksum, arrived)

        # A parsed body is several times as large, so large ones take turns.
        async with self._large if size > SMALL_BODY else nullcontext():
            return await self._run_in_thread(submit)

    async def report(self, request: Request) -> Response:
        """Answer with column → values, a row for each object of each interaction."""
        _, key = self._keys(request)

        def columns(session: HostedSession) -> dict[str, list[object]]:
            report = wire_format.round_report(self._host.read_report(session)).assign(session_id=key)
            return {str(name): values.tolist() for name, values in report.items()}

        return JSONResponse(await self._with_session(request, columns))

    async def finish(self, request: Request) -> Response:
        """Answer with the summary of a session that is over."""
        _, key = self._keys(request)

        def finish(session: HostedSession) -> Summary:
            summary = self._host.read_summary(session)
            if summary is None:
                raise RuntimeError("The session is not over: request the next interaction until it is finished.")
            return {**wire_format.round_summary(summary), "session_key": key}

        return JSONResponse(await self._with_session(request, finish))

    async def _receive(self, request: Request, body: Body) -> int:
        most_bytes = self._host.limits.body
        length = request.headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal()) or len(length) > 18 or int(length) > most_bytes:
            raise OverflowError(f"A submission may have at most {most_bytes:,} bytes.")
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > most_bytes:
                raise OverflowError(f"A submission may have at most {most_bytes:,} bytes.")
            body.write(chunk)
        return size

    def _keys(self, request: Request) -> tuple[str, str]:
        headers = request.headers
        return self._host.find_user(headers.get(wire_format.USER_KEY, "")), headers.get(wire_format.SESSION_KEY, "")

    async def _with_session(self, request: Request, call: Callable[[HostedSession], T]) -> T:
        user, key = self._keys(request)

        def with_session() -> T:
            with self._host.use(user, key) as session:
                return call(session)

        return await self._run_in_thread(with_session)

    async def _run_in_thread(self, call: Callable[[], T]) -> T:
        def run() -> T:
            try:
                return call()
            except Exception as error:
                # Otherwise the error would keep the submission in memory until cycles are collected.
                traceback.clear_frames(error.__traceback__)
                raise

        return await to_thread.run_sync(run, limiter=self._threads)
