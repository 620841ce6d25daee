"""Jobs in child processes under limits, sentences about how they ended, and work shared by processes.

The contract is these modules, imported by name; `tuning` must be imported before numpy. `guard` runs a job under
limits, `supervisor` ends a job's processes, `parallel` shares work among processes.
"""

__all__ = ["guard", "parallel", "supervisor", "tuning"]
