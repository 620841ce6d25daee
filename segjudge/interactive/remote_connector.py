"""The connector of a session to a server, and the choice between both connectors."""

import json
import secrets
import time
from typing import Any, cast
from urllib.parse import urlsplit

import pandas as pd
import requests
from requests.exceptions import ChunkedEncodingError

from segjudge.platforms.evalai.client import waits

from . import wire_format
from .local_connector import LocalConnector
from .session import LOCAL_HOST
from .summary import Sample, Summary

#: Seconds to connect, and between two bytes of an answer; the server may be measuring a long sequence.
TIMEOUTS = (10.0, 300.0)
#: Within two minutes: a server that was restarted reads its dataset first.
TRIES = 10


class RemoteConnector:
    """Asks a server of sessions; its health is checked at once."""

    def __init__(self, user_key: str | None, session_key: str | None, host: str) -> None:
        if not user_key or not session_key:
            raise ValueError("user_key and session_key must be specified")
        if urlsplit(host).scheme not in ("http", "https"):
            raise ValueError(
                f"host: {host!r} is neither 'localhost' nor an address that begins with http:// or https://"
            )
        self.user_key, self.session_key, self.host = user_key, session_key, host.rstrip("/")
        self._http = requests.Session()
        self._call("GET", wire_format.HEALTH)

    def get_samples(self) -> tuple[list[Sample], float | None, int | None]:
        """Begin a session, whose key is the server's; return its samples and limits."""
        begun = self._call("POST", wire_format.SESSION, headers={wire_format.REQUEST_KEY: secrets.token_hex(16)})
        self.session_key = begun["session_key"]
        return [(name, number) for name, number in begun["samples"]], begun["max_time"], begun["max_nb_interactions"]

    def next(self) -> wire_format.NextAnswer:
        """Return the interaction that comes next, or that the session has finished."""
        return cast("wire_format.NextAnswer", self._call("POST", wire_format.NEXT))

    def get_scribbles(self, *, only_last: bool) -> wire_format.ScribblesAnswer:
        """Return the scribbles; the server's clock runs from the first answer."""
        answer = self._call("GET", wire_format.SCRIBBLES, params={"only_last": int(only_last)})
        return cast("wire_format.ScribblesAnswer", answer)

    def post_predicted_masks(self, submission: wire_format.InteractionBody) -> bool:
        """Send masks; return whether they arrived in time."""
        answer = self._answer("POST", wire_format.INTERACTION, data=json.dumps(submission).encode())
        return wire_format.LATE not in answer.headers

    def get_report(self) -> pd.DataFrame:
        """Return a row for each object of each interaction, the mean over its frames."""
        return pd.DataFrame(self._call("GET", wire_format.REPORT))

    def post_finish(self) -> Summary:
        """Return the summary of a session that is over."""
        return cast("Summary", self._call("POST", wire_format.FINISH))

    def _call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Return the JSON object of an answer."""
        values = _json_of(self._answer(method, path, **options))
        if not isinstance(values, dict):
            raise RuntimeError(f"{self.host}/{path} answered something that is not a JSON object")
        return values

    def _answer(self, method: str, path: str, **options: Any) -> requests.Response:
        """Return an answer below 300; failures that may pass are tried again."""
        keys = {wire_format.USER_KEY: self.user_key, wire_format.SESSION_KEY: self.session_key}
        headers = {**keys, **options.pop("headers", {})}
        answer: requests.Response | None = None
        failure: Exception | None = None
        for wait in [*waits(2 if path == wire_format.HEALTH else TRIES), None]:
            try:
                answer = self._http.request(
                    method, f"{self.host}/{path}", headers=headers, timeout=TIMEOUTS, allow_redirects=False, **options
                )
            except (requests.ConnectionError, requests.Timeout, ChunkedEncodingError) as error:  # which breaks off
                answer, failure = None, error
            if answer is not None and answer.status_code < 500:
                break
            if wait is not None:
                time.sleep(wait)
        if answer is None:
            raise ConnectionError(f"{self.host} cannot be reached ({failure})") from None
        if path == wire_format.HEALTH and answer.status_code >= 300:
            raise NameError(f"Server {self.host} not found")
        if answer.status_code >= 300:
            raise wire_format.error_of(_json_of(answer), answer.status_code)
        return answer


def _json_of(answer: requests.Response) -> object:
    """Return what an answer holds as JSON; None where it does not."""
    try:
        return answer.json()
    except ValueError:
        return None


class ServerConnectionFabric:
    """Chooses between a service of this process and a server."""

    @staticmethod
    def get_connector(host: str, user_key: str | None, session_key: str | None) -> LocalConnector | RemoteConnector:
        """Return the connector to a host."""
        if host == LOCAL_HOST:
            return LocalConnector(user_key, session_key or "")
        return RemoteConnector(user_key, session_key, host)
