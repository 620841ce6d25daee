"""The conformance kit: checks that every family must pass.

    case = Case("counting", truth="truth.json", submissions={"good": "good.json"}, expected=my_evaluator)
    check(case)

`CHECKS` lists the checks, for `pytest.mark.parametrize`; `docs/adding-a-family.md` describes each. A failed check
raises AssertionError with a sentence. pytest is not required.
"""

from segjudge.testing.checks import CHECKS, Case, check
from segjudge.testing.hostile import make_variants

__all__ = ["CHECKS", "Case", "check", "make_variants"]
