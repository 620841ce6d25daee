"""The command line: each command is a function, thin, and the only place that prints.

Exit codes: 0 done, 1 something in the participant's files, 2 usage, 3 a broken
truth or bundle, or a fault of ours.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from evaluation_script.errors import HostError, SubmissionError
from evaluation_script.instance_protocols import INSTANCE_PROTOCOLS
from evaluation_script.sequence_protocols import PROTOCOLS
from evaluation_script.version import VERSION
from linejudge.scoring import UsageError

DONE, THEIRS, USAGE, OURS = 0, 1, 2, 3
DESCRIPTION = "The toolkit of hosts and participants: score, pack, build, check and run a challenge."
ALL_PROTOCOLS = [*PROTOCOLS, *INSTANCE_PROTOCOLS]

#: Where `run.sh` is; without it the folder of the bundle is looked for.
BUNDLE = "LINEJUDGE_BUNDLE"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit code."""
    parser = _parser()
    args = parser.parse_args(arguments)
    try:
        code: int = args.command(args)
    except SubmissionError as error:
        return _fail(str(error), THEIRS)
    except UsageError as error:
        return _fail(f"{parser.prog}: {error}", USAGE)
    except HostError as error:
        return _fail(str(error), OURS)
    except BrokenPipeError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return DONE
    except KeyboardInterrupt:
        return 130
    except Exception:  # noqa: BLE001 - a defect of ours, said so
        traceback.print_exc()
        return _fail("linejudge: this is a defect of linejudge, not of your files", OURS)
    return code


def _fail(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


def _say(text: str) -> None:
    """Talk goes to stderr, results to stdout."""
    print(text, file=sys.stderr, flush=True)


def bundle_root() -> str:
    """The folder with `challenge_config.yaml`."""
    for folder in (os.environ.get(BUNDLE, ""), os.getcwd(), os.path.dirname(os.path.dirname(__file__))):
        if folder and os.path.exists(os.path.join(folder, "challenge_config.yaml")):
            return folder
    raise UsageError("no challenge_config.yaml here; run it in the bundle's folder")


# ── run: the whole challenge ────────────────────────────────────────────────


def run(args: argparse.Namespace) -> int:
    """Build the bundle, check it, score every sample submission as EvalAI does, show the leaderboards."""
    from linejudge.bundle.build import build
    from linejudge.bundle.check import check
    from linejudge.rehearsal.stage import Stage

    root = bundle_root()
    bundle = build(root)
    print(f"Built {os.path.relpath(bundle)} ({os.path.getsize(bundle) / 1e3:,.0f} kB).", flush=True)
    findings = check(bundle)
    if findings:
        return _report_findings(findings)
    print("Checked: EvalAI would accept it.\n", flush=True)
    with Stage(bundle, args.python or sys.executable) as stage:
        failed = _rehearse(stage, root)
        log = stage.log()
    if log:
        print(f"What the worker's own log says, which no participant sees:\n{log}")
    print(_next_steps(root, stage.config["challenge_phases"][0]["codename"]))
    return OURS if "incident" in log else THEIRS if failed else DONE


def _rehearse(stage: Any, root: str) -> int:
    """Submit every sample to its phase; how many failed."""
    from linejudge.report.tables import leaderboard

    number = failed = 0
    for phase in stage.config["challenge_phases"]:
        folder = os.path.join(root, "examples", phase["codename"])
        samples = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        if not samples:
            print(f"{phase['codename']}: no samples in {os.path.relpath(folder)}, so nothing was scored\n")
            continue
        boards: dict[str, dict[str, dict[str, float]]] = {}
        for sample in samples:
            number += 1
            started = time.monotonic()
            outcome = stage.evaluate(phase, os.path.join(folder, sample), number)
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
        "  upload             create a challenge on eval.ai with dist/challenge_config.zip (docs/hosts.md)"
    )


# ── score ───────────────────────────────────────────────────────────────────


