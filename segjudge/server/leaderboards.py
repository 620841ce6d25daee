"""Leaderboards: the best row of each team in EvalAI's order, their scores over time, and which differ significantly.

Significance follows from the sums that `evaluate()` leaves in the hosts' files. Participants may see it, never the
sums.
"""

import json
import math
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from segjudge.analysis.statistics import Floats, Sums, compare_pairs, estimate_means
from segjudge.platforms.evalai.rows import FINISHED, is_descending
from segjudge.report.labels import shorten_name, spread_labels

from .models import Challenge, ChallengePhase, ChallengePhaseSplit, Membership, Submission
from .store import BoardEntry, Store
from .stored_files import FileStore

#: The number of compared rows; further rows have no range of places.
_MOST_COMPARED = 20
#: The maximum bytes of a file to read, and of cases to compare.
_BYTES, _CASES = 32 << 20, 100_000
#: The maximum difference between a mean of sums and the leaderboard's number; a larger one means that they come from
#: different evaluations.
_TOLERANCE = 1e-9
#: The number of cached comparisons, so that reloading a page costs nothing.
_MOST_CACHED = 64


@dataclass(frozen=True)
class RankedBoard:
    """A leaderboard of one phase and split."""

    labels: list[str]
    order: str
    descending: bool
    decimals: int
    #: The rows, best first.
    rows: list[BoardEntry]
    #: The rank of each row; rows that EvalAI orders only by age share one.
    ranks: list[int]
    #: All rows of the same teams, by time of submission.
    history: list[BoardEntry]


def board_of(
    store: Store, phase: ChallengePhase, split: ChallengePhaseSplit, order: str = "", *, private: bool = False
) -> RankedBoard:
    """Return the rows that are finished, unflagged, and public unless `private`.

    Hosts' own are shown only as baselines of a public phase.
    """
    schema = split.leaderboard.schema
    order = order if order in split.labels else schema["default_order_by"]
    descending = is_descending(schema, order, split.descending)
    hosts = teams_of_hosts(store, phase.challenge_id) if phase.flag("is_public") else set()
    partial = phase.flag("is_partial_submission_evaluation_enabled")
    statuses = (FINISHED, "partially_evaluated") if partial else (FINISHED,)
    best: dict[int, tuple[tuple[float, float], BoardEntry]] = {}
    history: list[BoardEntry] = []
    for entry in store.board_entries(split.id, statuses, private=private):
        if entry.team_id in hosts and not entry.is_baseline:
            continue
        history.append(entry)
        key = _sort_key(entry, order, descending=descending)
        if entry.team_id not in best or key < best[entry.team_id][0]:
            best[entry.team_id] = (key, entry)
    ranked = sorted(best.values(), key=lambda pair: pair[0])
    keys = [key for key, _ in ranked]
    history.sort(key=lambda entry: entry.submitted_at)
    rows, ranks = [row for _, row in ranked], [1 + bisect_left(keys, key) for key in keys]
    return RankedBoard(split.labels, order, descending, split.decimals, rows, ranks, history)


def teams_of_hosts(store: Store, challenge: int) -> set[int]:
    """Return every team that a host of a challenge belongs to."""
    host_team = store.require(Challenge, challenge).host_team
    hosts = [membership.user_id for membership in store.find(Membership, Membership.team_id == host_team)]
    return {membership.team_id for membership in store.find(Membership, Membership.user_id.in_(hosts))}


def _sort_key(row: BoardEntry, order: str, *, descending: bool) -> tuple[float, float]:
    """Return the sort key of a row: ties go to the smaller error bar, and a missing metric counts as 0."""
    score = _to_finite(row.result.get(order))
    return -score if descending else score, _to_finite(row.error_bar(order))


