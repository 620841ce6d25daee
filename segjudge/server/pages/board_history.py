"""Scores of a leaderboard over time: what the page draws."""

import math
from dataclasses import dataclass, field

from segjudge.server.leaderboards import RankedBoard

#: The picture, in its own units: as wide and high, with so much room for what stands beside it.
WIDTH, HEIGHT, LEFT, BELOW = 640, 220, 56, 24
#: The path to the right border.
RIGHT = f"H{WIDTH - 12}"
#: So many teams have a line.
TEAMS = 8


@dataclass
class TeamHistory:
    """The public submissions of a team, in the order of their time."""

    name: str
    #: A host's own, drawn dashed.
    baseline: bool
    dots: list[tuple[float, float]] = field(default_factory=list)
    #: The best so far, as the path of an SVG.
    path: str = ""


@dataclass(frozen=True)
class BoardHistory:
    """Scores over time, in the picture's units."""

    teams: list[TeamHistory]
    #: Where the lowest and the highest score stand, and as what.
    marks: list[tuple[float, float]]
    first: float
    last: float
    size: tuple[int, int] = (WIDTH, HEIGHT)


def history_of(board: RankedBoard) -> BoardHistory | None:
    """Return how the scores of the first teams came about; None where there are no two to draw."""
    rows = {row.team_id: row for row in board.rows[:TEAMS]}
    points: dict[int, list[tuple[float, float]]] = {team: [] for team in rows}
    for entry in board.history:
        value = entry.result.get(board.order)
        if entry.team_id in points and isinstance(value, (int, float)) and math.isfinite(value):
            points[entry.team_id].append((entry.submitted_at, float(value)))
    all_points = [point for points_of_team in points.values() for point in points_of_team]
    if len(all_points) < 2:
        return None
    (first, last), (low, high) = ((min(side), max(side)) for side in zip(*all_points, strict=True))

    def locate(at: float, value: float) -> tuple[float, float]:
        across = (at - first) / (last - first or 1)
        up = (value - low) / (high - low or 1)
        return round(LEFT + across * (WIDTH - LEFT - 12), 1), round(HEIGHT - BELOW - up * (HEIGHT - BELOW - 12), 1)

    teams = []
    for team, entry in rows.items():
        dots = [locate(*point) for point in points[team]]
        line = _best_so_far(dots, board)
        if entry.is_baseline and dots:  # a level to compare with, whenever it was submitted
            line = (
                f"M{LEFT} {min(down for _, down in dots) if board.descending else max(down for _, down in dots)}{RIGHT}"
            )
        teams.append(TeamHistory(entry.team_name, entry.is_baseline, dots, line))
    marks = [(value, locate(first, value)[1]) for value in sorted({low, high})]
    return BoardHistory(teams, marks, first, last)


def _best_so_far(dots: list[tuple[float, float]], board: RankedBoard) -> str:
    """Return the steps from one best score to the next, up to the right border."""
    if not dots:
        return ""
    steps, best = [f"M{dots[0][0]} {dots[0][1]}"], dots[0][1]
    for across, down in dots[1:]:
        if down < best if board.descending else down > best:
            best = down
            steps.append(f"H{across}V{down}")
    return "".join([*steps, RIGHT])
