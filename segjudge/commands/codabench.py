"""`segjudge run`, `build`, `check` and `push` with `--platform codabench`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from segjudge.system.errors import UsageError
from segjudge.system.files import OutputFolder, file_name, make_folder

from .evalai import CHECKS, KERNEL, UPLOAD, add_kernel_options, fetch_kernel, has_errors, passes, print_problems
from .parser import CommandParser
from .shared import (
    DONE,
    OURS,
    OUTPUT,
    RARELY,
    THEIRS,
    Command,
    InputPath,
    add_bundle_options,
    choose_bundle,
    look,
    say,
    say_version,
    write_html,
)

if TYPE_CHECKING:
    from segjudge.platforms.codabench.build import BuiltCompetitions
    from segjudge.platforms.codabench.opened_competition import OpenedCompetition
    from segjudge.platforms.codabench.push import CompetitionPush
    from segjudge.platforms.codabench.trial import CompetitionTrial, ComputeWorker
    from segjudge.platforms.evalai.bundle.bundle_source import BundleSource
    from segjudge.platforms.rules.problems import BundleProblem

_PLATFORM = "Codabench"
#: The group of options about building competitions.
_COMPETITION = "competition"


@dataclass(frozen=True)
class _Target:
    """A competition to process."""

    path: str
    #: The folder of the samples and of remembered uploads.
    root: str
    #: The codenames of its phases, if this command built it.
    codenames: tuple[str, ...] = ()
    #: The splits whose scores it shows to everybody, as PHASE/SPLIT.
    published: tuple[str, ...] = ()


def _build_all(args: argparse.Namespace, source: BundleSource, out: str) -> BuiltCompetitions:
    from segjudge.platforms.codabench.build import CodabenchOptions, build

    say_version(source)
    if args.kernel:
        fetch_kernel(source)
    image = args.image or CodabenchOptions.image
    options = CodabenchOptions(image, args.queue or "", args.hidden, not args.no_kernel, args.samples)
    built = build(source, out, options)
    for text, codenames in built.notes.items():
        say(f"{', '.join(codenames)}: {text}.")
    return built


@contextmanager
def _open_targets(args: argparse.Namespace) -> Iterator[list[_Target]]:
    """Yield the competitions: the named one, or those built from an EvalAI bundle."""
    import tempfile

    source = _find_source(args)
    if isinstance(source, _Target):
        yield [source]
        return
    published = source.list_published()
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        yield [
            _Target(
                competition.path,
                source.root,
                tuple(competition.codenames),
                tuple(name for name in published if name.partition("/")[0] in competition.codenames),
            )
            for competition in _build_all(args, source, folder).competitions
        ]


def _find_source(args: argparse.Namespace) -> _Target | BundleSource:
    """Return the named competition, or the EvalAI bundle to build competitions from."""
    if args.path and args.bundle not in ("", args.path):
        choose_bundle(args.bundle, args.path)  # reports that there are two
    path: str = args.bundle or args.path
    if os.path.basename(path) == "competition.yaml":
        path = os.path.dirname(path) or os.curdir
    target = path or os.getcwd()
    if not _is_competition(target, named=bool(path)):
        return choose_bundle(path)
    return _Target(target, target if os.path.isdir(target) else os.path.dirname(os.path.abspath(target)))


def _is_competition(path: str, *, named: bool) -> bool:
    """Return whether a path is a Codabench competition, or meant to be one."""
    if not os.path.exists(path):
        raise UsageError(f"{path}: there is no such file or folder")
    if os.path.isdir(path):
        for_evalai = any(os.path.exists(os.path.join(path, f"challenge_config.{end}")) for end in ("yaml", "yml"))
        return os.path.exists(os.path.join(path, "competition.yaml")) or (named and not for_evalai)
    if path.endswith((".yaml", ".yml")):
        return False
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            return not {"challenge_config.yaml", "challenge_config.yml"} & set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return True


def _build(args: argparse.Namespace) -> int:
    source = choose_bundle(args.bundle, args.path)
    for competition in _build_all(args, source, args.out or "").competitions:
        print(f"Built {competition}")
    return DONE


def _check(args: argparse.Namespace) -> int:
    from segjudge.platforms.codabench.check import check as check_competition

    problems_of: dict[str, list[BundleProblem]] = {}
    with _open_targets(args) as targets:
        for target in targets:
            problems = check_competition(target.path)
            if target.codenames and not args.quick and not has_errors(problems):
                problems += _try_samples(target, _open_compute_worker(args.python))
            problems_of[os.path.basename(target.path)] = problems
    all_problems = [problem for problems in problems_of.values() for problem in problems]
    failed = has_errors(all_problems) or (args.strict and bool(all_problems))
    if args.json:
        _print_json(problems_of, failed=failed)
        return OURS if failed else DONE
    for name, problems in problems_of.items():
        print_problems(problems, _PLATFORM)
        if args.quick and not has_errors(problems):
            print(f"{name}: Codabench's own rules would accept this bundle. The program itself was not run.")
        else:
            print(f"{name}: Codabench would {'reject' if has_errors(problems) else 'accept'} this bundle.")
    if failed and not has_errors(all_problems):
        print("The check fails because of warnings (--strict).")
    return OURS if failed else DONE


def _try_samples(target: _Target, worker: ComputeWorker) -> list[BundleProblem]:
    """Return the problems of a competition's samples, rejected samples included."""
    from segjudge.platforms.codabench.opened_competition import open_competition
    from segjudge.platforms.codabench.trial import CompetitionTrial
    from segjudge.platforms.rules.problems import warning

    problems: list[BundleProblem] = []
    with open_competition(target.path) as bundle:
        trial = CompetitionTrial(bundle, worker)
        for run in trial.run(_list_samples(target, trial, bundle)):
            problems += run.problems
            if run.outcome.status != "Finished":
                last_line = (run.outcome.stderr.strip() or run.outcome.details).splitlines()[-1]
                fault = f"does not score: {last_line}"
                problems.append(warning(run.sample, fault, "Correct the sample, or the truth", 61))
    return problems