def _to_finite(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0


# ── scores over time ────────────────────────────────────────────────────────

#: The picture in its own units: width, height, and the space for texts.
_WIDTH, _HEIGHT, _LEFT, _BELOW, _BESIDE = 760, 220, 56, 24, 132
#: The end of a line's path, at the right border, beside which the teams' names stand; and the distance between names.
_RIGHT = f"H{_WIDTH - _BESIDE}"
_NAME_HEIGHT, _MOST_OF_NAME = 14.0, 22
#: The maximum number of teams with a line.
_DRAWN_TEAMS = 8


@dataclass
class _TeamHistory:
    """The public submissions of a team, in the order of their time."""

    name: str
    #: Whether it is a host's baseline, whose line is dashed.
    baseline: bool
    dots: list[tuple[float, float]] = field(default_factory=list)
    #: The best score over time, as the path of an SVG.
    path: str = ""
    #: The name at the end of the line, and its position.
    label: str = ""
    down: float = 0.0


@dataclass(frozen=True)
class _BoardHistory:
    """Scores over time, in the picture's units."""

    teams: list[_TeamHistory]
    #: The positions and texts of the lowest and the highest score.
    marks: list[tuple[float, float]]
    start: float
    end: float
    size: tuple[int, int] = (_WIDTH, _HEIGHT)
    #: The end of the lines.
    right: int = _WIDTH - _BESIDE


def history_of(board: RankedBoard) -> _BoardHistory | None:
    """Return the score histories of the first teams; None without two scores to draw."""
    rows = {row.team_id: row for row in board.rows[:_DRAWN_TEAMS]}
    points: dict[int, list[tuple[float, float]]] = {team: [] for team in rows}
    for entry in board.history:
        value = entry.result.get(board.order)
        if entry.team_id in points and isinstance(value, (int, float)) and math.isfinite(value):
            points[entry.team_id].append((entry.submitted_at, float(value)))
    all_points = [point for points_of_team in points.values() for point in points_of_team]
    if len(all_points) < 2:
        return None
    (start, end), (low, high) = ((min(side), max(side)) for side in zip(*all_points, strict=True))

    def locate(time: float, value: float) -> tuple[float, float]:
        across = (time - start) / (end - start or 1)
        up = (value - low) / (high - low or 1)
        return round(_LEFT + across * (_WIDTH - _LEFT - _BESIDE), 1), round(
            _HEIGHT - _BELOW - up * (_HEIGHT - _BELOW - 12), 1
        )

    teams: list[_TeamHistory] = []
    levels: list[float] = []
    for team, entry in rows.items():
        dots = [locate(*point) for point in points[team]]
        level = (min if board.descending else max)((down for _, down in dots), default=_HEIGHT / 2)
        line = _best_score_path(dots, board)
        if entry.is_baseline and dots:  # a level for comparison, regardless of its date
            line = f"M{_LEFT} {level}{_RIGHT}"
        levels.append(level)
        label = shorten_name(entry.team_name, _MOST_OF_NAME)
        teams.append(_TeamHistory(entry.team_name, entry.is_baseline, dots, line, label))
    for history, down in zip(teams, spread_labels(levels, _NAME_HEIGHT), strict=True):
        history.down = round(down, 1)
    marks = [(value, locate(start, value)[1]) for value in sorted({low, high})]
    return _BoardHistory(teams, marks, start, end)


def _best_score_path(dots: list[tuple[float, float]], board: RankedBoard) -> str:
    """Return the steps from one best score to the next, up to the right border."""
    if not dots:
        return ""
    steps, best = [f"M{dots[0][0]} {dots[0][1]}"], dots[0][1]
    for across, down in dots[1:]:
        if down < best if board.descending else down > best:
            best = down
            steps.append(f"H{across}V{down}")
    return "".join([*steps, _RIGHT])


# ── significant differences ─────────────────────────────────────────────────


@dataclass(frozen=True)
class _Standings:
    """Rows of a leaderboard, compared on the same sequences with Holm's adjustment for all pairs."""

    #: Submission -> its possible places, with a joint confidence of 95 %.
    places: dict[int, tuple[int, int]]
    #: Pairs of submissions of which the first is significantly better than the second.
    better: frozenset[tuple[int, int]]
    #: The number of compared sequences or groups.
    cases: int


@dataclass(frozen=True)
class _Evaluation:
    """A file's data of one metric: protocol, truth, and the sum and number of values in each case."""

    origin: object
    sums: Floats
    counts: Floats


class Comparisons:
    """Compares the rows of leaderboards."""

    def __init__(self, store: Store, files: FileStore) -> None:
        self._store, self._files = store, files
        self._compare_once = lru_cache(maxsize=_MOST_CACHED)(self._compare_files)

    def compare(self, board: RankedBoard, split: str) -> _Standings | str:
        """Return the first rows' comparison by the leaderboard's metric, or why they cannot be compared."""
        rows = {row.submission: row for row in board.rows[:_MOST_COMPARED]}
        if len(rows) < 2:
            return "there is nothing to compare yet"
        submissions = self._store.find(Submission, Submission.id.in_(rows))
        values = {number: str(row.result.get(board.order)) for number, row in rows.items()}
        files = tuple(sorted((row.id, row.metadata_file or "", values[row.id]) for row in submissions))
        return self._compare_once(split, board.order, files, smaller=not board.descending)

    def _compare_files(
        self, split: str, metric: str, files: tuple[tuple[int, str, str], ...], *, smaller: bool
    ) -> _Standings | str:
        evaluations = {}
        for number, file, value in files:
            try:
                evaluations[number] = self._read(file, split, metric, float(value))
            except ValueError:
                return (
                    f"the files of submission {number} do not give {metric} for each case. Other scorers "
                    "never give it; Segjudge's omit it if cases are few and their scores hidden"
                )
        try:
            return _compare_all(evaluations, smaller=smaller)
        except ValueError as error:
            return str(error)

    def _read(self, file: str, split: str, metric: str, value: float) -> _Evaluation:
        """Return a metric from a file; raises ValueError if the file is not ours or cannot have this value."""
        row = self._files.row(file)
        if row is None or row.size > _BYTES:
            raise ValueError(file)
        try:
            with open(self._files.path(file), "rb") as source:
                document = json.load(source)
            document = document.get("submission_metadata", document)  # a remote worker sends it beside the result
            sums, counts = (np.array(numbers, np.float64) for numbers in document["sums"][split][metric])
            origin = document["provenance"]
            origin = (origin["protocols"][split], origin["truth"])
        except (FileNotFoundError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(file) from error
        if sums.ndim != 1 or sums.shape != counts.shape or not 1 < len(sums) <= _CASES:
            raise ValueError(file)
        mean = float(sums.sum() / max(counts.sum(), 1))
        shares = [value, value / 100]  # if the phase shows percent
        if counts.min() < 0 or not any(
            math.isclose(mean, share, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) for share in shares
        ):
            raise ValueError(file)
        return _Evaluation(origin, sums, counts)


def _compare_all(evaluations: dict[int, _Evaluation], *, smaller: bool) -> _Standings:
    """Return how submissions compare; raises ValueError where they were not scored alike."""
    reference, *compared = evaluations.values()
    if any(row.origin != reference.origin or not np.array_equal(row.counts, reference.counts) for row in compared):
        raise ValueError("the rows were scored by different protocols or on different truths")
    sums = np.stack([evaluation.sums for evaluation in evaluations.values()])
    pseudo = bool((reference.counts == 1).all())  # otherwise there are objects to count
    table = Sums(tuple(map(str, evaluations)), sums, reference.counts, smaller, pseudo)
    pairs = compare_pairs(table)
    better = {table.sort_pair(pair) for pair in pairs if pair.apart}
    return _Standings(
        {int(mean.name): (mean.place_from, mean.place_to) for mean in estimate_means(table, pairs)},
        frozenset((int(winner), int(loser)) for winner, loser in better),
        len(reference.counts),
    )
