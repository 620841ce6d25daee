"""`segjudge run`, `build`, `check` and `schema`: the bundle that EvalAI takes."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import zipfile
from typing import Any

from segjudge.bundle.problems import ERROR, WARNING, BundleProblem
from segjudge.bundle.server_state import State
from segjudge.bundle.variants import VARIANTS, WITH_IMAGE
from segjudge.errors import UsageError
from segjudge.evaluation_script.errors import HostError
from segjudge.files import written

from .shared import DONE, OURS, THEIRS, bundle_root, say


def run(args: argparse.Namespace) -> int:
    """Build the bundle, check it, score every sample submission as EvalAI does, show the leaderboards."""
    from segjudge.bundle.build import build as build_bundle
    from segjudge.bundle.check import check as check_bundle
    from segjudge.hosted_worker.interpreter import worker_interpreter
    from segjudge.hosted_worker.worker import HostedWorker

    root = bundle_root()
    python = worker_interpreter(args.python, root)
    bundle = build_bundle(root, lenient=True).path
    print(f"Built {os.path.relpath(bundle)} ({os.path.getsize(bundle) / 1e3:,.0f} kB).", flush=True)
    findings = check_bundle(bundle)
    report_findings(findings)
    if any(finding.severity == ERROR for finding in findings):
        return OURS
    print("Checked: EvalAI would accept it.\n", flush=True)
    with HostedWorker(bundle, python) as stage:
        failed = _rehearse(stage, root)
        log = stage.log()
    if log:
        print(f"What the worker's own log says, which no participant sees:\n{log}")
    print(_next_steps(root, stage.config["challenge_phases"][0]["codename"]))
    return OURS if "incident" in log else THEIRS if failed else DONE


def _rehearse(stage: Any, root: str) -> int:
    """Submit every sample to its phase; how many failed."""
    from segjudge.bundle import examples
    from segjudge.report.tables import leaderboard

    number = failed = 0
    for phase in stage.config["challenge_phases"]:
        samples = examples.samples(root, phase["codename"])
        if not samples:
            print(f"{phase['codename']}: no samples in {examples.FOLDER}/{phase['codename']}, so nothing was scored\n")
            continue
        boards: dict[str, dict[str, dict[str, float]]] = {}
        for path in samples:
            sample = os.path.basename(path)
            number += 1
            started = time.monotonic()
            outcome = stage.evaluate(phase, path, number)
            print(f"{phase['codename']} ← {sample}: {outcome.status} in {time.monotonic() - started:.2f} s", flush=True)
            if outcome.status != "finished":
                failed += 1
                print(outcome.stderr)
            for split, values in outcome.result.items():
                boards.setdefault(split, {})[sample] = values
        for split, rows in boards.items():
            order = _order(stage.config, phase, split)
            print("\n" + leaderboard(f"{phase['name']} / {split}", rows, order))
        print()
    return failed


def _order(config: dict[str, Any], phase: dict[str, Any], split: str) -> str:
    """The label that a phase's leaderboard is ordered by."""
    splits = {one["id"]: one["codename"] for one in config["dataset_splits"]}
    boards = {one["id"]: one["schema"]["default_order_by"] for one in config["leaderboard"]}
    label: str = next(
        boards[row["leaderboard_id"]]
        for row in config["challenge_phase_splits"]
        if row["challenge_phase_id"] == phase["id"] and splits[row["dataset_split_id"]] == split
    )
    return label


def _next_steps(root: str, phase: str) -> str:
    place = os.path.relpath(root)
    here = "" if place == "." else f" (in {place})"
    return (
        f"Next{here}:\n"
        "  your annotations   ./run.sh pack --layout davis2017 --root DAVIS --subset val --out annotations/NAME.zip\n"
        "  your challenge     edit challenge_config.yaml and evaluation_script/phases.py, then ./run.sh again\n"
        f"  your submission    ./run.sh score RESULTS --phase {phase}\n"
        "  the whole of it    ./run.sh rehearse --seed-demo, which is EvalAI on this machine\n"
        "  upload             ./run.sh push, with EVALAI_TOKEN and EVALAI_HOST_TEAM set (docs/hosts.md)"
    )


