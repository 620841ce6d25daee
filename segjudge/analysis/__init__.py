"""What scores say: reports, comparisons, rankings, and the statistics behind them, which `docs/ranking.md` defines.

`report` makes the page of one result, `comparison` compares results on the same truth, `rankings` ranks algorithms by
their values in many cases, `statistics` has the ranks and tests of both, and `score_tables` writes and reads files of
scores.  Everything here is above the families: what is one's own it asks of `segjudge.families`.
"""

from typing import Literal, get_args

__all__ = ["METHODS", "comparison", "rankings", "report", "score_tables", "statistics"]

#: How values of cases become a ranking.
Method = Literal["mean-then-rank", "median-then-rank", "rank-then-mean", "rank-then-median", "test-then-rank"]
METHODS: tuple[Method, ...] = get_args(Method)
