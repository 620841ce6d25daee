"""`segjudge score`: what a participant runs."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS, PER_CATEGORY, PER_IMAGE
from segjudge.evaluation_script.runner.tuning import reuse_memory
from segjudge.families import OPTIONAL_LAYOUTS
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.system.errors import UsageError
from segjudge.system.files import OutputFile, name_of

from .score_output import check_hub, output_options, show
from .shared import DONE, ProgressBar, jobs_option, names, part, say

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import FamilyProtocol
    from segjudge.evaluation_script.scoring.phase import Phase
    from segjudge.scoring.scores import ScoreRequest, Scores

#: Our names of options, and the official tools' names: Places 2017's script, then DAVIS's.
NAMES = {
    "results": ("preds_json", "results_path"),
    "truth": ("dataset_json", "davis_path"),
    "subset": ("set",),
    "categories": ("imgCatIdsFile",),
}
#: The tasks of DAVIS's script.
TASKS = {"semi-supervised": "davis2017", "unsupervised": "davis2017-unsupervised"}


def score(args: argparse.Namespace) -> int:
    """Score a results folder, zip or JSON, exactly as the server would."""
    reuse_memory()
    _take_official_names(args)
    if not args.results:
        raise UsageError("score needs the results to score")
    if bool(args.phase) == bool(args.truth):
        raise UsageError("score needs either --phase, or --truth with --protocol")
    _check_options(args)
    check_hub(args)
    if args.truth and not args.protocol:
        raise UsageError(f"--truth needs --protocol, one of: {', '.join(PROTOCOLS)}")
    if bool(args.part) != bool(args.out):
        raise UsageError("--part and --out go together")
    if args.part:
        return _score_part(args)
    hidden = _hidden(args)
    with ProgressBar("part" if args.scheduler else "sequence") as bar:
        scores = _score_phase(args, bar) if args.phase else _score_on_truth(args, bar)
    show(scores.reports, scores.notes, scores.provenance, args, hidden)
    if args.report:
        _write_report(scores, args)
    return DONE


def _write_report(scores: Scores, args: argparse.Namespace) -> None:
    """Write the page that `segjudge report` writes."""
    from segjudge.analysis.report import report_page
    from segjudge.commands.pages import write_page
    from segjudge.report.page import PageOptions
    from segjudge.scoring.scores import prepare, prepare_phase

    job = prepare_phase(*_phase(args)) if scores.request is None else prepare(scores.request)
    write_page(report_page(job, scores, name_of(args.results), PageOptions()), args.report)


def _phase(args: argparse.Namespace) -> tuple[str, Phase, str, str, list[str] | None]:
    """Return the results, a phase as the options change it, its annotation file, and which part of it is scored."""
    source = find_bundle()
    phase = source.phase(args.phase)
    jobs = {None: phase.jobs, "auto": 0}.get(args.jobs, args.jobs)
    phase = replace(phase, strict=args.strict or phase.strict, jobs=jobs)
    annotations = args.annotations or os.path.join(source.root, phase.annotations)
    return args.results, phase, annotations, args.split or "", args.sequences


def _hidden(args: argparse.Namespace) -> frozenset[str]:
    """Return the splits whose scores a file for public hubs may not hold; refuses to write one of nothing else."""
    if not (args.phase and args.results_yaml):
        return frozenset()
    from segjudge.platforms.evalai.bundle.agreement import find_hidden_splits

    source = find_bundle()
    phase = source.phase(args.phase)
    hidden = find_hidden_splits(source, phase)
    chosen = {args.split} if args.split else {split.codename for split in phase.splits}
    if chosen <= hidden:
        found = f"{' and '.join(sorted(chosen))} of {phase.codename}, whose scores participants are not shown"
        raise UsageError(f"--results-yaml writes what hubs publish, and nothing of {found}")
    return hidden


def _score_phase(args: argparse.Namespace, bar: ProgressBar) -> Scores:
    from segjudge.scoring.scores import prepare_phase

    return prepare_phase(*_phase(args)).score(bar)


def _score_on_truth(args: argparse.Namespace, bar: ProgressBar) -> Scores:
    from segjudge.scoring.scores import prepare

    if not args.scheduler:
        return prepare(request_of(args), bar).score(bar)
    from segjudge.scoring.sharing import connect, score_by_workers

    with connect(args.scheduler) as client:
        return score_by_workers(client, request_of(args), bar)


def request_of(args: argparse.Namespace) -> ScoreRequest:
    """Return what a command's options ask to score."""
    from segjudge.datasets.opening import TruthSource
    from segjudge.scoring.scores import ScoreRequest

    files = [args.layout or "", args.subset or "", args.unseen or "", args.categories or ""]
    source = TruthSource(args.truth, *files)
    return ScoreRequest(args.results, source, _protocol(args), args.split or "", args.sequences, args.strict, args.jobs)


def _score_part(args: argparse.Namespace) -> int:
    from segjudge.evaluation_script.runner.parallel import Part
    from segjudge.scoring.scores import prepare
    from segjudge.scoring.sharing import PartCounter

    with ProgressBar() as bar:
        PartCounter(prepare(request_of(args), bar)).write(Part(*args.part), args.out, bar)
    say(f"wrote {args.out}")
    return DONE


