"""`segjudge score` and `merge`: score results, print tables, write files and pages."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.families import FAMILIES
from segjudge.evaluation_script.files.limits import is_litter
from segjudge.evaluation_script.runner.tuning import reuse_memory
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import ARCHIVES, OutputFile, OutputFolder, check_outputs, make_folder, open_output

from .parser import CommandParser, as_typed, program
from .shared import (
    BUDGET,
    DONE,
    FULL_PRECISION,
    OTHER_TOOLS,
    OUTPUT,
    RARELY,
    SPEED,
    THEIRS,
    TRUTH,
    WIDTH,
    Command,
    InputPath,
    ProgressBar,
    add_jobs_option,
    choose_stream,
    look,
    mention,
    names,
    say,
    write_html,
)
from .truths import TruthChoice, add_truth_choice

if TYPE_CHECKING:
    from segjudge.scoring.request import ScoreRequest
    from segjudge.scoring.scores import ScoredSubmissions, ScoreOutputs, Scores

_EXAMPLE = "segjudge score masks.zip --truth DAVIS --protocol davis2017 --subset val"
#: Options of the official tools, Places 2017's script and DAVIS's, by ours.
_OFFICIAL = {
    "results": ("preds_json", "results_path"),
    "truth": ("dataset_json", "davis_path"),
    "subset": ("set",),
    "categories": ("imgCatIdsFile",),
}

#: The endings of texts about submissions, and of records.
_NOTES, _RECORDS = (".txt", ".md"), (".json", ".json.gz")

#: Options about all sequences or images, which a part lacks.
_OF_WHOLE = ("report", "save", "json", "csv", "record", "results_yaml", "style")


def _score(args: argparse.Namespace) -> int:
    from segjudge.families import check_columns
    from segjudge.scoring.scores import Scores

    reuse_memory()
    options = _translate({**vars(args), "results": args.results[0] if args.results else None})
    if not options["results"]:
        raise UsageError(f"score needs RESULTS, for example: {as_typed(_EXAMPLE)}")
    choice = TruthChoice.read(options).complete("score")
    paths = list_results(args.results or [options["results"]], choice)
    request = choice.request(
        paths[0] if len(paths) < 2 else "",
        secrecy=any((args.csv, args.json, args.results_yaml, args.record, args.report, args.save, args.chosen_part)),
        strict=args.strict,
        keeps_open=bool(args.report or args.save),
        is_identified=bool(args.json or args.record or args.report or args.save),
    )
    if request.phase is None:
        check_columns(request.protocol, args.columns)
    images = choice.choose_images(None) if args.report else ""
    public = "--results-yaml" if args.results_yaml else "--record" if args.record else ""
    hidden = choice.hide_splits(public) if public else frozenset[str]()
    _refuse_ignored(options, request, len(paths))
    ends_here = args.report or args.json == "-" or args.style or args.cap or args.id_zero_quirk or len(paths) > 1
    outputs = _choose_outputs(
        args,
        hidden=hidden,
        compares=request.phase is None,
        is_official=args.style == "official",
        has_verdicts=not ends_here,
    )
    results = _score_request(request, paths, args)
    if results is None:
        mention(f"Wrote {args.out}")
        return DONE
    code = _write(results, outputs, args.report or "")
    if args.record and isinstance(results, Scores):
        _write_record(results, request, args, hidden)
    if args.report and isinstance(results, Scores):
        from segjudge.report.page import list_verdicts, make_page_options, render_page

        page = results.make_page(make_page_options(images, BUDGET))
        text, verdicts = render_page(page), list_verdicts(page)
        write_html(text, args.report, verdicts)
    if not ends_here:
        mention(f"For causes and pictures, run: {choice.spell('report', paths[0])}")
    return code


def _write_record(scores: Scores, request: ScoreRequest, args: argparse.Namespace, hidden: frozenset[str]) -> None:
    """Write the record of scores that `verify` checks."""
    from segjudge.scoring.records import Subject, write_record

    write_record(args.record, scores, Subject.of_request(request, args.model, args.hub_dataset), hidden)
    for split in scores.metrics.keys() & hidden:
        say(f"{split} is hidden from participants, and omitted from {args.record}")
    mention(f"Wrote {args.record}; `{program()} verify` checks it")


def list_results(paths: list[str], choice: TruthChoice) -> list[str]:
    """Return the results to score; a folder of submissions stands for them.

    It holds archives, or JSON files of benchmarks that take only one, perhaps with texts about them.
    """
    submissions = []
    for path in paths:
        names = sorted(name for name in os.listdir(path) if not is_litter([name])) if os.path.isdir(path) else []
        chosen = [name for name in names if not name.lower().endswith(_NOTES)]
        lower = [name.lower() for name in chosen]
        holds_submissions = len(chosen) > 1 and all(name.endswith((*ARCHIVES, *_RECORDS)) for name in lower)
        if holds_submissions and all(name.endswith(_RECORDS) for name in lower):
            from segjudge.families import tools_of

            holds_submissions = tools_of(choice.rules.family).sends_one_file
        submissions += [os.path.join(path, name) for name in chosen] if holds_submissions else [path]
    return submissions


def _score_request(
    request: ScoreRequest, paths: list[str], args: argparse.Namespace
) -> Scores | ScoredSubmissions | None:
    """Score one or several submissions; return None if only a part was counted and written."""
    if args.scheduler:
        from segjudge.scoring.sharing import connect, score_by_workers

        with connect(args.scheduler) as client, ProgressBar("part") as bar:
            scores = score_by_workers(client, request, bar)
    else:
        from segjudge.evaluation_script.masks.backend import backend
        from segjudge.scoring.request import PartCounter, prepare, score_several

        if backend().fault:
            say(f"warning: scoring takes longer, because the kernel cannot be used: {backend().fault}")
        with ProgressBar() as bar, ProgressBar("submission") as whole_bar:
            prepared = prepare(request, bar)
            if len(paths) > 1:
                return score_several(prepared, paths, bar, whole_bar)
            if args.chosen_part:
                from segjudge.evaluation_script.runner.parallel import Part

                PartCounter(prepared).write(Part(*args.chosen_part), args.out, bar)
                return None
            scores = prepared.score(bar)
    if args.save:
        scores.save(args.save, kinds=True)
    return scores


def _translate(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the options under Segjudge's names; official tools' options bring their defaults."""
    protocol, subset = arguments["protocol"], arguments["subset"]
    if arguments["task"] or arguments["davis_path"]:
        from segjudge.evaluation_script.families.sequences.protocols import DAVIS_TASKS  # 2 ms of each start
    if arguments["task"]:
        of_task = DAVIS_TASKS[arguments["task"]]
        if protocol not in (None, of_task):
            raise UsageError(
                f"--task {arguments['task']} means --protocol {of_task}, not {protocol}; give one of the two"
            )
        protocol = of_task
    if arguments["dataset_json"] and not protocol:
        protocol = "places2017-official"  # the script with these options computes it
    if arguments["davis_path"]:
        protocol = protocol or DAVIS_TASKS["unsupervised"]
        arguments = {**arguments, "set": arguments["set"] or subset or "val"}
    ours = arguments | {"protocol": protocol}
    for name, official in _OFFICIAL.items():
        options = [f"--{option}" for option in official if arguments[option]]
        values = {arguments[option] for option in (name, *official)} - {None, ""}
        if len(values) > 1:
            raise UsageError(f"{' and '.join(options)}: {name} is given twice, as {' and '.join(sorted(values))}")
        ours[name] = next(iter(values), arguments[name])
    return ours


