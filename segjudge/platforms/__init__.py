"""Where challenges run: EvalAI, Codabench and grand-challenge, a room each, which are imported by their own names.

The bundle of EvalAI is the source of the others; a platform that comes or goes is a folder.  `imports` finds what the
scripts that go there import.
"""

__all__: list[str] = []
