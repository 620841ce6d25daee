"""`segjudge push --platform codabench`: upload competitions through the API, and record them.

A second upload makes a second competition: the site has no updates and no dry run.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.bundle_source import UNREADABLE
from segjudge.platforms.evalai.client import (
    ApiError,
    Client,
    account_values,
    is_plain_token,
    is_safe_for_token,
    read_address,
)
from segjudge.system import files
from segjudge.system.network import WireError, exchange, read_blocks, with_deadline

from .routes import COMPETITION, COMPLETED, DATA_SETS, LOGIN, STATUS

_HOST, _TOKEN, _USER, _PASSWORD = "CODABENCH_HOST", "CODABENCH_TOKEN", "CODABENCH_USERNAME", "CODABENCH_PASSWORD"
_DEFAULT_HOST = "https://www.codabench.org"
#: The file with KEY=VALUE lines, mode 0600.
_FILE = os.path.join("~", ".config", "segjudge", "codabench")
#: The record of pushes from a folder: server -> name of the zip -> competition.
_STATE = os.path.join(".segjudge", "codabench.json")
_PAGE = "{host}/competitions/{number}/"
#: Seconds for uploading a bundle, between checks of the outcome, and until the check gives up.
_UPLOAD, _PAUSE, _PATIENCE = 3600.0, 2.0, 1800.0
_LONGEST_NAME = 64


class CodabenchClient(Client):
    """The API calls of one user of Codabench."""

    SERVER, SCHEME = "a Codabench server", "Token"


@dataclass(frozen=True)
class CodabenchAccount:
    """One account on one server."""

    host: str
    token: str = field(repr=False)

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ, file: str = _FILE) -> CodabenchAccount:
        """Return an account from a token, or name and password; raises HostError for missing ones."""
        values = account_values((_HOST, _TOKEN, _USER, _PASSWORD), environment, file)
        host = read_address(values, _HOST, _DEFAULT_HOST)
        if not is_safe_for_token(host):
            raise HostError(f"{_HOST} is {host}: tokens are sent only over https or to this machine")
        token = values.get(_TOKEN, "").strip()
        if not token and values.get(_USER) and values.get(_PASSWORD):
            try:
                login = {"username": values[_USER], "password": values[_PASSWORD]}
                answer = CodabenchClient(host, "").call("POST", LOGIN, json=login)
            except ApiError as error:
                message = error.message.replace(values[_PASSWORD], "…")
                remedy = "Try again later" if error.is_transient else f"Correct {_USER} and {_PASSWORD}"
                raise HostError(f"the login at {host} failed: {message}. {remedy}") from None
            token = str(answer.get("token", "")) if isinstance(answer, dict) else ""
        if not token or not is_plain_token(token):
            raise HostError(f"set {_TOKEN}, or {_USER} and {_PASSWORD}, in the environment or {_FILE} (mode 0600)")
        return cls(host, token)


@dataclass(frozen=True)
class _PushedCompetition:
    """An uploaded bundle and its known outcome."""

    #: The number of the upload, for polling its outcome.
    status: int
    #: The checksum of the bundle's files.
    digest: str
    #: The competition's number; 0 while it is being unpacked.
    number: int = 0
    #: The splits whose scores it shows to everybody, as PHASE/SPLIT.
    published: tuple[str, ...] = ()

    def is_of(self, path: str) -> bool:
        """Return whether a bundle is unchanged since the upload."""
        return self.digest == _digest_of(path)


class NotUnpackedError(Exception):
    """Raised with Codabench's words if it rejected a bundle."""


