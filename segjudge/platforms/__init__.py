"""The platforms of challenges: EvalAI, Codabench and grand-challenge, imported by name.

The bundle of EvalAI is the source of the others; a platform that comes or goes is a folder.  `imports` finds what the
scripts that go there import.
"""

__all__: list[str] = []
