"""Tasks: what an environment asks of an agent, without padding and without a network.

The Gymnasium environments pad the observations of a task; the gRPC service sends them unpadded.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

from segjudge.code_upload.messages import Labels, Picture

__all__ = ["ActionError", "Labels", "Observation", "Picture", "Result", "Task"]

#: Results as `evaluate()` returns them.
Result = list[dict[str, dict[str, float]]]


class ActionError(ValueError):
    """Raised for an action that does not fit; nothing has changed, and the agent may act again."""


@dataclass(frozen=True)
class Observation:
    """An observation: a mapping of names to numbers, texts, arrays, pictures and masks."""

    values: Any
    reward: float = 0.0
    done: bool = False
    #: The sequence and the frame, for messages.
    where: str = ""
    #: The sizes (height, width) that the masks of an action must have, in order.
    sizes: list[tuple[int, int]] = field(default_factory=list)


class Task(Protocol):
    """Episodes, one after the other."""

    def space(self) -> dict[str, Any]:
        """Return the description of an action as JSON."""

    def begin(self) -> Observation:
        """Begin an episode and return its first observation."""

    def act(self, action: Any) -> Observation:
        """Return the observation that follows an action; raises ActionError where it does not fit."""

    def result(self) -> Result:
        """Return the scores of the finished episode."""

    def close(self) -> None:
        """Release files and memory."""
