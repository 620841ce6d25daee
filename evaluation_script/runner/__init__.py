"""Jobs in child processes under limits, sentences about how they ended, and work shared by processes.

The contract is these modules, imported by name. `guard` runs a job under limits, `supervisor` ends a job's processes,
`parallel` shares work among processes, `tuning` lets a process reuse its memory.
"""

__all__ = ["guard", "parallel", "supervisor", "tuning"]
