"""Any registered Gymnasium environment as a task; the environments of this package hold theirs."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import segjudge.code_upload.environments  # noqa: F401 - registers ours

from .tasks import ActionError, Observation, Result, Task
from .video import SPLIT

#: The leaderboard's label for the mean of the episodes' summed rewards.
SCORE = "score"


def task_of(name: str, options: dict[str, Any], episodes: int = 1, seed: int = 0) -> Task:
    """Return the task of an environment, by its registered name."""
    environment = gymnasium.make(name, **options)
    task: Task | None = getattr(environment.unwrapped, "task", None)
    return GymTask(environment, episodes, seed) if task is None else task


class GymTask:
    """A number of episodes of an environment, each with a seed of its own."""

    def __init__(self, environment: Any, episodes: int, seed: int) -> None:
        self._environment, self._episodes, self._seed = environment, episodes, seed
        self._sums: list[float] = []
        self._steps = 0
        self._over = True

    def space(self) -> dict[str, Any]:
        """Return the action space as JSON."""
        return described(self._environment.action_space)

    def begin(self) -> Observation:
        """Begin the first episode."""
        self._sums = []
        return self._episode(0.0)

    def _episode(self, reward: float) -> Observation:
        observation, _ = self._environment.reset(seed=self._seed + len(self._sums))
        self._sums.append(0.0)
        self._steps, self._over = 0, False
        return Observation(observation, reward, where=self._where)

    @property
    def _where(self) -> str:
        return f"episode {len(self._sums)}, step {self._steps}"

    def act(self, action: Any) -> Observation:
        """Take one step; after the last of an episode, return the first observation of the next."""
        if self._over:
            raise ActionError("the episode is over; reset begins another")
        member = _member(self._environment.action_space, action)
        observation, reward, ended, cut, _ = self._environment.step(member)
        self._sums[-1] += float(reward)
        self._steps += 1
        if not (ended or cut):
            return Observation(observation, float(reward), where=self._where)
        if len(self._sums) < self._episodes:
            return self._episode(float(reward))
        self._over = True
        return Observation(observation, float(reward), done=True)

    def result(self) -> Result:
        """Return the mean of the episodes' summed rewards."""
        return [{SPLIT: {SCORE: float(np.mean(self._sums))}}]

    def close(self) -> None:
        """Close the environment."""
        self._environment.close()


def _member(space: Any, action: Any) -> Any:
    """Return an action as a member of its space; raises ActionError."""
    try:
        if isinstance(space, spaces.Discrete):
            member: Any = np.int64(action)
        elif isinstance(space, spaces.Dict):
            member = {name: _member(one, action[name]) for name, one in space.items()}
        elif isinstance(space, spaces.Tuple):
            member = tuple(_member(one, part) for one, part in zip(space, action, strict=True))
        elif isinstance(space, spaces.Text):
            member = str(action)
        elif isinstance(action, (bool, int, float, np.ndarray)) or _numbers(action):
            member = np.asarray(action, space.dtype)
        else:
            raise TypeError(f"{type(action).__name__} instead of numbers")
    except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise ActionError(f"the action does not suit {space} ({error})") from None
    if not space.contains(member):
        raise ActionError(f"the action {str(member)[:80]} is not in {space}")
    return member


def _numbers(action: Any) -> bool:
    return isinstance(action, list) and all(isinstance(one, (bool, int, float)) or _numbers(one) for one in action)


def described(space: Any) -> dict[str, Any]:
    """Return a space as JSON."""
    if isinstance(space, spaces.Discrete):
        return {"type": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.Dict):
        return {"type": "mapping", "values": {name: described(one) for name, one in space.items()}}
    if isinstance(space, spaces.Tuple):
        return {"type": "tuple", "values": [described(one) for one in space]}
    return {"type": type(space).__name__.lower(), "shape": list(space.shape or ()), "dtype": str(space.dtype)}
