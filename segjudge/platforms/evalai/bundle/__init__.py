"""The challenge bundle: built from a list of files, checked by the server's rules, and pushed.

`build` makes what `opened_bundle` opens; `check` asks `rules` (the server's validation, block by block), `saving_rules`
(saving, updates, the web form), `pitfalls`, `script_rules` and `agreement`; `push` uploads.  `fields` is the table of
the YAML's keys, from which rules and the published JSON Schema are made.
"""
