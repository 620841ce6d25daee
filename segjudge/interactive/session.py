"""The interactive session as a state machine: which call is due, which sample is open, and when its time is over.

It measures nothing and touches no file or network: local, remote and hosted sessions are shells around it.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from segjudge.interactive.utils.scribbles import Scribbles, fuse_scribbles

from .summary import Sample

#: The host that is this process.
LOCAL_HOST = "localhost"
NOT_BEGUN = "The session has not begun: use it as `with DavisInteractiveSession(...) as session`."
NOTHING_TO_SEGMENT = "There is nothing to segment: call next() first, and go on only while it is True."
TWICE = "You can not call get_scribbles twice without submitting the masks first"
NOTHING_DUE = "You must have called .get_scribbles before submiting the masks"
#: The challenge allowed no more.
MOST_SECONDS, MOST_INTERACTIONS = 600, 16


#: Key of the saved state → field.
_SAVED = {
    "samples": "samples", "sample_idx": "sample_idx", "interaction_nb": "interaction_nb",
    "sample_start_time": "sample_start_time", "interaction_start_time": "interaction_start_time",
    "running_model": "running_model", "scribbles": "sample_scribbles", "last": "sample_last_scribble",
}  # fmt: skip


@dataclass
class SessionState:
    """The position of a session in its samples, its limits, and the scribbles of the open sample.

    A sample opens with `advance`; then each interaction is `begin_interaction` and `end_interaction`.
    """

    #: Seconds for each object of a sample, all of its interactions together.
    max_time: float | None
    #: Interactions with each sample.
    max_nb_interactions: int | None
    samples: list[Sample] = field(default_factory=list)
    #: None before the session is entered, -1 until the first sample is open.
    sample_idx: int | None = None
    #: Interactions with the open sample that have ended.
    interaction_nb: int | None = None
    #: Whether more interactions may follow.
    running: bool = True
    #: Whether scribbles were read and masks are due.
    running_model: bool = False
    sample_start_time: float | None = None
    interaction_start_time: float | None = None
    sample_scribbles: Scribbles | None = None
    sample_last_scribble: Scribbles | None = None
    #: Whether the program was restarted and holds nothing of the open sample.
    resumed: bool = False
    #: Sequence → number of objects.
    num_objects: Callable[[str], int] = field(default=lambda _sequence: 1)

    def __post_init__(self) -> None:
        self.max_time = None if self.max_time is None else min(self.max_time, MOST_SECONDS)
        if self.max_nb_interactions is not None:
            self.max_nb_interactions = min(self.max_nb_interactions, MOST_INTERACTIONS)

    def enter(self, samples: list[Sample]) -> None:
        """Stand before the first sample."""
        self.samples, self.sample_idx, self.interaction_nb = samples, -1, -1

    @property
    def has_opened(self) -> bool:
        """Whether a sample was opened."""
        return self.sample_idx is not None and self.sample_idx >= 0

    @property
    def sample(self) -> Sample:
        """The open sample."""
        return self.samples[self.sample_idx or 0]

    @property
    def interaction(self) -> int:
        """The number of the interaction whose masks come next, from 1."""
        return (self.interaction_nb or 0) + 1

    def advance(self, now: float) -> bool:
        """Open the next sample if the open one is over; return False after the last."""
        if not self.has_opened or self._has_all_interactions() or self.is_late(now):
            self.sample_idx = (self.sample_idx or 0) + 1 if self.has_opened else 0
            self.interaction_nb, self.sample_start_time = 0, now
            self.sample_scribbles = self.sample_last_scribble = None
            self.running_model = False  # masks that were due came too late
        return (self.sample_idx or 0) < len(self.samples)

    def _has_all_interactions(self) -> bool:
        return bool(self.max_nb_interactions and (self.interaction_nb or 0) >= self.max_nb_interactions)

    def is_late(self, now: float) -> bool:
        """Return whether the time of the open sample is over."""
        if not self.max_time or self.sample_start_time is None:
            return False
        return now - self.sample_start_time > self.max_time * self.num_objects(self.sample[0])

    def check_scribbles_due(self) -> None:
        """Raise RuntimeError if scribbles must not be read now."""
        if not self.has_opened or not self.running:
            raise RuntimeError(NOTHING_TO_SEGMENT)
        if self.running_model:
            raise RuntimeError(TWICE)

    def check_masks_due(self) -> None:
        """Raise RuntimeError if no masks are due."""
        if not self.running_model:
            raise RuntimeError(NOTHING_DUE)

    def scribbles(self, *, only_last: bool) -> Scribbles:
        """Return a copy of the scribbles of the open sample, which later grow."""
        scribbles = self.sample_last_scribble if only_last else self.sample_scribbles
        if scribbles is None:
            raise RuntimeError(NOTHING_TO_SEGMENT)
        return copy.deepcopy(scribbles)

    def begin_interaction(self, now: float | None, *, new_sample: bool) -> bool:
        """Note that scribbles were read; return whether the sample is new to the program."""
        self.running_model, self.interaction_start_time = True, now
        new_to_program, self.resumed = new_sample or self.resumed, False
        return new_to_program

    def end_interaction(self, drawn: Scribbles | None) -> None:
        """Note that masks were taken; the robot's scribbles are added to those of the sample."""
        if drawn is not None and self.sample_scribbles is not None:
            self.sample_last_scribble = drawn
            self.sample_scribbles = fuse_scribbles(self.sample_scribbles, drawn)
        self.interaction_nb, self.running_model = self.interaction, False

    def saved(self) -> dict[str, object]:
        """Return the state as JSON, from which another process can go on."""
        return {key: getattr(self, name) for key, name in _SAVED.items()}

    def restore(self, saved: Mapping[str, object]) -> None:
        """Return to a saved state; its times are those of this session's clock."""
        for key, name in _SAVED.items():
            if key in saved:  # local sessions of an older release have fewer
                setattr(self, name, saved[key])
        self.samples = [(name, number) for name, number in self.samples]

    def restart(self, saved_at: float, now: float) -> None:
        """Go on with another clock and a restarted program: an interaction without masks begins again."""
        self.sample_start_time = now - (saved_at - (self.sample_start_time or 0.0))
        self.interaction_start_time, self.running_model, self.resumed = None, False, True
