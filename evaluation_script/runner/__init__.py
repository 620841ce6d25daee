"""Jobs in child processes under limits, sentences about how they ended, and work shared by processes.

The contract is the modules, each imported by its name: `tuning` comes before numpy and before anything else.
`guard` runs a job under limits, `supervisor` ends whatever a job started, `parallel` shares work among processes.
"""

__all__ = ["guard", "parallel", "supervisor", "tuning"]
