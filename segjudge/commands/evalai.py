"""`segjudge run`, `build`, `check`, `push` and `schema`: the bundle for EvalAI."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import zipfile
from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.build import VARIANTS, WITH_IMAGE
from segjudge.platforms.rules.problems import ERROR, WARNING, BundleProblem
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import BuiltFile, OutputFile, open_output

from .parser import CommandParser, program
from .shared import (
    DONE,
    OURS,
    OUTPUT,
    RARELY,
    TAKEN,
    THEIRS,
    WIDTH,
    Command,
    add_bundle_options,
    choose_bundle,
    look,
    say,
    say_version,
)

if TYPE_CHECKING:
    from segjudge.platforms.evalai.bundle.bundle_source import BundleSource
    from segjudge.platforms.evalai.bundle.push import ChallengePush, PushedChallenge
    from segjudge.platforms.evalai.bundle.server_state import ServerState
    from segjudge.platforms.evalai.bundle.trial import HostedWorker, SubmissionOutcome
    from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter

# ── run ─────────────────────────────────────────────────────────────────────


def _run(args: argparse.Namespace) -> int:
    from segjudge.archive.event import is_event, open_event
    from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter

    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        archive = args.bundle or args.path
        if archive and is_event(archive):
            from segjudge.archive.frozen_boards import copy_bundle

            with open_event(archive) as event:
                source = copy_bundle(event, os.path.join(folder, "bundle"))
        else:
            archive, source = "", choose_bundle(args.bundle, args.path)
        say_version(source)
        return _run_bundle(source, folder, Interpreter.for_worker(args.python, source.root), archive)


class _RefusedError(Exception):
    """Raised for a bundle with errors, which are printed."""


def _run_bundle(source: BundleSource, folder: str, python: Interpreter, archive: str) -> int:
    """Check and build the bundle (in `folder` if its own is read-only), score the samples; `archive` held it."""
    from segjudge.platforms.evalai.bundle.build import OUT, build
    from segjudge.platforms.evalai.bundle.check import check
    from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
    from segjudge.platforms.evalai.bundle.trial import open_hosted_worker

    root, dist = source.root, os.path.join(source.root, os.path.dirname(OUT))
    writable = os.access(dist if os.path.isdir(dist) else root, os.W_OK)
    out = "" if writable else os.path.join(folder, os.path.basename(OUT))

    def require_faultless(path: str) -> None:
        if not _passes_whole(check(path), path):
            raise _RefusedError

    try:
        built = None if source.archive else build(root, out, lenient=True, inspect=require_faultless)
        if built is None:
            require_faultless(source.archive)
    except _RefusedError:
        return OURS
    bundle = built.path if built else source.archive
    size = f"({os.path.getsize(bundle) / 1e3:,.0f} kB)"
    opened_name = f"the challenge of {archive}" if archive else os.path.relpath(bundle)
    print(f"{'Built' if built else 'Opened'} {opened_name} {size}.", flush=True)
    print("Checked: EvalAI would accept it.\n", flush=True)
    with Bundle(bundle) as opened:
        if opened.is_evaluated_elsewhere:
            print("EvalAI's worker does not score this challenge: see docs/guests.md for what does.")
            return DONE
    with open_hosted_worker(bundle, python, say) as worker:
        worker.load()
        failed = _score_samples(worker, root)
        log = worker.log()
    if log:
        print(f"The worker's own log, which participants never see:\n{log}")
    if archive:
        print(f"The challenge is in {archive}, in the folder bundle/; the samples are the first of its leaderboards.")
    else:
        print(_describe_next_steps(source, worker.config["challenge_phases"][0]["codename"]))
    if built and not source.is_foreign:
        from segjudge.evaluation_script.masks.backend import backend

        print(f"\nScored here by: {backend().about}." + built.describe_kernel().replace(" ", "\n", 1))
    return OURS if "incident" in log else THEIRS if failed else DONE


def _score_samples(worker: HostedWorker, root: str) -> int:
    """Score every sample in its phase and print the leaderboards; return the number of failures."""
    from segjudge.platforms.evalai.bundle.build import SAMPLES_FOLDER, list_samples
    from segjudge.platforms.evalai.bundle.phase_splits import splits_of
    from segjudge.platforms.evalai.bundle.secrecy import find_hidden_splits
    from segjudge.platforms.evalai.bundle.trial import find_undefined_labels, find_unshown_scores
    from segjudge.report.tables import format_leaderboard

    number, failed, shown = 0, 0, look(otherwise=WIDTH)
    for phase in sorted(worker.config["challenge_phases"], key=itemgetter("id")):
        codename = phase["codename"]
        hidden = find_hidden_splits(worker.config, str(codename))
        paths = list_samples(root, codename)
        if not paths:
            print(f"{codename}: no samples in {SAMPLES_FOLDER}/{codename}, so nothing was scored\n")
            continue
        boards: dict[str, dict[str, dict[str, Any]]] = {}
        outcomes: list[SubmissionOutcome] = []
        for path in paths:
            number += 1
            sample, outcome = os.path.basename(path), _score_sample(worker, phase, path, number)
            outcomes.append(outcome)
            if outcome.status != "finished":
                failed += 1
            else:
                for problem in find_unshown_scores(worker.config, phase, sample, outcome):
                    print(f"{problem.severity}: {problem}")
            for split, scores in outcome.result.items():
                boards.setdefault(split, {})[sample] = scores if isinstance(scores, dict) else {}
        for problem in find_undefined_labels(codename, outcomes):
            print(f"{problem.severity}: {problem}")
        for split, rows in boards.items():
            board = next(mapped for mapped in splits_of(worker.config, phase) if mapped.codename == split)
            order, labels = board.schema["default_order_by"], board.schema["labels"]
            about = ", hidden from participants" if split in hidden else ""
            title, descending = f"{phase['name']} / {split}{about}", board.is_descending(order)
            print("\n" + format_leaderboard(title, rows, labels, order, descending=descending, look=shown))
        print()
    return failed


def _score_sample(worker: HostedWorker, phase: dict[str, Any], path: str, number: int) -> SubmissionOutcome:
    """Score a sample and print its outcome."""
    import time

    started = time.monotonic()
    outcome = worker.evaluate(phase, path, number)
    seconds = time.monotonic() - started
    print(f"{phase['codename']} ← {os.path.basename(path)}: {outcome.status} in {seconds:.2f} s", flush=True)
    if outcome.status != "finished":
        print(outcome.stderr)
    return outcome


def _describe_next_steps(source: BundleSource, codename: str) -> str:
    import shlex

    from segjudge.evaluation_script.families import PROTOCOLS
    from segjudge.families import OPTIONAL_LAYOUTS, layout_of

    phase, folder = shlex.quote(codename), os.path.relpath(source.root)
    folder_hint = "" if folder == "." else f" (in {shlex.quote(folder)})"
    if source.is_foreign:
        return (
            f"Next{folder_hint}:\n"
            f"  your samples       examples/{phase}/FILE, which are scored here\n"
            "  everything         segjudge rehearse --seed-demo: EvalAI on this machine\n"
            "  upload             segjudge push, with EVALAI_TOKEN and EVALAI_HOST_TEAM set (docs/guests.md)"
        )
    us = program(folder)
    protocol = source.phase(codename).splits[0].protocol
    layout = layout_of(PROTOCOLS[protocol]) if protocol in PROTOCOLS else "LAYOUT"  # a plug-in may be only in the zip
    subset = " --subset val" if layout in list(OPTIONAL_LAYOUTS)[1:] else ""
    truth = f"--root DATA{subset} --out annotations/NAME.zip"
    return (
        f"Next{folder_hint}:\n"
        f"  your annotations   {us} pack --layout {layout} \\\n"
        f"                       {truth}\n"
        "  your challenge     edit challenge_config.yaml and evaluation_script/phases.py,\n"
        f"                     then {us} run again\n"
        f"  your submission    {us} score RESULTS --phase {phase}\n"
        f"  everything         {us} rehearse --seed-demo: EvalAI on this machine\n"
        f"  upload             {us} push, with EVALAI_TOKEN and EVALAI_HOST_TEAM set"
    )


# ── build, schema ───────────────────────────────────────────────────────────


def _build(args: argparse.Namespace) -> int:
    from segjudge.platforms.evalai.bundle.agreement import check_reports
    from segjudge.platforms.evalai.bundle.annotations import check_annotations
    from segjudge.platforms.evalai.bundle.build import build
    from segjudge.platforms.evalai.bundle.check import check_web_form
    from segjudge.platforms.evalai.bundle.opened_bundle import Bundle

    source = choose_bundle(args.bundle, args.path)
    _check_build_options(args, source)
    if source.archive:
        fault = "is already built" if zipfile.is_zipfile(source.archive) else "is not a bundle"
        raise UsageError(f"{source.archive}: {fault}; name the bundle's folder")
    say_version(source)
    if args.kernel:
        fetch_kernel(source)
    variant, image = args.variant or "", args.environment_image or ""
    built = build(source.root, args.out or "", variant, image, kernel=not args.no_kernel)
    for change in built.changes:
        say(str(change))
    if not source.is_foreign:
        with Bundle(built.path) as bundle:
            phases = source.phases()
            doubts = [
                *check_reports(bundle, phases),
                *(doubt for phase in phases for doubt in check_annotations(bundle, phase)),
            ]
            for problem in doubts:
                say(str(problem))
    form = check_web_form(built.path)
    if form:
        say(f"Push it: EvalAI's web form would reject it ({form[0].subject}: {form[0].fault}).")
    print(f"Built {built}")
    return DONE


def _check_build_options(args: argparse.Namespace, source: BundleSource) -> None:
    """Raise UsageError for options of a build that exclude each other, or that a built bundle cannot follow."""
    if args.environment_image and args.variant != WITH_IMAGE:
        raise UsageError(f"--environment-image needs --variant {WITH_IMAGE}")
    for name in ("variant", "environment_image", "kernel", "no_kernel"):
        if getattr(args, name):
            _refuse_built(source, f"--{name.replace('_', '-')}")


def _refuse_built(source: BundleSource, option: str) -> None:
    """Raise UsageError for a build option if the bundle is already built."""
    if source.archive:
        raise UsageError(
            f"{source.archive}: is already built, and {option} changes nothing in it; name the bundle's folder"
        )


def fetch_kernel(source: BundleSource) -> None:
    """Compile the kernel for EvalAI's worker unless there is one; its compiler is fetched the first time."""
    from segjudge.kernel.compiling import CompileError, compile_for_worker, find_for_worker

    if not source.takes_kernel:
        raise OptionError("kernel: works only with Segjudge's own scorers, and this bundle has others")
    if find_for_worker() is not None:
        return
    say("Compiling the kernel for EvalAI's worker; its compiler is downloaded once (100 MB) …")
    try:
        compile_for_worker()
    except CompileError as error:
        raise HostError(
            f"the kernel for EvalAI's worker cannot be compiled: {error}. Continue with --no-kernel"
        ) from None


