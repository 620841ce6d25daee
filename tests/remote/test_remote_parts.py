"""Parts of the remote worker: its machine, its log, its stop, its sweep, the ends of a scorer, and its scoring of a phase."""

from __future__ import annotations

import datetime
import io
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from segjudge.remote_challenge_evaluation import monitoring, services, worker_loop
from segjudge.system.network import WireError

GROUP = "/proc/self/cgroup"


@pytest.mark.parametrize(
    ("files", "limited"),
    [
        ({}, False),
        ({GROUP: "0::/a\n", "/sys/fs/cgroup/a/pids.max": "100\n"}, True),
        ({GROUP: "0::/a\n", "/sys/fs/cgroup/a/pids.max": "max\n"}, False),
        ({GROUP: "3:cpu:/\n2:pids:/b:c\n", "/sys/fs/cgroup/pids/b:c/pids.max": "7"}, True),
    ],
)
def test_cgroups_limit_processes(files: dict[str, str], limited: bool) -> None:
    def read(path: str, **_: str) -> io.StringIO:
        if path not in files:
            raise FileNotFoundError(path)
        return io.StringIO(files[path])

    with mock.patch("builtins.open", read):
        assert worker_loop._has_process_limit() is limited


def test_a_second_request_to_stop_ends_running_work_at_once() -> None:
    stop = services.Stop(grace=60.0)
    assert [(stop.ask(), stop.is_over()) for _ in range(2)] == [(None, False), (None, True)]


TIME = "2026-01-02T03:04:05.678Z"
PRETTY = f"""\
{TIME}  start                  a b  {"c" * 4000} (submission 1, some thing 0)
{TIME}  ALERT                  size {{1}}
{TIME}  refused                size {{1}}
{TIME}  waits                  size {{1}}
{TIME}  a long name of an event size {{1}}
{TIME}  signed                 https://s3/x
"""
FACTS = r'"text": "a\nb\u001b", "why": "c", "submission": 1, "state": "", "other": null, "some_thing": 0'
JSON = f"""\
{{"time": "{TIME}", "level": "info", "event": "start", "worker": "w", {FACTS}}}
{{"time": "{TIME}", "level": "error", "event": "ALERT", "worker": "w", "size": "{{1}}"}}
{{"time": "{TIME}", "level": "warning", "event": "refused", "worker": "w", "size": "{{1}}"}}
{{"time": "{TIME}", "level": "info", "event": "waits", "worker": "w", "size": "{{1}}"}}
{{"time": "{TIME}", "level": "info", "event": "a long name of an event", "worker": "w", "size": "{{1}}"}}
{{"time": "{TIME}", "level": "info", "event": "signed", "worker": "w", "text": "https://s3/x"}}
"""


@pytest.mark.parametrize(("form", "lines"), [("pretty", PRETTY), ("json", JSON)])
def test_events_are_lines_without_secrets(form: str, lines: str, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    today = datetime.datetime(2026, 1, 2, 3, 4, 5, 678900, datetime.UTC)
    clock = SimpleNamespace(datetime=SimpleNamespace(now=lambda _: today), timezone=datetime.timezone)
    monkeypatch.setattr(monitoring, "datetime", clock)
    log = monitoring.Log(form, worker="w")
    why = "c" * 5000 if form == "pretty" else "c"
    log("start", text="a\nb\x1b", why=why, submission=1, state="", other=None, some_thing=0)
    for event in ("ALERT", "refused", "waits", "a long name of an event"):
        log(event, size={1})
    log("signed", text="https://s3/x?Signature=secret&a=1")
    assert capsys.readouterr().err == lines
    monkeypatch.setattr(monitoring, "exchange", mock.Mock(side_effect=WireError("nobody")))
    monitoring.send_to_webhook("http://x", "text", monitoring.Log("pretty"), lambda: None)
    assert capsys.readouterr().err == f"{TIME}  webhook unavailable    nobody\n"
