"""What both ends of a session over the wire agree on; `docs/interactive-protocol.md` describes it."""

from typing import NotRequired, TypedDict

import pandas as pd

from segjudge.interactive.utils.mask import EncodedMasks
from segjudge.interactive.utils.scribbles import Scribbles

from .summary import Summary

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

#: Decimals of every J and F that leaves the server: with more, fewer queries would reveal the truth pixel by pixel.
DECIMALS = 4

#: The errors that cross the wire, and the status of each; any other is a defect of the server.
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


class NextAnswer(TypedDict):
    """The interaction that comes next; once the session has finished, `finished` alone."""

    sequence: str
    scribble_idx: int
    interaction: int
    new_sequence: bool
    finished: bool


class ScribblesAnswer(TypedDict):
    """The scribbles of an interaction."""

    sequence: str
    scribbles: Scribbles
    new_sequence: bool


class InteractionBody(TypedDict):
    """The masks of an interaction, as a client sends them."""

    sequence: str
    scribble_idx: int
    interaction: int
    pred_masks: EncodedMasks
    next_scribble_frame_candidates: NotRequired[list[int]]


def error_body(error: Exception) -> tuple[dict[str, str], int]:
    """Return an error as it is sent, the name of its class on the list and its message, and its status."""
    for kind, status in ERRORS.items():
        if isinstance(error, kind):
            return {"error": kind.__name__, "message": str(error)}, status
    return {"error": "RuntimeError", "message": "This is a defect of the server; its log tells more."}, 500


def error_of(body: object, status: int) -> Exception:
    """Return the error that was sent; a name that is not on the list does not become a class."""
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return NAMES.get(str(body.get("error")), RuntimeError)(body["message"])
    return RuntimeError(f"The server answered with status {status} and no error that is on the list.")


def rounded(report: pd.DataFrame) -> pd.DataFrame:
    """Return a report as it leaves the server; J&F is made of the rounded J and F, so it reveals no more than they."""
    j, f = (report[name].round(DECIMALS) for name in ("jaccard", "contour"))
    return report.assign(jaccard=j, contour=f, j_and_f=(0.5 * j + 0.5 * f).round(DECIMALS))


def rounded_summary(summary: Summary) -> Summary:
    """Return a summary as it leaves the server: seconds are exact, everything else is rounded."""
    curve = {
        name: values if name == "time" else [round(value, DECIMALS) for value in values]
        for name, values in summary["curve"].items()
    }
    at_threshold = {
        name: value if name == "threshold" else round(value, DECIMALS)
        for name, value in summary["metric_at_threshold"].items()
    }
    return {**summary, "auc": round(summary["auc"], DECIMALS), "metric_at_threshold": at_threshold, "curve": curve}
