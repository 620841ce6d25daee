"""The operator's log, one line for each event, and the operator's webhook."""

from __future__ import annotations

import datetime
import json
import sys
from contextlib import suppress

from segjudge.evalai.http_exchange import StoppedError, Watch, WireError, exchange, within

#: The most characters of one fact.
_FACT_LENGTH = 4000
_WEBHOOK_SECONDS = 5.0


class Log:
    """Writes lines for people or as JSON; the fixed facts are in each of them."""

    def __init__(self, form: str, **fixed: object) -> None:
        self._form, self._fixed = form, fixed

    def __call__(self, event: str, **facts: object) -> None:
        """Write one event and its facts."""
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        if self._form == "json":
            line = json.dumps({"at": now, "event": event, **self._fixed, **facts}, default=str)
        else:
            text = "  ".join(f"{key} {_line(value)}" for key, value in facts.items() if value not in ("", None))
            line = f"{now}  {event:<22} {text}".rstrip()
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
            within(_WEBHOOK_SECONDS, watch),
        )
    except (WireError, StoppedError) as error:
        log("webhook away", why=str(error))
