"""The operator's log: one line for each thing that happened, for people or for programs."""

from __future__ import annotations

import datetime
import json
import sys
from contextlib import suppress
from typing import Any

#: Of one fact.
_LONGEST = 4000


class Log:
    """Writes lines; `fixed` is in each of them."""

    def __init__(self, form: str, **fixed: Any) -> None:
        self._form, self._fixed = form, fixed

    def __call__(self, event: str, **facts: Any) -> None:
        """One event and its facts."""
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        if self._form == "json":
            line = json.dumps({"at": now, "event": event, **self._fixed, **facts}, default=str)
        else:
            told = "  ".join(f"{key} {_line(value)}" for key, value in facts.items() if value not in ("", None))
            line = f"{now}  {event:<22} {told}".rstrip()
        # A log that takes no more (a full disk, a closed pipe) is not worth a submission.
        with suppress(OSError, ValueError):
            sys.stderr.write(line + "\n")
            sys.stderr.flush()


def _line(value: Any) -> str:
    """A value in one line, without what moves a terminal's cursor."""
    return "".join(one if one.isprintable() else " " for one in str(value)[:_LONGEST])
