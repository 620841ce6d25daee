"""EvalAI's addresses: the clients and the rehearsal use those of EvalAI's own URL table, with its methods and slashes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from segjudge.platforms.evalai import routes
from segjudge.server import api
from tests.data import EVALAI, ROOT
from tests.rehearsals import bundle_with
from tests.shared import needs_shared

from .staged import Stage

ROUTES = {name: route for name, route in vars(routes).items() if name.isupper()}
#: The values of all parameters of the addresses.
VALUES = dict.fromkeys(re.findall(r"{(\w+)", " ".join(ROUTES.values())), 1)


def unnamed(route: str) -> str:
    """Return an address without the names of its parameters, which differ."""
    return re.sub(r"{[^}]*}", "{}", route)


def read_table() -> dict[str, set[str]]:
    """Return the methods of each address in EvalAI's URL table."""
    rows = (line.split("\t") for line in (EVALAI / "routes.txt").read_text().splitlines() if line[:1] == "/")
    return {unnamed(path): {*methods.split(",")} for path, methods in rows}


def list_calls() -> Iterator[tuple[str, str]]:
    """Yield the method and the address of each call of EvalAI's API in the code."""
    folders = ("segjudge", "remote_challenge_evaluation", "code_upload_challenge_evaluation")
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for method, name in re.findall(r'"(GET|POST|PATCH|PUT|DELETE)",\s+routes\.([A-Z_]+)', path.read_text()):
            yield method, ROUTES[name]


@needs_shared
def test_every_address_and_method_is_one_of_evalais() -> None:
    table, served = read_table(), [route for route in api.ROUTES if route.path.startswith("/api/")]
    assert [route for route in ROUTES.values() if unnamed(route) not in table] == []
    methods = [(method, route.path) for route in served for method in {*(route.methods or ())} - {"HEAD"}]
    calls = [*list_calls()]
    assert len(calls) > 20
    assert [(method, path) for method, path in [*methods, *calls] if method not in table[unnamed(path)]] == []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("routes")
    with Stage(folder, bundle_with(folder)) as opened:
        yield opened


def test_the_rehearsal_adds_a_missing_slash_by_a_redirect_and_knows_no_address_with_one_too_many(server: Stage) -> None:
    for route in ROUTES.values():
        path = routes.path(route, **VALUES)
        if path.endswith("/"):
            answer = server.get(f"{path[:-1]}?page=2", "host")
            assert (answer.status_code, answer.headers["Location"]) == (301, f"{server.address}{path}?page=2")
        else:
            assert server.get(f"{path}/", "host").status_code == 404
    assert server.call("DELETE", routes.path(routes.CHALLENGE, challenge=1), "host").status_code == 405


def test_pages_are_found_with_a_slash_too_many(server: Stage) -> None:
    answer = server.browse("GET", "/challenges/1/")
    assert (answer.status_code, answer.headers["Location"]) == (301, f"{server.address}/challenges/1")
