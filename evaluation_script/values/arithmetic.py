"""Arithmetic with the same bits on every machine: IEEE operations in a fixed order.

Scores do not depend on Python, numpy or processor. `sum` of Python 3.12 rounds differently from 3.9's, numpy 2 adds
more than 8,192 numbers in another order than numpy 1, and `np.exp`, powers and `@` depend on the processor.
"""

from __future__ import annotations

import math
from typing import Any, Iterable, List, Sequence, Union

import numpy as np

_Array = np.ndarray[Any, Any]
#: The count of numbers that numpy adds in pairs; longer sums add such blocks one after another, as in numpy 1.
_BLOCK = 8192
#: The count below which numpy adds numbers from left to right.
_IN_PAIRS = 8


def add(numbers: Union[_Array, Sequence[float]]) -> float:
    """Return the sum of numbers: blocks pairwise, as numpy adds, then left to right."""
    if isinstance(numbers, list) and len(numbers) < _IN_PAIRS:
        return _add_in_order(numbers)
    row = np.asarray(numbers, float).reshape(-1)
    return float(np.add.reduce(row)) if len(row) <= _BLOCK else add_parts([row])


def add_parts(parts: Iterable[_Array]) -> float:
    """Return the sum of the numbers of all parts, as `add` adds them; each but the last has whole blocks."""
    blocks = (row[start : start + _BLOCK] for row in parts for start in range(0, len(row), _BLOCK))
    return _add_in_order([float(np.add.reduce(block)) for block in blocks])


def mean(numbers: Union[_Array, Sequence[float]]) -> float:
    """Return the mean of at least one number."""
    return add(numbers) / np.size(numbers)


def _add_in_order(numbers: List[float]) -> float:
    total = 0.0
    for number in numbers:
        total += number
    return total


# Exponentials: x = n ln 2 + r, and the series of e^r, whose last additions keep the rounding errors.

#: ln 2 in two parts; products of the first with whole numbers are exact.
_LN2, _LN2_TAIL = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
_PER_LN2 = float.fromhex("0x1.71547652b82fep+0")
#: The coefficients of r^13 to r^2.
_SERIES = [1 / math.factorial(power) for power in range(13, 1, -1)]
#: The exponential of any smaller number is 0.
_LEAST = -800.0
#: The number of exponentials computed at once, so that intermediate values stay in the processor's cache.
_EXPONENTIALS_AT_ONCE = 8192


def exp(numbers: _Array) -> _Array:
    """Return the exponentials of numbers up to 700, to 0.6 units in the last place."""
    row = np.asarray(numbers, float).reshape(-1)
    results = np.empty(len(row))
    for start in range(0, len(row), _EXPONENTIALS_AT_ONCE):
        results[start : start + _EXPONENTIALS_AT_ONCE] = _exp_block(
            np.maximum(row[start : start + _EXPONENTIALS_AT_ONCE], _LEAST)
        )
    return results.reshape(np.shape(numbers))


def _exp_block(numbers: _Array) -> _Array:
    whole = np.rint(numbers * _PER_LN2)
    high, low = numbers - whole * _LN2, whole * _LN2_TAIL
    remainder = high - low
    series = remainder * _SERIES[0]
    for coefficient in _SERIES[1:]:
        series += coefficient
        series *= remainder
    series *= remainder
    series += (high - remainder) - low
    growth = remainder + series
    rounding = (remainder - growth) + series
    results: _Array = 1.0 + growth
    rounding += (1.0 - results) + growth
    results += rounding
    return np.ldexp(results, whole.astype(np.int32))


def atan(number: float) -> float:
    """Return the arc tangent of a non-negative number."""
    if number > 1:
        return math.pi / 2 - atan(1 / number)
    halvings = 4
    for _ in range(halvings):
        number /= 1 + math.sqrt(1 + number * number)
    square, total = number * number, 0.0
    for odd in range(21, 0, -2):
        total = 1 / odd - square * total
    return (1 << halvings) * number * total


def power(number: float, exponent: int) -> float:
    """Return a number raised to a non-negative whole power."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= number
        number *= number
        exponent >>= 1
    return result
