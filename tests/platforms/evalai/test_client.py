"""Calls of EvalAI's API meet servers that are none, or hostile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.bundle.push import ChallengePush, RejectedError
from segjudge.platforms.evalai.client import Client, EvalAISettings

from .servers import TOKEN, Server, says


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made.answer(says({}))
    made.close()


def test_a_netrc_does_not_take_the_tokens_place(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    Client(server.address, TOKEN).call("GET", routes.PARTICIPANT_TEAMS)
    assert server.asked[0].endswith("(Bearer TOKEN)")


@pytest.mark.parametrize(
    "body", [{"error": ["a", "b"]}, {"error": 5}, {"error": {"x": ["y"]}}, {}, {"error": ""}], ids=str
)
def test_a_refusal_always_has_a_sentence(server: Server, tmp_path: Path, body: Any) -> None:
    server.answer(says(body, 400))
    (tmp_path / "x.zip").touch()
    with pytest.raises(RejectedError) as raised:
        ChallengePush(EvalAISettings(server.address, TOKEN, 1), "me/x").validate(str(tmp_path / "x.zip"))
    assert str(raised.value)


@pytest.mark.parametrize("row", [{}, {"id": None}, {"id": "x"}, {"id": [1]}], ids=str)
def test_a_challenge_without_a_number_is_none(server: Server, row: Any) -> None:
    server.answer(says({"results": [{"github_repository": "me/x", **row}]}))
    assert ChallengePush(EvalAISettings(server.address, TOKEN, 1), "me/x").fetch_challenge() is None
