"""Interactive segmentation: sessions with scribbles, predicted masks, and a time limit.

A session combines rules (`session`), measurement (`evaluation`), the drawing robot (`robot`) and stored scores
(`reports`), independent of any network. Programs use `DavisInteractiveSession`, in their own process or, through
`remote_session`, on a server. There `session_host` holds the sessions and `server` offers them over HTTP, in the format
of `wire_format`. The code follows the published behaviour of the DAVIS interactive framework and has its names.
`DavisInteractiveSession` and these modules are the contract.
"""

from segjudge.system.extras import make_error

try:
    from .davis_session import DavisInteractiveSession
except ModuleNotFoundError as error:
    raise make_error("interactive", __name__, error.name or "") from None

__all__ = [
    "DavisInteractiveSession",
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
