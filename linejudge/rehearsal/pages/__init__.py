"""The web page: rendered here, readable without scripts, renewed by a small one."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from linejudge.rehearsal.desk import Desk

from . import deeds, views
from .frame import STATIC, Frame


def routes(desk: Desk) -> list[BaseRoute]:
    """Pages, the deeds of their forms, and what they are drawn with."""
    frame = Frame(desk)
    static = Mount("/static", StaticFiles(directory=STATIC), name="static")
    return [static, *views.routes(frame), *deeds.routes(frame)]


def nothing_here(request: Request) -> Response:
    """For addresses that lead nowhere."""
    return Frame.alone(request, "message.html", 404, title="Nothing here", text="There is no such page.")


def broken(request: Request) -> Response:
    """For defects of ours."""
    text = "This is a defect of the rehearsal. Its terminal tells more."
    return Frame.alone(request, "message.html", 500, title="That went wrong", text=text)
