"""Interactive segmentation: a session in which scribbles come, masks go, and the clock runs.

Written from the published behaviour of the DAVIS interactive framework; names and module paths are those
that programs for it import.
"""

from .session import DavisInteractiveSession

__all__ = ["DavisInteractiveSession"]
