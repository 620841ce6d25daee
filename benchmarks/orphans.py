"""Score submissions of real size to closed benchmarks within the limits of EvalAI and Codabench.

    python -m benchmarks.orphans [PROTOCOL …] [--scale 1] [--folder FOLDER]

Truths and submissions are generated with the counts of the real ones: of COCO test-dev 20,288 images and 100 detections
of each.  Shapes repeat, counts do not.  Each submission is scored by `evaluate()` as a worker calls it, with its guard of
640 MiB, by one process.  EvalAI gives half a core and 1 GiB, so seconds there are twice the CPU seconds; Codabench's public
queue stops us after 480.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.families import Orphan, merge_rows, select
from benchmarks.measuring import Table, options, run, segjudge, show

#: What Codabench's public queue allows, in seconds, and which share of a core EvalAI gives.
_SECONDS, _CORE = 480, 0.5

#: What a worker does: one call of `evaluate()` with a phase that takes so many records and bytes.
CODE = """
import json, sys
from dataclasses import replace
from segjudge.evaluation_script import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files import INSTANCE_LIMITS, UNIT_LIMITS, ArchiveLimits
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
truth, upload, name, limits = sys.argv[1:]
limits = {"INSTANCE": INSTANCE_LIMITS, "UNIT": UNIT_LIMITS, "SEQUENCE": ArchiveLimits()}[limits]
if limits != ArchiveLimits():
    limits = replace(limits, records=8_000_000, json_bytes=4 << 30)
metrics = PROTOCOLS[name].metrics
main.PHASES = (Phase("test-dev", "truth.zip", (PhaseSplit("test-dev", name, metrics),), limits=limits),)
print(json.dumps(main.evaluate(truth, upload, "test-dev")["result"][0]))
"""

ORPHANS: dict[str, Orphan] = merge_rows("ORPHANS")


def _measure(orphan: Orphan, folder: Path, scale: float) -> list[str]:
    """Write, pack and score a set; return its row of the table."""
    count = max(2, round(orphan.count * scale))
    folder.mkdir(parents=True, exist_ok=True)
    results, truth = folder / "results.zip", folder / "packed.zip"
    if not truth.exists():
        orphan.write(folder, np.random.default_rng(2017), count)
        root = folder / ("truth" if orphan.limits == "SEQUENCE" else "truth.json")
        run(segjudge("pack", "--layout", orphan.layout, "--root", root, "--out", truth))
        if not results.exists():
            _zip(folder, results)
    scored = run([sys.executable, "-c", CODE, str(truth), str(results), orphan.protocol, orphan.limits])
    values = json.loads(scored.printed.splitlines()[-1])["test-dev"]
    seconds = scored.cpu / _CORE
    return [
        f"`{orphan.protocol}`", orphan.about, f"{count:,}", f"{results.stat().st_size / 1e6:,.0f}", f"{scored.cpu:.0f}",
        f"{scored.megabytes:.0f}", f"{seconds:.0f}", "yes" if scored.cpu < _SECONDS else "no",
        f"{next(iter(values.values())):.3f}",
    ]  # fmt: skip


def _zip(folder: Path, out: Path) -> None:
    """Pack the submission as a participant would."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        if (folder / "results.json").exists():
            archive.write(folder / "results.json", "results.json")
            return
        for path in sorted((folder / "results").rglob("*")):
            archive.write(path, path.relative_to(folder / "results"))


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument(
        "protocols", nargs="*", metavar="PROTOCOL", help=f"of {', '.join(ORPHANS)}, or a table of the docs"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the images")
    parser.add_argument("--folder", type=Path, help="keep the sets here and use them again")
    args = parser.parse_args(arguments)
    head = ["protocol", "submission", "images or videos", "MB sent", "CPU seconds", "MB of memory", "seconds on EvalAI",
            "within 480 s", "score"]  # fmt: skip
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.folder or Path(temporary)).resolve()
        rows = [_measure(ORPHANS[name], folder / name, args.scale) for name in select(ORPHANS, args.protocols)]
    return show(Table(head, rows))


if __name__ == "__main__":
    main()
