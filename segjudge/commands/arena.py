"""`segjudge arena`: code upload on this machine, without containers."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from typing import NoReturn

from segjudge.evaluation_script.files.problems import HostError, Problem, SubmissionError
from segjudge.system.errors import UsageError
from segjudge.system.extras import require_extra
from segjudge.system.files import OutputFile, open_output
from segjudge.system.options import whole_number
from segjudge.system.sandbox import MEMORY, PROCESSES, ProcessLimits

from .parser import CommandParser
from .shared import DONE, OUTPUT, Command, InputPath, add_bundle_options, choose_bundle, say, seconds

#: The groups of options in the help.
_ENVIRONMENT, _STATIC, _LIMITS = "environment", "static code upload", "limits"


def _run(args: argparse.Namespace) -> int:
    import signal

    from segjudge.system import sandbox
    from segjudge.system.bounds import missing_bounds

    if not args.static:
        if not args.agent:
            raise UsageError("name the agent: a Python file, or a command after --")
        require_extra("agents", "arena", "arena")
    limits = ProcessLimits(args.seconds, args.memory << 20, args.require_sandbox, args.processes)
    for sentence in missing_bounds(sandbox.find_sandbox(required=args.require_sandbox)):
        say(sentence)
    for number in (signal.SIGTERM, signal.SIGHUP):  # both sides end with this process
        signal.signal(number, _interrupt)
    return _run_static(args, limits) if args.static else _run_duel(args, limits)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _run_duel(args: argparse.Namespace, limits: ProcessLimits) -> int:
    from segjudge.code_upload.arena import duel, find_agent

    environment = ["--env", args.env]
    values: dict[str, str | None] = {
        "truth": args.truth, "frames": args.frames, "sequence": args.sequence, "phase": args.phase,
    }  # fmt: skip
    if args.phase and args.env.startswith("segjudge/Video"):
        source = choose_bundle(args.bundle)
        source.phase(args.phase)  # rejected here instead of by the environment
        values["bundle"] = source.archive or source.root
    for name, value in values.items():
        if value is not None:
            path = os.path.abspath(value) if name in ("truth", "frames") else value
            environment += ["--option", f"{name}={json.dumps(path)}"]
    for pair in args.option:
        environment += ["--option", pair]
    environment += ["--episodes", str(args.episodes), "--seed", str(args.seed)]
    hidden = [path for path in (args.truth, args.frames) if path and os.path.exists(path)]
    ended = duel(find_agent(args.agent), environment, limits, hidden=hidden)
    if ended.result is None:
        raise HostError(f"the environment ended with code {ended.code} and no result; its output is above")
    if args.result:
        with open_output(args.result) as file:
            json.dump(ended.result, file, indent=2)
    if ended.result["result"] is None:
        _show_log(ended.log)
        raise SubmissionError.from_problem(
            Problem(" ".join(args.agent), ended.result["message"].rstrip("."), "Fix the agent")
        )
    _print_scores(ended.result["result"])
    steps, seconds_per_step = ended.result["metadata"]["steps"], ended.result["metadata"]["seconds_per_step"]
    median, longest = seconds_per_step["median"], seconds_per_step["most"]
    print(f"{steps} steps, {median:.3f} s per step (median), {longest:.3f} s at most")
    return DONE


def _run_static(args: argparse.Namespace, limits: ProcessLimits) -> int:
    from segjudge.code_upload.arena import SubmissionFileError, find_agent, run_static
    from segjudge.evaluation_script.main import evaluate_phase

    if not args.agent or not args.data or not args.phase:
        raise UsageError("--static needs --data FOLDER, --phase CODENAME and a command after --")
    source = choose_bundle(args.bundle)
    phase = source.phase(args.phase)
    annotations = args.truth or os.path.join(source.root, phase.annotations)
    import shutil
    import tempfile

    submissions: list[str] = []
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:

        def keep(path: str) -> None:
            """Copy a submission out of the command's folder, which is removed with it."""
            submissions.append(shutil.copy(path, folder))

        try:
            ended = run_static(find_agent(args.agent), args.data, limits, args.look_every, keep, [annotations])
        except SubmissionFileError as error:
            raise SubmissionError.from_problem(
                Problem(shlex.join(args.agent), str(error), "Write a plain file")
            ) from None
        if not submissions:
            _show_log(ended.log)
            fault = f"ended with code {ended.code} and wrote no submission.csv or submission.json"
            if not (ended.result or {})["early"]:
                fault = f"wrote no submission.csv or submission.json within {limits.seconds:.0f} seconds"
            raise SubmissionError.from_problem(
                Problem(shlex.join(args.agent), fault, "Write it into the folder SUBMISSION_PATH")
            )
        if (ended.result or {})["early"]:
            say("The command ended before the platform looked for its file and may fail there: wait for completed.txt.")
        answer = evaluate_phase(phase, annotations, submissions[0])
    if args.result:
        with open_output(args.result) as file:
            json.dump(answer, file, indent=2)
    _print_scores(answer["result"])
    return DONE


