"""The analysis of several methods' scores: comparisons, rankings and statistics (`docs/ranking.md`).

`comparison` compares methods on one truth; `rankings` rank algorithms in many cases, and `standings` presents them.
Both offer tables, sentences, `plots` and a page. `statistics` has the ranks, tests and differences of both;
`score_tables` reads files of scores. This room does not depend on any family: it asks `segjudge.families` for their
properties.
"""

from typing import Literal, get_args

__all__ = ["CHALLENGE", "METHODS", "MOST_DRAWS", "comparison", "plots", "standings", "statistics"]

#: The methods that turn the values of cases into a ranking.
Method = Literal["mean-then-rank", "median-then-rank", "rank-then-mean", "rank-then-median", "test-then-rank"]
METHODS: tuple[Method, ...] = get_args(Method)
#: The method that the protocol states, as its challenge ranks.
CHALLENGE: Literal["challenge"] = "challenge"
#: The maximum number of bootstrap samples.
MOST_DRAWS = 100_000
