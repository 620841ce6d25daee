"""The evaluation of masks."""

from . import service
from .service import EvaluationService

__all__ = ["EvaluationService", "service"]