# ── build, check, schema ────────────────────────────────────────────────────


def build(args: argparse.Namespace) -> int:
    """Build the zip that EvalAI takes, for one of the four ways to run a challenge."""
    from segjudge.bundle.build import build as build_bundle

    if args.environment_image and args.variant != WITH_IMAGE:
        raise UsageError(f"--environment-image goes with --variant {WITH_IMAGE}")
    built = build_bundle(bundle_root(), args.out or "", args.variant or "", args.environment_image or "")
    for change in built.changes:
        say(str(change))
    print(f"{os.path.relpath(built.path)} ({os.path.getsize(built.path) / 1e3:,.0f} kB)")
    form = _web_form(built.path)
    if form:
        say(f"Push it: EvalAI's web form would not take it ({form[0].where}: {form[0].found}).")
    return DONE


def check(args: argparse.Namespace) -> int:
    """Check the bundle by EvalAI's rules, and by what goes wrong later."""
    from segjudge.bundle.build import build as build_bundle
    from segjudge.bundle.check import check as check_bundle
    from segjudge.bundle.starter_zip import build as build_as_starter

    root = bundle_root()
    with tempfile.TemporaryDirectory() as folder:
        if args.starter:
            path = build_as_starter(root, os.path.join(folder, "challenge_config.zip"))
        elif args.bundle:
            path = args.bundle
            if not os.path.isfile(path):
                raise UsageError(f"{path}: there is no such file")
        else:
            out = os.path.join(folder, "challenge_config.zip")
            path = build_bundle(root, out, args.variant or "", lenient=True).path
        state, notes = _state(root)
        findings = check_bundle(path, state)
        if args.starter:
            findings += _as_starter(path, args)
        if not args.quick and not any(finding.severity == ERROR for finding in findings):
            findings += _tried(root, path, args.python or sys.executable, notes)
        form = _web_form(path)
    return _report(findings, form, notes, args)


def _as_starter(path: str, args: argparse.Namespace) -> list[BundleProblem]:
    """Say what would be uploaded; and what of it should not."""
    from segjudge.bundle.starter_zip import strays

    if not args.json:
        with zipfile.ZipFile(path) as files:
            for member in sorted(files.infolist(), key=lambda one: one.filename):
                print(f"{member.file_size:>12,}  {member.filename}")
    return list(strays(path))


def _state(root: str) -> tuple[State | None, list[str]]:
    """What the server holds: asked of it with a token, else as the last push from here left it."""
    from segjudge.bundle.push import Push, repository
    from segjudge.bundle.server_state import remembered
    from segjudge.evalai.settings import read_settings, server_address

    notes: list[str] = []
    try:
        name = repository("", root)
        known = remembered(root, server_address(), name)
    except HostError as error:
        return None, [f"what an update may not change ({error})"]
    try:
        return Push(read_settings(), name).state(known), notes
    except HostError as error:
        notes.append(f"what the server holds ({error})")
    if known is not None:
        notes.append(f"the server itself; updates are judged by {known.source}, the last push from here")
    return known, notes


def _web_form(path: str) -> list[BundleProblem]:
    """What keeps a bundle from the web form alone; nothing to be said where it cannot even be opened."""
    from segjudge.bundle.check import web_form_findings
    from segjudge.bundle.opened_bundle import BundleRefusedError

    try:
        return web_form_findings(path)
    except BundleRefusedError:
        return []


def _tried(root: str, path: str, python: str, notes: list[str]) -> list[BundleProblem]:
    """What pip and a worker say; a note for what cannot be tried here."""
    from segjudge.bundle.trial import UntriedError, requirements, samples

    found: list[BundleProblem] = []
    for trial in (requirements(root, path), samples(root, path, python)):
        try:
            found += trial
        except UntriedError as reason:
            notes.append(str(reason))
    return found


