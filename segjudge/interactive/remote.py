"""A session that runs on a server: the same calls, over the wire."""

from __future__ import annotations

import json
import secrets
import time
import warnings
from typing import Any, Self
from urllib.parse import urlsplit

import pandas as pd
import requests

from segjudge.evalai.retries import waits
from segjudge.files import replace
from segjudge.interactive.utils.mask import encode_frames

from . import wire_format
from .connectors import NOT_BEGUN, LocalConnector
from .evaluation import as_masks
from .session import (
    LOCAL,
    NOTHING_DUE,
    NOTHING_TO_SEGMENT,
    TOO_LATE,
    TWICE,
    DavisInteractiveSession,
)

#: Seconds for a connection, and between two bytes of an answer; the server may be measuring a long sequence.
TIMEOUTS = (10.0, 300.0)
#: Within two minutes: a server that begins again reads its dataset first.
TRIES = 10


class RemoteConnector:
    """Speaks to a server of sessions; whether one is there is asked at once."""

    def __init__(self, user_key: str | None, session_key: str | None, host: str) -> None:
        if not user_key or not session_key:
            raise ValueError("user_key and session_key must be specified")
        if urlsplit(host).scheme not in ("http", "https"):
            raise ValueError(
                f"host: {host!r} is neither 'localhost' nor an address that begins with http:// or https://"
            )
        self.user_key, self.session_key, self.host = user_key, session_key, host.rstrip("/")
        self._http = requests.Session()
        self.call("GET", wire_format.HEALTH)

    def get_samples(self) -> tuple[list[tuple[str, int]], float | None, int | None]:
        """Begin a session, whose key is the server's; return its samples and limits."""
        told = self.call("POST", wire_format.SESSION, headers={wire_format.REQUEST_KEY: secrets.token_hex(16)})
        self.session_key = told["session_key"]
        return [(name, number) for name, number in told["samples"]], told["max_time"], told["max_nb_interactions"]

    def get_report(self) -> pd.DataFrame:
        """Return a row for each object of each interaction, the mean over its frames."""
        return pd.DataFrame(self.call("GET", wire_format.REPORT))

    def post_finish(self) -> dict[str, Any]:
        """Return the summary of a session that is over."""
        return self.call("POST", wire_format.FINISH)

    def call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        """Return the object that was answered."""
        answer = self.answer(method, path, **more)
        try:
            told = answer.json()
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise RuntimeError(f"{self.host}/{path} answered something that is not a JSON object")
        return told

    def answer(self, method: str, path: str, **more: Any) -> requests.Response:
        """An answer below 400; what may well go better next time is tried again."""
        headers = {
            wire_format.USER_KEY: self.user_key,
            wire_format.SESSION_KEY: self.session_key,
            **more.pop("headers", {}),
        }
        found: requests.Response | None = None
        fault: Exception | None = None
        for wait in [*waits(2 if path == wire_format.HEALTH else TRIES), None]:
            try:
                found = self._http.request(
                    method, f"{self.host}/{path}", headers=headers, timeout=TIMEOUTS, allow_redirects=False, **more
                )
            except (requests.ConnectionError, requests.Timeout) as error:
                found, fault = None, error
            if found is not None and found.status_code < 500:
                break
            if wait is not None:
                time.sleep(wait)
        if found is None:
            raise ConnectionError(f"{self.host} cannot be reached ({fault})") from None
        if path == wire_format.HEALTH and found.status_code >= 300:
            raise NameError(f"Server {self.host} not found")
        if found.status_code >= 300:
            try:
                body = found.json()
            except ValueError:
                body = None
            raise wire_format.error_of(body, found.status_code)
        return found


class ServerConnectionFabric:
    """Chooses between a service of this process and a server."""

    @staticmethod
    def get_connector(host: str, user_key: str | None, session_key: str | None) -> LocalConnector | RemoteConnector:
        """Return the connector to a host; `localhost` is this process."""
        if host == LOCAL:
            return LocalConnector(user_key, session_key or "")
        return RemoteConnector(user_key, session_key, host)


