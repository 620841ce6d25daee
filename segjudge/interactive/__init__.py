"""Interactive segmentation: a session in which scribbles come, masks go, and the clock runs.

Written from the published behaviour of the DAVIS interactive framework; names and module paths are those
that programs for it import.
"""

try:
    from .session import DavisInteractiveSession
except ModuleNotFoundError as error:
    needs = "the interactive session needs, in the checkout: pip install -e '.[interactive]'"
    found = f"{error.name} is not installed; {needs}"
    raise ModuleNotFoundError(found, name=error.name) from None

__all__ = ["DavisInteractiveSession"]
