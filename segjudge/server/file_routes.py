"""Downloads of files and uploads of parts, by signed addresses alone."""

import hashlib
import mimetypes
import tempfile

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from .actions.reading import file_for_participants
from .models import StoredFile, UploadPart
from .services import services_of
from .stored_files import MEDIA, PART, signed_text

_SPOOLED = 1 << 20
#: No browser opens an untrusted file as a page of this server.
_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}
_GONE = "This address has expired, or was never ours: ask for the submission again to get a new one."


def _is_signed(request: Request, text: str) -> bool:
    query = request.query_params
    return services_of(request).files.is_signed(text, query.get("expires", ""), query.get("signature", ""))


def _download(request: Request) -> Response:
    services, number, of = services_of(request), request.path_params["file"], request.query_params.get("of", "")
    if not _is_signed(request, signed_text(number, of)):
        return JSONResponse({"error": _GONE}, 403)
    file = services.store.get(StoredFile, number)
    if file is None:
        return JSONResponse({"error": "This file is gone."}, 404)
    redacted = file_for_participants(services, int(of), number) if of else None
    if redacted is not None:
        headers = {**_HEADERS, "Content-Disposition": "attachment"}
        return Response(redacted, headers=headers, media_type="application/octet-stream")
    inline = file.kind == "image"
    return FileResponse(
        services.files.path(number),
        filename=file.name,
        media_type=mimetypes.guess_type(file.name)[0] if inline else "application/octet-stream",
        headers=_HEADERS,
        content_disposition_type="inline" if inline else "attachment",
    )


async def _put_part(request: Request) -> Response:
    services, upload, number = services_of(request), request.path_params["upload"], request.path_params["number"]
    if not _is_signed(request, f"{upload}/{number}"):
        return JSONResponse({"error": _GONE}, 403)
    if await run_in_threadpool(services.store.get, UploadPart, (upload, number)) is None:
        return JSONResponse({"error": "This upload is finished, or never was."}, 404)
    with tempfile.SpooledTemporaryFile(max_size=_SPOOLED, dir=services.store.folder) as file:
        # S3's tag of a part is a checksum, not a secret.
        tag = hashlib.md5(usedforsecurity=False)
        try:
            async for block in request.stream():
                tag.update(block)
                file.write(block)
        except ClientDisconnect:
            return JSONResponse({"error": "The upload broke off."}, 400)
        file.seek(0)
        kept = await run_in_threadpool(services.files.keep, file, f"part {number}", "part")
    await run_in_threadpool(services.uploading.keep_part, (upload, number), kept, tag.hexdigest())
    return Response(status_code=200, headers={"ETag": f'"{tag.hexdigest()}"'})


#: The routes of downloads, and of the parts of large uploads.
ROUTES = [Route(MEDIA, _download, methods=["GET"]), Route(PART, _put_part, methods=["PUT"])]
