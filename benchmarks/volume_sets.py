"""Score a test set of CT volumes within the limits of EvalAI and Codabench.

    python -m benchmarks.volume_sets [--cases 4] [--set 300] [--scale S] [--python PYTHON] [--folder FOLDER]

Distinct cases of 512 x 512 x 300 voxels with ten organs are drawn, the truth is packed, and the submission is scored by
`evaluate()` as a worker calls it: by one process, with the worker's Python and numpy, under its guard of 640 MiB.  One case
and all of them are scored, and the difference gives the seconds of a further case; those of a whole set are extrapolated.
EvalAI gives half a core and 1 GiB, so seconds there are twice the CPU seconds; Codabench's public queue stops us after 480.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.measuring import Run, Table, least, options, run, segjudge, show
from benchmarks.volumes import CT, CT_SPACING, PROTOCOL, draw_ct
from segjudge.evaluation_script.families.volumes.geometry import Geometry
from segjudge.families.volumes.challenges import encode_nifti
from tests.data import ROOT

#: What Codabench's public queue allows, in seconds, and which share of a core EvalAI gives.
_SECONDS, _CORE = 480, 0.5
_WORKER = ROOT / ".venv-worker/bin/python"
#: What a worker does: one call of `evaluate()`; only the uploaded part is there.
_CODE = f"""
import json, sys
from evaluation_script import main
from evaluation_script.families import PROTOCOLS
from evaluation_script.scoring.phase import Phase, PhaseSplit
metrics = PROTOCOLS[{PROTOCOL!r}].metrics
main.PHASES = (Phase("test", "truth.zip", (PhaseSplit("test", {PROTOCOL!r}, metrics),)),)
print(json.dumps(main.evaluate(sys.argv[1], sys.argv[2], "test")["result"][0]))
"""


def _write_set(folder: Path, cases: int, scale: float) -> list[tuple[Path, Path]]:
    """Write the cases; return packed truths and submissions of the first case, and of all."""
    pairs = [(folder / f"truth-{count}.zip", folder / f"results-{count}.zip") for count in (1, cases)]
    if all(path.exists() for pair in pairs for path in pair):
        return pairs
    shape = tuple(max(8, round(side * scale)) for side in CT[::-1])
    z, y, x = shape
    grid = Geometry((x, y, z), CT_SPACING, np.column_stack([np.diag(CT_SPACING), [0.0, 0.0, 0.0]]))
    names = [f"case_{number:03d}.nii.gz" for number in range(cases)]
    for number, name in enumerate(names):
        for side, labels in zip(("truth", "results"), draw_ct(shape, 3 + number), strict=True):
            path = folder / side / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode_nifti(labels, grid))
    for chosen, (truth, results) in zip((names[:1], names), pairs, strict=True):
        root = folder / f"truth-{len(chosen)}"
        root.mkdir()
        with zipfile.ZipFile(results, "w") as archive:
            for name in chosen:
                (root / name).hardlink_to(folder / "truth" / name)
                archive.write(folder / "results" / name, name)
        run(segjudge("pack", "--layout", PROTOCOL, "--root", root, "--out", truth))
    return pairs


def _score(python: str, pair: tuple[Path, Path], env: dict[str, str], repeat: int) -> Run:
    """Score a submission several times; return the run that took the least CPU."""
    command = [python, "-c", _CODE, *map(str, pair)]
    runs = [run(command, env=env) for _ in range(repeat)]
    values = json.loads(runs[0].printed.splitlines()[-1])["test"]
    assert 0 < values["Dice"] < 1, values
    return least(runs)


def main(words: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.set_defaults(repeat=1)
    parser.add_argument("--cases", type=int, default=4, help="distinct cases that are scored")
    parser.add_argument("--set", type=int, default=300, help="cases of the set whose seconds are extrapolated")
    parser.add_argument("--scale", type=float, default=1.0, help="of each side of a volume")
    parser.add_argument("--folder", type=Path, help="keep the set here and use it again")
    parser.add_argument("--python", default=str(_WORKER if _WORKER.exists() else sys.executable), help="the worker's")
    args = parser.parse_args(words)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.folder or Path(temporary)).resolve()
        one, all_cases = _write_set(folder, args.cases, args.scale)
        for title, env in (("with the kernel", {}), ("by numpy", {"SEGJUDGE_KERNEL": "off"})):
            first, whole = (_score(args.python, pair, env, args.repeat) for pair in (one, all_cases))
            each = (whole.cpu - first.cpu) / (args.cases - 1)
            seconds = first.cpu + each * (args.set - 1)
            rows.append([
                title, f"{whole.cpu:.1f}", f"{each:.2f}", f"{whole.megabytes:.0f}", f"{seconds:.0f}",
                f"{seconds / _CORE:.0f}", "yes" if seconds < _SECONDS else "no",
            ])  # fmt: skip
    head = ["scored", f"CPU seconds of {args.cases} cases", "of a further case", "MB",
            f"of {args.set} cases, extrapolated", "seconds on EvalAI", f"within {_SECONDS} s"]  # fmt: skip
    return show(Table(head, rows))


if __name__ == "__main__":
    main()