def _write_schema(args: argparse.Namespace) -> int:
    from segjudge.platforms.evalai.bundle.fields import SCHEMA_PATH, json_schema

    path = args.out or os.path.join(choose_bundle("").root, SCHEMA_PATH)
    with open_output(path) as file:
        file.write(json_schema())
    print(f"Wrote {os.path.relpath(path)}")
    return DONE


# ── check ───────────────────────────────────────────────────────────────────


#: The groups of options that several platforms' commands have.
CHECKS, KERNEL, UPLOAD, VARIANT = "checks", "kernel", "upload", "variant"
#: The checks that `--quick` skips.
_QUICK = "whether the script can be imported, the requirements install and the samples score (--quick)"


def _check(args: argparse.Namespace) -> int:
    from segjudge.families.pins import list_version_faults
    from segjudge.platforms.evalai.bundle.build import build, build_starter_zip, find_unwanted_files
    from segjudge.platforms.evalai.bundle.bundle_source import BundleKind
    from segjudge.platforms.evalai.bundle.check import check, check_web_form
    from segjudge.platforms.rules.problems import warning
    from segjudge.starting.lock import check_lock, list_score_changes

    source = choose_bundle(args.bundle, args.path)
    root, built = source.root, None
    if args.variant:
        _refuse_built(source, "--variant")
        if args.starter:
            raise UsageError("--variant and --starter exclude each other: the starter uploads the YAML as it is")
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        path = os.path.join(folder, "challenge_config.zip")
        if args.starter:
            build_starter_zip(root, path)
        elif source.archive:
            path = source.archive
        else:
            built = build(root, path, args.variant or "", lenient=True)
        state, not_checked = _fetch_server_state(root)
        problems = check(path, state)
        if args.starter:
            if not args.json:
                _print_members(path)
            problems += find_unwanted_files(path)
        if source.kind is BundleKind.SMALL:
            problems += [*check_lock(root), *list_score_changes(root)]
            faults = [] if source.archive else list_version_faults(root, source.list_protocols())
            problems += [warning(*fault) for fault in faults]
        if not args.quick:
            problems = _read_truths(problems, path, not_checked)
        if args.quick and not has_errors(problems):
            not_checked.append(_QUICK)
        elif not has_errors(problems):
            problems += _try_bundle(source, path, args.python, not_checked)
        form = check_web_form(path)
    failed = has_errors(problems) or (args.strict and bool(problems))
    code = OURS if _is_refused(problems) or _leaks(problems) else TAKEN if failed else DONE
    if args.json:
        _print_json(problems, form, not_checked, failed=failed, kernel=built.kernel if built else None)
    else:
        _print_report(problems, form, not_checked)
        if code == TAKEN and not has_errors(problems):
            print("The check fails because of warnings (--strict).")
        if built is not None and built.about_kernel():
            print(f"It was checked {built.about_kernel()}.")
    return code