def _open_compute_worker(python: str | None) -> ComputeWorker:
    from segjudge.platforms.codabench.trial import ComputeWorker
    from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter

    return ComputeWorker(Interpreter.open(python or sys.executable))


def _list_samples(target: _Target, trial: CompetitionTrial, bundle: OpenedCompetition) -> dict[str, list[str]]:
    """Return the samples by phase name: of a bundle built here, else its solutions."""
    if not target.codenames:
        return trial.solutions()
    from segjudge.platforms.evalai.bundle.build import list_samples

    names = [str(phase.get("name")) for _, phase in bundle.mappings("phases")]
    return {name: list_samples(target.root, codename) for name, codename in zip(names, target.codenames, strict=True)}


def _print_json(problems_of: dict[str, list[BundleProblem]], *, failed: bool) -> None:
    rows = []
    for name, problems in problems_of.items():
        for problem in problems:
            row = problem.as_json()
            rows.append({"bundle": name, "codabench": row.pop("evalai"), **row})
    refused = any(row["refused"] for row in rows)
    print(json.dumps({"accepted": not failed, "findings": rows, "refused": refused}, indent=1, ensure_ascii=False))


def _run(args: argparse.Namespace) -> int:
    from segjudge.platforms.codabench.check import check as check_competition

    code, worker = DONE, _open_compute_worker(args.python)
    if not worker.is_boxed:
        say("There is no sandbox: the scoring program runs with network access and your permissions.")
    else:
        for sentence in worker.missing_bounds():
            say(sentence)
    with _open_targets(args) as targets:
        for target in targets:
            if not passes(check_competition(target.path), _PLATFORM):
                return OURS
            print(f"Checked: Codabench would accept {os.path.basename(target.path)}.\n", flush=True)
            code = max(code, _score(target, worker, args.submission or [], args.pages))
    return code


def _score(target: _Target, worker: ComputeWorker, submissions: list[str], pages: str) -> int:
    """Score submissions in each phase, or else the samples, and print the leaderboard; write pages into a folder."""
    from segjudge.platforms.codabench.opened_competition import open_competition
    from segjudge.platforms.codabench.trial import CompetitionTrial
    from segjudge.report.tables import format_leaderboard

    code, boards = DONE, dict[str, dict[str, dict[str, float]]]()
    with open_competition(target.path) as bundle:
        trial = CompetitionTrial(bundle, worker)
        names = [str(phase.get("name")) for _, phase in bundle.mappings("phases")]
        paths = dict.fromkeys(names, submissions) if submissions else _list_samples(target, trial, bundle)
        if not any(paths.values()):
            fault = "there are no samples, so nothing was scored"
            print(f"{os.path.basename(target.path)}: {fault}. Name a submission with --submission FILE.\n")
        for run_ in trial.run(paths):
            outcome = run_.outcome
            print(f"{run_}: {outcome.status} in {outcome.seconds:.2f} s", flush=True)
            if outcome.details:
                print(f"    Codabench: {outcome.details}\n{outcome.stderr.rstrip()}")
                code = max(code, THEIRS)
            if outcome.log:
                print(f"The program's own log, which participants never see:\n{outcome.log.rstrip()}")
                code = OURS
            print_problems(run_.problems, _PLATFORM)
            if pages and outcome.page:
                make_folder(pages)
                write_html(outcome.page, os.path.join(pages, file_name(str(run_).replace(" ← ", "-") + ".html")))
            if outcome.scores:
                boards.setdefault(run_.phase, {})[run_.sample] = {
                    key: float(value) for key, value in outcome.scores.items()
                }
    for phase, rows in boards.items():
        order = trial.columns[0]
        print(
            "\n"
            + format_leaderboard(
                phase, rows, trial.columns, order, descending=order not in trial.ascending, look=look()
            )
            + "\n"
        )
    return code