class CompetitionPush:
    """The upload of a folder's competitions to one server."""

    def __init__(self, account: CodabenchAccount, root: str, sleep: Callable[[float], object] = time.sleep) -> None:
        self._account, self._path, self._sleep = account, Path(root, _STATE), sleep
        self._client = CodabenchClient(account.host, account.token)

    def find_last_upload(self, name: str) -> _PushedCompetition | None:
        """Return the outcome of the last upload; None if the competition is gone."""
        row = self._state().get(self._account.host, {}).get(name)
        pushed = _PushedCompetition(**row) if row else None
        if pushed is None or not pushed.number:
            return pushed
        try:
            self._client.call("GET", COMPETITION, {"competition": pushed.number})
        except ApiError as error:
            if error.status == 404:  # deleted there
                return None
            raise HostError(self._explain(error)) from None
        return pushed

    def describe_withdrawn(self, published: Sequence[str]) -> Iterator[str]:
        """Yield a warning for each uploaded competition that shows splits which are no longer published."""
        for name, row in self._state().get(self._account.host, {}).items():
            withdrawn = [split for split in row.get("published", ()) if split not in published]
            competition = self.find_last_upload(name) if withdrawn else None
            if competition is not None and competition.number:
                fault = f"competition {competition.number} still shows the scores of {', '.join(withdrawn)}, now hidden"
                doors = "Its leaderboard and Codabench's API serve them to everybody"
                remedy = f"Delete the competition on its page, {self.page(competition)}, then push with --again"
                yield f"warning: {fault}. {doors}. {remedy}."

    def upload(self, name: str, path: str, published: Sequence[str] = ()) -> _PushedCompetition:
        """Upload a bundle, recording it first, so that none is uploaded twice."""
        file, size = os.path.basename(path), os.path.getsize(path)
        request = {"type": "competition_bundle", "file_name": file[-_LONGEST_NAME:], "file_size": size}
        request["request_sassy_file_name"] = file
        try:
            target = self._client.call("POST", DATA_SETS, json=request)
            self._send(str(target["sassy_url"]), path)
            answer = self._client.call("PUT", COMPLETED, {"key": str(target["key"])}, json={})
            pushed = _PushedCompetition(int(answer["status_id"]), _digest_of(path), published=tuple(published))
        except ApiError as error:
            raise HostError(self._explain(error)) from None
        except (KeyError, TypeError, ValueError) as error:
            raise HostError(f"{self._account.host}: does not answer as Codabench does ({error!r})") from None
        self._remember(name, pushed)
        return pushed

    def wait_for_outcome(self, name: str, pushed: _PushedCompetition, timeout: float = _PATIENCE) -> _PushedCompetition:
        """Wait until a bundle is unpacked; raises `NotUnpackedError` where it is refused."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                answer = self._client.call("GET", STATUS, {"status": pushed.status})
            except ApiError as error:
                if not error.is_transient:
                    raise HostError(self._explain(error)) from None
                answer = {}
            status = answer.get("status") if isinstance(answer, dict) else None
            if status == "Finished":
                competition = replace(pushed, number=int(answer["resulting_competition"]))
                self._remember(name, competition)
                return competition
            if status == "Failed":
                self._remember(name, None)
                raise NotUnpackedError(str(answer.get("details") or "Codabench gives no reason."))
            self._sleep(_PAUSE)
        raise HostError(
            f"{self._account.host}: still unpacks upload {pushed.status} after {timeout:.0f} s; its worker may have "
            "died. Push again to continue waiting, or with --again to upload it once more"
        )

    def page(self, pushed: _PushedCompetition) -> str:
        return _PAGE.format(host=self._account.host, number=pushed.number)

    def _send(self, url: str, path: str) -> None:
        """Send the bytes to the storage address, without the token."""
        if not is_safe_for_token(url):
            raise HostError(f"{self._account.host}: wants the bundle uploaded without encryption, to {url[:100]}")

        def send(session: Any) -> tuple[int, str]:
            with open(path, "rb") as file:
                session.trust_env = False  # nor anything of ~/.netrc
                headers = {"Content-Type": "application/zip"}
                options = {"timeout": (10, _UPLOAD), "allow_redirects": False, "stream": True}
                with session.put(url, data=file, headers=headers, **options) as answer:
                    text = next(read_blocks(answer), b"").decode("utf-8", "replace")
            return answer.status_code, text[:300]

        try:
            status, text = exchange(send, with_deadline(_UPLOAD))
        except WireError as error:
            raise HostError(f"the upload was interrupted ({error}); nothing was created. Push again") from None
        if not 200 <= status < 300:
            raise HostError(f"the storage rejects the bundle ({status}: {text}); nothing was created")

    def _explain(self, error: ApiError) -> str:
        # The site also answers 403 to an unknown token.
        faults = {401: "is wrong", 403: "is wrong, or its account has no permission"}
        fault = faults.get(error.status)
        hint = f"\nYour token {fault}: set {_TOKEN}, or {_USER} and {_PASSWORD}." if fault else ""
        return f"{self._account.host} says: {error.message}{hint}"

    def _state(self) -> dict[str, dict[str, Any]]:
        try:
            state: dict[str, dict[str, Any]] = json.loads(self._path.read_text(encoding="utf-8"))
            if not isinstance(state, dict):
                raise ValueError("it is not a JSON object")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise HostError(f"{self._path}: cannot be read ({error}); it records the uploaded competitions") from None
        return state

    def _remember(self, name: str, pushed: _PushedCompetition | None) -> None:
        state = self._state()
        row = state.setdefault(self._account.host, {})
        if pushed is None:
            row.pop(name, None)
        else:
            row[name] = asdict(pushed)
        self._path.parent.mkdir(exist_ok=True)
        files.replace(self._path, json.dumps(state, indent=1) + "\n")


def _digest_of(path: str) -> str:
    """Return a checksum of the names and contents of a bundle's files, zips included.

    Dates, order and compression do not matter. A file that is not a zip counts by its bytes.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _digest_of_members(archive, nested=True)
    except UNREADABLE:
        return files.digest_of_bytes(path)


def _digest_of_members(archive: zipfile.ZipFile, *, nested: bool) -> str:
    digests = {}
    for name in archive.namelist():
        with archive.open(name) as member:
            if nested and name.endswith(".zip") and zipfile.is_zipfile(member):
                with zipfile.ZipFile(member) as inner:
                    digests[name] = _digest_of_members(inner, nested=False)
            else:
                member.seek(0)
                digests[name] = files.digest_of_file(member)
    return hashlib.sha256(json.dumps(sorted(digests.items())).encode()).hexdigest()