def _print_members(path: str) -> None:
    with zipfile.ZipFile(path) as files:
        for member in sorted(files.infolist(), key=lambda member: member.filename):
            print(f"{member.file_size:>12,}  {member.filename}")


def _fetch_server_state(root: str) -> tuple[ServerState | None, list[str]]:
    """Return the server's state (or the last push's), and a note on skipped checks."""
    from segjudge.platforms.evalai.bundle.push import ChallengePush, find_repository
    from segjudge.platforms.evalai.bundle.server_state import ServerState
    from segjudge.platforms.evalai.client import EvalAISettings, server_address

    try:
        name = find_repository("", root)
        last_push = ServerState.load(root, server_address(), name)
    except HostError as error:
        return None, [f"changes that EvalAI forbids in updates ({error})"]
    try:
        return ChallengePush(EvalAISettings.read(), name).fetch_state(last_push), []
    except HostError as error:
        unknown = [f"the challenge on the server ({error})"]
    if last_push is not None:
        unknown.append(f"the server itself; updates are compared with {last_push.source}, the last push from here")
    return last_push, unknown


def _read_truths(problems: list[BundleProblem], path: str, not_checked: list[str]) -> list[BundleProblem]:
    """Return the problems of a bundle; if none is an error, also the problems of its truths."""
    from segjudge.platforms.evalai.bundle.annotations import read_annotations

    if has_errors(problems):
        return problems
    unreadable, unread = read_annotations(path)
    not_checked += unread
    return [*problems, *unreadable]


