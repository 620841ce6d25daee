"""A reader of pickles of plain values, such as RefCOCO's expressions, that rejects everything else.

Only this module reads pickles. Nothing is imported or called, because `find_class`, the only way to do so, raises an
error.
"""

from __future__ import annotations

import io
import pickle
from typing import NoReturn

from ...files import TruthFlaw


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it holds {module}.{name}, but only plain values are read")


def read_plain_values(data: bytes) -> object:
    """Read a pickle of any version, including texts of Python 2; raises a TruthFlaw for anything but plain values."""
    try:
        return _PlainUnpickler(io.BytesIO(data), encoding="latin-1").load()
    except (pickle.UnpicklingError, EOFError, ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        fault = str(error).rstrip(".")
        raise TruthFlaw(f"is not a pickle of plain values: {fault}", "Write the same records as JSON") from None
