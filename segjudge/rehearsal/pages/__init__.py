"""The web pages: rendered on the server, readable without scripts, renewed by a small one."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from segjudge.rehearsal.services import Services

from . import forms, submission_views, views
from .frame import STATIC, Frame


def routes(services: Services) -> list[BaseRoute]:
    """Return the routes of the pages, of the actions of their forms, and of static files."""
    frame = Frame(services)
    static = Mount("/static", StaticFiles(directory=STATIC), name="static")
    return [static, *views.routes(frame), *submission_views.routes(frame), *forms.routes(frame)]


def nothing_here(request: Request) -> Response:
    """Return the page for addresses that lead nowhere."""
    return Frame.alone(request, "message.html", 404, title="Nothing here", text="There is no such page.")


def broken(request: Request) -> Response:
    """Return the page for defects of the rehearsal."""
    text = "This is a defect of the rehearsal. Its terminal tells more."
    return Frame.alone(request, "message.html", 500, title="That went wrong", text=text)
