"""Names that teams and methods choose stay text on every page, for every reader."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import requests

from segjudge.report.boards import Board
from segjudge.server.models import Team
from tests.rehearsals import Rehearsal, started

#: Opens a tag, ends an attribute, a comment and a template; changes direction; moves a terminal's cursor.
HOSTILE = "\"><x-mark onload=a()>'{{7*7}}<!--]]>&lt;\u202e\x1b[31m\u200b"
#: Pages from which links lead to all others.
STARTS = ("/", "/challenges/1", "/submissions/1", "/nowhere/x-mark")


def pages_of(server: Rehearsal, visitor: str) -> dict[str, requests.Response]:
    """Return every page that links lead a visitor to, and the addresses of EvalAI's API that show names."""
    browser = server.session(visitor) if visitor else requests.Session()
    pages: dict[str, requests.Response] = {}
    waiting = list(STARTS)
    while waiting:
        path = waiting.pop()
        if path in pages:
            continue
        pages[path] = browser.get(server.address + path, timeout=60)
        if pages[path].headers.get("Content-Type", "").startswith("text/html"):
            links = re.findall(r'href="(/[^"#]*)"', pages[path].text)
            waiting += [link.replace("&amp;", "&") for link in links if "logout" not in link and "next=" not in link]
    return pages


@pytest.mark.long
def test_names_with_markup_stay_text_on_every_page(tmp_path: Path) -> None:
    with started(tmp_path) as server:
        fields = dict.fromkeys(("method_name", "method_description", "publication_url"), HOSTILE)
        metadata = json.dumps([{"name": HOSTILE, "type": "text", "value": HOSTILE}])
        program = f"print({HOSTILE!r})\nanswers = 1".encode()
        sent = server.submit(
            "aurora", program, **fields, project_url="javascript:a()", is_public="true", submission_metadata=metadata
        )
        assert server.settled(sent.json()["id"])["status"] == "finished"
        with server.store() as store, store.write() as session:
            for team in session.query(Team).all():
                team.team_name, team.team_url = f"{team.id}{HOSTILE}", "javascript:a()"
        for visitor in ("", "aurora", "borealis", "host"):
            pages = pages_of(server, visitor)
            shown = [path for path, page in pages.items() if "x-mark onload" in page.text]
            assert "/challenges/1/leaderboard" in shown
            for path, page in pages.items():
                assert page.status_code < 500, (visitor, path)
                if page.headers.get("Content-Type", "").startswith("text/html"):
                    assert "<x-mark" not in page.text, (visitor, path)
                    assert "javascript:" not in "".join(re.findall(r'(?:href|src|action)="([^"]*)"', page.text))
                    assert "49" not in re.findall(r"onload=a\(\)&gt;&#39;(\w*)", page.text), (visitor, path)


@pytest.mark.parametrize("name", ["\x1b[2J", "<b>&", "\u202e", "a\x00b\x0c", ""])
def test_a_badge_of_any_name_is_a_picture(name: str) -> None:
    board = Board(1, "Phase / split", "AP", 2, [{"rank": 1, "team": name, "AP": 0.5}])
    assert ElementTree.fromstring(board.draw_badge()).tag.endswith("svg")