class RemoteSession(DavisInteractiveSession):
    """The client of a server's session.

    Subset, order, limits and clock are the server's.  What fails on the way is tried again; the server knows a
    repeat when it sees one.  `resume` goes on with the newest unfinished session of that server in
    `report_save_dir`.
    """

    def __init__(self, host: str, user_key: str | None = None, *args: Any, **more: Any) -> None:
        connector = RemoteConnector(user_key, secrets.token_hex(32), host)
        super().__init__("localhost", user_key, *args, **more)
        self.connector, self.host = connector, connector.host
        self._inside = False
        self._reported = -1
        self._now: dict[str, Any] = {}

    # ── the context ─────────────────────────────────────────────────────────

    def __enter__(self) -> Self:
        if self._resume:
            self.report_name, state = self._newest(
                lambda state: state.get("host") == self.host and state.get("user_key") == self.user_key,
                "of this server",
            )
            self.session_key, samples = state["session_key"], state["samples"]
            self.max_time, self.max_nb_interactions = state["max_time"], state["max_nb_interactions"]
            self._resumed = True
        else:
            samples, self.max_time, self.max_nb_interactions = self.connector.get_samples()
        self.samples = [(name, number) for name, number in samples]
        self.sample_idx, self.interaction_nb, self._inside = -1, -1, True
        self._remember()
        return self

    def _remember(self) -> None:
        names = ("host", "user_key", "session_key", "samples", "max_time", "max_nb_interactions")
        state = {name: getattr(self, name) for name in names}
        replace(self._state, json.dumps(state), private=True)  # it holds the keys

    def _within(self) -> None:
        self._own_thread()
        if not self._inside:
            raise RuntimeError(NOT_BEGUN)

    # ── the loop ────────────────────────────────────────────────────────────

    def next(self) -> bool:
        """Whether there is another interaction; the temporary report is written each time."""
        self._within()
        if not self.running:
            return False
        self._now = self.connector.call("POST", wire_format.NEXT)
        if self._now["finished"]:
            self.global_summary = self.connector.post_finish()
            self._keep_report(final=True)
            self._state.unlink(missing_ok=True)
            self._temporary.unlink(missing_ok=True)
            self.running = self.running_model = False
            return False
        at = self.samples.index((self._now["sequence"], self._now["scribble_idx"]))
        if at != self.sample_idx:
            self.sample_idx, self.running_model = at, False
        self.interaction_nb = self._now["interaction"] - 1
        self._keep_report(final=False)
        return True

    def get_scribbles(self, only_last: bool = False) -> tuple[str, dict[str, Any], bool]:  # noqa: FBT001, FBT002
        """Sequence, scribbles so far (or the last ones), and whether the sample is new; the server's clock runs."""
        self._within()
        if not self._now or not self.running:
            raise RuntimeError(NOTHING_TO_SEGMENT)
        if self.running_model:
            raise RuntimeError(TWICE)
        told = self.connector.call("GET", wire_format.SCRIBBLES, params={"only_last": int(only_last)})
        self.running_model = True
        # A program that goes on has nothing of the sample yet.
        new, self._resumed = told["new_sequence"] or self._resumed, False
        return told["sequence"], told["scribbles"], new

    def submit_masks(self, pred_masks: Any, next_scribble_frame_candidates: Any = None) -> None:
        """The masks of all frames; a refused submission changes nothing and may be repeated."""
        self._within()
        if not self.running_model:
            raise RuntimeError(NOTHING_DUE)
        masks = as_masks(pred_masks)
        if masks.ndim != 3:
            raise ValueError("y_pred array must have 3 dimensions.")
        body = {
            **{name: self._now[name] for name in ("sequence", "scribble_idx", "interaction")},
            "pred_masks": encode_frames(masks),
        }
        if next_scribble_frame_candidates is not None:
            candidates = [int(one) for one in next_scribble_frame_candidates]
            body["next_scribble_frame_candidates"] = candidates
        answer = self.connector.answer("POST", wire_format.INTERACTION, data=json.dumps(body).encode())
        if wire_format.LATE in answer.headers:
            warnings.warn(TOO_LATE.format(self._now["sequence"]), stacklevel=2)
        self.interaction_nb, self.running_model = self._now["interaction"], False

    # ── what comes of it ────────────────────────────────────────────────────

    def get_report(self) -> pd.DataFrame:
        """All rows so far: one for each object, the mean over its frames."""
        self._within()
        found: pd.DataFrame = self.connector.get_report()
        return found

    def _keep_report(self, *, final: bool) -> None:
        place = (self.sample_idx or 0) * 100 + (self.interaction_nb or 0)
        if final or place != self._reported:
            path = self.report_save_dir / f"{self.report_name}.csv" if final else self._temporary
            replace(path, self.get_report().to_csv())
            self._reported = place
