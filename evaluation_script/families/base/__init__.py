"""What families are made of; a family takes from here what it needs, and other rooms what all families share.

The contract is the modules, each imported by its name: `family` says what a family and a protocol are, `truth` what any
truth offers, `engine` how one is scored; `accumulator` has counts that merge, `reports` scores with their errors, and
what odd labels suggest.  `units` has all of this for families that count images, videos or sequences apart.
"""

__all__ = ["accumulator", "engine", "family", "reports", "truth", "units"]
