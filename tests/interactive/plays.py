"""Sessions that a program plays with answers that become better, and the scores of these answers."""

from __future__ import annotations

from typing import Any

from segjudge.interactive import DavisInteractiveSession
from tests.outcomes import outcome_with_warnings

from .scene import Clock, answer


class Play:
    """A session that a program plays with answers that become better."""

    def __init__(
        self, session: DavisInteractiveSession, clock: Clock, *, seconds: float = 9.0, most: int = 99, late: int = 0
    ) -> None:
        #: `sequence set.interaction`, with the numbers of lines by frame, and the warnings beside them.
        self.steps: list[str] = []
        odd = (session.max_nb_interactions or 0) % 2 == 1
        with session:
            self.samples = session.samples
            for number, (name, lines, new) in enumerate(session.scribbles_iterator(only_last=odd), 1):
                if number > most:
                    break
                interaction, sample = (session.interaction_nb or 0) + 1, session.samples[session.sample_idx or 0]
                counts = {frame: len(each) for frame, each in enumerate(lines["scribbles"]) if each}
                clock.now += seconds * number if number != late else 1000
                guess = answer(name, len(lines["scribbles"]), interaction)
                candidates = [1, 9] if number == 2 else None
                outcome, warned = outcome_with_warnings(lambda: session.submit_masks(guess, candidates))  # noqa: B023
                assert outcome is None
                step = f"{name} {sample[1]}.{interaction}{' new' if new else ''} {counts}"
                self.steps.append("; ".join([step, *warned]))
            self.files = sorted(path.name[22:] for path in session.report_save_dir.iterdir())
            report = session.get_report()
            columns = ["sequence", "scribble_idx", "interaction", "object_id"]
            means = report.groupby(columns, sort=False)[["j_and_f", "timing"]].mean().reset_index().values.tolist()
            #: Sequence, set, interaction and object → the mean of J&F, and the seconds.
            self.means = {f"{row[0]} {row[1]}.{row[2]} {row[3]}": (round(row[4], 4), row[5]) for row in means}
            self.summary, self.warned = outcome_with_warnings(session.get_global_summary)
            self.is_running = session.running


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else round(value, 4)


def summary_of(metric: str, auc: float, score: float, times: list[float], values: list[float]) -> dict[str, Any]:
    return {
        "auc": auc,
        "metric_at_threshold": {"threshold": 60, metric: score},
        "curve": {"time": [0, *times], metric: [0, *values]},
    }


IGNORED = "; Candidates that are not frames are ignored: [9]"
LATE = "; The time for box is over; these masks do not count."
#: The means of each interaction: `box` has one object, `duo` has two.
BOX, DUO = {1: 0.4836, 2: 0.6546, 3: 0.96}, {1: (0.3465, 0.0458), 2: (0.5932, 0.1281), 3: (0.8912, 0.8326)}


def means_of(*seconds: tuple[str, float]) -> dict[str, Any]:
    """Return the means of these interactions, as `box 1.2`, with their seconds."""
    means: dict[str, Any] = {}
    for about, spent in seconds:
        number = int(about[-1])
        scores = (BOX[number],) if about.startswith("box") else DUO[number]
        means |= {f"{about} {object_id}": (score, spent) for object_id, score in enumerate(scores, 1)}
    return means
