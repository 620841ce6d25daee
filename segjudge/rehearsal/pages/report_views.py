"""The report of a submission, as its own page."""

from starlette.responses import HTMLResponse, Response

from segjudge.rehearsal.actions.report_viewing import report_page

from .frame import PageRequest, page, shown_at

#: The page has a policy of its own.  A process that read untrusted files wrote it, so it is kept apart from this
#: server's other pages, as if it came from elsewhere.
_HEADERS = {
    "Content-Security-Policy": "sandbox allow-scripts allow-downloads allow-forms; default-src 'none'; "
    "img-src data: blob:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@shown_at("/submissions/{submission:int}/report")
def report(request: PageRequest, submission: int) -> Response:
    """Return the report of a submission, or until it is made a page that looks again."""
    text = report_page(request.services, request.known(), submission)
    if text is not None:
        return HTMLResponse(text, headers=_HEADERS)
    words = "It is shown here as soon as it is there."
    waiting = page(request, "message.html", title="The report is being made", text=words)
    waiting.headers["Refresh"] = "1"
    return waiting
