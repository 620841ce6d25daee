"""Notifications of scores to a host's Slack channel or webhook; a failure never affects the score.

Addresses come from the environment (`SEGJUDGE_SLACK`, `SEGJUDGE_WEBHOOK`) or from a file outside the repository
(`~/.config/segjudge/notify.json`, keys `slack` and `webhook`). They are secrets and never printed.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any, Dict, List

from .phase import Phase

#: The maximum seconds of all posts to Slack and webhooks together.
TIMEOUT_SECONDS = 3.0
_FILE = "~/.config/segjudge/notify.json"
_KINDS = ("slack", "webhook")

#: The keys of the submission that are sent; they contain no file addresses.
_SENT_KEYS = ("id", "participant_team_name", "method_name", "challenge_phase", "submitted_at", "is_baseline")


def notify(phase: Phase, answer: Dict[str, Any], submission: object) -> str:
    """Send the phase's notifications; return a line for the operator's log, or ""."""
    try:
        targets = read_addresses()
        if not targets or not is_asked_for(phase, answer):
            return ""
        body = make_message(phase, answer, submission if isinstance(submission, dict) else {})
        failures: List[str] = []
        threads = [
            threading.Thread(target=_post, args=(kind, address, body, failures), daemon=True)
            for kind, address in targets.items()
        ]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + TIMEOUT_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        late = sum(thread.is_alive() for thread in threads)
        return "; ".join(failures + [f"{late} notification(s) took longer than {TIMEOUT_SECONDS:g} s"] * bool(late))
    except Exception as error:  # noqa: BLE001 - a notification never touches the score
        return f"notification failed: {type(error).__name__}"


def read_addresses() -> Dict[str, str]:
    """Return the addresses by kind."""
    stored: Dict[str, object] = {}
    try:
        with open(os.path.expanduser(_FILE), encoding="utf-8") as file:
            stored = dict(json.load(file))
    except (OSError, ValueError, TypeError):
        pass
    targets = {kind: os.environ.get(f"SEGJUDGE_{kind.upper()}") or stored.get(kind) for kind in _KINDS}
    return {kind: address for kind, address in targets.items() if isinstance(address, str) and address}


def is_asked_for(phase: Phase, answer: Dict[str, Any]) -> bool:
    """Return whether the phase's rule requires this notification."""
    rule = phase.notify
    if rule is None or rule.threshold is None:
        return rule is not None
    values = {split: metrics for entry in _public(phase, answer) for split, metrics in entry.items()}
    splits = [rule.split] if rule.split else list(values)
    return any(values.get(split, {}).get(rule.metric, float("-inf")) >= rule.threshold for split in splits)


def make_message(phase: Phase, answer: Dict[str, Any], submission: Dict[str, Any]) -> Dict[str, Any]:
    """Return the message: a line for people, and the numbers."""
    result = _public(phase, answer)
    team = submission.get("participant_team_name") or "a team"
    scores = "; ".join(
        f"{split}: " + ", ".join(f"{name} {value:.4g}" for name, value in list(metrics.items())[:4])
        for entry in result
        for split, metrics in entry.items()
    )
    text = f"Submission {submission.get('id', '?')} of {team} in {phase.codename} scored {scores}".rstrip()
    return {
        "text": text,
        "phase": phase.codename,
        "result": result,
        "submission": {key: submission.get(key) for key in _SENT_KEYS},
    }


def _public(phase: Phase, answer: Dict[str, Any]) -> List[Dict[str, Dict[str, float]]]:
    """Return the result without hidden splits, since a channel's readers are unknown."""
    return [entry for entry in answer["result"] if not phase.hidden & entry.keys()]


def _post(kind: str, address: str, body: Dict[str, Any], failures: List[str]) -> None:
    data = {"text": body["text"]} if kind == "slack" else body
    try:
        import urllib.request  # takes longer than scoring a small submission

        request = urllib.request.Request(
            address, json.dumps(data, default=str).encode(), {"Content-Type": "application/json"}
        )
        if request.type not in ("http", "https"):
            raise ValueError("address")
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):
            pass
    except Exception as error:  # noqa: BLE001 - its text may hold the address, which is a secret
        if hasattr(error, "close"):  # a rejection holds a connection
            error.close()
        failures.append(f"{kind} notification failed: {type(error).__name__}")
