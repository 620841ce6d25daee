"""The requests, records and messages of a push to Codabench, for every answer of the site, as one text."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.codabench import push
from segjudge.platforms.codabench.push import CodabenchAccount, CompetitionPush, NotUnpackedError
from tests.platforms.damages import GOLDEN, new_folder
from tests.platforms.evalai.servers import TOKEN, Answer, Server, says

FILE = GOLDEN / "uploads.txt"
_HOST, _TOKEN, _USER, _PASSWORD = (f"CODABENCH_{name}" for name in ("HOST", "TOKEN", "USERNAME", "PASSWORD"))
_LOGIN = {_USER: "me", _PASSWORD: "secret"}
#: What stands in the environment, and what the site answers to a login.
_ACCOUNTS: list[tuple[dict[str, str], list[Answer]]] = [
    ({}, []), ({_TOKEN: " abc "}, []), ({_TOKEN: "a b"}, []),
    ({_TOKEN: "abc", _HOST: "http://codabench.example"}, []), ({_USER: "me"}, []), ({_PASSWORD: "secret"}, []),
    (_LOGIN, [says({"token": "abc"})]), ({**_LOGIN, _TOKEN: "mine"}, [says({"token": "abc"})]),
    (_LOGIN, [says({"token": ""})]), (_LOGIN, [says({})]), (_LOGIN, [says(["abc"])]),
    (_LOGIN, [says({"error": "not with secret"}, 400)]), (_LOGIN, [says({"error": "slow"}, 429)]),
]  # fmt: skip
_TARGET = {"key": "k", "sassy_url": "STORAGE/b"}
_WHOLE = [says(_TARGET), says(b""), says({"status_id": "5"})]
#: What is answered to an upload: to the data set, the bytes, and the completion.
_UPLOADS: dict[str, list[Answer]] = {
    "an upload": _WHOLE,
    "no rights": [says({"detail": "who?"}, 401)],
    "a refusal": [says({"detail": "no"}, 403)],
    "no address": [says({"key": "k"})],
    "no key": [says({"sassy_url": "STORAGE/b"}), says(b"")],
    "a list": [says([1])],
    "an address without encryption": [says({**_TARGET, "sassy_url": f"http://storage.example/{'x' * 200}"})],
    "a storage that made it": [_WHOLE[0], says(b"", 201), _WHOLE[2]],
    "a storage that redirects": [_WHOLE[0], says(b"", 300)],
    "a storage that refuses": [_WHOLE[0], says(b"y" * 400, 403)],
    "no number": [*_WHOLE[:2], says({"status_id": "x"})],
    "no completion": [*_WHOLE[:2], says({"detail": "late"}, 500)],
}
#: What is answered to questions for the outcome.
_OUTCOMES: dict[str, list[Answer]] = {
    "at once": [says({"status": "Finished", "resulting_competition": "101"})],
    "after some looks": [says({"status": "Starting"}), says([1]), says({}), says({"status": "Finished", "resulting_competition": 7})],
    "after trouble": [says({"error": "x"}, 500), says({"status": "Finished", "resulting_competition": 7})],
    "refused": [says({"status": "Failed", "details": "no logo"})],
    "refused without a reason": [says({"status": "Failed", "details": None})],
    "not allowed": [says({"detail": "who?"}, 401)],
    "never": [says({"status": "Starting"})],
}  # fmt: skip


def _say(call: Callable[[], Any]) -> str:
    try:
        value = call()
    except (HostError, NotUnpackedError) as error:
        return f"{type(error).__name__}: {error}"
    return str(value and asdict(value))


def _list_accounts(server: Server) -> Iterator[str]:
    for environment, answers in _ACCOUNTS:
        server.answers, server.asked = [*answers], []
        given = {_HOST: server.address, **environment} if answers else environment
        yield f"{environment}: {_say(lambda given=given: CodabenchAccount.read(given, 'none'))}"  # type: ignore[misc]
        yield from (f"    {asked}" for asked in server.asked)


def _list_uploads(server: Server, path: str) -> Iterator[str]:
    for name, answers in _UPLOADS.items():
        with contextlib.suppress(FileNotFoundError):
            os.remove(".segjudge/codabench.json")
        server.asked = []
        server.answers = [
            (status, {**body, "sassy_url": body["sassy_url"].replace("STORAGE", server.address)} if isinstance(body, dict) and "sassy_url" in body else body, headers)
            for status, body, headers in answers
        ]  # fmt: skip
        pushing = CompetitionPush(CodabenchAccount(server.address, TOKEN), ".")
        yield f"{name}: {_say(lambda pushing=pushing: pushing.upload('b', path))}"  # type: ignore[misc]
        yield from (f"    {asked}" for asked in server.asked)
        yield f"    remembered: {_say(lambda pushing=pushing: pushing.find_last_upload('b'))}"  # type: ignore[misc]


def _list_outcomes(server: Server, path: str) -> Iterator[str]:
    clock = [0.0]
    with mock.patch.object(push, "time", SimpleNamespace(monotonic=lambda: clock[0])):
        for name, answers in _OUTCOMES.items():
            server.answers, server.asked = [*answers], []
            pauses = list[float]()

            def sleep(seconds: float, pauses: list[float] = pauses) -> None:
                pauses.append(seconds)
                clock[0] += seconds

            pushing = CompetitionPush(CodabenchAccount(server.address, TOKEN), ".", sleep)
            pushed = push._PushedCompetition(5, "d")
            pushing._remember("b", pushed)
            patience = 6.0 if name == "never" else push._PATIENCE
            wait = functools.partial(pushing.wait_for_outcome, "b", pushed, patience)
            yield f"{name}: {_say(wait)}"
            yield f"    {len(server.asked)} looks, the last {server.asked[-1]}, pauses {pauses}"
            yield f"    remembered: {Path('.segjudge/codabench.json').read_text().splitlines()[1:]}"
    pushing = CompetitionPush(CodabenchAccount(server.address, TOKEN), ".")
    done = push._PushedCompetition(5, push._digest_of(path), 101)
    pushing._remember("c", done)
    yield f"its page: {pushing.page(done)}, of the same bundle: {done.is_of(path)}, of another: {done.is_of(__file__)}"
    for status in (200, 404, 500, 401):
        server.answers, server.asked = [says({"error": "x"}, status)], []
        yield f"what the site has, {status}: {_say(lambda: pushing.find_last_upload('c'))} {server.asked}"
    yield f"of another name: {_say(lambda: pushing.find_last_upload('z'))}"
    elsewhere = CompetitionPush(CodabenchAccount("https://a.org", TOKEN), ".")
    yield f"of another server: {_say(lambda: elsewhere.find_last_upload('c'))}"
    for text in ("{", "[]"):
        Path(".segjudge/codabench.json").write_text(text)
        yield f"a state of {text}: {_say(lambda: pushing.find_last_upload('c'))}"


def write_text() -> str:
    with new_folder(), contextlib.closing(Server()) as server:
        path = f"{'n' * 70}.zip"
        Path(path).write_bytes(b"PK and the rest")
        parts = {
            "accounts": _list_accounts(server),
            "uploads": _list_uploads(server, path),
            "outcomes": _list_outcomes(server, path),
        }
        text = "".join(f"── {title} ──\n" + "".join(f"{line}\n" for line in lines) for title, lines in parts.items())
        text = text.replace(server.address, "SERVER")
    text = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text)
    return re.sub(r"([nxy])\1{40,}", lambda run: f"{len(run[0])} {run[1]}", text)


if __name__ == "__main__":
    FILE.write_text(write_text(), encoding="utf-8")
