"""Code upload, as deployed: the environment in the host's container, agents and static submissions in participants'.

`environment` is a program of its own, started as a module.  Agents build on one another: `agent.agent` plays an episode
with any method.
"""

__all__: list[str] = []
