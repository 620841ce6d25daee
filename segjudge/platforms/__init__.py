"""The platforms of challenges: EvalAI, Codabench, grand-challenge, GitHub and the Hugging Face Hub, imported by name.

EvalAI's bundle is the source for the other platforms; each platform is one folder. `rules` has what their checks share,
`imports` finds the imports of uploaded scripts, and `templates` opens the templates of a folder.
"""

__all__: list[str] = []