def _push(args: argparse.Namespace) -> int:
    from segjudge.platforms.codabench.check import check as check_competition
    from segjudge.platforms.codabench.push import CodabenchAccount, CompetitionPush

    code, account = DONE, None if args.dry_run else CodabenchAccount.read()
    source = _find_source(args)
    if account is not None and not isinstance(source, _Target):
        for warning in CompetitionPush(account, source.root).describe_withdrawn(source.list_published()):
            say(warning)
    with _open_targets(args) as targets:
        for target in targets:
            if not passes(check_competition(target.path), _PLATFORM):
                return OURS
        for target in targets:
            if account is None:
                print(f"{os.path.basename(target.path)} would be uploaded, unless it already was.")
            else:
                code = max(code, _upload(CompetitionPush(account, target.root), target, again=args.again))
    return code


def _upload(push: CompetitionPush, target: _Target, *, again: bool) -> int:
    from segjudge.platforms.codabench.push import NotUnpackedError

    path, name = target.path, os.path.basename(target.path)
    earlier = None if again else push.find_last_upload(name)
    if earlier is not None and earlier.number:
        is_same = earlier.is_of(path)
        print(f"{name}: is competition {earlier.number}, {push.page(earlier)}")
        if not is_same:
            say(
                f"{name}: has changed since its upload. Edit the competition on its page; --again creates a second one."
            )
        return DONE if is_same else OURS
    try:
        competition = push.wait_for_outcome(name, earlier or push.upload(name, path, target.published))
    except NotUnpackedError as error:
        say(f"{name}: was rejected. Codabench: {str(error).strip()}")
        return OURS
    print(f"{name}: became competition {competition.number}, {push.page(competition)} (publish it on that page)")
    return DONE


def _add_common_options(sub: CommandParser) -> None:
    add_bundle_options(sub)
    add = sub.options_of(_COMPETITION)
    add("--hidden", action="store_true", help="keep splits that participants must not see, hidden on Codabench too")
    add("--samples", action="store_true", help="offer your samples for download as starting kits")
    add("--queue", metavar="UUID", help="your own queue (default: the public one, which allows 600 s)")
    add("--image", metavar="IMAGE", help="the Docker image that scores (default: the one with Python 3.12)")
    add_kernel_options(sub)


def _add_python_option(sub: CommandParser) -> None:
    about = "the interpreter to use instead of the image (default: this one)"
    sub.options_of(RARELY)("--python", metavar="PROGRAM", help=about)


def _add_build_options(sub: CommandParser) -> None:
    sub.arrange_groups(OUTPUT, _COMPETITION, KERNEL, RARELY)
    _add_common_options(sub)
    about = "the folder for the zips (default: dist/codabench)"
    sub.options_of(OUTPUT)("--out", metavar="FOLDER", type=OutputFolder, help=about)


def _add_check_options(sub: CommandParser) -> None:
    sub.arrange_groups(CHECKS, OUTPUT, _COMPETITION, KERNEL, RARELY)
    _add_common_options(sub)
    add = sub.options_of(CHECKS)
    add("--quick", action="store_true", help="skip the samples")
    add("--strict", action="store_true", help="fail on warnings, for CI")
    sub.options_of(OUTPUT)("--json", action="store_true", help="print the problems as JSON")
    _add_python_option(sub)


def _add_run_options(sub: CommandParser) -> None:
    sub.arrange_groups(OUTPUT, _COMPETITION, KERNEL, RARELY)
    _add_common_options(sub)
    about = "score this file in each phase, instead of the samples; may be repeated"
    sub.options_of(_COMPETITION)("--submission", metavar="FILE", action="append", type=InputPath, help=about)
    about = "keep the pages of the samples (detailed results)"
    sub.options_of(OUTPUT)("--pages", metavar="FOLDER", type=OutputFolder, help=about)
    _add_python_option(sub)


def _add_push_options(sub: CommandParser) -> None:
    sub.arrange_groups(UPLOAD, _COMPETITION, KERNEL, RARELY)
    _add_common_options(sub)
    add = sub.options_of(UPLOAD)
    add("--dry-run", action="store_true", help="check the competitions, then stop")
    add("--again", action="store_true", help="upload an existing competition a second time, as a new one")


COMMANDS = {
    "run": Command(_add_run_options, _run, "segjudge run my-challenge --platform codabench"),
    "build": Command(_add_build_options, _build, "segjudge build my-challenge --platform codabench"),
    "check": Command(_add_check_options, _check, "segjudge check my-challenge --platform codabench --strict"),
    "push": Command(_add_push_options, _push, "segjudge push my-challenge --platform codabench --dry-run"),
}
