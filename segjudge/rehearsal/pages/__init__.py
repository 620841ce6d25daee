"""The web pages: rendered on the server, readable without scripts, renewed by a small one."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from . import forms, submission_views, views  # noqa: F401 - they add their routes
from .frame import ROUTES as SHOWN
from .frame import STATIC, alone

#: The routes of static files, of the pages, and of the actions of their forms.
ROUTES: list[BaseRoute] = [Mount("/static", StaticFiles(directory=STATIC), name="static"), *SHOWN]


def nothing_here(request: Request) -> Response:
    """Return the page for addresses that lead nowhere."""
    return alone(request, "message.html", 404, title="Nothing here", text="There is no such page.")


def broken(request: Request) -> Response:
    """Return the page for defects of the rehearsal."""
    text = "This is a defect of the rehearsal. Its terminal tells more."
    return alone(request, "message.html", 500, title="That went wrong", text=text)
