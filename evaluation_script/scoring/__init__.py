"""Scoring by the phases of a challenge: what a phase is, the Scorer, the answer for EvalAI, what scores come from.

The words of a phase are here, for `phases.py`.  The rest is in modules that other rooms import by name, since a command
that asks for the version needs no scorer: `scorer` counts and reports a split, whichever door its results come in by;
`annotation_file` opens truths; `answer` and `phase_report` write what EvalAI stores, `notify` what a host's channel
reads; `provenance` says what scores come from.
"""

from .phase import Notify, Phase, PhaseSplit

__all__ = ["Notify", "Phase", "PhaseSplit"]
