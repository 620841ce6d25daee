"""`segjudge score` and `merge`: score results, print tables, write files."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from segjudge.evaluation_script.families import FAMILIES
from segjudge.evaluation_script.files.limits import is_litter
from segjudge.evaluation_script.runner.tuning import reuse_memory
from segjudge.scoring.score_files import ScoreFiles
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import ARCHIVES, OutputFile, OutputFolder

from .shared import (
    DONE,
    FULL_PRECISION,
    OUTPUT,
    RARELY,
    SPEED,
    TRUTH,
    Command,
    InputPath,
    ProgressBar,
    add_jobs_option,
    arrange_groups,
    as_typed,
    choose_stream,
    look,
    mention,
    mention_verdicts,
    names,
    options_of,
    program,
    say,
    write_page,
)
from .truths import TruthChoice, add_truth_choice

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import FamilyProtocol
    from segjudge.scoring.scores import ScoreRequest, Scores

#: The tasks of DAVIS's script.
_TASKS = {"semi-supervised": "davis2017", "unsupervised": "davis2017-unsupervised"}
#: The default size of a page in megabytes.
_BUDGET = 6
#: The width of tables in files and pipes.
_WIDTH = 80
_EXAMPLE = "segjudge score masks.zip --truth DAVIS --protocol davis2017 --subset val"
#: Options of the official tools, Places 2017's script and DAVIS's, by ours.
_OFFICIAL = {
    "results": ("preds_json", "results_path"),
    "truth": ("dataset_json", "davis_path"),
    "subset": ("set",),
    "categories": ("imgCatIdsFile",),
}


def _score(args: argparse.Namespace) -> int:
    from segjudge.scoring import score_request

    reuse_memory()
    paths = _list_results(args.results)
    options = _translate({**vars(args), "results": paths[0] if paths else None})
    if not options["results"]:
        raise UsageError(f"score needs RESULTS, for example: {as_typed(_EXAMPLE)}")
    secrecy = any((args.csv, args.json, args.results_yaml, args.report, args.save, args.chosen_part))
    choice = TruthChoice.read(options).complete("score")
    request = choice.request(options["results"], strict=args.strict, secrecy=secrecy)
    _refuse_ignored(options, request)
    if args.cap or args.id_zero_quirk:
        request = replace(request, protocol=_change_rules(request.protocol, args.cap, args.id_zero_quirk))
    request = replace(
        request,
        scheduler=args.scheduler or "",
        keeps_open=bool(args.report or args.save),
        is_identified=bool(args.json or args.report or args.save),
    )
    if len(paths) > 1:
        return _score_several(args, request, paths)
    hidden = _splits_to_hide(choice) if choice.phase and args.results_yaml else frozenset()
    files = ScoreFiles(args.csv, args.json, args.results_yaml, args.hub_dataset, args.report, hidden)
    if args.chosen_part:
        return _score_part(request, args.chosen_part, args.out)
    with ProgressBar("part" if args.scheduler else "sequence") as bar:
        scores = score_request(request, bar)
        if args.save:
            scores.save(args.save, kinds=True)
    style = _Style(compares=request.phase is None, is_official=args.style == "official", all_metrics=args.all_metrics)
    _show(scores, files, style)
    if args.report:
        _write_report(scores, args.report, choice.choose_images(None))
    elif args.json != "-" and not (style.is_official or args.cap or args.id_zero_quirk):
        for verdict in _list_verdicts(scores):
            mention(verdict)
        mention(f"For causes and pictures, run: {_name_report(options, choice)}")
    return DONE


def _list_results(paths: list[str]) -> list[str]:
    """Return the results to score; a folder that holds only archives stands for the archives."""
    submissions = []
    for path in paths:
        names = sorted(name for name in os.listdir(path) if not is_litter([name])) if os.path.isdir(path) else []
        holds_submissions = len(names) > 1 and all(name.lower().endswith(ARCHIVES) for name in names)
        submissions += [os.path.join(path, name) for name in names] if holds_submissions else [path]
    return submissions


def _score_several(args: argparse.Namespace, request: ScoreRequest, paths: list[str]) -> int:
    from .several import score_several

    for field in ("csv", "results_yaml", "report", "save", "chosen_part", "scheduler", "style"):
        if getattr(args, field):
            option = field.removeprefix("chosen_").replace("_", "-")
            raise OptionError(f"{option} is for one submission, not {len(paths)}; name one, or omit the option")
    return score_several(request, paths, args.json, width=_WIDTH, all_metrics=args.all_metrics)


def _write_report(scores: Scores, path: str, images: str) -> None:
    """Write the page of scores over a folder's pictures, and print its verdict."""
    from segjudge.report.page import make_page_options
    from segjudge.scoring.report import make_report

    page = make_report(scores, scores.title, make_page_options(images, _BUDGET))
    write_page(page, path)
    mention_verdicts(page)