def score(args: argparse.Namespace) -> int:
    """Score a results folder, zip or JSON, exactly as the server would."""
    from evaluation_script.answer import shown_warnings
    from linejudge.scoring import reports_of_phase, reports_of_truth

    args.results = args.results or args.preds_json
    args.truth = args.truth or args.dataset_json
    if args.dataset_json and not args.protocol:
        args.protocol = "places2017-official"  # what the script with these options computes
    if not args.results:
        raise UsageError("score needs the results to score")
    if bool(args.phase) == bool(args.truth):
        raise UsageError("score needs either --phase, or --truth with --protocol")
    _check_options(args)
    if args.truth and not args.protocol:
        raise UsageError(f"--truth needs --protocol, one of: {', '.join(ALL_PROTOCOLS)}")
    notes: list[str] = []
    with _Bar() as bar:
        if args.phase:
            reports = reports_of_phase(bundle_root(), args, bar)
        else:
            reports, notes = reports_of_truth(args, bar)
    for note in shown_warnings(notes):
        _say(f"truth: {note}")
    _show(reports, args)
    for line in shown_warnings([line for report in reports for line in report.warnings]):
        _say(f"warning: {line}")
    return DONE


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that would be ignored."""
    of_instances = args.protocol in INSTANCE_PROTOCOLS
    pointless = {
        "--phase": ("protocol", "subset", "layout", "unseen", "cap", "id_zero_quirk") if args.phase else (),
        "instances": ("csv", "sequences", "layout", "unseen") if of_instances else (),
        "sequences": ("cap", "id_zero_quirk", "style") if args.truth and not of_instances else (),
    }
    for what, names in pointless.items():
        for name in names:
            if getattr(args, name):
                raise UsageError(f"--{name.replace('_', '-')} has no meaning for {what}")


def _show(reports: list[Any], args: argparse.Namespace) -> None:
    """Write the files that were asked for, and print what was scored."""
    from evaluation_script.answer import InstanceReport, tables
    from linejudge.report import official
    from linejudge.report.tables import of_report

    text = json.dumps(tables(reports), indent=1, allow_nan=False) if args.json else ""
    try:
        written = official.write_all(reports, args.csv) if args.csv else []
        if args.json and args.json != "-":
            with open(args.json, "w", encoding="utf-8") as file:
                file.write(text + "\n")
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written ({error.strerror})") from None
    for path in written:
        _say(f"wrote {path}")
    for report in reports:
        _say(f"Protocol {report.protocol.name}: {report.protocol.about}")
        if args.style == "official" and isinstance(report, InstanceReport):
            shown = official.places(report)
        else:
            shown = of_report(report, compare=bool(args.truth)) + "\n"
        print(shown, file=sys.stderr if args.json == "-" else sys.stdout)
    if args.json == "-":
        print(text)  # alone: a program reads it


class _Bar:
    """A progress bar where there is a terminal, nothing elsewhere."""

    def __init__(self, unit: str = "sequence") -> None:
        self._bar: Any = None
        self._unit = unit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, name: str, done: int, total: int) -> None:
        """Note how far the scoring is."""
        if self._bar is None and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total, unit=self._unit, leave=False)
        if self._bar is not None:
            self._bar.total, self._bar.n = total, done
            self._bar.set_description(name)


# ── pack, demo, build, check ────────────────────────────────────────────────


def pack(args: argparse.Namespace) -> int:
    """Make an annotation file from a dataset in its published layout."""
    from linejudge.datasets.pack import PLACES, pack_places
    from linejudge.datasets.pack import pack as pack_dataset

    if args.layout == PLACES:
        if not args.categories:
            raise UsageError("--layout places2017 needs --categories FILE")
        with _Bar("image") as bar:
            told, odd = pack_places(args.root, args.out, args.categories, bar, split=args.split)
        _warn(odd)
        print(f"{args.out}: split {args.split or 'val'}, {told}, {os.path.getsize(args.out) / 1e6:.1f} MB")
        return DONE
    with _Bar() as bar:
        read = pack_dataset(
            args.root, args.out, args.layout, bar, subset=args.subset, split=args.split, unseen=args.unseen
        )
    _warn(read.notes)
    for name, split in read.splits.items():
        frames = sum(len(sequence.frames) for sequence in split.sequences)
        size = os.path.getsize(args.out)
        print(f"{args.out}: split {name}, {len(split.sequences)} sequences, {frames} frames, {size / 1e6:.1f} MB")
    return DONE


def convert(args: argparse.Namespace) -> int:
    """Convert Places-style PNGs to COCO's JSON, as the official converter does."""
    from linejudge.datasets.places import convert as convert_places

    with _Bar("image") as bar:
        document, odd = convert_places(args.png_dir, args.categories, bar)
    with open(args.out, "w", encoding="utf-8") as file:
        json.dump(document, file)
    _warn(odd)
    print(f"{args.out}: {len(document['images']):,} images, {len(document['annotations']):,} instances")
    return DONE