def _passes_whole(problems: list[BundleProblem], path: str) -> bool:
    """Print the problems of a bundle and its truths; return whether none of them is an error."""
    not_checked = list[str]()
    problems = _read_truths(problems, path, not_checked)
    for reason in not_checked:
        say(f"Not checked: {reason}.")
    return passes(problems)


def _try_bundle(source: BundleSource, path: str, name: str | None, not_checked: list[str]) -> list[BundleProblem]:
    """Return the problems found by pip and a worker; add untried checks to `not_checked`."""
    from segjudge.platforms.evalai.bundle.trial import UntriedError, try_requirements, try_samples
    from segjudge.platforms.evalai.hosted_worker.interpreter import PINNED_PYTHON, Interpreter

    root, problems = source.root, list[BundleProblem]()
    python = Interpreter.for_worker(name, root) if source.is_foreign else Interpreter.open(name or sys.executable)
    trials = [try_requirements(root, path), try_samples(root, path, python)]
    if source.is_foreign and python.version == PINNED_PYTHON:
        del trials[0]  # the other interpreter installs them, as EvalAI's worker does
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
    """Print problems and a verdict: rejected, accepted but broken, not tried, or accepted."""
    from segjudge.platforms.evalai.hosted_worker.requirements import INDEX_UNREACHED

    print_problems(problems)
    for reason in not_checked:
        say(f"Not checked: {reason}.")
    if _is_refused(problems):
        print("EvalAI would reject this bundle.")
        return
    ways = "by push only" if form else "by push and by its web form"
    if _leaks(problems):
        print(f"EvalAI would accept this bundle {ways}, but it would publish hidden scores: see the errors above.")
    elif has_errors(problems):
        print(f"EvalAI would accept this bundle {ways}, but the challenge would not work: see the errors above.")
    elif any(_QUICK in reason or INDEX_UNREACHED in reason for reason in not_checked):
        print(f"EvalAI's own rules would accept this bundle {ways}. The script itself was not run.")
    else:
        print(f"EvalAI would accept this bundle, {ways}.")
    if form:
        print("Its web form would reject it:")
        for problem in form:
            print(f"    {_printable(problem.subject)}: {_printable(problem.fault)}. {problem.remedy}.")


