"""faster-coco-eval's own tests, run with the stand-in for its classes.

The sdists of torchmetrics 1.9.0, pycocotools 2.0.11 and lvis 0.5.3 have no tests; those of hotcoco 1.3.0 and
ultrafast-pycocotools 0.1.14 have tests of their Rust alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.builders import ROOT
from tests.shared import IN_CI

#: The package and what its tests import, with hashes; `packaging/locks/renew.sh` writes it.
LOCK = Path(__file__).with_name("peers.txt")
_CORE = "test_coco_api_and_evaluator_regressions.py::"
#: The tests that fail, by reason.  A different number is no reason.
FAILURES = {
    "reads files that the sdist lacks": (
        "test_basic.py::*", "test_boundary.py::TestBoundary::*", "test_cocoapi_fake_data.py::*", "test_crowdpose.py::*",
        "test_keypoints.py::*", "test_lvis_metric.py::TestBaseLvis::*", "test_ranges.py::*",
    ),
    "tests the threads behind its option rle_iou_max_workers": (_CORE + "*_rle_iou_*",),
    "replaces computeIoU, with annotations that lack iscrowd": (_CORE + "test_sparse_iou_*",),
    "reads its own eval['matched'], and the flags that it writes into annotations": (
        _CORE + "test_accumulation_is_deterministic_*", _CORE + "test_math_matches_*",
    ),
    "uses options and methods that the stand-in lacks (docs/switching.md), or their signatures": (
        _CORE + "test_custom_summary_layout_*", _CORE + "test_dump_*", _CORE + "test_core_collection_defaults_*",
        "test_core_low_regressions.py::test_to_dict_*", "test_core_low_regressions.py::test_python_auc_*",
        "test_core_low_regressions.py::test_extra_metrics_*", "test_compute_oks.py::*",
    ),
    "expects its own errors and warnings, where pycocotools has others or none": (
        _CORE + "test_invalid_core_iou_types_*", _CORE + "test_load_res_rejects_*", "test_annotation_id_zero.py::*",
        "test_core_low_regressions.py::test_coco_loaders_reject_*", "test_cpp_safety_regressions.py::*_nan_detection_*",
        "test_simple_extra.py::test_extended_metrics_raises_*",
    ),
    "counts how often createIndex reads the annotations": ("test_orphan_annotations.py::*_in_one_pass",),
}  # fmt: skip
PROGRAM = """
import sys
import pytest
from segjudge.drop_in import faster_coco_eval
faster_coco_eval.install()
sys.exit(pytest.main(sys.argv[1:]))
"""


def fetch(*arguments: str) -> None:
    """Run pip with the packages of the lock."""
    command = [sys.executable, "-m", "pip", *arguments, "--no-deps", "--require-hashes", "-r", str(LOCK)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode and not IN_CI:
        pytest.skip("FASTER-COCO-EVAL'S TESTS ABSENT: pip cannot fetch them")
    assert run.returncode == 0, run.stderr


@pytest.mark.long
def test_their_own_tests_pass_with_the_stand_in_or_fail_for_a_listed_reason(tmp_path: Path) -> None:
    fetch("install", "--only-binary=:all:", "--target", str(tmp_path / "packages"))
    fetch("download", "--no-binary=faster-coco-eval", "--dest", str(tmp_path))
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        tests = [member for member in archive.getmembers() if Path(member.name).parts[1:2] == ("tests",)]
        archive.extractall(tmp_path, tests, filter="data")
    command = [sys.executable, "-c", PROGRAM, "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
    printed = subprocess.run(
        [*command, "--ignore=test_pytorch_coco_eval.py", "--ignore=test_world_evaluator.py"],  # of torch's processes
        cwd=next(tmp_path.glob("*/tests")), env={"PATH": "", "PYTHONPATH": f"{ROOT}:{tmp_path / 'packages'}"},
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    failed = set(re.findall(r"^(?:FAILED|ERROR) (\S+)", printed, re.MULTILINE))
    listed = [pattern for patterns in FAILURES.values() for pattern in patterns]
    assert not {name for name in failed if not any(fnmatchcase(name, pattern) for pattern in listed)}, printed
    assert not {pattern for pattern in listed if not any(fnmatchcase(name, pattern) for name in failed)}, printed
    assert int(re.findall(r"(\d+) passed", printed)[-1]) > 100
