"""The base of all families: engine, accumulator, reports, ranges of scores, and units.

Families import these modules by name. `family` defines families and protocols, `truth` the interface of truths,
`engine` how a family scores. `accumulator` has mergeable counts, `reports` scores with errors, `suspicions` the ranges
of scores of detections. `units` implements all of these for families that count images, videos or sequences separately,
with the counts of `unit_counts`.
"""

__all__ = [
    "accumulator",
    "engine",
    "family",
    "reports",
    "suspicions",
    "truth",
    "unit_counts",
    "units",
]
