"""Code upload: agents that play environments, on a laptop or on EvalAI.

`environments` has the tasks that agents are given, as Gymnasium environments; `messages` carries observations and
actions between the two sides; `arena` runs both as processes.  Here is where environments and agents find each other.
"""

__all__ = ["ADDRESS_VARIABLE", "LOCAL_VARIABLE", "PORT", "arena", "environments", "messages"]

#: The port at which environments listen, those of the starter too.
PORT = 8085
#: Where the environment is: as this variable says, in compose (where the second is set) under its own name, or in the
#: same pod.
ADDRESS_VARIABLE, LOCAL_VARIABLE = "SEGJUDGE_ENVIRONMENT", "LOCAL_EVALUATION"
