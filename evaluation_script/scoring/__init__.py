"""Scoring of a challenge's phases: Phase, Scorer, EvalAI's answer, and provenance.

The names used in `phases.py` are imported from here, as is the version of the scorers. Other rooms import the modules
by name, because the version alone needs no scorer: `scorer` opens truths, counts and reports a split for every entry
point; `answer` builds EvalAI's result, `notify` the message for a host's channel; `provenance` records the inputs of
scores.
"""

from .phase import Notify, Phase, PhaseSplit

__all__ = ["VERSION", "Notify", "Phase", "PhaseSplit", "answer", "notify", "phase", "provenance", "scorer"]

#: The version of this bundle, of reports and of the package.
VERSION = "1.0.0"
