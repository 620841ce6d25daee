"""Scores have the same bits everywhere: the code avoids whatever depends on a Python, a numpy or a processor."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.family import ignore_progress
from segjudge.evaluation_script.scoring.scorer import is_packed
from segjudge.families.truths import TruthSource, pack_truth
from tests.families.contract import examples
from tests.scoring.mistakes import write_mistakes

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "evaluation_script"
WORKER = os.environ.get("SEGJUDGE_WORKER_PYTHON", "")

#: Functions of numpy and `math` whose last bits differ between libraries, processors or versions.
VARYING = {
    *("exp", "expm1", "exp2", "log", "log2", "log10", "log1p", "power", "float_power", "pow", "hypot", "cbrt"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "arcsin", "arccos", "arctan", "arctan2", "sinh", "tanh"),
    *("gamma", "lgamma", "erf", "dot", "vdot", "inner", "matmul", "tensordot", "einsum", "convolve", "correlate"),
    *("average", "std", "var", "cov", "corrcoef", "trapz", "trapezoid", "nanmean", "nansum", "geomspace", "logspace"),
}
#: Products of whole numbers, which are exact.
WHOLE_PRODUCTS = {"wide @ _BRIGHTNESS", "np.correlate(padded, true)", "np.correlate(profile, true_profile, 'full')"}


def find_varying(tree: ast.AST) -> list[str]:
    """Return the expressions whose bits may differ."""
    expressions = []
    for node in ast.walk(tree):
        is_varying = False
        if isinstance(node, ast.BinOp):
            is_varying = isinstance(node.op, ast.MatMult) and ast.unparse(node) not in WHOLE_PRODUCTS
            is_varying |= isinstance(node.op, ast.Pow) and not isinstance(node.left, ast.Constant)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_module = isinstance(node.func.value, ast.Name) and node.func.value.id in {"np", "math"}
            is_varying = is_module and node.func.attr in VARYING and ast.unparse(node) not in WHOLE_PRODUCTS
            is_whole_mean = node.func.attr == "mean" and not any(word.arg == "axis" for word in node.keywords)
            is_varying |= is_whole_mean or (not is_module and node.func.attr in {"dot", "std", "var"})
        if is_varying:
            expressions.append(ast.unparse(node))
    return expressions


@pytest.mark.parametrize("path", sorted(SCRIPT.rglob("*.py")), ids=lambda path: path.relative_to(SCRIPT).as_posix())
def test_scorers_use_no_arithmetic_that_varies(path: Path) -> None:
    """Take `add`, `mean`, `exp`, `atan` or `power` of `values/arithmetic.py`, `math.sqrt`, or a product."""
    assert find_varying(ast.parse(path.read_text(encoding="utf-8"))) == []


#: Scores files, and prints all numbers; Python's own `sum`, which rounds floats by its version, takes none.
PROGRAM = """
import builtins, json, sys
plain_sum = builtins.sum
def sum_whole(items, start=0):
    items = list(items)
    assert not any(isinstance(item, float) for item in items), "floats are summed by Python's sum"
    return plain_sum(items, start)
builtins.sum = sum_whole
from evaluation_script.families import PROTOCOLS
from evaluation_script.files.limits import INSTANCE_LIMITS
from evaluation_script.families.base.family import ScoringRules
from evaluation_script.scoring.scorer import Scorer, read_truth
for name, (results, truth) in json.load(sys.stdin).items():
    for split, opened in read_truth(truth, name).splits.items():
        report = Scorer(split, opened, ScoringRules(PROTOCOLS[name], INSTANCE_LIMITS)).score(results)
        print(name, json.dumps([report.values, report.errors(), report.intervals(), report.rows()]))
"""
#: The features that another processor lacks, as numpy and its matrix library name them.
OLD_PROCESSOR = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 X86_V3 AVX512_ICL AVX512_SPR AVX512F AVX512CD AVX512_SKX AVX2 FMA3",
    "OPENBLAS_CORETYPE": "Prescott",
}


@pytest.mark.parametrize(
    "protocols",
    [
        pytest.param(tuple(examples("machines")), id="some"),
        pytest.param(tuple(sorted({*PROTOCOLS} - {*examples("machines")}))[::3], id="others", marks=pytest.mark.long),
    ],
)
def test_every_machine_gives_the_same_numbers(protocols: tuple[str, ...], tmp_path: Path) -> None:
    files = {}
    for name in protocols:
        (tmp_path / name).mkdir()
        results, truth = write_mistakes(name, tmp_path / name)
        packed = os.fspath(tmp_path / name / "packed.zip")
        files[name] = results, truth if is_packed(truth) else packed
        if not is_packed(truth):
            pack_truth(TruthSource(truth), PROTOCOLS[name], packed, ignore_progress)
    machines = [
        (sys.executable, {}),
        (sys.executable, {"SEGJUDGE_KERNEL": "off", **OLD_PROCESSOR}),
        *([(WORKER, {"SEGJUDGE_KERNEL": "off"})] if WORKER else []),
    ]
    outputs = []
    for python, variables in machines:
        done = subprocess.run(
            [python, "-W", "ignore", "-c", PROGRAM], input=json.dumps(files), capture_output=True, text=True,
            cwd=ROOT, env={**os.environ, **variables}, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines())
    for output in outputs[1:]:
        assert output == outputs[0]
    assert len(outputs[0]) >= len(protocols)