def _refuse_ignored(options: dict[str, Any], request: ScoreRequest, submissions: int) -> None:
    """Raise UsageError for ignored or incomplete options; `segjudge.score` checks the rest."""
    family = "" if request.phase else request.protocol.family
    ignored = {
        "--phase": ("cap", "id_zero_quirk", "chosen_part", "scheduler") if request.phase else (),
        "--scheduler": ("chosen_part",) if options["scheduler"] else (),
        "--part": ("report", "save", "json", "csv", "record", "results_yaml", "style")
        if options["chosen_part"]
        else (),
        family: ("cap", "id_zero_quirk", "style") if family and not FAMILIES[family].adjustable_rules else (),
    }
    for subject, fields in ignored.items():
        for field in fields:
            if options[field]:
                raise UsageError(f"--{field.removeprefix('chosen_').replace('_', '-')} does not apply to {subject}")
    if options["model"] and not options["record"]:
        raise OptionError("model needs --record")
    if bool(options["chosen_part"]) != bool(options["out"]):
        raise UsageError("--part and --out only work together")
    of_one = ("csv", "record", "results_yaml", "report", "save", "chosen_part", "scheduler", "style")
    for field in of_one if submissions > 1 else ():
        if options[field]:
            option = field.removeprefix("chosen_").replace("_", "-")
            raise OptionError(f"{option} is for one submission, not {submissions}; name one, or omit the option")


