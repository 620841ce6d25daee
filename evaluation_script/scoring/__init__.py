"""Scoring by the phases of a challenge: what a phase is, the answer for EvalAI, what the scores come from."""

from .phase import Notify, Phase, PhaseSplit

__all__ = ["Notify", "Phase", "PhaseSplit"]
