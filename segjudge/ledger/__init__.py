"""The ledger of a board without a server: submissions and results as small files that nobody changes.

`rows` are the kinds of files, and `storage` keeps them: `git_branch` in a branch of a repository, `hub_dataset` in a
data set of the Hugging Face Hub. `rules` are the challenge's limits, dates and leaderboards, `ledger` adds rows by
them, and `page` renders what is public. `evaluator` scores what waits in a platform's queue, each file by `scoring`.
"""

__all__ = ["evaluator", "git_branch", "hub_dataset", "ledger", "page", "rows", "rules", "scoring", "storage"]