def _list_verdicts(scores: Scores) -> list[str]:
    """Return for each split the sentences on where most of the loss is, by the counts alone."""
    from segjudge.evaluation_script.files.problems import printable
    from segjudge.families import tools_of

    described = {report.split: tools_of(report.protocol.family).describe_loss(report) for report in scores.reports}
    titles = {split: f"Verdict on {printable(split)}" if len(described) > 1 else "Verdict" for split in described}
    return [f"{titles[split]}: {text}" for split, text in described.items() if text]


def _name_report(options: dict[str, Any], choice: TruthChoice) -> str:
    """Return the command that writes the page of the same results on the same truth."""
    import shlex

    values = choice._asdict() | {"sequences": ",".join(choice.sequences or ()), "jobs": None}
    named = [word for name, value in values.items() if value for word in (f"--{name}", str(value))]
    arguments = shlex.join([str(options["results"]), *named])
    return f"{program()} report {arguments}"


def _score_part(request: ScoreRequest, chosen_part: tuple[int, int], out: str) -> int:
    from segjudge.scoring.sharing import count_part_of

    with ProgressBar() as bar:
        count_part_of(request, chosen_part, out, bar)
    mention(f"Wrote {out}")
    return DONE


def _translate(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the options under Segjudge's names; official tools' options bring their defaults."""
    protocol, subset = arguments["protocol"], arguments["subset"]
    if arguments["task"]:
        of_task = _TASKS[arguments["task"]]
        if protocol not in (None, of_task):
            raise UsageError(
                f"--task {arguments['task']} means --protocol {of_task}, not {protocol}; give one of the two"
            )
        protocol = of_task
    if arguments["dataset_json"] and not protocol:
        protocol = "places2017-official"  # the script with these options computes it
    if arguments["davis_path"]:
        protocol = protocol or _TASKS["unsupervised"]
        arguments = {**arguments, "set": arguments["set"] or subset or "val"}
    ours = arguments | {"protocol": protocol}
    for name, official in _OFFICIAL.items():
        options = [f"--{option}" for option in official if arguments[option]]
        values = {arguments[option] for option in (name, *official)} - {None, ""}
        if len(values) > 1:
            raise UsageError(f"{' and '.join(options)}: {name} is given twice, as {' and '.join(sorted(values))}")
        ours[name] = next(iter(values), arguments[name])
    return ours


def _refuse_ignored(options: dict[str, Any], request: ScoreRequest) -> None:
    """Raise UsageError for ignored or incomplete options; `segjudge.score` checks the rest."""
    family = "" if request.phase else request.protocol.family
    ignored = {
        "--phase": ("cap", "id_zero_quirk", "chosen_part", "scheduler") if request.phase else (),
        "--scheduler": ("chosen_part",) if options["scheduler"] else (),
        "--part": ("report", "save") if options["chosen_part"] else (),
        family: ("cap", "id_zero_quirk", "style") if family and not FAMILIES[family].adjustable_rules else (),
    }
    for subject, fields in ignored.items():
        for field in fields:
            if options[field]:
                raise UsageError(f"--{field.removeprefix('chosen_').replace('_', '-')} does not apply to {subject}")
    if bool(options["chosen_part"]) != bool(options["out"]):
        raise UsageError("--part and --out only work together")


def _change_rules(protocol: FamilyProtocol, cap: str | None, quirk: str | None) -> FamilyProtocol:
    """Return the protocol with the requested changes of rules, which its description names."""
    from segjudge.evaluation_script.families.instances.protocols import PER_CATEGORY, PER_IMAGE, InstanceProtocol

    if not isinstance(protocol, InstanceProtocol):
        return protocol
    changed_protocol = replace(
        protocol, cap=cap or protocol.cap, id_zero_quirk=quirk == "on" if quirk else protocol.id_zero_quirk
    )
    if changed_protocol == protocol:
        return protocol
    unit = {PER_IMAGE: "image", PER_CATEGORY: "image and category"}[changed_protocol.cap]
    effect = "cannot be matched" if changed_protocol.id_zero_quirk else "is as any other"
    about = f"changed: up to {protocol.detections[-1]} for each {unit}; the annotation with id 0 {effect}."
    return replace(changed_protocol, about=about)


def _splits_to_hide(options: TruthChoice) -> frozenset[str]:
    """Return the splits to omit from a public file; raises UsageError if none remains."""
    from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
    from segjudge.platforms.evalai.bundle.secrecy import find_unpublished

    source = find_bundle()
    phase = source.phase(options.phase or "")
    hidden = find_unpublished(source.config(), phase.codename, phase)
    chosen_splits = {options.split} if options.split else {split.codename for split in phase.splits}
    if chosen_splits <= hidden:
        splits = f"{' and '.join(sorted(chosen_splits))} of {phase.codename}, whose scores are hidden from participants"
        raise UsageError(f"--results-yaml writes only what hubs may publish, not {splits}")
    return hidden


def _merge(args: argparse.Namespace) -> int:
    from segjudge.scoring.parts import merge_parts
    from segjudge.scoring.scores import Scores

    files = ScoreFiles(args.csv, args.json, args.results_yaml, args.hub_dataset)
    _show(Scores(*merge_parts(args.parts)), files, _Style(compares=True, all_metrics=args.all_metrics))
    return DONE


class _Style(NamedTuple):
    """How tables of scores are printed."""

    #: Whether to print published numbers, for results on a truth that the user named.
    compares: bool
    #: Print like the script of Places 2017.
    is_official: bool = False
    #: Print columns that do not fit below the table.
    all_metrics: bool = False


def _show(scores: Scores, files: ScoreFiles, style: _Style) -> None:
    """Write the requested files, and print scores, notes on the truth and warnings."""
    from segjudge.evaluation_script.scoring.answer import limit_warnings
    from segjudge.families import tools_of
    from segjudge.report.tables import format_report

    for note in limit_warnings(scores.notes):
        say(f"truth: {note}")
    document, csv_files = files.write(scores)
    for path in csv_files:
        mention(f"Wrote {path}")
    for report in scores.reports:
        if report.split in files.hidden:
            say(f"{report.split} is hidden from participants, and omitted from {files.results_yaml}")
    stream = choose_stream(files.json)
    shown_on = look(stream, _WIDTH)
    for report in scores.reports:
        mention(f"Protocol {report.protocol.name}: {report.protocol.about}")
        text = tools_of(report.protocol.family).format_official(report) if style.is_official else ""
        text = (
            text or format_report(report, compare=style.compares, look=shown_on, all_metrics=style.all_metrics) + "\n"
        )
        print(text, file=stream)
    if files.json == "-":
        print(document)  # alone: a program reads it
    for line in limit_warnings(scores.warnings):
        say(f"warning: {line}")


def _part_number(text: str) -> tuple[int, int]:
    """Read a value such as 3/64."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= 100_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part such as 3/64")
    return int(number), int(count)


