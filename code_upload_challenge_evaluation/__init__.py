"""Code upload deployables: the host's environment container, and participants' containers.

`environment` is a separate program, started as a module. `examples/agents/` has example agents.
"""

__all__: list[str] = []
