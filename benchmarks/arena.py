"""What gRPC costs: the optical-flow agent and its environment in two processes, beside both in one.

    python -m benchmarks.arena [--repeat N]

Wall time and CPU (user and system, of all processes, start-up included), in turns; the best of N counts.  The frames are
the real ones where SEGJUDGE_SHARED has them, else synthetic ones.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from segjudge.code_upload import arena
from segjudge.code_upload.environments import VIDEO
from segjudge.datasets.opening import TruthSource, pack
from segjudge.interactive.other_datasets import make_demo_scenes, write_demo_root
from segjudge.system import sandbox
from tests.builders import ROOT
from tests.data import SEQUENCES
from tests.interactive.test_interactive_commands import real_root

AGENT = ROOT / "code_upload_challenge_evaluation/agent/optical_flow.py"

ONE_PROCESS = """
import json, sys
from code_upload_challenge_evaluation.agent.optical_flow import OpticalFlow
from segjudge.code_upload.environments.tasks import make_task, read_picture
from segjudge.masks.run_lengths import decode_labels

task = make_task(sys.argv[1], {"truth": sys.argv[2], "frames": sys.argv[3]})
shown = task.begin()
while not shown.done:
    frame, first = read_picture(shown.values["frame"]), shown.values["first_mask"]
    first = decode_labels(first.objects.items(), first.size)
    if shown.values["new_sequence"]:
        agent = OpticalFlow(frame, first)
    shown = task.act(agent.segment(frame, first))
print(json.dumps(task.result()))
"""


def spent(call: Callable[[], object]) -> tuple[float, float, object]:
    """Seconds on the wall, seconds of CPU, and what came of it."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    found = call()
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - start
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, found


def main(repeat: int) -> None:
    sandbox.find_sandbox = lambda **_: None  # whose children's CPU is not told to us
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if SEQUENCES.is_dir():
            root = real_root(folder / "root")
        else:
            root = folder / "root"
            write_demo_root(root, make_demo_scenes(), sets=0)
        truth = str(folder / "truth.zip")
        pack(TruthSource(str(root), "davis2017", "val"), truth, split="test")
        words = ["--env", VIDEO, "--option", f"truth={truth}", "--option", f"frames={root}"]

        def together() -> object:
            command = [sys.executable, "-c", ONE_PROCESS, VIDEO, truth, str(root)]
            return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)

        def apart() -> object:
            ended = arena.duel(arena.find_agent([str(AGENT)]), words, sandbox.ProcessLimits())
            assert ended.result is not None, ended.log
            return ended.result["result"]

        best = {"together": (9e9, 9e9), "apart": (9e9, 9e9)}
        for _ in range(repeat):
            for name, call in (("together", together), ("apart", apart)):
                wall, cpu, result = spent(call)
                best[name] = (min(best[name][0], wall), min(best[name][1], cpu))
                best.setdefault("result", result)  # type: ignore[arg-type]
                assert result == best["result"], "the scores differ"
    (wall, cpu), (wall2, cpu2) = best["together"], best["apart"]
    print(f"one process {wall:.2f} s, {cpu:.2f} s of CPU; over gRPC {wall2:.2f} s, {cpu2:.2f} s of CPU: "
          f"ratio {wall2 / wall:.2f} and {cpu2 / cpu:.2f}; the same scores to the last digit")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=3)
    main(parser.parse_args().repeat)
