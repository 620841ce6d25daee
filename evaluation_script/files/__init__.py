"""The files of a submission: read from where they lie, never unpacked, within limits checked before anything inflates.

Here is what is wrong with a file, in sentences for the participant (`problems`), and the packed annotation file.
"""

from .limits import INSTANCE_LIMITS, UNIT_LIMITS, ArchiveLimits
from .problems import HostError, SubmissionError

__all__ = ["INSTANCE_LIMITS", "UNIT_LIMITS", "ArchiveLimits", "HostError", "SubmissionError"]
