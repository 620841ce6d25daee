"""The participant's side of code upload: a remote environment over gRPC that behaves like a local one.

    from segjudge.agent import Environment

    with Environment() as environment:
        observation = environment.reset()
        while not environment.done:
            observation = environment.act(my_mask(observation))

Needs numpy, Pillow and the extra `agents`, of which grpcio and protobuf suffice.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from PIL import Image

from segjudge.code_upload import ADDRESS_VARIABLE, LOCAL_VARIABLE, PORT
from segjudge.masks.run_lengths import decode_labels, encode_labels
from segjudge.system.extras import make_error
from segjudge.system.python310 import Self

try:
    import grpc

    from segjudge.code_upload.messages import SERVICE, Action, Labels, Picture, Reply
except ModuleNotFoundError as error:
    raise make_error("agents", __name__, error.name or "") from None

#: The maximum seconds for an environment to start, or to return.
_PATIENCE = 600.0
#: The maximum bytes of a reply; an interactive sample contains all of its frames.
_REPLY_BYTES = 1 << 30
#: The seconds between progress lines without a terminal.
_SELDOM = 30.0

_TRANSIENT_CODES = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)


class ActionRefusedError(Exception):
    """Raised if the environment rejects a call; its state is unchanged."""


class _UnsendableActionError(ActionRefusedError):
    """Raised if an action cannot be sent; the environment does not learn of it."""


class Environment:
    """A client of one environment: call `reset` once, then `act` until `done`."""

    def __init__(self, address: str | None = None, *, patience: float = _PATIENCE, quiet: bool = False) -> None:
        self._address = address or os.environ.get(ADDRESS_VARIABLE) or _default_address()
        self._patience, self._progress = patience, (lambda _line, _last=False: None) if quiet else _Progress()
        size = [("grpc.max_receive_message_length", _REPLY_BYTES), ("grpc.max_send_message_length", _REPLY_BYTES)]
        self._channel = grpc.insecure_channel(self._address, options=size)
        self._session, self._step = "", 0
        self._space: dict[str, Any] = {}
        #: Whether the episode has ended.
        self.done = False
        self.reward = 0.0
        #: The environment's closing sentence.
        self.message = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._channel.close()

    def reset(self) -> Any:
        """Start a session and return the first observation; waits while the environment starts."""
        self._space = json.loads(self._call("get_action_space", b"").space)
        reply = self._call("reset", Action(session_id=secrets.token_hex(16)).pack())
        self._session, self._step, self.done = reply.session_id, reply.step, reply.done
        return _unpack(reply.value)

    def act(self, action: Any) -> Any:
        """Send an action and return the next observation; the last call returns when the result has been reported."""
        if self.done:
            raise ActionRefusedError("the episode is over")
        try:
            reply = self._call("act_on_environment", self._package(action))
        except _UnsendableActionError as error:
            self._refuse(str(error))
        self._step, self.done, self.reward, self.message = reply.step, reply.done, reply.reward, reply.message
        self._progress(f"{self._step} steps" + (": " + reply.message if reply.done else ""), reply.done)
        return _unpack(reply.value)

    @property
    def action_space(self) -> dict[str, Any]:
        """Return the description of an action; empty before `reset`."""
        return self._space

    def _package(self, action: Any) -> bytes:
        """Return the bytes of an action; raises _UnsendableActionError if it cannot be sent."""
        try:
            return Action(self._session, self._step, _pack(action, self._space)).pack()
        except (TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
            raise _UnsendableActionError(f"the action cannot be sent ({error})") from None

    def _refuse(self, message: str) -> NoReturn:
        """Report to the environment why no action came, for its log, and raise ActionRefusedError."""
        message = message.encode("utf-8", "replace").decode()
        with contextlib.suppress(ConnectionError):
            self._call("act_on_environment", Action(self._session, self._step, problem=message).pack())
        raise ActionRefusedError(message)

    def _call(self, name: str, package: bytes) -> Reply:
        """Return the reply of a call, repeating failed calls, which the environment recognises."""
        call: Any = self._channel.unary_unary(f"/{SERVICE}/{name}")
        until = time.monotonic() + self._patience
        wait = 0.1
        while True:
            try:
                return Reply.read(call(package, wait_for_ready=False))
            except grpc.RpcError as error:
                code, details = error.code(), error.details() or ""
                if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in details:
                    raise _UnsendableActionError(f"the message is too large ({details})") from None
                if code not in _TRANSIENT_CODES:
                    raise ActionRefusedError(details) from None
                if time.monotonic() > until:
                    raise ConnectionError(f"{self._address} does not answer ({details})") from None
            self._progress("waits for the environment" if not self._session else "calls again")
            time.sleep(wait)
            wait = min(2 * wait, 5.0)


def _default_address() -> str:
    return f"environment:{PORT}" if os.environ.get(LOCAL_VARIABLE) else f"localhost:{PORT}"


def _unpack(value: Any) -> Any:
    """Return an observation with its pictures and masks as arrays."""
    if isinstance(value, Picture):
        with Image.open(io.BytesIO(value.data)) as picture:
            return np.asarray(picture.convert("RGB"))
    if isinstance(value, Labels):
        return decode_labels(value.objects.items(), value.size)
    if isinstance(value, list):
        return [_unpack(item) for item in value]
    if isinstance(value, dict):
        return {name: _unpack(item) for name, item in value.items()}
    return value


def _pack(action: Any, space: dict[str, Any]) -> Any:
    """Return an action in the form of its space: masks as run lengths, other values unchanged."""
    kind = space.get("type")
    if kind == "labels":
        mask = np.asarray(action)
        if mask.ndim != 2 or mask.dtype.kind not in "iub" or (mask.size and (mask.min() < 0 or mask.max() > 255)):
            id_range = f" with {mask.min()} to {mask.max()}" if mask.size and mask.dtype.kind in "iubf" else ""
            description = f"not {mask.dtype} {mask.shape}{id_range}"
            raise _UnsendableActionError(f"a mask has two dimensions and whole ids from 0 to 255, {description}")
        return Labels((mask.shape[0], mask.shape[1]), encode_labels(mask.astype(np.uint8, copy=False)))
    if kind == "mapping" and isinstance(action, dict):
        return {name: _pack(item, space["values"].get(name, {})) for name, item in action.items()}
    if kind == "list":
        return [_pack(item, {"type": space["of"]}) for item in action]
    return action


class _Progress:
    """A printer of progress: one changing line on a terminal, a line every 30 seconds elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._before = 0.0
        self._clock: Callable[[], float] = time.monotonic

    def __call__(self, line: str, last: bool = False) -> None:  # noqa: FBT001, FBT002 - a word beside a word
        time_now = self._clock()
        if not last and time_now - self._before < (0.2 if self._terminal else _SELDOM):
            return
        self._before = time_now
        sys.stderr.write(f"\r\033[K{line}" + "\n" * last if self._terminal else f"{line}\n")
        sys.stderr.flush()
