"""Serve an environment until the session has an outcome, then report it."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from concurrent import futures
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from segjudge.code_upload.environments.gym import task_of
from segjudge.code_upload.evaluation_proto import SERVICE
from segjudge.evaluation_script.files.problems import HostError, SubmissionError

from .connections import established
from .reporting import to_evalai, to_file
from .service import EvaluationOutcome, Service
from .settings import EnvironmentSettings, settings, target_of

log = logging.getLogger("environment")

#: Calls that are answered at once, and those that may wait beside them.
THREADS, WAITING = 4, 4
#: Seconds between two looks at the clocks, for a refusal to leave, and for the last reply.
LOOK, LAST_WORDS, FAREWELL = 0.25, 0.5, 5.0


def main(arguments: list[str]) -> int:
    """Return 0 when a result was reported, 1 for a failure, 3 when the environment cannot be served."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    try:
        configured = settings(arguments, os.environ)
        task = task_of(configured.environment, configured.options, configured.episodes, configured.seed)
        service = Service(task, configured.limits)
        server, port = start_server(service, configured)
    except Exception as error:  # noqa: BLE001 - whatever it is, the submission must not stay `running`
        known = isinstance(error, (HostError, SubmissionError, ValueError, OSError))
        log.error("%s", error) if known else log.exception("the environment cannot be made")  # noqa: TRY400
        _cannot_serve(os.environ, str(error) if known else type(error).__name__)
        return 3
    signal.signal(signal.SIGTERM, lambda *_: service.fail("The environment was stopped before the agent was done."))
    signal.signal(signal.SIGUSR1, lambda *_: service.agent_ended())
    where = configured.bind if configured.bind.startswith("unix:") else f"{configured.bind}:{port}"
    log.info("serves %s at %s", configured.environment, where)
    if configured.port == 0:
        sys.stdout.write(f"{configured.bind if where == configured.bind else port}\n")
        sys.stdout.flush()
    while not service.ended.wait(LOOK):
        # A socket in a folder is the arena's, which sees by itself when the agent has ended.
        service.watch(None if where == configured.bind else established(port))
    if service.outcome.result is None:
        # A moment for what is being answered; then whatever an agent holds of ours is let go.
        server.stop(LAST_WORDS).wait(FAREWELL)
    outcome = _report(service, configured)
    service.settle(outcome)
    server.stop(FAREWELL).wait(FAREWELL)
    task.close()
    log.info("%s", "finished" if outcome.result is not None else f"failed: {outcome.failure}")
    return 0 if outcome.result is not None else 1


def _report(service: Service, configured: EnvironmentSettings) -> EvaluationOutcome:
    """Report the outcome until it is accepted; an agent that ends before loses its result."""
    if configured.target is None:
        outcome = service.current()
        sys.stdout.write(to_file(configured.result, outcome) + "\n")
        sys.stdout.flush()
        return outcome
    return to_evalai(configured.target, service.current, time.sleep)


def _cannot_serve(environment: Mapping[str, str], reason: str) -> None:
    """Report the failure of an environment that cannot start, where EvalAI's variables say whose it is."""
    try:
        target = target_of(environment)
    except HostError:
        return
    failure = f"The environment cannot be started, and it is not your fault. Tell the organisers: {reason}"
    to_evalai(target, lambda: EvaluationOutcome(failure=failure), time.sleep)


def start_server(service: Service, configured: EnvironmentSettings) -> tuple[grpc.Server, int]:
    """Start to serve, and return the server with its port; raises HostError where the port is taken."""
    options = [
        ("grpc.max_receive_message_length", configured.message),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", 2),
        ("grpc.max_metadata_size", 16 << 10),
        ("grpc.so_reuseport", 0),
    ]
    pool = futures.ThreadPoolExecutor(max_workers=THREADS)
    server = grpc.server(pool, options=options, maximum_concurrent_rpcs=THREADS + WAITING)
    calls: dict[str, Any] = {
        name: grpc.unary_unary_rpc_method_handler(
            getattr(service, name),
            # The time of arrival is taken here, before a thread is free for the call.
            request_deserializer=lambda data: (time.monotonic(), data),
        )
        for name in ("get_action_space", "reset", "act_on_environment")
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, calls),))
    healthy = health.HealthServicer(experimental_thread_pool=futures.ThreadPoolExecutor(max_workers=1))
    for name in ("", SERVICE):
        healthy.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    try:
        place = configured.bind if configured.bind.startswith("unix:") else f"{configured.bind}:{configured.port}"
        port = server.add_insecure_port(place)
    except RuntimeError:
        raise HostError(f"port {configured.port} of {configured.bind} cannot be taken") from None
    server.start()
    threading.current_thread().name = "environment"
    return server, port


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
