"""Interactive segmentation: a session in which scribbles come, masks go, and the clock runs.

Written from the published behaviour of the DAVIS interactive framework, whose names programs import.
"""

from segjudge.system.errors import install_line

try:
    from .davis_session import DavisInteractiveSession
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{error.name} is not installed; the interactive session needs more: {install_line('interactive')}",
        name=error.name,
    ) from None

__all__ = ["DavisInteractiveSession"]
