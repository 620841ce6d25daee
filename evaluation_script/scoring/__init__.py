"""Scoring of a challenge's phases: Phase, Scorer, EvalAI's answer, and provenance.

The words of a phase are here, for `phases.py`, and the version of the scorers.  The rest is in modules that other rooms
import by name, since a command that asks for the version needs no scorer: `scorer` opens truths, counts and reports a
split, whichever door its results come in by; `answer` writes what EvalAI stores, `notify` what a host's channel reads;
`provenance` says what scores come from.
"""

from .phase import Notify, Phase, PhaseSplit

__all__ = ["VERSION", "Notify", "Phase", "PhaseSplit", "answer", "notify", "phase", "provenance", "scorer"]

#: The version of this bundle; reports and the package carry it.
VERSION = "1.0.0"
