"""Any registered Gymnasium environment as a task; ours are asked for the task that they hold."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import segjudge.code_upload.environments  # noqa: F401 - registers ours

from .tasks import ActionError, Observation, Result, Task
from .video import SPLIT

#: What a leaderboard shows of an environment that only knows rewards: the mean of the episodes' sums.
SCORE = "score"


def task_of(name: str, options: dict[str, Any], episodes: int = 1, seed: int = 0) -> Task:
    """The task of an environment, by its registered name."""
    made = gymnasium.make(name, **options)
    held: Task | None = getattr(made.unwrapped, "task", None)
    return GymTask(made, episodes, seed) if held is None else held


class GymTask:
    """So many episodes, each from a seed of its own."""

    def __init__(self, environment: Any, episodes: int, seed: int) -> None:
        self._environment, self._episodes, self._seed = environment, episodes, seed
        self._sums: list[float] = []
        self._steps = 0
        self._over = True

    def space(self) -> dict[str, Any]:
        """The action space, as JSON."""
        return told(self._environment.action_space)

    def begin(self) -> Observation:
        """The first episode."""
        self._sums = []
        return self._episode(0.0)

    def _episode(self, reward: float) -> Observation:
        observation, _ = self._environment.reset(seed=self._seed + len(self._sums))
        self._sums.append(0.0)
        self._steps, self._over = 0, False
        return Observation(_plain(observation), reward, where=self._where)

    @property
    def _where(self) -> str:
        return f"episode {len(self._sums)}, step {self._steps}"

    def act(self, action: Any) -> Observation:
        """One step; after the end of an episode the first sight of the next."""
        if self._over:
            raise ActionError("the episode is over; reset begins another")
        wanted = _of(self._environment.action_space, action)
        observation, reward, ended, cut, _ = self._environment.step(wanted)
        self._sums[-1] += float(reward)
        self._steps += 1
        if not (ended or cut):
            return Observation(_plain(observation), float(reward), where=self._where)
        if len(self._sums) < self._episodes:
            return self._episode(float(reward))
        self._over = True
        return Observation(_plain(observation), float(reward), done=True)

    def result(self) -> Result:
        """The mean of the episodes' sums."""
        return [{SPLIT: {SCORE: float(np.mean(self._sums))}}]

    def close(self) -> None:
        """End the environment."""
        self._environment.close()


def _of(space: Any, action: Any) -> Any:
    """An action as the space has it; raises ActionError."""
    try:
        if isinstance(space, spaces.Discrete):
            wanted: Any = np.int64(action)
        elif isinstance(space, spaces.Dict):
            wanted = {name: _of(one, action[name]) for name, one in space.items()}
        elif isinstance(space, spaces.Tuple):
            wanted = tuple(_of(one, part) for one, part in zip(space, action, strict=True))
        elif isinstance(space, spaces.Text):
            wanted = str(action)
        elif isinstance(action, (bool, int, float, np.ndarray)) or _numbers(action):
            wanted = np.asarray(action, space.dtype)
        else:
            raise TypeError(f"{type(action).__name__} instead of numbers")
    except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise ActionError(f"the action does not suit {space} ({error})") from None
    if not space.contains(wanted):
        raise ActionError(f"the action {str(wanted)[:80]} is not in {space}")
    return wanted


def _numbers(action: Any) -> bool:
    return isinstance(action, list) and all(isinstance(one, (bool, int, float)) or _numbers(one) for one in action)


def _plain(observation: Any) -> Any:
    """What can be sent."""
    if isinstance(observation, dict):
        return {name: _plain(one) for name, one in observation.items()}
    if isinstance(observation, (tuple, list)):
        return [_plain(one) for one in observation]
    return observation


def told(space: Any) -> dict[str, Any]:
    """A space as JSON."""
    if isinstance(space, spaces.Discrete):
        return {"type": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.Dict):
        return {"type": "mapping", "values": {name: told(one) for name, one in space.items()}}
    if isinstance(space, spaces.Tuple):
        return {"type": "tuple", "values": [told(one) for one in space]}
    return {"type": type(space).__name__.lower(), "shape": list(space.shape or ()), "dtype": str(space.dtype)}