def _choose_outputs(args: argparse.Namespace, **more: Any) -> ScoreOutputs:
    """Return the outputs that `score` and `merge` have; raises OptionError without the hub's name of the data set."""
    from segjudge.scoring.scores import ScoreOutputs

    if args.hub_dataset and not (args.results_yaml or getattr(args, "record", None)):
        raise OptionError("hub-dataset needs --results-yaml")
    if (args.results_yaml or args.hub_dataset) and not re.fullmatch(r"[\w.-]+/[\w.-]+", args.hub_dataset, re.ASCII):
        fault = f"{args.hub_dataset!r} does not have that form" if args.hub_dataset else "by its name there"
        raise OptionError(f"results-yaml needs --hub-dataset OWNER/NAME, the data set on the hub: {fault}")
    shown, files = look(choose_stream(args.json), WIDTH), (args.json, args.csv, args.results_yaml)
    return ScoreOutputs(
        *files, hub_dataset=args.hub_dataset, look=shown, all_metrics=args.all_metrics, columns=args.columns, **more
    )


def _write(results: Scores | ScoredSubmissions, outputs: ScoreOutputs, page: str = "") -> int:
    """Write and print results; return 1 if one of several submissions could not be scored.

    `page` is a file that is written later.
    """
    from segjudge.evaluation_script.files.problems import printable
    from segjudge.evaluation_script.scoring.answer import limit_warnings

    for note in limit_warnings(results.notes):
        say(f"truth: {note}")
    texts = results.make_texts(outputs)
    documents = {outputs.json: f"{texts.document}\n", outputs.results_yaml: texts.results_yaml}
    files = {path: text for path, text in documents.items() if path and path != "-"}
    tables = {os.path.join(outputs.csv or "", name): text for name, text in texts.csv.items()}
    if outputs.csv:
        make_folder(outputs.csv)
        check_outputs([*files, *tables, *([page] if page and page != "-" else [])], [])
    for path, text in {**files, **tables}.items():
        with open_output(path) as file:
            file.write(text)
    for path in tables:
        mention(f"Wrote {path}")
    for split in texts.withheld:
        say(f"{split} is hidden from participants, and omitted from {outputs.results_yaml}")
    for protocol, table in texts.tables:
        mention(f"Protocol {protocol.name}: {protocol.about}")
        print(table, file=choose_stream(outputs.json))
    if outputs.json == "-":
        print(texts.document)  # alone: a program reads it
    for line in texts.warnings:
        say(f"warning: {line}")
    for split, verdict in texts.verdicts.items():
        if verdict:
            which = f" on {printable(split)}" if len(texts.verdicts) > 1 else ""
            mention(f"Verdict{which}: {verdict}")
    if texts.fault:
        say(texts.fault, "bad")
    return THEIRS if texts.fault else DONE


def _merge(args: argparse.Namespace) -> int:
    from segjudge.scoring.parts import merge_parts
    from segjudge.scoring.scores import Scores

    outputs = _choose_outputs(args)
    return _write(Scores(*merge_parts(args.parts)), outputs)


