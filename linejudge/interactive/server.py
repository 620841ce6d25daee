"""`linejudge interactive serve`: sessions over HTTP, truth and clock on this side."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import numpy as np
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from evaluation_script.errors import Flaw

from . import wire
from .hosted import HostedSession
from .hosting import Host, checksum_of
from .utils.mask import decode_frames

log = logging.getLogger("linejudge.interactive")

#: Seconds within which a submission must have arrived.
UPLOAD_SECONDS = 600.0
#: Submissions of a session that may be on their way at once: one, and its repeat.
UPLOADS = 2

T = TypeVar("T")
Answer = Callable[[Request], Awaitable[Response]]


def app(host: Host) -> Starlette:
    """The server's addresses."""
    served = _Served(host)
    routes = [
        (wire.HEALTH, served.health, "GET"),
        (wire.SESSION, served.begin, "POST"),
        (wire.NEXT, served.advance, "POST"),
        (wire.SCRIBBLES, served.scribbles, "GET"),
        (wire.INTERACTION, served.interaction, "POST"),
        (wire.REPORT, served.report, "GET"),
        (wire.FINISH, served.finish, "POST"),
    ]
    made = Starlette(routes=[Route(f"/{path}", _answered(call), methods=[method]) for path, call, method in routes])
    made.add_exception_handler(404, _unknown)
    made.add_exception_handler(405, _unknown)
    return made


async def _unknown(request: Request, _error: Exception) -> Response:
    return _refused(LookupError(f"There is no {request.method} {request.url.path} here."))


def _answered(call: Answer) -> Answer:
    async def answered(request: Request) -> Response:
        try:
            return await call(request)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - whatever it is, the server lives on
            return _refused(error)

    return answered


def _refused(error: Exception) -> Response:
    body, status = wire.told(error)
    if status == 500:
        log.error("a defect", exc_info=error)
    # Unread bytes of a body that was refused would be taken for the next request.
    return JSONResponse(body, status, {"Connection": "close"} if status == 413 else None)


