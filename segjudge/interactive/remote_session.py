"""The client of a remote session over HTTP: the server has truth, order, limits and clock."""

import json
import secrets
import time
from collections.abc import Iterable
from typing import Any, cast

import pandas as pd
import requests
from numpy.typing import ArrayLike
from requests.exceptions import ChunkedEncodingError, InvalidURL
from urllib3.exceptions import LocationParseError

from segjudge.system.network import pauses, reason_of

from . import wire_format
from .dataset import SessionInputError
from .evaluation import as_masks
from .masks import encode_frames
from .reports import ReportFiles, Sample, Summary
from .scribbles import Scribbles
from .session import LOCAL_HOST, LocalConnector, SessionRules

#: Seconds to connect, and between two bytes of an answer; the server may be measuring a long sequence.
_TIMEOUTS = (10.0, 300.0)
#: The number of attempts, about two minutes in total, since a restarted server reads its dataset first.
_TRIES = 10


class NoServerError(NameError):
    """Raised if no session server answers at an address."""


class UnknownSessionError(LookupError):
    """Raised if the server has no such session of this user."""


class RemoteConnector:
    """A connector to a session server, whose health is checked at once."""

    def __init__(self, user_key: str | None, session_key: str | None, host: str) -> None:
        if not user_key or not session_key:
            raise ValueError("user_key and session_key must be specified")
        if not host.lower().startswith(("http://", "https://")):
            raise SessionInputError(
                f"host: {host!r} is neither 'localhost' nor an address that begins with http:// or https://"
            )
        self.user_key, self.session_key, self.host = user_key, session_key, host.rstrip("/")
        self._http = requests.Session()
        self._call("GET", wire_format.HEALTH)

    def get_samples(self) -> tuple[list[Sample], float | None, int | None]:
        """Start a session with a key from the server; return its samples and limits."""
        answer = self._call("POST", wire_format.SESSION, headers={wire_format.REQUEST_KEY: secrets.token_hex(16)})
        self.session_key = answer["session_key"]
        return [(name, number) for name, number in answer["samples"]], answer["max_time"], answer["max_nb_interactions"]

    def next(self) -> wire_format.NextAnswer:
        return cast("wire_format.NextAnswer", self._call("POST", wire_format.NEXT))

    def get_scribbles(self, *, only_last: bool) -> wire_format.ScribblesAnswer:
        """Return the scribbles; the server's clock starts with the first answer."""
        answer = self._call("GET", wire_format.SCRIBBLES, params={"only_last": int(only_last)})
        return cast("wire_format.ScribblesAnswer", answer)

    def post_predicted_masks(self, submission: wire_format.InteractionBody) -> bool:
        """Send masks; return whether they arrived in time."""
        answer = self._answer("POST", wire_format.INTERACTION, data=json.dumps(submission).encode())
        return wire_format.LATE not in answer.headers

    def get_report(self) -> pd.DataFrame:
        return pd.DataFrame(self._call("GET", wire_format.REPORT))

    def post_finish(self) -> Summary:
        return cast("Summary", self._call("POST", wire_format.FINISH))

    def _call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        values = _json_of(self._answer(method, path, **options))
        if not isinstance(values, dict):
            raise RuntimeError(f"{self.host}/{path} did not answer with a JSON object")
        return values

    def _answer(self, method: str, path: str, **options: Any) -> requests.Response:
        """Return an answer with a status below 300, retrying transient failures."""
        keys = {wire_format.USER_KEY: self.user_key, wire_format.SESSION_KEY: self.session_key}
        headers = {**keys, **options.pop("headers", {})}
        answer: requests.Response | None = None
        reason = ""
        for wait in [*pauses(2 if path == wire_format.HEALTH else _TRIES), None]:
            try:
                answer = self._http.request(
                    method, f"{self.host}/{path}", headers=headers, timeout=_TIMEOUTS, allow_redirects=False, **options
                )
            except (requests.ConnectionError, requests.Timeout, ChunkedEncodingError) as error:  # which is interrupted
                answer, reason = None, reason_of(error)
            except (InvalidURL, LocationParseError):
                raise SessionInputError(f"host: {self.host!r} is not the address of a server") from None
            if answer is not None and answer.status_code < 500:
                break
            if wait is not None:
                time.sleep(wait)
        if answer is None:
            raise ConnectionError(f"{self.host} cannot be reached ({reason})") from None
        if path == wire_format.HEALTH and answer.status_code >= 300:
            raise NoServerError(f"Server {self.host} not found")
        if answer.status_code >= 300:
            refusal = wire_format.error_of(_json_of(answer), answer.status_code)
            raise UnknownSessionError(str(refusal)) if isinstance(refusal, LookupError) else refusal
        return answer


