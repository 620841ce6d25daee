"""Codabench: building competitions from the same bundle, checking, trying and uploading them.

`build` puts phases together and makes zips of them; `opened_competition` opens one as the site does, `check` says what
it refuses (by `serializer_fields`) and `pitfalls` what it takes although it breaks later, both by rows; `trial` scores
samples as Codabench's worker does; `push` uploads.  `scoring_program` and `page_program` go into the zips.  The modules
of the contract are imported one by one, since they load optional packages.
"""

__all__ = ["build", "check", "opened_competition", "push", "trial"]
