"""Scores in a notebook: one small table for each split, in the notebook's own colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segjudge.evaluation_script.reports import Report

from .page import environment

#: Warnings that are shown.
WARNINGS = 5


def html_of(reports: list[Report], warnings: list[str], provenance: Mapping[str, Any]) -> str:
    """Return the metrics of each split with their intervals, the first warnings, and what scored."""
    template = environment().get_template("notebook.html")
    return template.render(reports=reports, warnings=warnings, most=WARNINGS, provenance=provenance)
