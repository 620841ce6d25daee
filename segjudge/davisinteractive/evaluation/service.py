"""The evaluation service."""

from segjudge.interactive.evaluation import ROBOT_DEFAULT_PARAMETERS, EvaluationService

__all__ = ["ROBOT_DEFAULT_PARAMETERS", "EvaluationService"]
