"""Interactive segmentation: a session in which scribbles come, masks go, and the clock runs.

A session has the rules, the robot that draws, the storage of scores and the budget of time (`session`, `evaluation`,
`robot`, `reports`) and knows nothing of a wire.  Programs use it through `DavisInteractiveSession`: in their process,
or with the client of `remote_session` on a server, whose sessions `session_host` holds and `server` offers over HTTP;
both ends agree on `wire_format`.  Written from the published behaviour of the DAVIS interactive framework, whose names
programs import; the contract is `DavisInteractiveSession` and these modules.
"""

from segjudge.system.extras import make_error

try:
    from .davis_session import DavisInteractiveSession
except ModuleNotFoundError as error:
    raise make_error("interactive", __name__, error.name or "") from None

__all__ = [
    "DavisInteractiveSession",
    "baseline",
    "dataset",
    "evaluation",
    "mask_datasets",
    "masks",
    "remote_session",
    "reports",
    "robot",
    "runs",
    "scribbles",
    "server",
    "session",
    "session_host",
    "wire_format",
]
