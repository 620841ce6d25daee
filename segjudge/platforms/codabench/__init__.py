"""Codabench: building competitions from EvalAI's bundle, and checking, trying and uploading them.

`build` groups phases and zips them. `opened_competition` opens a competition as the site does; `check` lists what it
rejects (using `serializer_fields`), `pitfalls` what it accepts although it breaks later. `trial` scores samples as
Codabench's worker does, `push` uploads. `routes` has the paths of the site's API. `scoring_program` and `page_program`
go into the zips. The modules are imported one by one, because they load optional packages.
"""

__all__ = ["build", "check", "opened_competition", "push", "routes", "trial"]