def _warn(lines: list[str]) -> None:
    for line in lines:
        _say(f"warning: {line}")


def show(args: argparse.Namespace) -> int:
    """Draw truth and detections over images: PNGs and one page."""
    from evaluation_script import instance_truth
    from evaluation_script.records import read_records
    from linejudge.report.show import View
    from linejudge.report.show import show as draw
    from linejudge.scoring import LOCAL_LIMITS

    if not 0 < args.iou <= 1:
        raise UsageError(f"--iou is a fraction above 0, not {args.iou:g}")
    if args.images and not os.path.isdir(args.images):
        raise UsageError(f"--images {args.images}: there is no such folder")
    splits = instance_truth.read(args.truth)
    name = args.split or next(iter(splits))
    if name not in splits:
        raise UsageError(f"{args.truth} has no split {name!r}, only {list(splits)}")
    truth = splits[name]
    records = read_records(args.results, truth.images, INSTANCE_PROTOCOLS["coco"], LOCAL_LIMITS)
    with _Bar("image") as bar:
        drawn = draw(truth, records, args.out, View(args.images or "", args.iou, args.score), bar)
    print(f"{os.path.join(args.out, 'index.html')}: {len(drawn)} images")
    return DONE


def demo(args: argparse.Namespace) -> int:
    """Make the synthetic annotation files and sample submissions."""
    from linejudge.demo.make import make

    for path in make(args.out or bundle_root(), args.seed):
        print(f"{os.path.relpath(path)} ({os.path.getsize(path) / 1e3:,.0f} kB)")
    return DONE


def build(args: argparse.Namespace) -> int:
    """Build the zip that EvalAI takes."""
    from linejudge.bundle.build import build as build_bundle

    path = build_bundle(bundle_root(), args.out or "")
    print(f"{os.path.relpath(path)} ({os.path.getsize(path) / 1e3:,.0f} kB)")
    return DONE


def check(args: argparse.Namespace) -> int:
    """Check the bundle by EvalAI's rules."""
    from linejudge.bundle.build import build as build_bundle
    from linejudge.bundle.check import check as check_bundle

    findings = check_bundle(args.bundle or build_bundle(bundle_root()))
    if findings:
        return _report_findings(findings)
    print("EvalAI would accept this bundle.")
    return DONE


def _report_findings(findings: list[Any]) -> int:
    print(f"{len(findings)} things to mend before EvalAI takes the bundle:")
    for place, finding in enumerate(findings, 1):
        print(f"  {place}. {finding}")
    return OURS


# ── the parser ──────────────────────────────────────────────────────────────


