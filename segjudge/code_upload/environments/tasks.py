"""What an environment asks of an agent, without padding and without a network: one task for each kind.

The Gymnasium environments pad what a task shows; the gRPC service sends it as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from segjudge.code_upload.messages import Labels, Picture

__all__ = ["ActionError", "Labels", "Observation", "Picture", "Result", "Task"]

#: Results as `evaluate()` returns them.
Result = list[dict[str, dict[str, float]]]


class ActionError(ValueError):
    """An action that cannot be one; nothing has changed, and the agent may act again."""


@dataclass(frozen=True)
class Observation:
    """What an agent is shown: a mapping of names to numbers, texts, arrays, pictures and masks."""

    values: Any
    reward: float = 0.0
    done: bool = False
    #: What it is about, for messages: a sequence and a frame.
    where: str = ""
    #: Sizes (height, width) of the masks that an action holds, in order; a decoder's bounds.
    sizes: list[tuple[int, int]] = field(default_factory=list)


class Task(Protocol):
    """One episode after the other."""

    def space(self) -> dict[str, Any]:
        """What an action is, as JSON."""

    def begin(self) -> Observation:
        """A new episode's first sight."""

    def act(self, action: Any) -> Observation:
        """What follows an action; raises ActionError for what is none."""

    def result(self) -> Result:
        """What the finished episode is worth."""

    def close(self) -> None:
        """Free what is held."""
