"""Files out and parts in, by signed addresses alone."""

from __future__ import annotations

import hashlib
import mimetypes
import tempfile
from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from .hidden_splits import hidden_of, result_without, text_without
from .services import Services
from .signed_urls import MEDIA, PART, signed_as
from .submissions import REPORTED

_SPOOLED = 1 << 20
#: Nothing that a stranger sent is opened by a browser as a page of ours.
_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}
_GONE = "This address has expired, or was never ours: ask for the submission again to get a new one."


def routes(services: Services) -> list[Route]:
    """Downloads, and the parts of large uploads."""
    return [Route(MEDIA, _download(services), methods=["GET"]), Route(PART, _part(services), methods=["PUT"])]


def _download(services: Services) -> Callable[[Request], Awaitable[Response]]:
    async def download(request: Request) -> Response:
        number = request.path_params["file"]
        query = request.query_params
        of = query.get("of", "")
        if not services.links.good(signed_as(number, of), query.get("expires", ""), query.get("signature", "")):
            return JSONResponse({"error": _GONE}, 403)
        row = await run_in_threadpool(services.store.row, "SELECT * FROM files WHERE id = ?", number)
        if row is None:
            return JSONResponse({"error": "This file is gone."}, 404)
        less = await run_in_threadpool(for_participants, services, int(of), number, row["kind"]) if of else None
        if less is not None:
            headers = {**_HEADERS, "Content-Disposition": "attachment"}
            return Response(less, headers=headers, media_type="application/octet-stream")
        path = await run_in_threadpool(services.store.path, number)
        inline = row["kind"] == "image"
        kind = mimetypes.guess_type(row["name"])[0] if inline else "application/octet-stream"
        disposition = "inline" if inline else "attachment"
        return FileResponse(
            path, filename=row["name"], media_type=kind, headers=_HEADERS, content_disposition_type=disposition
        )

    return download


def for_participants(services: Services, submission: int, number: str, kind: str) -> str | None:
    """A file about a submission without what its participants may not read; None where they may read it all."""
    hidden = hidden_of(services.challenges, services.submissions, services.submissions.row(submission))
    if hidden is None or kind == REPORTED:
        return None
    with open(services.store.path(number), "rb") as file:
        data = file.read()
    return result_without(data, hidden) if kind == "submission_result_file" else text_without(data, hidden)


def _part(services: Services) -> Callable[[Request], Awaitable[Response]]:
    async def put(request: Request) -> Response:
        upload, number = request.path_params["upload"], request.path_params["number"]
        query = request.query_params
        if not services.links.good(f"{upload}/{number}", query.get("expires", ""), query.get("signature", "")):
            return JSONResponse({"error": _GONE}, 403)
        known = "SELECT 1 FROM parts WHERE upload_id = ? AND number = ?"
        if not await run_in_threadpool(services.store.row, known, upload, number):
            return JSONResponse({"error": "This upload is finished, or never was."}, 404)
        with tempfile.SpooledTemporaryFile(max_size=_SPOOLED, dir=services.store.folder) as file:
            # S3's tag of a part; a checksum and no secret.
            tag = hashlib.md5(usedforsecurity=False)
            try:
                async for piece in request.stream():
                    tag.update(piece)
                    file.write(piece)
            except ClientDisconnect:
                return JSONResponse({"error": "The upload broke off."}, 400)
            file.seek(0)
            kept = await run_in_threadpool(services.store.keep, file, f"part {number}", "part")
        await run_in_threadpool(_note, services, upload, number, kept, tag.hexdigest())
        return Response(status_code=200, headers={"ETag": f'"{tag.hexdigest()}"'})

    return put


def _note(services: Services, upload: str, number: int, kept: str, tag: str) -> None:
    with services.store.write() as db:
        old = db.execute("SELECT file FROM parts WHERE upload_id = ? AND number = ?", (upload, number)).fetchone()
        db.execute(
            "UPDATE parts SET file = ?, etag = ? WHERE upload_id = ? AND number = ?", (kept, tag, upload, number)
        )
    services.store.drop(old["file"] if old is not None else kept)