def _add_score_options(sub: argparse.ArgumentParser) -> None:
    about = (
        "the predicted masks: a folder, zip, tar(.gz) or JSON; several, or a folder of archives, are rows of a table"
    )
    sub.add_argument("results", nargs="*", metavar="RESULTS", type=InputPath, help=about)
    arrange_groups(sub, TRUTH, OUTPUT, SPEED, RARELY)
    add_truth_choice(sub, "the ground truth: a dataset as published (folder or zip), or a packed annotation file")
    add = options_of(sub, TRUTH)
    add("--split", metavar="NAME", help="score only this split")
    add("--sequences", metavar="A,B", type=names, help="score only these sequences")
    options_of(sub, OUTPUT)("--report", metavar="FILE", type=OutputFile, help="write an HTML page of failures")
    _add_output_options(sub)
    about = "save the counts, so that `compare` and `rank` need no truth; keep the file as private as the truth"
    options_of(sub, OUTPUT)("--save", metavar="FILE", type=OutputFile, help=about)
    add_jobs_option(sub)
    add = options_of(sub, SPEED)
    add("--scheduler", metavar="ADDRESS", help="score on a Dask cluster, e.g. tcp://HOST:8786")
    about = "count only part K of N, for `merge`; needs --out"
    add("--part", dest="chosen_part", type=_part_number, metavar="K/N", help=about)
    add("--out", metavar="FILE", type=OutputFile, help="with --part: the file to write")
    add = options_of(sub, RARELY)
    add("--strict", action="store_true", help="treat warnings as errors")
    about = "instances: limit the detections per image or per image and category"
    add("--cap", choices=["image", "category"], help=about)
    about = "instances: on if the annotation with id 0 can never be matched, as in pycocotools"
    add("--id-zero-quirk", choices=["on", "off"], help=about)
    add("--style", choices=["official"], help="instances: print the tables of the Places 2017 script")
    _add_official_options(sub)