def check_source(source: BundleSource) -> list[BundleProblem]:
    """Return the problems of the bundle that a challenge becomes, without its samples."""
    from segjudge.platforms.evalai.bundle.build import build
    from segjudge.platforms.evalai.bundle.check import check

    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        return list(check(build(source.root, os.path.join(folder, "challenge_config.zip"), lenient=True).path))


def has_errors(problems: list[BundleProblem]) -> bool:
    """Return whether any problem is an error."""
    return any(problem.severity == ERROR for problem in problems)


def _is_refused(problems: list[BundleProblem]) -> bool:
    return any(problem.severity == ERROR and not problem.accepted for problem in problems)


def _leaks(problems: list[BundleProblem]) -> bool:
    return any(problem.leaks for problem in problems)


def _printable(text: str) -> str:
    """Return text with characters escaped that move a cursor or cannot be printed."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def print_problems(problems: list[BundleProblem], platform: str = "EvalAI") -> None:
    """Print problems, errors first, each with its location and the platform's words."""
    for problem in sorted(problems, key=lambda problem: problem.severity != ERROR):
        location = f"{problem.location}: " if problem.location else ""
        text = f"{location}{problem.severity}: {problem.subject}: {problem.fault}\n    {problem.remedy}."
        print(_printable(text))
        if problem.quote:
            for line in _printable(problem.server_message).strip().splitlines():
                print(f"    {platform}: {line.strip()}")
    counts = Counter(problem.severity for problem in problems)
    if problems:
        kinds = [kind for kind in (ERROR, WARNING) if counts[kind]]
        print(f"\n{' and '.join(f'{counts[kind]} {kind}' + 's' * (counts[kind] > 1) for kind in kinds)}.")


def passes(problems: list[BundleProblem], platform: str = "EvalAI") -> bool:
    """Print problems; return whether none of them is an error."""
    print_problems(problems, platform)
    return not has_errors(problems)


