"""Tasks: what an environment asks of an agent, without padding and without a network.

The Gymnasium environments pad the observations of a task; the gRPC service sends them unpadded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces

from segjudge.code_upload.messages import Labels, Picture

__all__ = ["ActionError", "Labels", "Observation", "Picture", "Result", "Task", "TaskEnvironment"]

#: What `reset` and `step` of an environment return.
Begun = tuple[dict[str, Any], dict[str, Any]]
Stepped = tuple[dict[str, Any], float, bool, bool, dict[str, Any]]

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


class TaskEnvironment(gymnasium.Env[dict[str, Any], Any]):
    """An environment that shows the observations of a task, padded to the size of the largest.

    The reward is 0 until the episode ends, and then the first number of the result; with `reward=True`, for notebooks,
    each step has a reward of its own.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - as Gymnasium has it
    observation_space: spaces.Dict

    def __init__(
        self, task: Task, size: tuple[int, ...], shown: Mapping[str, spaces.Space[Any]], *, reward: bool
    ) -> None:
        self.task, self._reward = task, reward
        sizes = spaces.Box(np.ones(len(size), np.int64), np.array(size), dtype=np.int64)
        self.observation_space = spaces.Dict({**shown, "size": sizes, "new_sequence": spaces.Discrete(2)})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        super().reset(seed=seed, options=options)
        shown = self.task.begin()
        return self._padded(shown.values), {"where": shown.where}

    def _stepped(self, shown: Observation, reward: float) -> Stepped:
        if not shown.done:
            return self._padded(shown.values), reward, False, False, {"where": shown.where}
        result = self.task.result()
        first = next(iter(next(iter(result[0].values())).values()))
        return self._empty(), reward if self._reward else float(first), True, False, {"result": result}

    def _padded(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return an observation; a subclass adds what it shows beside the size."""
        padded = self._empty()
        padded["size"][:] = values["size"]
        padded["new_sequence"] = np.int64(values["new_sequence"])
        return padded

    def _empty(self) -> dict[str, Any]:
        items = self.observation_space.items()
        return {name: space.low.copy() if isinstance(space, spaces.Box) else np.int64(0) for name, space in items}

    def close(self) -> None:
        self.task.close()