def _parser() -> argparse.ArgumentParser:
    from evaluation_script.published import LAYOUTS
    from linejudge.datasets.pack import ALIASES, PLACES
    from linejudge.demo.make import SEED

    parser = argparse.ArgumentParser(prog="linejudge", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"linejudge {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(function: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        text = function.__doc__ or ""
        sub = commands.add_parser(function.__name__, help=text, description=text)
        sub.set_defaults(command=function)
        return sub

    sub = command(run)
    sub.add_argument("--python", help="the interpreter that plays EvalAI's worker (default: this one)")

    layouts = sorted({*LAYOUTS, *ALIASES})
    _score_options(command(score), layouts)

    sub = command(pack)
    packable = [*layouts, PLACES]
    sub.add_argument("--layout", required=True, choices=packable, metavar="LAYOUT", help=", ".join(packable))
    sub.add_argument("--categories", help="places2017: JSON with categories, and images where there is a list")
    sub.add_argument("--root", required=True, help="the dataset's folder or zip")
    sub.add_argument("--subset", default="", help="the list of sequences, e.g. val")
    sub.add_argument("--out", required=True, help="the annotation file to write")
    sub.add_argument("--split", default="", help="add the dataset to OUT under this name")
    sub.add_argument("--unseen", default="", help="file with the names of unseen sequences or categories")

    sub = command(show)
    sub.add_argument("results", help="the detections")
    sub.add_argument("--truth", required=True, help="COCO's JSON, or a packed annotation file of instances")
    sub.add_argument("--split", help="which split of a packed file (default: the first)")
    sub.add_argument("--images", help="folder of the images; without it masks are drawn on a plain ground")
    sub.add_argument("--iou", type=float, default=0.5, help="from which overlap a detection is right (0.5)")
    sub.add_argument("--score", type=float, default=0.0, help="leave out detections with a lower score")
    sub.add_argument("--out", required=True, help="folder for index.html and the pictures")

    sub = command(convert)
    sub.add_argument("kind", choices=["places"], help="what is converted")
    sub.add_argument("png_dir", help="folder of PNGs: red holds the category, green the instance")
    sub.add_argument("out", help="the JSON to write")
    sub.add_argument("--categories", required=True, help="JSON with categories, and images where there is a list")

    sub = command(demo)
    sub.add_argument("--out", help="another folder than the bundle")
    sub.add_argument("--seed", type=int, default=SEED)

    sub = command(build)
    sub.add_argument("--out", help="the zip to write (default: dist/challenge_config.zip)")

    sub = command(check)
    sub.add_argument("bundle", nargs="?", help="a built zip (default: build one)")
    return parser


def _score_options(sub: argparse.ArgumentParser, layouts: list[str]) -> None:
    sub.add_argument("results", nargs="?", help="folder, zip, tar(.gz) or JSON with the predicted masks")
    sub.add_argument("--preds_json", help="the results, as the script of Places 2017 names them")
    sub.add_argument("--dataset_json", help="the truth, likewise")
    sub.add_argument("--phase", help="score as this phase of the bundle")
    sub.add_argument("--annotations", help="with --phase: another annotation file")
    sub.add_argument("--truth", help="a packed annotation file, or a dataset root or zip in its published layout")
    sub.add_argument("--protocol", choices=ALL_PROTOCOLS, metavar="PROTOCOL", help=", ".join(ALL_PROTOCOLS))
    sub.add_argument("--subset", default="", help="the list of sequences to score, e.g. val")
    sub.add_argument("--layout", choices=layouts, metavar="LAYOUT", help="how TRUTH is laid out (default: recognised)")
    sub.add_argument("--split", help="score this split alone")
    sub.add_argument("--sequences", help="score these sequences alone, separated by commas")
    sub.add_argument("--unseen", help="file with the names of unseen sequences (lvos) or categories (youtube-vos)")
    sub.add_argument("--jobs", type=int, default=1, help="instances with --truth: score with so many processes")
    sub.add_argument("--cap", choices=["image", "category"], help="instances: what the cap on detections counts")
    sub.add_argument("--id-zero-quirk", choices=["on", "off"], help="instances: the annotation with id 0 is lost")
    sub.add_argument("--style", choices=["official"], help="instances: print as the script of Places 2017 does")
    sub.add_argument("--strict", action="store_true", help="warnings are errors")
    sub.add_argument("--csv", metavar="DIR", help="write CSV files as the official tool does")
    sub.add_argument("--json", metavar="FILE", help="write everything with full precision (- for stdout)")