# ── push ────────────────────────────────────────────────────────────────────


def _push(args: argparse.Namespace) -> int:
    from segjudge.platforms.evalai.bundle.agreement import describe_scoring
    from segjudge.platforms.evalai.bundle.check import check
    from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
    from segjudge.platforms.evalai.bundle.push import (
        ChallengePush,
        RejectedError,
        find_repository,
        write_without_sponsors,
    )
    from segjudge.platforms.evalai.bundle.server_state import ServerState
    from segjudge.platforms.evalai.client import EvalAISettings
    from segjudge.platforms.rules.problems import mappings_in

    source = choose_bundle(args.bundle, args.path)
    _check_build_options(args, source)
    root = source.root
    try:
        account = EvalAISettings.read()
        name = find_repository(args.repository or "", root)
        process = ChallengePush(account, name)
    except HostError as error:
        if not args.dry_run:
            raise
        return _show_push(source, args, str(error))
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        bundle = source.archive or _build_to_push(source, folder, args)
        existing = process.fetch_challenge()
        state = process.fetch_state(ServerState.load(root, account.host, name), existing) if existing else None
        if not _passes_whole(check(bundle, state), bundle):
            return OURS
        if existing and write_without_sponsors(bundle, os.path.join(folder, "update.zip")):
            bundle = os.path.join(folder, "update.zip")
            say("warning: sponsors are omitted, because EvalAI fails on updates with sponsors")
        try:
            say(f"{account.host}: {process.validate(bundle)}")
            if args.dry_run:
                _print_members(bundle)
                effect = f"update challenge {existing['id']}" if existing else "become a new challenge"
                print(f"{name} would {effect}.")
                return DONE
            challenge = process.create_or_update(bundle)
        except RejectedError as error:
            print_problems(list(error.locate(bundle, is_new=existing is None)))
            return OURS
        with Bundle(bundle) as opened:
            config, scoring = opened.config, describe_scoring(opened)
    _note_push(root, name, config, scoring, process, challenge)
    _print_challenge(challenge, [str(phase.get("codename")) for phase in mappings_in(config, "challenge_phases")])
    return DONE


def _show_push(source: BundleSource, args: argparse.Namespace, lacking: str) -> int:
    """Check the bundle of a push and print its files, without EvalAI, for which a value is lacking."""
    from segjudge.platforms.evalai.bundle.check import check

    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        bundle = source.archive or _build_to_push(source, folder, args)
        if not _passes_whole(check(bundle), bundle):
            return OURS
        _print_members(bundle)
    print("A push would send this bundle. EvalAI was not asked to validate it.")
    say(f"warning: a push needs more: {lacking}.")
    return DONE


def _build_to_push(source: BundleSource, folder: str, args: argparse.Namespace) -> str:
    """Build the bundle to push in a folder, with the kernel if it can be compiled."""
    from segjudge.platforms.evalai.bundle.build import build

    say_version(source)
    if args.kernel or (not args.no_kernel and source.takes_kernel):
        try:
            fetch_kernel(source)
        except HostError as error:
            say(f"warning: {error}")
    out, variant, image = os.path.join(folder, "challenge_config.zip"), args.variant or "", args.environment_image or ""
    return build(source.root, out, variant, image, lenient=True, kernel=not args.no_kernel).path


def _note_push(
    root: str,
    repository: str,
    config: dict[str, Any],
    scoring: dict[str, str],
    process: ChallengePush,
    challenge: PushedChallenge,
) -> None:
    """Record the push, so that the next check knows what updates must not change."""
    from segjudge.platforms.evalai.bundle.server_state import ServerState
    from segjudge.platforms.evalai.client import server_address

    try:
        source = process.describe_challenge(challenge.number)
        state = ServerState.after_push(config, source=source, approved=challenge.approved, scoring=scoring)
        state.save(root, server_address(), repository)
    except OSError as error:
        say(f"warning: the record of this push could not be saved ({error})")


