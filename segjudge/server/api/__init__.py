"""EvalAI's REST API, as its official client and remote workers use it."""

from functools import partial

from starlette.routing import Route

from . import challenges, submissions, workers  # noqa: F401 - they note their calls
from .call import CALLS, respond

#: All paths, each with and without its last slash; those with fixed words before those with names.
ROUTES = [
    Route(address, partial(respond, calls=CALLS[path]), methods=sorted(CALLS[path]))
    for path in sorted(CALLS, key=lambda path: path.count("{") - path.count(":int}"))
    for address in (path, path + "/")
]
