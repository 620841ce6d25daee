"""Tasks: an environment's episodes, without padding or network.

Gymnasium environments pad the observations of a task; the gRPC service sends them unpadded. Any registered environment
can be a task; this package's environments contain theirs.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from PIL import Image as PillowImage

from segjudge.code_upload.messages import Picture

#: Pixels of a frame, (height, width, 3), or ids of a mask, (height, width).
Image = NDArray[np.uint8]
#: The split of a result without a phase.
SPLIT = "test"

#: The results of an environment's `reset` and `step`.
_ResetResult = tuple[dict[str, Any], dict[str, Any]]
StepResult = tuple[dict[str, Any], float, bool, bool, dict[str, Any]]

#: Results as `evaluate()` returns them.
Result = list[dict[str, dict[str, float]]]


class ActionError(ValueError):
    """Raised for an invalid action; nothing has changed, and the agent may act again."""


@dataclass(frozen=True)
class Observation:
    """An observation: a mapping of names to numbers, text, arrays, pictures and masks."""

    values: Any
    reward: float = 0.0
    done: bool = False
    #: The sequence and the frame, for messages.
    position: str = ""
    #: The sizes (height, width) that the masks of an action must have, in order.
    sizes: list[tuple[int, int]] = field(default_factory=list)


class Task(Protocol):
    """Episodes, one after the other."""

    def space(self) -> dict[str, Any]:
        """Describe an action as JSON."""

    def begin(self) -> Observation:
        """Begin an episode and return its first observation."""

    def act(self, action: Any) -> Observation:
        """Return the observation after an action; raises ActionError for an invalid one."""

    def result(self) -> Result:
        """Return the scores of the finished episode."""

    def close(self) -> None:
        """Release files and memory."""


class TaskEnvironment(gymnasium.Env[dict[str, Any], Any]):
    """An environment that shows the observations of a task, padded to the size of the largest.

    The reward is 0 until the episode ends, then the first number of the result; with `reward=True`, for notebooks, each
    step has its own reward.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - as Gymnasium has it
    observation_space: spaces.Dict

    def __init__(
        self, task: Task, size: tuple[int, ...], values: Mapping[str, spaces.Space[Any]], *, reward: bool
    ) -> None:
        self.task, self._reward = task, reward
        sizes = spaces.Box(np.ones(len(size), np.int64), np.array(size), dtype=np.int64)
        self.observation_space = spaces.Dict({**values, "size": sizes, "new_sequence": spaces.Discrete(2)})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> _ResetResult:
        super().reset(seed=seed, options=options)
        observation = self.task.begin()
        return self._pad(observation.values), {"where": observation.position}

    def _step_to(self, observation: Observation, reward: float) -> StepResult:
        if not observation.done:
            return self._pad(observation.values), reward, False, False, {"where": observation.position}
        result = self.task.result()
        score = next(iter(next(iter(result[0].values())).values()))
        return self._empty(), reward if self._reward else float(score), True, False, {"result": result}

    def _pad(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the padded observation; subclasses add their own entries."""
        padded = self._empty()
        padded["size"][:] = values["size"]
        padded["new_sequence"] = np.int64(values["new_sequence"])
        return padded

    def _empty(self) -> dict[str, Any]:
        items = self.observation_space.items()
        return {name: space.low.copy() if isinstance(space, spaces.Box) else np.int64(0) for name, space in items}

    def close(self) -> None:
        self.task.close()


def read_picture(picture: Picture) -> Image:
    """Return the pixels of a picture, (height, width, 3)."""
    with PillowImage.open(io.BytesIO(picture.data)) as image:
        return np.asarray(image.convert("RGB"))


# ── other registered environments ───────────────────────────────────────────

#: The leaderboard's label for the mean of the episodes' summed rewards.
_SCORE = "score"


def make_task(name: str, options: dict[str, Any], episodes: int = 1, seed: int = 0) -> Task:
    """Return the task of an environment by its registered name."""
    environment = gymnasium.make(name, **options)
    task: Task | None = getattr(environment.unwrapped, "task", None)
    return _GymTask(environment, episodes, seed) if task is None else task


class _GymTask:
    """A number of episodes of an environment, each with a seed of its own."""

    def __init__(self, environment: Any, episodes: int, seed: int) -> None:
        self._environment, self._episodes, self._seed = environment, episodes, seed
        self._sums: list[float] = []
        self._steps = 0
        self._is_over = True

    def space(self) -> dict[str, Any]:
        return _describe_space(self._environment.action_space)

    def begin(self) -> Observation:
        self._sums = []
        return self._episode(0.0)

    def _episode(self, reward: float) -> Observation:
        observation, _ = self._environment.reset(seed=self._seed + len(self._sums))
        self._sums.append(0.0)
        self._steps, self._is_over = 0, False
        return Observation(observation, reward, position=self._position)

    @property
    def _position(self) -> str:
        return f"episode {len(self._sums)}, step {self._steps}"

    def act(self, action: Any) -> Observation:
        """Perform one step; after the last of an episode, return the first observation of the next."""
        if self._is_over:
            raise ActionError("the episode is over; call reset to begin another")
        member = _member(self._environment.action_space, action)
        observation, reward, is_terminated, is_truncated, _ = self._environment.step(member)
        self._sums[-1] += float(reward)
        self._steps += 1
        if not (is_terminated or is_truncated):
            return Observation(observation, float(reward), position=self._position)
        if len(self._sums) < self._episodes:
            return self._episode(float(reward))
        self._is_over = True
        return Observation(observation, float(reward), done=True)

    def result(self) -> Result:
        """Return the mean of the episodes' summed rewards."""
        return [{SPLIT: {_SCORE: float(np.mean(self._sums))}}]

    def close(self) -> None:
        self._environment.close()


def _member(space: Any, action: Any) -> Any:
    """Return an action as a member of its space; raises ActionError."""
    try:
        if isinstance(space, spaces.Discrete):
            member: Any = np.int64(action)
        elif isinstance(space, spaces.Dict):
            member = {name: _member(inner, action[name]) for name, inner in space.items()}
        elif isinstance(space, spaces.Tuple):
            member = tuple(_member(inner, value) for inner, value in zip(space, action, strict=True))
        elif isinstance(space, spaces.Text):
            member = str(action)
        elif isinstance(action, (bool, int, float, np.ndarray)) or _are_numbers(action):
            member = np.asarray(action, space.dtype)
        else:
            raise TypeError(f"{type(action).__name__} instead of numbers")
    except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise ActionError(f"the action does not match {space} ({error})") from None
    if not space.contains(member):
        raise ActionError(f"the action {str(member)[:80]} is not in {space}")
    return member


def _are_numbers(action: Any) -> bool:
    return isinstance(action, list) and all(
        isinstance(item, (bool, int, float)) or _are_numbers(item) for item in action
    )


def _describe_space(space: Any) -> dict[str, Any]:
    if isinstance(space, spaces.Discrete):
        return {"type": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.Dict):
        return {"type": "mapping", "values": {name: _describe_space(inner) for name, inner in space.items()}}
    if isinstance(space, spaces.Tuple):
        return {"type": "tuple", "values": [_describe_space(inner) for inner in space]}
    return {"type": type(space).__name__.lower(), "shape": list(space.shape or ()), "dtype": str(space.dtype)}