def _show_log(log: str) -> None:
    if log.strip():
        say(log.rstrip())


def _print_scores(result: list[dict[str, dict[str, float]]]) -> None:
    for entry in result:
        for split, metrics in entry.items():
            print(split)
            width = max([10, *map(len, metrics)])
            for name, value in metrics.items():
                print(f"  {name:<{width}} {value:.4f}")


def _add_options(sub: CommandParser) -> None:
    about = "the agent: a Python file, or a command and its arguments after --"
    sub.add_argument("agent", nargs="*", metavar="AGENT", help=about)
    sub.arrange_groups(_ENVIRONMENT, OUTPUT, _STATIC, _LIMITS)
    add = sub.options_of(_ENVIRONMENT)
    about = "a registered Gymnasium environment (default: %(default)s)"
    add("--env", metavar="ID", default="segjudge/VideoObjectSegmentation-v0", help=about)
    about = "the truth for Segjudge's own environments: a dataset or a packed annotation file"
    add("--truth", metavar="PATH", type=InputPath, help=about)
    add("--frames", metavar="DIR", type=InputPath, help="the folder of pictures (default: beside the masks)")
    add("--sequence", metavar="NAME", help="run only this sequence")
    add("--phase", metavar="CODENAME", help="score as this phase of the challenge")
    add("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the environment; repeatable")
    about = "number of episodes, if the environment only gives rewards (default: 1)"
    add("--episodes", metavar="N", type=whole_number(1, 10_000), default=1, help=about)
    add("--seed", metavar="N", type=int, default=0, help="the seed of the first episode (default: 0)")
    sub.options_of(OUTPUT)("--result", metavar="FILE", type=OutputFile, help="write the result as JSON")
    add = sub.options_of(_STATIC)
    add("--static", action="store_true", help="run static code upload: the command writes submission.json")
    add("--data", metavar="DIR", type=InputPath, help="the folder that the platform mounts at /dataset")
    about = "how often, in seconds, the platform looks for submission.json (default: 1; EvalAI: 300)"
    add("--look-every", type=seconds, default=1.0, metavar="SECONDS", help=about)
    add = sub.options_of(_LIMITS)
    about = "time limit of the whole run (default: 3600)"
    add("--seconds", metavar="SECONDS", type=seconds, default=ProcessLimits.seconds, help=about)
    about = "memory of the agent and all its processes (default: %(default)s)"
    add("--memory", type=whole_number(64, 1 << 20), default=MEMORY >> 20, metavar="MB", help=about)
    about = "number of processes and threads of the agent (default: %(default)s)"
    add("--processes", metavar="N", type=whole_number(1, 1 << 20), default=PROCESSES, help=about)
    add("--require-sandbox", action="store_true", help="refuse to run without a working sandbox (bwrap)")
    add_bundle_options(sub, positional=False)


COMMANDS = {"arena": Command(_add_options, _run, "segjudge arena agent.py --truth truth.zip")}