def _print_challenge(challenge: PushedChallenge, codenames: list[str]) -> None:
    print(challenge.message)
    print(f"challenge  {challenge.number}")
    print(f"queue      {challenge.queue or '(none)'}")
    for codename in dict.fromkeys([*(name for name in codenames if name in challenge.phases), *challenge.phases]):
        print(f"phase      {challenge.phases[codename]}  {codename}")


# ── options ─────────────────────────────────────────────────────────────────


def _add_run_options(sub: CommandParser) -> None:
    add_bundle_options(sub)
    about = "the Python to use as EvalAI's worker (default: .venv-worker, else this one)"
    sub.options_of(RARELY)("--python", metavar="PROGRAM", help=about)


def _add_build_options(sub: CommandParser) -> None:
    sub.arrange_groups(OUTPUT, VARIANT, KERNEL, RARELY)
    add_bundle_options(sub)
    about = "the zip to write (default: dist/challenge_config.zip)"
    sub.options_of(OUTPUT)("--out", metavar="FILE", type=BuiltFile, help=about)
    _add_variant_options(sub)
    add_kernel_options(sub)


def _add_variant_options(sub: CommandParser) -> None:
    """Add the options that say how the challenge runs on EvalAI."""
    add = sub.options_of(VARIANT)
    add("--variant", metavar="VARIANT", choices=VARIANTS, help="%(choices)s (default: from the YAML)")
    about = "with code-upload: the image of your environment in a registry"
    add("--environment-image", metavar="IMAGE", help=about)


def add_kernel_options(sub: CommandParser) -> None:
    """Add the exclusive options `--kernel` and `--no-kernel`."""
    add = sub.options_of(KERNEL, exclusive=True)
    add("--kernel", action="store_true", help="require the compiled kernel; downloads its compiler if there is none")
    add("--no-kernel", action="store_true", help="omit the compiled kernel; numpy scores instead")


def _add_check_options(sub: CommandParser) -> None:
    sub.arrange_groups(CHECKS, OUTPUT, VARIANT, RARELY)
    add_bundle_options(sub)
    add = sub.options_of(CHECKS)
    add("--quick", action="store_true", help="do not import the script, run pip or score the samples")
    add("--strict", action="store_true", help="fail on warnings, for CI")
    sub.options_of(OUTPUT)("--json", action="store_true", help="print the problems as JSON")
    add = sub.options_of(VARIANT)
    add("--variant", metavar="VARIANT", choices=VARIANTS, help="check this variant of the bundle: %(choices)s")
    add("--starter", action="store_true", help="check and list the files that EvalAI's own starter would upload")
    about = "the Python to use as EvalAI's worker (default: this one)"
    sub.options_of(RARELY)("--python", metavar="PROGRAM", help=about)


def _add_push_options(sub: CommandParser) -> None:
    sub.arrange_groups(UPLOAD, VARIANT, KERNEL, RARELY)
    add_bundle_options(sub)
    add = sub.options_of(UPLOAD)
    add("--dry-run", action="store_true", help="show what would be sent, have EvalAI validate it, then stop")
    about = "the challenge's repository (default: GITHUB_REPOSITORY, else the git remote)"
    add("--repository", metavar="OWNER/NAME", help=about)
    _add_variant_options(sub)
    add_kernel_options(sub)


def _add_schema_options(sub: CommandParser) -> None:
    about = "the file to write (default: docs/challenge_config.schema.json)"
    sub.options_of(OUTPUT)("--out", metavar="FILE", type=OutputFile, help=about)


COMMANDS = {
    "run": Command(_add_run_options, _run, "segjudge run my-challenge"),
    "build": Command(_add_build_options, _build, "segjudge build my-challenge"),
    "check": Command(_add_check_options, _check, "segjudge check my-challenge --strict"),
    "push": Command(_add_push_options, _push, "segjudge push my-challenge --dry-run"),
    "schema": Command(_add_schema_options, _write_schema, "segjudge schema --out challenge_config.schema.json"),
}
