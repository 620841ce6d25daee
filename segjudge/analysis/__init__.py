"""What scores say: reports, comparisons, rankings, and the statistics behind them, which `docs/ranking.md` defines."""

from typing import Literal, get_args

#: How values of cases become a ranking.
Method = Literal["mean-then-rank", "median-then-rank", "rank-then-mean", "rank-then-median", "test-then-rank"]
METHODS: tuple[Method, ...] = get_args(Method)
