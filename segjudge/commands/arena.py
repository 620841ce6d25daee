"""`segjudge arena`: code upload on this machine, without containers."""

import argparse
import json
import os
import shlex
import shutil
import signal
import tempfile

from segjudge.evaluation_script.files.problems import HostError, Problem, SubmissionError
from segjudge.system import sandbox
from segjudge.system.bounds import missing_bounds
from segjudge.system.errors import UsageError
from segjudge.system.files import OutputFile, written
from segjudge.system.sandbox import MEMORY, PROCESSES, ProcessLimits

from .shared import DONE, bundle_options, named_bundle, say, seconds, whole_number


def arena(args: argparse.Namespace) -> int:
    """Run an agent against an environment, or with --static a command that writes a submission, without containers."""
    limits = ProcessLimits(args.seconds, args.memory << 20, args.require_sandbox, args.processes)
    for sentence in missing_bounds(sandbox.find_sandbox(required=args.require_sandbox)):
        say(sentence)
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that both sides end with this process
        signal.signal(number, _interrupted)
    return _static(args, limits) if args.static else _duel(args, limits)


def _interrupted(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _duel(args: argparse.Namespace, limits: ProcessLimits) -> int:
    from segjudge.code_upload.arena import duel, find_agent

    if not args.agent:
        raise UsageError("name the agent: a file of Python, or a command after --")
    environment = ["--env", args.env]
    options = {"truth": args.truth, "frames": args.frames, "sequence": args.sequence, "phase": args.phase}
    if args.phase and args.env.startswith("segjudge/Video"):
        source = named_bundle(args)
        source.phase(args.phase)  # refused here, and not by the environment
        options["bundle"] = source.archive or source.root
    for name, value in options.items():
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
        with written(args.result) as file:
            json.dump(ended.result, file, indent=2)
    if ended.result["result"] is None:
        _show_log(ended.log)
        raise SubmissionError.of(Problem(" ".join(args.agent), ended.result["message"].rstrip("."), "Fix the agent"))
    _print_scores(ended.result["result"])
    steps, seconds_per_step = ended.result["metadata"]["steps"], ended.result["metadata"]["seconds_per_step"]
    median, most = seconds_per_step["median"], seconds_per_step["most"]
    print(f"{steps} steps, {median:.3f} s for a step (median), {most:.3f} s at most")
    return DONE


def _static(args: argparse.Namespace, limits: ProcessLimits) -> int:
    from segjudge.code_upload.arena import SubmissionFileError, find_agent, run_static
    from segjudge.evaluation_script.main import evaluate_phase

    if not args.agent or not args.data or not args.phase:
        raise UsageError("--static needs --data FOLDER, --phase CODENAME and a command after --")
    source = named_bundle(args)
    phase = source.phase(args.phase)
    annotations = args.truth or os.path.join(source.root, phase.annotations)
    submissions: list[str] = []
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:

        def keep(path: str) -> None:
            """Copy a submission out of the command's folder, which is removed with it."""
            submissions.append(shutil.copy(path, folder))

        try:
            ended = run_static(find_agent(args.agent), args.data, limits, args.look_every, keep, [annotations])
        except SubmissionFileError as error:
            raise SubmissionError.of(Problem(shlex.join(args.agent), str(error), "Write a plain file")) from None
        if not submissions:
            _show_log(ended.log)
            found = f"ended with code {ended.code} and wrote no submission.csv or submission.json"
            if not (ended.result or {})["early"]:
                found = f"wrote no submission.csv or submission.json within {limits.seconds:.0f} seconds"
            raise SubmissionError.of(Problem(shlex.join(args.agent), found, "Write it into the folder SUBMISSION_PATH"))
        if (ended.result or {})["early"]:
            say("The command ended before the platform looked, which may fail it there: wait for completed.txt.")
        answer = evaluate_phase(phase, annotations, submissions[0])
    if args.result:
        with written(args.result) as file:
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
            for name, value in metrics.items():
                print(f"  {name:<10} {value:.4f}")


def arena_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `arena`."""
    add = sub.add_argument
    add("agent", nargs="*", metavar="AGENT", help="a file of Python or a command, with its words (after --)")
    bundle_options(sub, positional=False)
    add("--env", default="segjudge/VideoObjectSegmentation-v0", help="a registered Gymnasium environment")
    add("--truth", help="packed annotation file or dataset, for our environments")
    add("--frames", help="where the pictures are (default: beside the masks)")
    add("--sequence", help="run only this sequence")
    add("--phase", help="scored as this phase of the challenge")
    add("--option", action="append", default=[], metavar="NAME=VALUE", help="of the environment")
    add("--episodes", type=whole_number(1, 10_000), default=1, help="of an environment with rewards alone")
    add("--seed", type=int, default=0, help="of the first episode")
    add("--static", action="store_true", help="static code upload: the command writes submission.json")
    add("--data", help="with --static: the folder that the platform mounts at /dataset")
    add("--look-every", type=seconds, default=1.0, metavar="SECONDS", help="with --static (1; EvalAI: 300)")
    add("--seconds", type=seconds, default=ProcessLimits.seconds, help="for everything (3600)")
    add(
        "--memory",
        type=whole_number(64, 1 << 20),
        default=MEMORY >> 20,
        metavar="MB",
        help="of the agent, all of its processes together",
    )
    add("--processes", type=whole_number(1, 1 << 20), default=PROCESSES, help="of the agent, threads included")
    add("--require-sandbox", action="store_true", help="refuse to run where bwrap does not work")
    add("--result", type=OutputFile, help="file for the result, as JSON")
