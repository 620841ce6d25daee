"""The ledger of a board without a server: submissions and results as small files that nobody changes.

`rows` are the kinds of files, `storage` keeps them, and `git_branch` is a storage in a branch of a repository. `rules`
are the challenge's limits, dates and leaderboards, `ledger` adds rows by them, and `page` renders what is public.
"""

__all__ = ["git_branch", "ledger", "page", "rows", "rules", "storage"]
