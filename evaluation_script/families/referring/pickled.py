"""A reader of pickles of plain values, such as RefCOCO's expressions, that rejects everything else.

The only place where a pickle is read.  Nothing is imported or called for it, since `find_class` is all that could.
"""

from __future__ import annotations

import io
import pickle
from typing import NoReturn

from ...files import Flaw


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it holds {module}.{name}, and only plain values are read")


def read_plain_values(data: bytes) -> object:
    """Read a pickle of any version, including texts of Python 2; raises a Flaw for other than plain values."""
    try:
        return _PlainUnpickler(io.BytesIO(data), encoding="latin-1").load()
    except (pickle.UnpicklingError, EOFError, ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        raise Flaw(f"is not a pickle of plain values: {error}", "Write the same records as JSON") from None