def _protocol(args: argparse.Namespace) -> FamilyProtocol:
    """Return the protocol with the rules that were asked for, which its description then names."""
    if args.protocol not in INSTANCE_PROTOCOLS:
        return PROTOCOLS[args.protocol]
    protocol = INSTANCE_PROTOCOLS[args.protocol]
    cap = args.cap or protocol.cap
    quirk = protocol.id_zero_quirk if args.id_zero_quirk is None else args.id_zero_quirk == "on"
    if (cap, quirk) == (protocol.cap, protocol.id_zero_quirk):
        return protocol
    counted = {PER_IMAGE: "image", PER_CATEGORY: "image and category"}[cap]
    lost = "cannot be matched" if quirk else "is as any other"
    about = f"changed: up to {protocol.detections[-1]} for each {counted}; the annotation with id 0 {lost}."
    return replace(protocol, cap=cap, id_zero_quirk=quirk, about=about)


def _take_official_names(args: argparse.Namespace) -> None:
    """Turn options of the official tools into ours, with the defaults of those tools."""
    if args.task:
        protocol = TASKS[args.task]
        if args.protocol not in (None, protocol):
            raise UsageError(
                f"--task {args.task} means --protocol {protocol}, not {args.protocol}; give one of the two"
            )
        args.protocol = protocol
    if args.dataset_json and not args.protocol:
        args.protocol = "places2017-official"  # what the script with these options computes
    if args.davis_path:
        args.protocol = args.protocol or TASKS["unsupervised"]
        args.set = args.set or args.subset or "val"
    for ours, theirs in NAMES.items():
        options = [f"--{name}" for name in theirs if getattr(args, name)]
        values = {getattr(args, name) for name in (ours, *theirs)} - {None, ""}
        if len(values) > 1:
            raise UsageError(f"{' and '.join(options)}: {ours} is given twice, as {' and '.join(sorted(values))}")
        setattr(args, ours, next(iter(values), getattr(args, ours)))


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options of this command that would be ignored; `segjudge.score` refuses the others."""
    truth_alone = ("protocol", "subset", "layout", "unseen", "cap", "id_zero_quirk", "categories")
    track = PROTOCOLS[args.protocol].track if args.protocol else ""
    ignored = {
        "--phase": (*truth_alone, "part", "scheduler") if args.phase else (),
        "--scheduler": ("part",) if args.scheduler else (),
        "--part": ("report",) if args.part else (),
        "--truth": ("annotations",) if args.truth else (),
        track: () if track in ("", "instances") else ("cap", "id_zero_quirk", "style"),
    }
    for subject, options in ignored.items():
        for name in options:
            if getattr(args, name):
                raise UsageError(f"--{name.replace('_', '-')} has no meaning for {subject}")


def score_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `score`."""
    sub.add_argument("results", nargs="?", help="folder, zip, tar(.gz) or JSON with the predicted masks")
    sub.add_argument("--phase", help="score as this phase of the bundle")
    sub.add_argument("--annotations", help="with --phase: another annotation file")
    sub.add_argument("--truth", help="a packed annotation file, or a dataset root or zip in its published layout")
    sub.add_argument("--categories", metavar="FILE", help="places2017 with a folder of PNGs as TRUTH: their categories")
    sub.add_argument("--protocol", choices=PROTOCOLS, metavar="PROTOCOL", help=", ".join(PROTOCOLS))
    sub.add_argument("--subset", default="", help="the list of sequences to score, e.g. val")
    sub.add_argument(
        "--layout", choices=OPTIONAL_LAYOUTS, metavar="LAYOUT", help="how TRUTH is laid out (default: recognised)"
    )
    sub.add_argument("--split", help="score this split alone")
    sub.add_argument("--sequences", type=names, help="score these sequences alone, separated by commas")
    sub.add_argument("--unseen", help="file with the names of unseen sequences (lvos) or categories (youtube-vos)")
    jobs_option(sub)
    sub.add_argument("--scheduler", metavar="ADDRESS", help="score by the workers of a Dask cluster: tcp://HOST:8786")
    sub.add_argument("--cap", choices=["image", "category"], help="instances: what the cap on detections counts")
    sub.add_argument("--id-zero-quirk", choices=["on", "off"], help="instances: the annotation with id 0 is lost")
    sub.add_argument("--style", choices=["official"], help="instances: print as the script of Places 2017 does")
    sub.add_argument("--strict", action="store_true", help="warnings are errors")
    sub.add_argument("--part", type=part, metavar="K/N", help="count part K of N alone, for `merge`; needs --out")
    sub.add_argument("--out", metavar="FILE", type=OutputFile, help="with --part: the file to write")
    sub.add_argument("--report", metavar="FILE", type=OutputFile, help="write the page that `segjudge report` writes")
    output_options(sub)
    official = sub.add_argument_group("as the scripts of DAVIS and Places 2017 call them")
    official.add_argument("--davis_path", metavar="DIR", help="TRUTH, by default for the task unsupervised and set val")
    official.add_argument("--results_path", metavar="DIR", help="the results")
    official.add_argument("--task", choices=list(TASKS), help="the protocol davis2017 or davis2017-unsupervised")
    official.add_argument("--set", metavar="SUBSET", help="as --subset")
    official.add_argument("--dataset_json", metavar="FILE", help="TRUTH, by default for places2017-official")
    official.add_argument("--preds_json", metavar="FILE", help="the results")
    official.add_argument("--imgCatIdsFile", metavar="FILE", help="as --categories")
