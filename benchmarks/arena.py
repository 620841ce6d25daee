"""Compare an agent and its environment in two processes over gRPC with both in one process.

    python -m benchmarks.arena [--repeat N] [--synthetic]

The frames are the real ones where SEGJUDGE_SHARED has them, else or if wanted synthetic ones.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import Table, Task, cost_rows, options, show, take_turns
from segjudge.code_upload.environments import VIDEO
from segjudge.families.truths import TruthSource, pack
from segjudge.interactive.mask_datasets import make_demo_scenes, write_demo_root
from tests.data import ROOT, SEQUENCES
from tests.interactive.test_interactive_commands import real_root

AGENT = ROOT / "examples/agents/optical_flow.py"

ONE_PROCESS = """
import json, sys
sys.path.insert(0, "examples/agents")
from optical_flow import OpticalFlow
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
print(json.dumps(task.result(), sort_keys=True))
"""

#: Without a sandbox, whose children's CPU is not told to us.
TWO_PROCESSES = """
import json, sys
from segjudge.code_upload import arena
from segjudge.system import sandbox

sandbox.find_sandbox = lambda **_: None
words = ["--env", sys.argv[1], "--option", f"truth={sys.argv[2]}", "--option", f"frames={sys.argv[3]}"]
ended = arena.duel(arena.find_agent([sys.argv[4]]), words, sandbox.ProcessLimits())
print(json.dumps(ended.result["result"], sort_keys=True))
"""


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("--synthetic", action="store_true", help="use the small synthetic frames")
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if SEQUENCES.is_dir() and not args.synthetic:
            root = real_root(folder / "root")
        else:
            root = folder / "root"
            write_demo_root(root, make_demo_scenes(), sets=0)
        truth = str(folder / "truth.zip")
        pack(TruthSource(str(root), "davis2017", "val"), truth, split="test")
        given = [VIDEO, truth, str(root), str(AGENT)]
        codes = {"in one process": ONE_PROCESS, "over gRPC": TWO_PROCESSES}
        runs = take_turns(
            {name: Task([sys.executable, "-c", code, *given]) for name, code in codes.items()}, args.repeat
        )
    if len({run.printed.splitlines()[-1] for known in runs.values() for run in known}) > 1:
        raise SystemExit("the scores differ")
    return show(Table(["agent and environment", "CPU seconds", "MB", "times"], cost_rows(runs, "in one process")))


if __name__ == "__main__":
    main()
