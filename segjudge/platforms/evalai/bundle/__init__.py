"""The challenge bundle: built from a list of files, checked by the server's rules, and pushed.

`bundle_source` finds the host's files, `build` writes the zip, and `opened_bundle` opens it. `check` lists all
problems: EvalAI's own tests in `rules` and `validation` (rows of `platforms.rules`), then pitfalls in the YAML, the
script (`script_rules`), and the agreement of `phases.py`, YAML and truth (`agreement`). `fields` is the table of the
YAML's keys, from which rules and the published JSON Schema are made. `trial` scores the samples in EvalAI's worker,
`push` uploads, and `server_state` records the state that updates may not change.
"""

__all__ = [
    "agreement",
    "build",
    "bundle_source",
    "check",
    "fields",
    "opened_bundle",
    "push",
    "rules",
    "server_state",
    "trial",
    "validation",
    "yaml_lines",
]
