"""Code upload deployables: the host's environment container, and participants' containers.

`environment` is a program of its own, started as a module.  Agents to begin with are in `examples/agents/`.
"""

__all__: list[str] = []
