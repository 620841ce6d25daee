"""Sums, means and exponentials, with the same bits for every Python, numpy and processor."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from segjudge.evaluation_script.values import arithmetic

#: The sums of the first so many numbers: their bits on numpy 1.26, which adds more than 8,192 in blocks.
SUMS = {
    7: "0x1.2ed916872b021p+2", 8: "0x1.45604189374bdp+2", 129: "0x1.03428f5c28f5cp+6", 8192: "0x1.ff876c8b43958p+11",
    8193: "0x1.ff932b020c49cp+11", 65026: "0x1.fb8446a7ef9dbp+14", 1_212_000: "0x1.279a400000000p+19",
}  # fmt: skip


def numbers(count: int) -> np.ndarray:
    return np.arange(1, count + 1, dtype=np.int64) * 7919 % 1000 / 1000


@pytest.mark.parametrize("count", SUMS)
def test_a_sum_has_the_bits_that_the_worker_gives(count: int) -> None:
    row = numbers(count)
    assert arithmetic.add(row).hex() == SUMS[count]
    assert arithmetic.add(row.tolist()) == arithmetic.add(row)
    assert arithmetic.mean(row) == arithmetic.add(row) / count
    assert arithmetic.add_parts(row[start : start + 16_384] for start in range(0, count, 16_384)).hex() == SUMS[count]


def test_a_sum_of_flags_or_counts_is_exact() -> None:
    assert arithmetic.add(np.ones(10_000, bool)) == 10_000
    assert arithmetic.add([1, 2**52]) == 2**52 + 1
    assert arithmetic.add(np.zeros(0)) == arithmetic.add([]) == 0
    assert arithmetic.mean([True, False]) == 0.5


def test_exponentials_are_right_to_the_last_bit_but_few() -> None:
    exponents = -np.concatenate([numbers(1000) * 40, numbers(1000), [0.0, 1e-300]])
    with localcontext() as context:
        context.prec = 40
        exact = [float(Decimal(float(exponent)).exp()) for exponent in exponents]
    ours = arithmetic.exp(exponents)
    assert np.mean(ours != exact) < 0.03
    assert (np.abs(ours - exact) <= np.spacing(exact)).all()
    assert arithmetic.exp(np.array([[0.0, -0.0], [-800.0, -np.inf]])).tolist() == [[1, 1], [0, 0]]
    assert float(arithmetic.exp(np.array([-0.5]))[0]).hex() == "0x1.368b2fc6f960ap-1"


def test_angles_and_powers_are_right() -> None:
    for tangent in (0.0, 1e-9, 0.1, 0.99, 1.0, 1.01, 7.0, 1e9, 1e300):
        assert arithmetic.atan(tangent) == pytest.approx(math.atan(tangent), rel=1e-14)
    for exponent in (0, 1, 2, 3, 64, 1001):
        assert arithmetic.power(0.999, exponent) == pytest.approx(0.999**exponent, rel=1e-13)
