"""Code upload: agents that run in environments, on a laptop or on EvalAI.

`environments` has the tasks of agents, as Gymnasium environments; `messages` defines their messages; `arena` runs both
sides as processes. This module locates environments and agents.
"""

__all__ = ["ADDRESS_VARIABLE", "LOCAL_VARIABLE", "PORT", "arena", "environments", "messages"]

#: The port at which environments listen, those of the starter too.
PORT = 8085
#: Where the environment is: as this variable says, in compose (where the second is set) under its own name, or in the
#: same pod.
ADDRESS_VARIABLE, LOCAL_VARIABLE = "SEGJUDGE_ENVIRONMENT", "LOCAL_EVALUATION"
