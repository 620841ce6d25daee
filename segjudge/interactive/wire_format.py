"""What both ends of a session over the wire agree on; `docs/interactive-protocol.md` tells it in words."""

from __future__ import annotations

from typing import Any

import pandas as pd

HEALTH = "api/healthcheck"
SESSION = "api/session"
NEXT = "api/session/next"
SCRIBBLES = "api/session/scribbles"
INTERACTION = "api/evaluation/interaction"
REPORT = "api/evaluation/report"
FINISH = "api/evaluation/finish"

USER_KEY, SESSION_KEY = "User-Key", "Session-Key"
#: Drawn by the client, so that asking for a session again after a lost answer does not open a second one.
REQUEST_KEY = "Request-Key"
#: Set on the answer to masks that came after the sample's time and do not count.
LATE = "Too-Late"

#: Decimals of every J and F that leaves the server: the more, the less it takes to learn the truth pixel by pixel.
DECIMALS = 4

#: The errors that cross the wire, and the status each has; any other is a defect of the server.
ERRORS: dict[type[Exception], int] = {
    ValueError: 400,
    TypeError: 422,
    PermissionError: 401,
    LookupError: 404,
    RuntimeError: 409,
    OverflowError: 413,
    BlockingIOError: 429,
}
NAMES = {kind.__name__: kind for kind in ERRORS}


def told(error: Exception) -> tuple[dict[str, Any], int]:
    """An error as it is sent: the name of the class on the list, and what it says."""
    for kind, status in ERRORS.items():
        if isinstance(error, kind):
            return {"error": kind.__name__, "message": str(error)}, status
    return {"error": "RuntimeError", "message": "This is a defect of the server; its log tells more."}, 500


def error_of(body: Any, status: int) -> Exception:
    """The error that was sent; no name outside the list becomes a class."""
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return NAMES.get(str(body.get("error")), RuntimeError)(body["message"])
    return RuntimeError(f"The server answered with status {status} and no error that is on the list.")


def rounded(report: pd.DataFrame) -> pd.DataFrame:
    """A report as it leaves the server; J&F is of the rounded J and F, so that it says nothing beyond them."""
    j, f = (report[name].round(DECIMALS) for name in ("jaccard", "contour"))
    return report.assign(jaccard=j, contour=f, j_and_f=(0.5 * j + 0.5 * f).round(DECIMALS))


def rounded_summary(found: dict[str, Any]) -> dict[str, Any]:
    """A summary as it leaves the server: seconds as they are, everything else rounded."""
    curve = {
        name: values if name == "time" else [round(one, DECIMALS) for one in values]
        for name, values in found["curve"].items()
    }
    at = {
        name: value if name == "threshold" else round(value, DECIMALS)
        for name, value in found["metric_at_threshold"].items()
    }
    return {**found, "auc": round(found["auc"], DECIMALS), "metric_at_threshold": at, "curve": curve}
