"""The web pages: rendered on the server, readable without scripts, renewed by a small one."""

import os

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from segjudge.report.page import PAGES as REPORT

from . import forms, views  # noqa: F401 - they add their routes
from .frame import ROUTES as SHOWN
from .frame import STATIC


def _report_style(_request: Request) -> Response:
    return FileResponse(os.path.join(REPORT, "page.css"))


#: The routes of static files, of the pages, and of the actions of their forms.
ROUTES: list[BaseRoute] = [
    Route("/static/report.css", _report_style),
    Mount("/static", StaticFiles(directory=STATIC), name="static"),
    *SHOWN,
]
