"""Statistics of scores: ranks, paired tests, intervals, what each kind of failure costs; see `docs/ranking.md`."""
