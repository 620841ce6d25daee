"""The web pages: rendered on the server, readable without scripts, renewed by a small one."""

from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from . import forms, report_views, submission_views, views  # noqa: F401 - they add their routes
from .frame import ROUTES as SHOWN
from .frame import STATIC

#: The routes of static files, of the pages, and of the actions of their forms.
ROUTES: list[BaseRoute] = [Mount("/static", StaticFiles(directory=STATIC), name="static"), *SHOWN]
