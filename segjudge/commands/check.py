"""`segjudge check`: what EvalAI would refuse, and what goes wrong later."""

import argparse
import json
import os
import sys
import tempfile
import zipfile
from collections import Counter

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.build import VARIANTS, BuiltBundle, build_starter_zip, find_unwanted_files
from segjudge.platforms.evalai.bundle.build import build as build_bundle
from segjudge.platforms.evalai.bundle.bundle_source import BundleKind, BundleSource
from segjudge.platforms.evalai.bundle.problems import ERROR, WARNING, BundleProblem
from segjudge.platforms.evalai.bundle.server_state import ServerState, load_state
from segjudge.platforms.evalai.hosted_worker.interpreter import PINNED_PYTHON, open_interpreter, worker_interpreter

from .shared import DONE, OURS, TAKEN, bundle_options, named_bundle, say


def check(args: argparse.Namespace) -> int:
    """Check the bundle by EvalAI's rules (exit code 3), and by what goes wrong later (4)."""
    from segjudge.platforms.evalai.bundle.check import check as check_bundle
    from segjudge.platforms.evalai.bundle.check import check_web_form
    from segjudge.starting.lock import lock_problems, score_moves

    source = named_bundle(args)
    root = source.root
    built: BuiltBundle | None = None
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        path = os.path.join(folder, "challenge_config.zip")
        if args.starter:
            build_starter_zip(root, path)
        elif source.archive:
            path = source.archive
        else:
            built = build_bundle(root, path, args.variant or "", lenient=True)
        state, not_checked = _server_state(root)
        problems = check_bundle(path, state)
        if args.starter:
            if not args.json:
                _print_members(path)
            problems += find_unwanted_files(path)
        if source.kind is BundleKind.SMALL:
            problems += [*lock_problems(root), *score_moves(root)]
        if not args.quick and not has_errors(problems):
            problems += _try(source, path, args.python, not_checked)
        form = check_web_form(path)
    failed = has_errors(problems) or (args.strict and bool(problems))
    code = OURS if _is_refused(problems) else TAKEN if failed else DONE
    if args.json:
        _print_json(problems, form, not_checked, failed=failed, kernel=built.kernel if built else None)
    else:
        _print_report(problems, form, not_checked)
        if code == TAKEN and not has_errors(problems):
            print("Its warnings fail here, since --strict is on.")
        if built is not None and built.about_kernel():
            print(f"It was checked {built.about_kernel()}.")
    return code


def _print_members(path: str) -> None:
    with zipfile.ZipFile(path) as files:
        for member in sorted(files.infolist(), key=lambda member: member.filename):
            print(f"{member.file_size:>12,}  {member.filename}")


def _server_state(root: str) -> tuple[ServerState | None, list[str]]:
    """Return what the server holds, without a token after the last push from here, and what could not be checked."""
    from segjudge.platforms.evalai.bundle.push import ChallengePush, find_repository
    from segjudge.platforms.evalai.settings import read_settings, server_address

    try:
        name = find_repository("", root)
        last_push = load_state(root, server_address(), name)
    except HostError as error:
        return None, [f"what an update may not change ({error})"]
    try:
        return ChallengePush(read_settings(), name).state(last_push), []
    except HostError as error:
        unknown = [f"what the server holds ({error})"]
    if last_push is not None:
        unknown.append(f"the server itself; updates are compared with {last_push.source}, the last push from here")
    return last_push, unknown


def _try(source: BundleSource, path: str, name: str | None, not_checked: list[str]) -> list[BundleProblem]:
    """Return the problems that pip and a worker find; what cannot be tried here is added to `not_checked`."""
    from segjudge.platforms.evalai.bundle.trial import UntriedError, try_requirements, try_samples

    root, problems = source.root, list[BundleProblem]()
    python = worker_interpreter(name, root) if source.is_foreign else open_interpreter(name or sys.executable)
    trials = [try_requirements(root, path), try_samples(root, path, python)]
    if source.is_foreign and python.version == PINNED_PYTHON:
        del trials[0]  # the other one installs them, as EvalAI's worker does
    for trial in trials:
        try:
            problems += trial
        except UntriedError as reason:
            not_checked.append(str(reason))
    return problems


def _print_json(
    problems: list[BundleProblem],
    form: list[BundleProblem],
    not_checked: list[str],
    *,
    failed: bool,
    kernel: bool | None,
) -> None:
    refused = _is_refused(problems)
    document = {
        "accepted": not failed,
        "findings": [problem.as_json() for problem in problems],
        "kernel": kernel,
        "not_checked": not_checked,
        "refused": refused,
        "web_form": {"accepted": not refused and not form, "findings": [problem.as_json() for problem in form]},
    }
    print(json.dumps(document, indent=1))


def _print_report(problems: list[BundleProblem], form: list[BundleProblem], not_checked: list[str]) -> None:
    """Print problems, and one verdict: refused, taken although it would not work, or accepted."""
    print_problems(problems)
    for reason in not_checked:
        say(f"Not checked: {reason}.")
    if _is_refused(problems):
        print("EvalAI would refuse this bundle.")
        return
    ways = "by push alone" if form else "by push and by its web form"
    if has_errors(problems):
        print(f"EvalAI would take this bundle {ways}, and the challenge would not work: see the errors above.")
    else:
        print(f"EvalAI would accept this bundle, {ways}.")
    if form:
        print("Its web form would not:")
        for problem in form:
            print(f"    {_printable(problem.subject)}: {_printable(problem.fault)}. {problem.remedy}.")


def has_errors(problems: list[BundleProblem]) -> bool:
    """Return whether a problem is more than a warning."""
    return any(problem.severity == ERROR for problem in problems)


def _is_refused(problems: list[BundleProblem]) -> bool:
    return any(problem.severity == ERROR and not problem.accepted for problem in problems)


def _printable(text: str) -> str:
    """Return a text without what moves a terminal's cursor or cannot be printed."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def print_problems(problems: list[BundleProblem], platform: str = "EvalAI") -> None:
    """Print problems with the location first, as compilers do, and the platform's words; errors before warnings."""
    for problem in sorted(problems, key=lambda problem: problem.severity != ERROR):
        location = f"{problem.location}: " if problem.location else ""
        text = f"{location}{problem.severity}: {problem.subject}: {problem.fault}\n    {problem.remedy}."
        print(_printable(text))
        if problem.quote:
            for line in _printable(problem.server_message).strip().splitlines():
                print(f"    {platform}: {line.strip()}")
    counts = Counter(problem.severity for problem in problems)
    if problems:
        words = [f"{counts[kind]} {kind}{'s' if counts[kind] > 1 else ''}" for kind in (ERROR, WARNING) if counts[kind]]
        print(f"\n{' and '.join(words)}.")


def passes(problems: list[BundleProblem], platform: str = "EvalAI") -> bool:
    """Print problems, and return whether none is more than a warning."""
    print_problems(problems, platform)
    return not has_errors(problems)


def check_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `check`."""
    bundle_options(sub)
    sub.add_argument("--variant", choices=VARIANTS, help="check the bundle that build makes with it")
    sub.add_argument("--starter", action="store_true", help="check what EvalAI's own starter would upload, and list it")
    sub.add_argument("--strict", action="store_true", help="warnings fail too, for CI")
    sub.add_argument("--quick", action="store_true", help="do not ask pip, do not score the samples")
    sub.add_argument("--json", action="store_true", help="print problems for a program")
    sub.add_argument("--python", help="the interpreter that plays EvalAI's worker (default: this one)")
