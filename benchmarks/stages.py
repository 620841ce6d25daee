"""Where the CPU seconds of one scoring go, stage by stage, and what the floor of each is.

    python -m benchmarks.stages [--set NAME] [--protocol NAME]

A zip of predictions is scored against a packed truth in this process, with a clock around the functions of each stage;
what one of them spends in another's counts there.  The floor is what cannot be done without: a Python that loads numpy,
the bytes that are inflated at libdeflate's speed on the same bytes, the bytes that are touched at the speed of a copy.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sequences import SETS, measured, write_dataset
from segjudge.evaluation_script import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.sequences import engine as sequences
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.files import archive
from segjudge.evaluation_script.masks import backend, kernel, png
from segjudge.evaluation_script.runner import tuning
from segjudge.evaluation_script.scoring import scorer
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit

#: Stages, and the functions whose time is theirs.
STAGES: dict[str, list[tuple[Any, str]]] = {
    "open": [(scorer, "read_truth"), (sequences, "SequenceSubmission")],
    "read and check": [(archive._ZipFiles, "read"), (png, "_chunks")],  # noqa: SLF001
    "inflate": [(png, "inflate_stream"), (backend, "inflate_stream")],
    "truth": [(sequence_truth, "inflate_member")],
    "rows, pack": [(kernel.PackedFrames, "add"), (kernel.PackedFrames, "take")],
    "compare": [(kernel.Kernel, "compare")],
    "average, answer": [
        (sequences, "score_objects"),
        (sequences, "SequenceReport"),
        (main, "build_answer"),
    ],
}
REST = "the rest, in Python"
COPIED = 64 << 20


class Clock:
    """CPU seconds and bytes by stage; the stage that is inside counts."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.bytes: dict[str, int] = defaultdict(int)
        self._running, self._since = [REST], time.process_time()

    def turn(self) -> None:
        now = time.process_time()
        self.seconds[self._running[-1]] += now - self._since
        self._since = now

    def around(self, stage: str, holder: Any, name: str) -> None:
        """Put the clock around a function."""
        plain = getattr(holder, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            self.turn()
            self._running.append(stage)
            try:
                value = plain(*args, **kwargs)
            finally:
                self.turn()
                self._running.pop()
            words = [one.words for one in args if hasattr(one, "words")] if stage == "compare" else []
            sides = [value] if isinstance(value, (bytes, bytearray)) else words
            self.bytes[stage] += sum(memoryview(side).nbytes for side in sides)
            return value

        setattr(holder, name, timed)


def copying() -> float:
    """Bytes a second that numpy copies."""
    source, target = np.ones(COPIED, np.uint8), np.ones(COPIED, np.uint8)
    times = []
    for _ in range(5):
        begun = time.process_time()
        np.copyto(target, source)
        times.append(time.process_time() - begun)
    return COPIED / min(times)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=SETS, default="B", help="what is scored")
    parser.add_argument("--protocol", default="vos-benchmark", help="by which protocol")
    return parser.parse_args()


def run(args: argparse.Namespace) -> None:
    phase = Phase("bench", "", (PhaseSplit("val", args.protocol, PROTOCOLS[args.protocol].metrics[:3]),))
    tuning.reuse_memory()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frames = write_dataset(folder, SETS[args.set]())
        clock = Clock()
        for stage, functions in STAGES.items():
            for holder, function in functions:
                clock.around(stage, holder, function)
        for _ in range(2):  # the first one meets memory that the system has to clear
            clock.seconds.clear()
            clock.bytes.clear()
            clock.turn()
            truths = scorer.read_truth(str(folder / "truth.zip"), args.protocol).splits
            main.score_phase(phase, truths, str(folder / "predictions.zip"), lambda _: None, 0.0)
            clock.turn()
    start = min(measured([sys.executable, "-c", "from evaluation_script import evaluate"])[0] for _ in range(3))
    numpy = min(measured([sys.executable, "-c", "import numpy"])[0] for _ in range(3))
    speed = copying()
    floors = {"inflate": clock.seconds["inflate"], "truth": clock.seconds["truth"]}
    floors["rows, pack"] = clock.bytes["inflate"] / speed
    floors["compare"] = clock.bytes["compare"] / speed
    print(f"set {args.set}, {frames} frames, {backend.backend().about}; a copy moves {speed / 1e9:.1f} GB/s\n")
    print("| stage | CPU seconds | MB | floor |\n| --- | --- | --- | --- |")
    print(f"| start | {start:.3f} | | {numpy:.3f} |")
    for stage in [*STAGES, REST]:
        size = f"{clock.bytes[stage] / 1e6:.0f}" if clock.bytes[stage] else ""
        print(f"| {stage} | {clock.seconds[stage]:.3f} | {size} | {floors.get(stage, 0.0):.3f} |")
    print(f"| all | {start + sum(clock.seconds.values()):.3f} | | {numpy + sum(floors.values()):.3f} |")


if __name__ == "__main__":
    run(parsed())
