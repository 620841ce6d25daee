"""A rehearsal's monitoring is JSON, whatever goes wrong."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.requests import Request

from segjudge.server.server import _report_defect


@pytest.mark.parametrize("path", ["/healthz", "/api/challenges/challenge/present/approved/public"])
def test_a_defect_is_no_page_where_programs_ask(path: str) -> None:
    request = Request({"type": "http", "method": "GET", "path": path, "headers": []})
    answer = asyncio.run(_report_defect(request, ValueError("x")))
    assert answer.status_code == 500
    assert json.loads(bytes(answer.body)) == {
        "error": "This is a defect in the rehearsal; its terminal shows the details."
    }
