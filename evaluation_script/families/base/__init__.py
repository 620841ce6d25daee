"""The base of all families: engine, accumulator, reports, suspicions and units.

The contract is the modules, each imported by its name: `family` says what a family and a protocol are, `truth` what any
truth offers, `engine` how one is scored; `accumulator` has counts that merge, `reports` scores with their errors,
and `suspicions` what slips look like.  `units` has all of this for families that count images, videos or sequences
apart.
"""

__all__ = ["accumulator", "engine", "family", "reports", "suspicions", "truth", "units"]
