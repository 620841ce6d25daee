"""`segjudge run`, `build` and `schema`: the bundle that EvalAI takes."""

import argparse
import os
import shlex
import tempfile
import time
from typing import Any

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError
from segjudge.families import OPTIONAL_LAYOUTS, layout_of
from segjudge.kernel.compiling import CompileError, compile_for_worker, find_for_worker
from segjudge.platforms.evalai.bundle.agreement import board_of, check_reports
from segjudge.platforms.evalai.bundle.build import OUT, SAMPLES_FOLDER, VARIANTS, WITH_IMAGE, list_samples, takes_kernel
from segjudge.platforms.evalai.bundle.build import build as build_bundle
from segjudge.platforms.evalai.bundle.bundle_source import BundleSource, find_bundle
from segjudge.platforms.evalai.bundle.fields import SCHEMA_PATH, json_schema
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter, worker_interpreter
from segjudge.platforms.evalai.hosted_worker.worker import HostedWorker, SubmissionOutcome, hosted_worker
from segjudge.platforms.evalai.rows import is_descending
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import BuiltFile, OutputFile, written

from .check import passes
from .shared import DONE, OURS, THEIRS, bundle_options, named_bundle, program, say, say_version


def run(args: argparse.Namespace) -> int:
    """Build the bundle, check it, score every sample submission as EvalAI does, show the leaderboards."""
    source = named_bundle(args)
    say_version(source)
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        return _run(source, folder, worker_interpreter(args.python, source.root))


def _run(source: BundleSource, folder: str, python: Interpreter) -> int:
    """Build the bundle, in the folder where its own takes no files; check it, score the samples."""
    from segjudge.platforms.evalai.bundle.check import check as check_bundle

    root, dist = source.root, os.path.join(source.root, os.path.dirname(OUT))
    out = (
        "" if os.access(dist if os.path.isdir(dist) else root, os.W_OK) else os.path.join(folder, os.path.basename(OUT))
    )
    built = None if source.archive else build_bundle(root, out, lenient=True)
    bundle = built.path if built else source.archive
    size = f"({os.path.getsize(bundle) / 1e3:,.0f} kB)"
    print(f"{'Built' if built else 'Opened'} {os.path.relpath(bundle)} {size}.", flush=True)
    if not passes(check_bundle(bundle)):
        return OURS
    print("Checked: EvalAI would accept it.\n", flush=True)
    with Bundle(bundle) as opened:
        if opened.is_evaluated_elsewhere:
            print("EvalAI's worker does not score this challenge: see docs/guests.md for what does.")
            return DONE
    with hosted_worker(bundle, python, say) as worker:
        worker.load()
        failed = _score_samples(worker, root)
        log = worker.log()
    if log:
        print(f"What the worker's own log says, which no participant sees:\n{log}")
    print(_next_steps(source, [phase["codename"] for phase in worker.config["challenge_phases"]]))
    if built and not source.is_foreign:
        from segjudge.evaluation_script.masks.backend import backend

        about = f" The bundle was built {built.about_kernel()}." if built.about_kernel() else ""
        print(f"\nScored here by: {backend().about}.{about}")
    return OURS if "incident" in log else THEIRS if failed else DONE


def _score_samples(worker: HostedWorker, root: str) -> int:
    """Submit every sample to its phase and print the leaderboards; return how many failed."""
    from segjudge.platforms.evalai.bundle.trial import find_undefined_labels, find_unshown_scores
    from segjudge.report.tables import leaderboard

    number = failed = 0
    for phase in worker.config["challenge_phases"]:
        codename = phase["codename"]
        paths = list_samples(root, codename)
        if not paths:
            print(f"{codename}: no samples in {SAMPLES_FOLDER}/{codename}, so nothing was scored\n")
            continue
        boards: dict[str, dict[str, dict[str, Any]]] = {}
        outcomes: list[SubmissionOutcome] = []
        for path in paths:
            sample = os.path.basename(path)
            number += 1
            started = time.monotonic()
            outcome = worker.evaluate(phase, path, number)
            outcomes.append(outcome)
            print(f"{codename} ← {sample}: {outcome.status} in {time.monotonic() - started:.2f} s", flush=True)
            if outcome.status != "finished":
                failed += 1
                print(outcome.stderr)
            else:
                for problem in find_unshown_scores(worker.config, phase, sample, outcome):
                    print(f"{problem.severity}: {problem}")
            for split, scores in outcome.result.items():
                boards.setdefault(split, {})[sample] = scores if isinstance(scores, dict) else {}
        for problem in find_undefined_labels(codename, outcomes):
            print(f"{problem.severity}: {problem}")
        for split, rows in boards.items():
            schema, row = board_of(worker.config, phase, split)
            order = schema["default_order_by"]
            descending = is_descending(schema, order, row)
            title = f"{phase['name']} / {split}"
            print("\n" + leaderboard(title, rows, schema["labels"], order, descending=descending))
        print()
    return failed


