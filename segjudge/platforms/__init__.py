"""The platforms of challenges: EvalAI, Codabench, grand-challenge and GitHub, imported by name.

EvalAI's bundle is the source for the other platforms; each platform is one folder. `rules` has what their checks share,
and `imports` finds the imports of uploaded scripts.
"""

__all__: list[str] = []
