"""A small challenge of our own in its config, with one and with two phases, and with a hidden split."""

from __future__ import annotations

from tests.platforms.damages import Config, plain
from tests.platforms.evalai.bundles import CONFIG as FOREIGN

PHASE: Config = {
    "id": 1, "name": "First", "codename": "first", "description": "text.html", "is_public": True,
    "leaderboard_public": True, "start_date": plain("2026-01-01 00:00:00"), "end_date": plain("2030-01-01 00:00:00"),
    "test_annotation_file": "annotations/val.zip", "max_submissions_per_day": 5, "max_submissions": 50,
}  # fmt: skip
LATER = {
    "id": 2,
    "name": "Second",
    "codename": "second",
    "start_date": plain("2030-01-01 00:00:00"),
    "end_date": plain("2031-01-01 12:30:00+02:00"),
}
ROW = FOREIGN["challenge_phase_splits"][0]
MINE: Config = {
    **{key: FOREIGN[key] for key in ("title", "description", "evaluation_details", "terms_and_conditions", "image")},
    "submission_guidelines": "text.html",
    "evaluation_script": "evaluation_script.zip",
    "short_description": "Short",
    "start_date": plain("2026-01-01 00:00:00"),
    "end_date": plain("2040-01-01 00:00:00"),
    "leaderboard": [
        {
            "id": 1,
            "schema": {
                "labels": ["J-Decay", "J-Mean"],
                "default_order_by": "J-Mean",
                "metadata": {"J-Decay": {"sort_ascending": True, "description": "Less is better"}},
            },
        }
    ],
    "challenge_phases": [PHASE],
    "dataset_splits": [{"id": 1, "name": "Val", "codename": "val"}, {"id": 2, "name": "Hard", "codename": "hard"}],
    "challenge_phase_splits": [ROW],
}
TWO = {
    **MINE,
    "challenge_phases": [PHASE, {**PHASE, **LATER}],
    "challenge_phase_splits": [ROW, {**ROW, "challenge_phase_id": 2}],
}
BOTH = {
    **MINE,
    "challenge_phases": [{**PHASE, "codename": "both"}],
    "challenge_phase_splits": [{**ROW, "dataset_split_id": 2, "visibility": 1}, ROW],
}
TABLE = """from .scoring import Phase, PhaseSplit

LABELS = ("J-Decay", "J-Mean")
VAL, HARD = PhaseSplit("val", "davis2017", LABELS), PhaseSplit("hard", "davis2017", LABELS, hidden=True)
PHASES = (
    Phase("first", "annotations/val.zip", (VAL,), seconds=100),
    Phase("both", "annotations/val.zip", (VAL, HARD), report=False, detail="all"),
    Phase("second", "annotations/val.zip", (VAL,)),
)
"""
HTML = b"<h1>Text</h1>\n    <p>indented</p>\n"