def _part_number(text: str) -> tuple[int, int]:
    """Read a value such as 3/64."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= 100_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part such as 3/64")
    return int(number), int(count)


def _add_score_options(sub: CommandParser) -> None:
    about = "the predicted masks: a folder, zip, tar(.gz) or JSON; several, or a folder of them, are rows of a table"
    sub.add_argument("results", nargs="*", metavar="RESULTS", type=InputPath, help=about)
    sub.arrange_groups(TRUTH, OUTPUT, SPEED, RARELY)
    add_truth_choice(sub, "the ground truth: a dataset as published (folder or zip), or a packed annotation file")
    add = sub.options_of(TRUTH)
    add("--split", metavar="NAME", help="score only this split")
    add("--sequences", metavar="A,B", type=names, help="score only these sequences")
    sub.options_of(OUTPUT)("--report", metavar="FILE", type=OutputFile, help="write an HTML page of failures")
    _add_output_options(sub)
    about = "write a record of the scores, which others check with `verify`"
    sub.options_of(OUTPUT)("--record", metavar="FILE", type=OutputFile, help=about)
    sub.options_of(RARELY)("--model", metavar="NAME", default="", help="with --record: the model (default: RESULTS)")
    about = "save the counts, so that `compare` and `rank` need no truth; keep the file as private as the truth"
    sub.options_of(OUTPUT)("--save", metavar="FILE", type=OutputFile, help=about)
    add_jobs_option(sub)
    add = sub.options_of(SPEED)
    add("--scheduler", metavar="ADDRESS", help="score on a Dask cluster, e.g. tcp://HOST:8786")
    about = "count only part K of N, for `merge`; needs --out"
    add("--part", dest="chosen_part", type=_part_number, metavar="K/N", help=about)
    add("--out", metavar="FILE", type=OutputFile, help="with --part: the file to write")
    add = sub.options_of(RARELY)
    add("--strict", action="store_true", help="treat warnings as errors")
    about = "instances: limit the detections per image or per image and category"
    add("--cap", choices=["image", "category"], help=about)
    about = "instances: on if the annotation with id 0 can never be matched, as in pycocotools"
    add("--id-zero-quirk", choices=["on", "off"], help=about)
    add("--style", choices=["official"], help="instances: print the tables of the Places 2017 script")
    _add_official_options(sub)


def _add_official_options(sub: CommandParser) -> None:
    """Add the options of davis2017-evaluation and of the Places 2017 script, each with its meaning here."""
    add = sub.options_of(OTHER_TOOLS)
    about = "--truth PATH; defaults to --protocol davis2017-unsupervised --subset val"
    add("--davis_path", metavar="PATH", type=InputPath, help=about)
    add("--results_path", metavar="PATH", type=InputPath, help="RESULTS")
    protocols = "--protocol davis2017 or --protocol davis2017-unsupervised"  # as `DAVIS_TASKS`, imported on use
    add("--task", choices=["semi-supervised", "unsupervised"], metavar="TASK", help=f"%(choices)s: {protocols}")
    add("--set", metavar="SUBSET", help="--subset SUBSET")
    add("--dataset_json", metavar="FILE", type=InputPath, help="--truth FILE --protocol places2017-official")
    add("--preds_json", metavar="FILE", type=InputPath, help="RESULTS")
    add("--imgCatIdsFile", metavar="FILE", type=InputPath, help="--categories FILE")


def _add_merge_options(sub: CommandParser) -> None:
    about = "all parts of one run, in any order"
    sub.add_argument("parts", nargs="+", metavar="PART", type=InputPath, help=about)
    _add_output_options(sub)


def _add_output_options(sub: CommandParser) -> None:
    add = sub.options_of(OUTPUT)
    about = "print all metrics, in several tables if one is too wide"
    add("--all-metrics", action="store_true", help=about)
    add("--columns", metavar="A,B", type=names, default=(), help="print only these metrics, in this order")
    add("--json", metavar="FILE", type=OutputFile, help=FULL_PRECISION)
    add("--csv", metavar="DIR", type=OutputFolder, help="write CSV files; for sequences, in the official form")
    add = sub.options_of(RARELY)
    add("--results-yaml", metavar="FILE", type=OutputFile, help="write the .eval_results file of model hubs")
    add("--hub-dataset", metavar="OWNER/NAME", default="", help="with --results-yaml: the dataset's name on the hub")


COMMANDS = {
    "score": Command(_add_score_options, _score, _EXAMPLE),
    "merge": Command(_add_merge_options, _merge, "segjudge merge part-*.segjudge --json scores.json"),
}
