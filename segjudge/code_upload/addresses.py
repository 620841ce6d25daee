"""The addresses at which environments and agents find each other."""

from __future__ import annotations

#: The port at which environments listen, those of the starter too.
PORT = 8085
#: Where the environment is: in the same pod, in compose under its own name, or as `ADDRESS` says.
ADDRESS, LOCAL = "SEGJUDGE_ENVIRONMENT", "LOCAL_EVALUATION"
