"""`segjudge arena`: code upload on this machine, without containers."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from dataclasses import dataclass
from typing import NoReturn

from segjudge.evaluation_script.files.problems import HostError, Problem, SubmissionError
from segjudge.system.errors import UsageError
from segjudge.system.extras import require_extra
from segjudge.system.files import OutputFile, open_output
from segjudge.system.options import whole_number
from segjudge.system.sandbox import MEMORY, PROCESSES, ProcessLimits

from .parser import CommandParser
from .shared import (
    DONE,
    OUTPUT,
    Command,
    InputPath,
    add_bundle_options,
    choose_bundle,
    read_options,
    say,
    seconds,
)

#: The groups of options in the help.
_ENVIRONMENT, _STATIC, _LIMITS = "environment", "static code upload", "limits"


@dataclass(frozen=True)
class _Options:
    """The agent, its environment, and their limits."""

    agent: list[str]
    bundle: str
    env: str
    truth: str | None
    frames: str | None
    sequence: str | None
    phase: str | None
    option: list[str]
    episodes: int
    seed: int
    data: str | None
    look_every: float
    result: str | None


def _run(args: argparse.Namespace) -> int:
    import signal

    from segjudge.system import sandbox
    from segjudge.system.bounds import missing_bounds

    options = read_options(_Options, args)
    if not args.static:
        if not options.agent:
            raise UsageError("name the agent: a Python file, or a command after --")
        require_extra("agents", "arena", "arena")
    limits = ProcessLimits(args.seconds, args.memory << 20, args.require_sandbox, args.processes)
    for sentence in missing_bounds(sandbox.find_sandbox(required=args.require_sandbox)):
        say(sentence)
    for number in (signal.SIGTERM, signal.SIGHUP):  # both sides end with this process
        signal.signal(number, _interrupt)
    return _run_static(options, limits) if args.static else _run_duel(options, limits)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _run_duel(options: _Options, limits: ProcessLimits) -> int:
    from segjudge.code_upload.arena import duel, find_agent

    environment = ["--env", options.env]
    values: dict[str, str | None] = {
        "truth": options.truth, "frames": options.frames, "sequence": options.sequence, "phase": options.phase,
    }  # fmt: skip
    if options.phase and options.env.startswith("segjudge/Video"):
        source = choose_bundle(options.bundle)
        source.phase(options.phase)  # rejected here instead of by the environment
        values["bundle"] = source.archive or source.root
    for name, value in values.items():
        if value is not None:
            path = os.path.abspath(value) if name in ("truth", "frames") else value
            environment += ["--option", f"{name}={json.dumps(path)}"]
    for pair in options.option:
        environment += ["--option", pair]
    environment += ["--episodes", str(options.episodes), "--seed", str(options.seed)]
    hidden = [path for path in (options.truth, options.frames) if path and os.path.exists(path)]
    ended = duel(find_agent(options.agent), environment, limits, hidden=hidden)
    if ended.result is None:
        raise HostError(f"the environment ended with code {ended.code} and no result; its output is above")
    if options.result:
        with open_output(options.result) as file:
            json.dump(ended.result, file, indent=2)
    if ended.result["result"] is None:
        _show_log(ended.log)
        raise SubmissionError.from_problem(
            Problem(" ".join(options.agent), ended.result["message"].rstrip("."), "Fix the agent")
        )
    _print_scores(ended.result["result"])
    steps, seconds_per_step = ended.result["metadata"]["steps"], ended.result["metadata"]["seconds_per_step"]
    median, longest = seconds_per_step["median"], seconds_per_step["most"]
    print(f"{steps} steps, {median:.3f} s per step (median), {longest:.3f} s at most")
    return DONE


def _run_static(options: _Options, limits: ProcessLimits) -> int:
    from segjudge.code_upload.arena import SubmissionFileError, find_agent, run_static
    from segjudge.evaluation_script.main import evaluate_phase

    if not options.agent or not options.data or not options.phase:
        raise UsageError("--static needs --data FOLDER, --phase CODENAME and a command after --")
    source = choose_bundle(options.bundle)
    phase = source.phase(options.phase)
    annotations = options.truth or os.path.join(source.root, phase.annotations)
    import shutil
    import tempfile

    submissions: list[str] = []
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:

        def keep(path: str) -> None:
            """Copy a submission out of the command's folder, which is removed with it."""
            submissions.append(shutil.copy(path, folder))

        try:
            ended = run_static(find_agent(options.agent), options.data, limits, options.look_every, keep, [annotations])
        except SubmissionFileError as error:
            raise SubmissionError.from_problem(
                Problem(shlex.join(options.agent), str(error), "Write a plain file")
            ) from None
        if not submissions:
            _show_log(ended.log)
            fault = f"ended with code {ended.code} and wrote no submission.csv or submission.json"
            if not (ended.result or {})["early"]:
                fault = f"wrote no submission.csv or submission.json within {limits.seconds:.0f} seconds"
            raise SubmissionError.from_problem(
                Problem(shlex.join(options.agent), fault, "Write it into the folder SUBMISSION_PATH")
            )
        if (ended.result or {})["early"]:
            say("The command ended before the platform looked for its file and may fail there: wait for completed.txt.")
        answer = evaluate_phase(phase, annotations, submissions[0])
    if options.result:
        with open_output(options.result) as file:
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
