"""The operator's log, one line for each event, and the operator's webhook."""

from __future__ import annotations

import datetime
import json
import sys
from contextlib import suppress

from segjudge.platforms.evalai.client import StoppedError, Watch, WireError, exchange, with_deadline
from segjudge.system.files import without_secrets

#: The most characters of one fact.
_FACT_LENGTH = 4000
#: The facts that are sentences: a line for people has them without their names.
_SENTENCES = ("text", "why")
#: Events that a person should look at, and those that pass or are left for later; the others are the course of things.
_ERRORS = ("ALERT", "defect", "fault of ours")
_WARNINGS = (
    *("journal", "journal away", "server away", "webhook away", "refused", "not ready", "not limited", "not kept"),
    *("put off", "left", "message left", "message dropped", "message stays", "heartbeat lost", "result refused"),
)
_WEBHOOK_SECONDS = 5.0


class Log:
    """Writes lines for people or as JSON; the fixed facts are in each of them."""

    def __init__(self, form: str, **fixed: object) -> None:
        self._form, self._fixed = form, fixed

    def __call__(self, event: str, **facts: object) -> None:
        """Write one event and its facts, without what addresses may keep secret."""
        facts = {key: without_secrets(value) if isinstance(value, str) else value for key, value in facts.items()}
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        if self._form == "json":
            level = "error" if event in _ERRORS else "warning" if event in _WARNINGS else "info"
            line = json.dumps({"time": now, "level": level, "event": event, **self._fixed, **facts}, default=str)
        else:
            said = {key: _line(value) for key, value in facts.items() if value not in ("", None)}
            text = " ".join(said.pop(key) for key in _SENTENCES if key in said)
            named = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in said.items())
            line = f"{now}  {event:<22} {f'{text} ({named})' if text and named else text or named}".rstrip()
        # A log that takes no more (a full disk, a closed pipe) is not worth a submission.
        with suppress(OSError, ValueError):
            sys.stderr.write(line + "\n")
            sys.stderr.flush()


def _line(value: object) -> str:
    """Return a value in one line, without control characters."""
    return "".join(character if character.isprintable() else " " for character in str(value)[:_FACT_LENGTH])


def send_to_webhook(address: str, text: str, log: Log, watch: Watch) -> None:
    """Send a text to the operator's webhook; a webhook that does not answer is logged."""
    try:
        exchange(
            lambda session: session.post(address, json={"text": text}, timeout=_WEBHOOK_SECONDS, stream=True),
            with_deadline(_WEBHOOK_SECONDS, watch),
        )
    except (WireError, StoppedError) as error:
        log("webhook away", why=str(error))
