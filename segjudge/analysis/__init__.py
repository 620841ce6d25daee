"""Statistics of scores: ranks, paired tests, intervals, what each kind of failure costs; see `docs/ranking.md`."""

from typing import Literal, get_args

#: How values of cases become a ranking.
Method = Literal["mean-then-rank", "median-then-rank", "rank-then-mean", "rank-then-median", "test-then-rank"]
METHODS: tuple[Method, ...] = get_args(Method)
