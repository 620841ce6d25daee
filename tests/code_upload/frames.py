"""A task of three frames, and calls of its service without a network."""

from __future__ import annotations

from typing import Any

import grpc

from segjudge.code_upload.environments import tasks


class RejectedCallError(grpc.RpcError):
    """The error that a rejected call raises on the other side."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(f"{code.name}: {message}")
        self._code, self._message = code, message

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._message


class Context:
    """A call that is active, or broken."""

    def __init__(self, *, active: bool = True) -> None:
        self.active = active

    def abort(self, code: grpc.StatusCode, message: str) -> None:
        raise RejectedCallError(code, message)

    def is_active(self) -> bool:
        return self.active


class Frames:
    """A task of three frames, whose actions are texts or masks."""

    hidden = frozenset({"secret"})

    def __init__(self, score: float = 0.5) -> None:
        self._score, self._left = score, 3

    def space(self) -> dict[str, Any]:
        return {"type": "labels"}

    def begin(self) -> tasks.Observation:
        return self._show()

    def _show(self) -> tasks.Observation:
        self._left -= 1
        values = {"frame": 3 - self._left, "new_sequence": int(self._left == 2)}
        return tasks.Observation(values, 0.25, position=f"a/{3 - self._left}", sizes=[(2, 3)])

    def act(self, action: Any) -> tasks.Observation:
        if action == "wrong":
            raise tasks.ActionError("that is\nwrong .. ")
        if action == "broken":
            raise ZeroDivisionError("a defect")
        return self._show() if self._left else tasks.Observation({}, done=True)

    def result(self) -> list[dict[str, dict[str, float]]]:
        return [{"test": {"J": self._score}}, {"secret": {"J": 0.125}}]

    def close(self) -> None:
        """Do nothing."""
