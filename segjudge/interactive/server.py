"""`segjudge interactive serve`: sessions over HTTP, truth and clock on this side."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import tempfile
import traceback
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from segjudge.evaluation_script.errors import Flaw
from segjudge.interactive.utils.mask import decode_frames

from . import wire_format
from .hosted import HostedSession, shown
from .hosting import Host

log = logging.getLogger("segjudge.interactive")

#: Seconds within which a submission must have arrived.
UPLOAD_SECONDS = 600.0
#: Submissions of a session that may be on their way at once: one, and its repeat.
UPLOADS = 2

#: Bytes of a submission that is kept in memory as it comes; larger ones wait on the disk.
SMALL = 4 << 20

T = TypeVar("T")
Body = tempfile.SpooledTemporaryFile[bytes]
Answer = Callable[[Request], Awaitable[Response]]


def app(host: Host) -> Starlette:
    """The server's addresses."""
    served = _Served(host)
    routes = [
        (wire_format.HEALTH, served.health, "GET"),
        (wire_format.SESSION, served.begin, "POST"),
        (wire_format.NEXT, served.advance, "POST"),
        (wire_format.SCRIBBLES, served.scribbles, "GET"),
        (wire_format.INTERACTION, served.interaction, "POST"),
        (wire_format.REPORT, served.report, "GET"),
        (wire_format.FINISH, served.finish, "POST"),
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
    body, status = wire_format.told(error)
    if status == 500:
        log.error("a defect", exc_info=error)
    # Unread bytes of a body that was refused would be taken for the next request.
    return JSONResponse(body, status, {"Connection": "close"} if status == 413 else None)


class _Served:
    """What is answered at each address; everything that takes long is done in a thread."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._threads = CapacityLimiter(max(2, os.cpu_count() or 1))
        self._large = asyncio.Semaphore(1)
        self._uploads: dict[str, int] = {}

    async def health(self, _request: Request) -> Response:
        """For whoever watches, and for clients that want to know whether they are at the right place."""
        terms = self._host.terms
        limits = {"subset": terms.subset, "max_time": terms.max_time, "max_nb_interactions": terms.max_nb_interactions}
        return JSONResponse({"health": "ok", "name": "segjudge interactive", "evaluation_parameters": limits})

    async def begin(self, request: Request) -> Response:
        """A new session."""
        user = self._host.user(request.headers.get(wire_format.USER_KEY, ""))
        asked = request.headers.get(wire_format.REQUEST_KEY, "")[:64]

        def begun() -> dict[str, Any]:
            key, session = self._host.begin(user, asked)
            return {"session_key": key, **session.told()}

        return JSONResponse(await self._done(begun))

    async def advance(self, request: Request) -> Response:
        """Whether there is another interaction, and which."""
        return JSONResponse(await self._of(request, HostedSession.advance))

    async def scribbles(self, request: Request) -> Response:
        """The scribbles; the clock of the interaction runs from the first answer."""
        last = request.query_params.get("only_last", "") in ("1", "true")
        return JSONResponse(await self._of(request, lambda session: session.scribbles(only_last=last)))

    async def interaction(self, request: Request) -> Response:
        """Masks; their time ends when the last byte is here."""
        user, key = self._asking(request)
        await self._done(lambda: self._host.check(user, key))
        if self._uploads.get(key, 0) >= UPLOADS:
            raise BlockingIOError("Masks of this session are on their way already.")
        self._uploads[key] = self._uploads.get(key, 0) + 1
        try:
            with tempfile.SpooledTemporaryFile(SMALL, dir=str(self._host.folder)) as body:
                in_time = await self._measured(request, body)
        except TimeoutError:
            raise RuntimeError(f"The masks did not arrive within {UPLOAD_SECONDS:.0f} seconds.") from None
        finally:
            self._uploads[key] -= 1
            if not self._uploads[key]:
                del self._uploads[key]
        return Response(status_code=204, headers=None if in_time else {wire_format.LATE: "1"})

    async def _measured(self, request: Request, body: Body) -> bool:
        async with asyncio.timeout(UPLOAD_SECONDS):
            size = await self._receive(request, body)
        arrived = self._host.clock()
        user, key = self._asking(request)

        def measured() -> bool:
            with self._host.using(user, key) as session:
                return self._submitted(session, body, arrived)

        # Parsed they are several times as large, so large ones take turns.
        async with self._large if size > SMALL else nullcontext():
            return await self._done(measured)

    async def report(self, request: Request) -> Response:
        """Column → values, a row for each object of each interaction."""
        _, key = self._asking(request)

        def columns(session: HostedSession) -> dict[str, Any]:
            shown = wire_format.rounded(self._host.report(session)).assign(session_id=key)
            return {str(name): values.tolist() for name, values in shown.items()}

        return JSONResponse(await self._of(request, columns))

    async def finish(self, request: Request) -> Response:
        """The summary of a session that is over."""
        _, key = self._asking(request)

        def finished(session: HostedSession) -> dict[str, Any]:
            found = self._host.finished(session)
            if found is None:
                raise RuntimeError("The session is not over: ask for what is next until there is nothing.")
            return {**wire_format.rounded_summary(found), "session_key": key}

        return JSONResponse(await self._of(request, finished))

    def _submitted(self, session: HostedSession, body: Body, arrived: float) -> bool:
        body.seek(0)
        checksum = hashlib.file_digest(body, "sha256").hexdigest()
        with session.lock:
            taken = session.repeated(checksum)
            if taken is not None:
                return taken
            told = _parsed(body, self._host.most_marks)

            def masks(shape: tuple[int, int, int]) -> Any:
                return _decoded(told.pop("pred_masks", None), shape, self._host.limits.runs)

            return session.submit(told, masks, checksum, arrived)

    async def _receive(self, request: Request, body: Body) -> int:
        most = self._host.limits.body
        told = request.headers.get("content-length", "0")
        if not (told.isascii() and told.isdecimal()) or len(told) > 18 or int(told) > most:
            raise OverflowError(f"A submission has at most {most:,} bytes.")
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise OverflowError(f"A submission has at most {most:,} bytes.")
            body.write(part)
        return size

    def _asking(self, request: Request) -> tuple[str, str]:
        """User and key of the session."""
        return self._host.user(request.headers.get(wire_format.USER_KEY, "")), request.headers.get(
            wire_format.SESSION_KEY, ""
        )

    async def _of(self, request: Request, call: Callable[[HostedSession], dict[str, Any]]) -> dict[str, Any]:
        user, key = self._asking(request)

        def locked() -> dict[str, Any]:
            with self._host.using(user, key) as session, session.lock:
                return call(session)

        return await self._done(locked)

    async def _done(self, call: Callable[[], T]) -> T:
        def done() -> T:
            try:
                return call()
            except Exception as error:
                # Or the error would keep the submission in memory, until the collector of cycles finds both.
                traceback.clear_frames(error.__traceback__)
                raise

        return await to_thread.run_sync(done, limiter=self._threads)


def _parsed(body: Body, most_marks: int) -> dict[str, Any]:
    """A submission as JSON; its bytes and its text are gone before its masks are decoded."""
    body.seek(0)
    # The parser holds everybody up while it makes objects: a mask is one with two entries, in a list.
    marks = 0
    while part := body.read(1 << 20):
        marks += sum(part.count(mark) for mark in (b"[", b"{", b","))
    if marks > most_marks:
        raise OverflowError("The body holds more lists and objects than masks of a sequence can need.")
    body.seek(0)
    try:
        text = str(body.read(), "utf-8")
        told = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("The body is not JSON in UTF-8.") from None
    if not isinstance(told, dict):
        raise ValueError("The body is not a JSON object.")
    candidates = told.get("next_scribble_frame_candidates")
    if candidates is not None and (not isinstance(candidates, list) or any(type(one) is not int for one in candidates)):
        raise TypeError("next_scribble_frame_candidates is not a list of whole numbers.")
    return told


def _decoded(told: Any, shape: tuple[int, int, int], most: int) -> Any:
    """Untrusted masks, within the bounds of the sequence they are for."""
    if not isinstance(told, dict) or not isinstance(told.get("frames"), list):
        raise ValueError('pred_masks is not {"size": [frames, height, width], "frames": […]}')
    if told.get("size") != list(shape):
        size = told.get("size")
        found = f"({', '.join(map(shown, size[:4]))})" if isinstance(size, list) else shown(size)
        raise ValueError(f"y_true and y_pred must have the same shape. {shape} != {found}")
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
        raise ValueError(f'{where}: is not a list of {{"object_id": 1 to 255, "counts": "…"}}')
    ids = [one["object_id"] for one in objects]
    if len(ids) != len(set(ids)):
        raise ValueError(f"{where}: names an object twice")