def _json_of(answer: requests.Response) -> object:
    try:
        return answer.json()
    except ValueError:
        return None


class RemoteSession(SessionRules):
    """A session whose masks are measured on a server. Failed requests are repeated; the server recognises repeats."""

    def __init__(self, connector: RemoteConnector, files: ReportFiles) -> None:
        super().__init__(None, None)
        self.connector, self.files = connector, files
        self.summary: Summary = {}
        #: The sample and interaction of the last written report.
        self._reported: tuple[int | None, int | None] | None = None

    def enter(self, *, resume: bool) -> None:
        """Start a session; `resume` continues the newest unfinished one of this user and server."""
        connector = self.connector
        keys = {"host": connector.host, "user_key": connector.user_key}
        if resume:
            saved = self.files.resume(lambda saved: keys.items() <= saved.items(), "of this server")
            connector.session_key = saved["session_key"]
            samples = [(name, number) for name, number in saved["samples"]]
            self.max_time, self.max_nb_interactions = saved["max_time"], saved["max_nb_interactions"]
            self._is_resumed = True
        else:
            samples, self.max_time, self.max_nb_interactions = connector.get_samples()
        self.samples, self.sample_idx, self.interaction_nb = samples, -1, -1
        limits = {"max_time": self.max_time, "max_nb_interactions": self.max_nb_interactions}
        saved_state = {**keys, "session_key": connector.session_key, "samples": samples, **limits}
        self.files.write_state(saved_state, private=True)  # it holds the keys

    def next(self) -> bool:
        """Return True if there is another interaction; write the report if anything is new."""
        if not self.running:
            return False
        answer = self.connector.next()
        if answer["finished"]:
            self.summary = self.connector.post_finish()
            self.files.finish(self.report(), self.summary)
            self.running = self.running_model = False
            return False
        index = self.samples.index((answer["sequence"], answer["scribble_idx"]))
        if index != self.sample_idx:
            self.sample_idx, self.running_model = index, False
        self.interaction_nb = answer["interaction"] - 1
        if self._reported != (self.sample_idx, self.interaction_nb):
            self.files.write_report(self.report())
            self._reported = (self.sample_idx, self.interaction_nb)
        return True

    def read_scribbles(self, *, only_last: bool) -> tuple[str, Scribbles, bool]:
        """Return the sequence, its scribbles, and True for a new sample; the server's clock runs."""
        self._check_scribbles_due()
        answer = self.connector.get_scribbles(only_last=only_last)
        new = self._begin_interaction(None, new_sample=answer["new_sequence"])
        return answer["sequence"], answer["scribbles"], new

    def submit(self, masks: ArrayLike, candidates: Iterable[int] | None) -> bool:
        """Send masks; return whether they came in time."""
        self._check_masks_due()
        ids = as_masks(masks)
        if ids.ndim != 3:
            raise ValueError("y_pred array must have 3 dimensions.")
        sequence, number = self.sample
        submission: wire_format.InteractionBody = {
            "sequence": sequence,
            "scribble_idx": number,
            "interaction": self.interaction,
            "pred_masks": encode_frames(ids),
        }
        if candidates is not None:
            submission["next_scribble_frame_candidates"] = [int(frame) for frame in candidates]
        in_time = self.connector.post_predicted_masks(submission)
        self._end_interaction(None)
        return in_time

    def report(self) -> pd.DataFrame:
        return self.connector.get_report()


class ServerConnectionFabric:
    """A factory that chooses between a local service and a server."""

    @staticmethod
    def get_connector(host: str, user_key: str | None, session_key: str | None) -> LocalConnector | RemoteConnector:
        if host == LOCAL_HOST:
            return LocalConnector(user_key, session_key or "")
        return RemoteConnector(user_key, session_key, host)