def _next_steps(source: BundleSource, codenames: list[str]) -> str:
    phase = shlex.quote(codenames[0])
    folder = os.path.relpath(source.root)
    here = "" if folder == "." else f" (in {shlex.quote(folder)})"
    if source.is_foreign:
        return (
            f"Next{here}:\n"
            f"  your samples       examples/{phase}/FILE, which are scored here\n"
            "  everything         segjudge rehearse --seed-demo, which is EvalAI on this machine\n"
            "  upload             segjudge push, with EVALAI_TOKEN and EVALAI_HOST_TEAM set (docs/guests.md)"
        )
    us = program()
    protocol = PROTOCOLS[source.phase(codenames[0]).splits[0].protocol]
    layout = layout_of(protocol)
    subset = " --subset val" if layout in OPTIONAL_LAYOUTS[1:] else ""
    truth = f"--layout {layout} --root DATA{subset} --out annotations/NAME.zip"
    return (
        f"Next{here}:\n"
        f"  your annotations   {us} pack {truth}\n"
        f"  your challenge     edit challenge_config.yaml and evaluation_script/phases.py, then {us} run again\n"
        f"  your submission    {us} score RESULTS --phase {phase}\n"
        f"  everything         {us} rehearse --seed-demo, which is EvalAI on this machine\n"
        f"  upload             {us} push, with EVALAI_TOKEN and EVALAI_HOST_TEAM set"
    )


def build(args: argparse.Namespace) -> int:
    """Build the zip that EvalAI takes, for one of the four ways to run a challenge."""
    from segjudge.platforms.evalai.bundle.check import check_web_form

    if args.environment_image and args.variant != WITH_IMAGE:
        raise UsageError(f"--environment-image goes with --variant {WITH_IMAGE}")
    source = named_bundle(args)
    if source.archive:
        raise UsageError(f"{source.archive}: is built already; name the bundle's folder")
    say_version(source)
    if args.kernel:
        fetch_kernel(source)
    out, variant, image = args.out or "", args.variant or "", args.environment_image or ""
    built = build_bundle(source.root, out, variant, image, kernel=not args.no_kernel)
    for change in built.changes:
        say(str(change))
    if not source.is_foreign:
        with Bundle(built.path) as bundle:
            for problem in check_reports(bundle, source.phases()):
                say(str(problem))
    form = check_web_form(built.path)
    if form:
        say(f"Push it: EvalAI's web form would not take it ({form[0].subject}: {form[0].fault}).")
    print(built)
    return DONE


def fetch_kernel(source: BundleSource) -> None:
    """Compile the kernel for EvalAI's worker; its compiler is fetched the first time."""
    if not takes_kernel(source):
        raise OptionError("kernel: is for Segjudge's own scorers, and this bundle has others")
    if find_for_worker() is None:
        say("Compiling the kernel for EvalAI's worker; its compiler is fetched once (100 MB) …")
    try:
        compile_for_worker()
    except CompileError as error:
        raise HostError(f"the kernel for EvalAI's worker cannot be compiled: {error}. Go on with --no-kernel") from None


def schema(args: argparse.Namespace) -> int:
    """Write the JSON Schema of challenge_config.yaml, for editors."""
    path = args.out or os.path.join(find_bundle().root, SCHEMA_PATH)
    with written(path) as file:
        file.write(json_schema())
    print(os.path.relpath(path))
    return DONE


def run_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    bundle_options(sub)
    sub.add_argument(
        "--python", help="the interpreter that plays EvalAI's worker (default: .venv-worker, else this one)"
    )


def schema_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `schema`."""
    sub.add_argument("--out", type=OutputFile, help="the file to write (default: docs/challenge_config.schema.json)")


def build_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `build`."""
    bundle_options(sub)
    sub.add_argument("--variant", choices=VARIANTS, help="how the challenge runs (default: as the YAML says)")
    sub.add_argument("--environment-image", help="code-upload: the image of your environment, in a registry")
    sub.add_argument("--out", type=BuiltFile, help="the zip to write (default: dist/challenge_config.zip)")
    kernel_options(sub, "fetch the compiler of the kernel for EvalAI's worker, if that was not done before")


def kernel_options(sub: argparse.ArgumentParser, about: str) -> None:
    """Add `--kernel` and `--no-kernel`."""
    group = sub.add_mutually_exclusive_group()
    group.add_argument("--kernel", action="store_true", help=about)
    group.add_argument("--no-kernel", action="store_true", help="leave the compiled kernel out; numpy does its work")