def _report(
    findings: list[BundleProblem], form: list[BundleProblem], notes: list[str], args: argparse.Namespace
) -> int:
    errors = [finding for finding in findings if finding.severity == ERROR]
    refused = [finding for finding in errors if not finding.taken]
    failed = bool(errors or (args.strict and findings))
    if args.json:
        by_form = {"accepted": not refused and not form, "findings": [one.as_json() for one in form]}
        shown = {"accepted": not failed, "findings": [one.as_json() for one in findings], "not_checked": notes}
        print(json.dumps({**shown, "refused": bool(refused), "web_form": by_form}, indent=1))
        return OURS if failed else DONE
    report_findings(findings)
    for note in notes:
        say(f"Not checked: {note}.")
    if not refused:
        _say_ways(form)
    if errors and not refused:
        print("EvalAI would take it, and it would not work: see the errors above.")
    elif failed and not errors:
        print("Its warnings fail here, since --strict is on.")
    return OURS if failed else DONE


def _say_ways(form: list[BundleProblem]) -> None:
    """By which of EvalAI's two ways a bundle can come in."""
    if not form:
        print("EvalAI would accept this bundle, by push and by its web form.")
        return
    print("EvalAI would accept this bundle by push alone. Its web form would not:")
    for finding in form:
        print(f"    {_plain(finding.where)}: {_plain(finding.found)}. {finding.remedy}.")


def _plain(text: str) -> str:
    """Without what moves a terminal's cursor, and without what no terminal can print."""
    return "".join(one if one.isprintable() or one == "\n" else repr(one)[1:-1] for one in text)


def report_findings(findings: list[BundleProblem]) -> None:
    """All of them, the place first, as compilers do; errors before warnings."""
    for finding in sorted(findings, key=lambda one: one.severity != ERROR):
        place = f"{finding.at}: " if finding.at else ""
        told = f"{place}{finding.severity}: {finding.where}: {finding.found}\n    {finding.remedy}."
        print(_plain(told))
        if finding.quote:
            said = _plain(finding.words).strip().splitlines()
            print("\n".join(f"    EvalAI: {line.strip()}" for line in said))
    count = {kind: sum(finding.severity == kind for finding in findings) for kind in (ERROR, WARNING)}
    if findings:
        counted = [f"{number} {kind}{'s' if number > 1 else ''}" for kind, number in count.items() if number]
        print(f"\n{' and '.join(counted)}.")


def schema(args: argparse.Namespace) -> int:
    """Write the JSON Schema of challenge_config.yaml, for editors."""
    from segjudge.bundle.schema import PATH
    from segjudge.bundle.schema import schema as text

    path = args.out or os.path.join(bundle_root(), PATH)
    try:
        with written(path) as file:
            file.write(text())
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from None
    print(os.path.relpath(path))
    return DONE


def build_options(sub: argparse.ArgumentParser) -> None:
    """What `build` takes."""
    sub.add_argument("--variant", choices=VARIANTS, help="how the challenge runs (default: as the YAML says)")
    sub.add_argument("--environment-image", help="code-upload: the image of your environment, in a registry")
    sub.add_argument("--out", help="the zip to write (default: dist/challenge_config.zip)")


def check_options(sub: argparse.ArgumentParser) -> None:
    """What `check` takes."""
    sub.add_argument("bundle", nargs="?", help="a built zip (default: build one)")
    sub.add_argument("--variant", choices=VARIANTS, help="check the bundle that build makes with it")
    sub.add_argument("--starter", action="store_true", help="check what EvalAI's own starter would upload, and list it")
    sub.add_argument("--strict", action="store_true", help="warnings fail too, for CI")
    sub.add_argument("--quick", action="store_true", help="do not ask pip, do not score the samples")
    sub.add_argument("--json", action="store_true", help="print findings for a program")
    sub.add_argument("--python", help="the interpreter that plays EvalAI's worker (default: this one)")
