"""The agents of `examples/agents/`, imported from their folder, since they import one another as scripts."""

import sys
from unittest.mock import patch

from tests.builders import ROOT

with patch.object(sys, "path", [str(ROOT / "examples/agents"), *sys.path]):
    import agent
    import memory
    import optical_flow

__all__ = ["agent", "memory", "optical_flow"]
