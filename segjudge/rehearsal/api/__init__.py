"""EvalAI's REST API, as its official client and remote workers use it."""

from __future__ import annotations

from starlette.routing import Route

from segjudge.rehearsal.services import Services

from . import challenges, submissions, teams, workers
from .call import Throttle, endpoint


def routes(services: Services, throttle: Throttle) -> list[Route]:
    """All paths, each with and without its last slash; those with fixed words before those with names."""
    calls = [*workers.CALLS, *teams.CALLS, *submissions.CALLS, *challenges.CALLS]
    by_path: dict[str, dict[str, object]] = {}
    for method, path, handler in calls:
        by_path.setdefault(path.rstrip("/"), {})[method] = handler
    found = []
    for path, handlers in by_path.items():
        served = endpoint(services, throttle, handlers)  # type: ignore[arg-type]
        found += [Route(one, served, methods=sorted(handlers)) for one in (path, path + "/")]
    return found
