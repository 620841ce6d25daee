"""The challenge bundle: built from a list of files, checked by the server's rules, and pushed.

`bundle_source` finds the host's files, `build` makes what `opened_bundle` opens, and `check` says everything that is
wrong with it: by `rules`, which are those of `validation`, a row (`rule_rows`) for each thing that EvalAI tests, of
updates and of saving; then what breaks later in the YAML, the script (`script_rules`), and between `phases.py`,
YAML and truth (`agreement`).  `fields` is the table of the YAML's keys, from which rules and the published JSON Schema
are made; `problems` words what is wrong.  `trial` scores the samples in EvalAI's worker, `push` uploads, and
`server_state` remembers what an update may not change.
"""

__all__ = [
    "agreement",
    "build",
    "bundle_source",
    "check",
    "fields",
    "opened_bundle",
    "problems",
    "push",
    "rule_rows",
    "rules",
    "server_state",
    "trial",
    "validation",
    "yaml_lines",
]
