"""The conformance kit: checks of the promises that all families make.

    case = Case("counting", truth="truth.json", submissions={"good": "good.json"}, expected=my_evaluator)
    check(case)

`CHECKS` has the promises one by one, for `pytest.mark.parametrize`; `docs/adding-a-family.md` says what each one holds.
What is not kept is an AssertionError with a sentence.  Nothing here needs pytest.
"""

from segjudge.testing.checks import CHECKS, Case, check
from segjudge.testing.hostile import make_variants

__all__ = ["CHECKS", "Case", "check", "make_variants"]
