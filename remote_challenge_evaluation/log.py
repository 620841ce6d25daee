"""The operator's log: one line for each thing that happened, for people or for programs."""

from __future__ import annotations

import datetime
import json
import sys
from typing import Any


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
            told = "  ".join(f"{key} {value}" for key, value in facts.items() if value not in ("", None))
            line = f"{now}  {event:<22} {told}".rstrip()
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
