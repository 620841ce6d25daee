"""Statistics of scores: ranks, paired tests, intervals and rankings; `docs/ranking.md` defines each."""
