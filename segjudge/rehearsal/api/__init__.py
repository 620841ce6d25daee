"""EvalAI's REST API, as its official client and remote workers use it."""

from __future__ import annotations

from starlette.routing import Route

from segjudge.rehearsal.services import Services

from . import challenges, pushes, submissions, teams, uploads, workers
from .call import Handler, Throttle, endpoint


def routes(services: Services, throttle: Throttle) -> list[Route]:
    """Return all paths, each with and without its last slash; those with fixed words before those with names."""
    calls = [*workers.CALLS, *teams.CALLS, *submissions.CALLS, *uploads.CALLS, *pushes.CALLS, *challenges.CALLS]
    by_path: dict[str, dict[str, Handler]] = {}
    for method, path, handler in calls:
        by_path.setdefault(path.rstrip("/"), {})[method] = handler
    served = []
    for path, handlers in by_path.items():
        answer = endpoint(services, throttle, handlers)
        served += [Route(address, answer, methods=sorted(handlers)) for address in (path, path + "/")]
    return served