def _add_official_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of davis2017-evaluation and of the Places 2017 script, each with its meaning here."""
    add = options_of(sub, "options of other tools")
    about = "--truth PATH; defaults to --protocol davis2017-unsupervised --subset val"
    add("--davis_path", metavar="PATH", type=InputPath, help=about)
    add("--results_path", metavar="PATH", type=InputPath, help="RESULTS")
    protocols = " or ".join(f"--protocol {name}" for name in _TASKS.values())
    add("--task", choices=list(_TASKS), metavar="TASK", help=f"%(choices)s: {protocols}")
    add("--set", metavar="SUBSET", help="--subset SUBSET")
    add("--dataset_json", metavar="FILE", type=InputPath, help="--truth FILE --protocol places2017-official")
    add("--preds_json", metavar="FILE", type=InputPath, help="RESULTS")
    add("--imgCatIdsFile", metavar="FILE", type=InputPath, help="--categories FILE")


def _add_merge_options(sub: argparse.ArgumentParser) -> None:
    about = "all parts of one run, in any order"
    sub.add_argument("parts", nargs="+", metavar="PART", type=InputPath, help=about)
    _add_output_options(sub)


def _add_output_options(sub: argparse.ArgumentParser) -> None:
    add = options_of(sub, OUTPUT)
    about = "print all metrics, in several tables if one is too wide"
    add("--all-metrics", action="store_true", help=about)
    add("--json", metavar="FILE", type=OutputFile, help=FULL_PRECISION)
    add("--csv", metavar="DIR", type=OutputFolder, help="write CSV files; for sequences, in the official form")
    add = options_of(sub, RARELY)
    add("--results-yaml", metavar="FILE", type=OutputFile, help="write the .eval_results file of model hubs")
    add("--hub-dataset", metavar="OWNER/NAME", default="", help="with --results-yaml: the dataset's name on the hub")


COMMANDS = {
    "score": Command(_add_score_options, _score, _EXAMPLE),
    "merge": Command(_add_merge_options, _merge, "segjudge merge part-*.segjudge --json scores.json"),
}
