"""The formats of responses: refusals in EvalAI's words, texts, and moments in its notation."""

import datetime
from typing import Any

from segjudge.platforms.rules.fields import as_datetime

#: A mapping from JSON or YAML, with known keys and any values.
JsonObject = dict[str, Any]
#: EvalAI's words for an action that only hosts may take.
NOT_AUTHORIZED = "Sorry, you are not authorized to make this request!"


class Refusal(Exception):
    """Raised when a rule forbids a request: a status of HTTP and a body in EvalAI's words."""

    def __init__(self, status: int, body: str | JsonObject, headers: dict[str, str] | None = None) -> None:
        super().__init__(str(body))
        self.status, self.headers = status, headers
        self.body: JsonObject = {"error": body} if isinstance(body, str) else body


def make_storable(value: object) -> str:
    """Return text that can be stored and shown."""
    return str(value or "")[:1000].encode("utf-8", "replace").decode().replace("\0", "")


def format_moment(seconds: float | None) -> str | None:
    """Return a moment as EvalAI's API writes it, with microseconds and in UTC."""
    if seconds is None:
        return None
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_moment(value: object) -> float:
    """Return the moment of a date in the YAML or a request; raises ValueError for other values."""
    date = as_datetime(value.replace("Z", "+00:00") if isinstance(value, str) else value)
    if date is None:
        raise ValueError(f"{value!r} is not a date")
    return date.timestamp()


def format_date(value: object) -> str:
    """Return a date of the YAML as the API writes it."""
    return datetime.datetime.fromtimestamp(parse_moment(value), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def period_start(period: str, moment: float) -> float:
    """Return when this UTC day, or this month, began; 0 for all time."""
    if not period:
        return 0.0
    day = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    return (day if period == "day" else day.replace(day=1)).timestamp()