class _Served:
    """What is answered at each address; everything that takes long is done in a thread."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._threads = CapacityLimiter(max(2, os.cpu_count() or 1))
        self._uploads: dict[str, int] = {}

    async def health(self, _request: Request) -> Response:
        """For whoever watches, and for clients that want to know whether they are at the right place."""
        terms = self._host.terms
        limits = {"subset": terms.subset, "max_time": terms.max_time, "max_nb_interactions": terms.max_nb_interactions}
        return JSONResponse({"health": "ok", "name": "linejudge interactive", "evaluation_parameters": limits})

    async def begin(self, request: Request) -> Response:
        """A new session."""
        user = self._host.user(request.headers.get(wire.USER_KEY, ""))
        asked = request.headers.get(wire.REQUEST_KEY, "")[:64]
        return JSONResponse(await self._done(lambda: self._host.begin(user, asked).told()))

    async def advance(self, request: Request) -> Response:
        """Whether there is another interaction, and which."""
        return JSONResponse(await self._of(request, HostedSession.advance))

    async def scribbles(self, request: Request) -> Response:
        """The scribbles; the clock of the interaction runs from the first answer."""
        last = request.query_params.get("only_last", "") in ("1", "true")
        return JSONResponse(await self._of(request, lambda session: session.scribbles(only_last=last)))

    async def interaction(self, request: Request) -> Response:
        """Masks; their time ends when the last byte is here."""
        key = request.headers.get(wire.SESSION_KEY, "")
        session = await self._session(request)
        if self._uploads.get(key, 0) >= UPLOADS:
            raise BlockingIOError("Masks of this session are on their way already.")
        self._uploads[key] = self._uploads.get(key, 0) + 1
        try:
            async with asyncio.timeout(UPLOAD_SECONDS):
                body = await self._body(request)
            arrived = self._host.clock()
            in_time = await self._done(lambda: self._submitted(session, body, arrived))
        except TimeoutError:
            raise RuntimeError(f"The masks did not arrive within {UPLOAD_SECONDS:.0f} seconds.") from None
        finally:
            self._uploads[key] -= 1
            if not self._uploads[key]:
                del self._uploads[key]
        return Response(status_code=204, headers=None if in_time else {wire.LATE: "1"})

    async def report(self, request: Request) -> Response:
        """Column → values, a row for each object of each interaction."""

        def columns(session: HostedSession) -> dict[str, Any]:
            return {str(name): values.tolist() for name, values in self._host.report(session).items()}

        return JSONResponse(await self._of(request, columns))

    async def finish(self, request: Request) -> Response:
        """The summary of a session that is over."""

        def finished(session: HostedSession) -> dict[str, Any]:
            found = self._host.finished(session)
            if found is None:
                raise RuntimeError("The session is not over: ask for what is next until there is nothing.")
            return {**found, "session_key": session.session_key}

        return JSONResponse(await self._of(request, finished))

    def _submitted(self, session: HostedSession, body: bytes, arrived: float) -> bool:
        # The parser holds everybody up while it makes objects: a mask is one with two entries, in a list.
        if sum(body.count(mark) for mark in (b"[", b"{", b",")) > self._host.most_marks:
            raise OverflowError("The body holds more lists and objects than masks of a sequence can need.")
        try:
            told = json.loads(body)
        except (ValueError, RecursionError):
            raise ValueError("The body is no JSON.") from None
        if not isinstance(told, dict):
            raise ValueError("The body is no JSON object.")
        candidates = told.get("next_scribble_frame_candidates")
        if candidates is not None and (
            not isinstance(candidates, list) or any(type(one) is not int for one in candidates)
        ):
            raise TypeError("next_scribble_frame_candidates is no list of whole numbers.")

        def masks(shape: tuple[int, int, int]) -> Any:
            return _decoded(told.get("pred_masks"), shape, self._host.limits.runs)

        with session.lock:
            return session.submit(told, masks, checksum_of(body), arrived)

    async def _body(self, request: Request) -> bytes:
        most = self._host.limits.body
        told = request.headers.get("content-length", "0")
        if not told.isdecimal() or int(told) > most:
            raise OverflowError(f"A submission has at most {most:,} bytes.")
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise OverflowError(f"A submission has at most {most:,} bytes.")
            parts.append(part)
        return b"".join(parts)

    async def _session(self, request: Request) -> HostedSession:
        user = self._host.user(request.headers.get(wire.USER_KEY, ""))
        key = request.headers.get(wire.SESSION_KEY, "")
        return await self._done(lambda: self._host.of(user, key))

    async def _of(self, request: Request, call: Callable[[HostedSession], dict[str, Any]]) -> dict[str, Any]:
        session = await self._session(request)

        def locked() -> dict[str, Any]:
            with session.lock:
                return call(session)

        return await self._done(locked)

    async def _done(self, call: Callable[[], T]) -> T:
        return await to_thread.run_sync(call, limiter=self._threads)


def _decoded(told: Any, shape: tuple[int, int, int], most: int) -> Any:
    """Masks of a stranger, within the bounds of the sequence they are for."""
    if not isinstance(told, dict) or not isinstance(told.get("frames"), list):
        raise ValueError('pred_masks is not {"size": [frames, height, width], "frames": […]}')
    if told.get("size") != list(shape):
        size = tuple(told["size"]) if isinstance(told.get("size"), list) else told.get("size")
        raise ValueError(f"y_true and y_pred must have the same shape. {shape} != {ascii(size)[:60]}")
    frames = told["frames"]
    if len(frames) != shape[0]:
        raise ValueError(f"pred_masks has {len(frames)} frames, and its size says {shape[0]}")
    out, runs = np.empty(shape, np.uint8), 0
    for place, objects in enumerate(frames):
        _check_frame(place, objects)
        runs += sum(len(one["counts"]) for one in objects)
        if runs > most:
            raise OverflowError(f"pred_masks has more than {most:,} characters of run lengths")
        try:
            out[place] = decode_frames([objects], (shape[1], shape[2]), overlapping=False)[0]
        except Flaw as flaw:
            raise ValueError(f"pred_masks, frame {place}: {flaw.found}. {flaw.remedy}.") from None
    return out


def _check_frame(place: int, objects: Any) -> None:
    where = f"pred_masks, frame {place}"
    if not isinstance(objects, list) or any(
        not isinstance(one, dict)
        or type(one.get("object_id")) is not int
        or not 1 <= one["object_id"] <= 255
        or not isinstance(one.get("counts"), str)
        for one in objects
    ):
        raise ValueError(f'{where}: is no list of {{"object_id": 1 to 255, "counts": "…"}}')
    ids = [one["object_id"] for one in objects]
    if len(ids) != len(set(ids)):
        raise ValueError(f"{where}: names an object twice")
