"""A job in a child process under limits, and a sentence on how it ended; work shared by several processes.

The contract is the modules, each imported by its name: `tuning` comes before numpy and before anything else.
`guard` runs a job under limits, `supervisor` ends whatever a job started, `parallel` shares work among processes.
"""

__all__ = ["guard", "parallel", "supervisor", "tuning"]
