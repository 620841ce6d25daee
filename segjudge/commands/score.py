"""`segjudge score` and `merge`: score results, print tables, write files."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.families import FAMILIES
from segjudge.evaluation_script.families.sequences.protocols import DAVIS_TASKS
from segjudge.evaluation_script.files.limits import is_litter
from segjudge.evaluation_script.runner.tuning import reuse_memory
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import ARCHIVES, OutputFile, OutputFolder

from .outputs import Outputs
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
    mention,
    names,
    options_of,
)
from .truths import TruthChoice, add_truth_choice

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import Progress
    from segjudge.scoring.scores import ScoredSubmissions, ScoreRequest, Scores

_EXAMPLE = "segjudge score masks.zip --truth DAVIS --protocol davis2017 --subset val"
#: Options of the official tools, Places 2017's script and DAVIS's, by ours.
_OFFICIAL = {
    "results": ("preds_json", "results_path"),
    "truth": ("dataset_json", "davis_path"),
    "subset": ("set",),
    "categories": ("imgCatIdsFile",),
}


def _score(args: argparse.Namespace) -> int:
    reuse_memory()
    paths = _list_results(args.results)
    options = _translate({**vars(args), "results": paths[0] if paths else None})
    if not options["results"]:
        raise UsageError(f"score needs RESULTS, for example: {as_typed(_EXAMPLE)}")
    choice = TruthChoice.read(options).complete("score")
    _refuse_ignored(options, choice, len(paths))
    request = choice.request(
        options["results"] if len(paths) < 2 else "",
        secrecy=any((args.csv, args.json, args.results_yaml, args.report, args.save, args.chosen_part)),
        strict=args.strict,
        keeps_open=bool(args.report or args.save),
        is_identified=bool(args.json or args.report or args.save),
    )
    ends_here = args.report or args.json == "-" or args.style or args.cap or args.id_zero_quirk
    outputs = Outputs(
        *(args.json, args.csv, args.results_yaml, args.hub_dataset, args.all_metrics, args.report),
        images=choice.choose_images(None) if args.report else "",
        hidden=choice.hide_splits() if args.results_yaml else frozenset(),
        compares=request.phase is None,
        is_official=args.style == "official",
        next_command="" if ends_here else choice.spell("report", options["results"]),
    )
    with ProgressBar("part" if args.scheduler else "sequence") as bar:
        results = _score_request(request, paths, args, bar)
    if results is None:
        mention(f"Wrote {args.out}")
        return DONE
    return outputs.write(results)


def _list_results(paths: list[str]) -> list[str]:
    """Return the results to score; a folder that holds only archives stands for the archives."""
    submissions = []
    for path in paths:
        names = sorted(name for name in os.listdir(path) if not is_litter([name])) if os.path.isdir(path) else []
        holds_submissions = len(names) > 1 and all(name.lower().endswith(ARCHIVES) for name in names)
        submissions += [os.path.join(path, name) for name in names] if holds_submissions else [path]
    return submissions


def _score_request(
    request: ScoreRequest, paths: list[str], args: argparse.Namespace, progress: Progress
) -> Scores | ScoredSubmissions | None:
    """Score one or several submissions; return None if only a part was counted and written."""
    from segjudge.scoring.scores import prepare, score_several

    if args.scheduler:
        from segjudge.scoring.sharing import connect, score_by_workers

        with connect(args.scheduler) as client:
            return score_by_workers(client, request, progress)
    prepared = prepare(request, progress)
    if args.chosen_part:
        from segjudge.evaluation_script.runner.parallel import Part
        from segjudge.scoring.sharing import PartCounter

        PartCounter(prepared).write(Part(*args.chosen_part), args.out, progress)
        return None
    if len(paths) > 1:
        return score_several(prepared, paths, progress)
    scores = prepared.score(progress)
    if args.save:
        scores.save(args.save, kinds=True)
    return scores


def _translate(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the options under Segjudge's names; official tools' options bring their defaults."""
    protocol, subset = arguments["protocol"], arguments["subset"]
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


def _refuse_ignored(options: dict[str, Any], choice: TruthChoice, submissions: int) -> None:
    """Raise UsageError for ignored or incomplete options; `segjudge.score` checks the rest."""
    family = "" if choice.phase else choice.rules.family
    ignored = {
        "--phase": ("cap", "id_zero_quirk", "chosen_part", "scheduler") if choice.phase else (),
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
    of_one = ("csv", "results_yaml", "report", "save", "chosen_part", "scheduler", "style")
    for field in of_one if submissions > 1 else ():
        if options[field]:
            option = field.removeprefix("chosen_").replace("_", "-")
            raise OptionError(f"{option} is for one submission, not {submissions}; name one, or omit the option")


def _merge(args: argparse.Namespace) -> int:
    from segjudge.scoring.parts import merge_parts
    from segjudge.scoring.scores import Scores

    outputs = Outputs(args.json, args.csv, args.results_yaml, args.hub_dataset, args.all_metrics)
    return outputs.write(Scores(*merge_parts(args.parts)))


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
    protocols = " or ".join(f"--protocol {name}" for name in DAVIS_TASKS.values())
    add("--task", choices=list(DAVIS_TASKS), metavar="TASK", help=f"%(choices)s: {protocols}")
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
