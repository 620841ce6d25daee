"""Code upload: agents that run in environments, on a laptop or on EvalAI.

`environments` has the tasks of agents, as Gymnasium environments; `messages` defines their messages; `arena` runs both
sides as processes. This module locates environments and agents.
"""

__all__ = ["ADDRESS_VARIABLE", "LOCAL_VARIABLE", "PORT", "arena", "environments", "messages"]

#: The port on which environments listen, including the starter's.
PORT = 8085
#: The variable with the environment's address, by default in the same pod, and the variable that compose sets, where
#: the environment has a name of its own.
ADDRESS_VARIABLE, LOCAL_VARIABLE = "SEGJUDGE_ENVIRONMENT", "LOCAL_EVALUATION"
