"""`segjudge score` and `merge`: score results, print tables, write files and pages."""

from __future__ import annotations

import argparse
import json
import os
import re
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.families import FAMILIES
from segjudge.evaluation_script.families.sequences.protocols import DAVIS_TASKS
from segjudge.evaluation_script.files.limits import is_litter
from segjudge.evaluation_script.runner.tuning import reuse_memory
from segjudge.evaluation_script.values import dataclass
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import ARCHIVES, OutputFile, OutputFolder, check_outputs, make_folder, open_output

from .shared import (
    DONE,
    FULL_PRECISION,
    OUTPUT,
    RARELY,
    SPEED,
    THEIRS,
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
    names,
    options_of,
    say,
    write_html,
)
from .truths import TruthChoice, add_truth_choice

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import FamilyProtocol, Progress
    from segjudge.scoring.request import ScoredSubmissions, ScoreRequest
    from segjudge.scoring.scores import Scores

_EXAMPLE = "segjudge score masks.zip --truth DAVIS --protocol davis2017 --subset val"
#: Options of the official tools, Places 2017's script and DAVIS's, by ours.
_OFFICIAL = {
    "results": ("preds_json", "results_path"),
    "truth": ("dataset_json", "davis_path"),
    "subset": ("set",),
    "categories": ("imgCatIdsFile",),
}

#: The default size of a page in megabytes.
_BUDGET = 6
#: The width of tables in files and pipes.
_WIDTH = 80


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
    outputs = _Outputs(
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
    from segjudge.scoring.request import PartCounter, prepare, score_several

    if args.scheduler:
        from segjudge.scoring.sharing import connect, score_by_workers

        with connect(args.scheduler) as client:
            scores = score_by_workers(client, request, progress)
    else:
        prepared = prepare(request, progress)
        if args.chosen_part:
            from segjudge.evaluation_script.runner.parallel import Part

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
        "--part": ("report", "save", "json", "csv", "results_yaml", "style") if options["chosen_part"] else (),
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


@dataclass(frozen=True)
class _Outputs:
    """The outputs of scores that a command was asked for."""

    json: str | None
    csv: str | None
    results_yaml: str | None
    hub_dataset: str
    #: Print columns that do not fit below the table.
    all_metrics: bool
    #: The page to write.
    report: str | None = None
    #: The folder of the pictures on the page.
    images: str = ""
    #: Splits whose scores are omitted from the published file of hubs.
    hidden: frozenset[str] = frozenset()
    #: Print published numbers, for results on a truth that the user named.
    compares: bool = True
    #: Print like the script of Places 2017.
    is_official: bool = False
    #: The command that shows causes and pictures, printed after the verdicts; "": print neither.
    next_command: str = ""

    def __post_init__(self) -> None:
        """Raise OptionError if a file for model hubs lacks the hub's name of the dataset."""
        if self.hub_dataset and not self.results_yaml:
            raise OptionError("hub-dataset needs --results-yaml")
        if self.results_yaml and not re.fullmatch(r"[\w.-]+/[\w.-]+", self.hub_dataset, re.ASCII):
            fault = f"{self.hub_dataset!r} does not have that form" if self.hub_dataset else "by its name there"
            raise OptionError(f"results-yaml needs --hub-dataset OWNER/NAME, the data set on the hub: {fault}")

    def write(self, results: Scores | ScoredSubmissions) -> int:
        """Write and print scores; return 1 if one of several submissions could not be scored."""
        from segjudge.evaluation_script.scoring.answer import limit_warnings
        from segjudge.families import tools_of
        from segjudge.report.tables import format_report, format_submissions
        from segjudge.scoring.scores import Scores

        for note in limit_warnings(results.notes):
            say(f"truth: {note}")
        text, stream = self._write_files(results), choose_stream(self.json)
        tables: list[tuple[FamilyProtocol, str]] = []
        style: dict[str, Any] = {"look": look(stream, _WIDTH), "all_metrics": self.all_metrics}
        if isinstance(results, Scores):
            warnings = limit_warnings(results.warnings)
            for report in results.reports:
                if report.split in self.hidden:
                    say(f"{report.split} is hidden from participants, and omitted from {self.results_yaml}")
                official = tools_of(report.protocol.family).format_official(report) if self.is_official else ""
                table = official or format_report(report, compare=self.compares, **style) + "\n"
                tables.append((report.protocol, table))
        else:
            warnings = results.warnings
            for split, protocol in results.protocols.items():
                rows = [(name, values if isinstance(values, str) else values[split]) for name, values in results.rows]
                table = format_submissions(split, list(protocol.metrics), rows, **style) + "\n"
                tables.append((protocol, table))
        for protocol, table in tables:
            mention(f"Protocol {protocol.name}: {protocol.about}")
            print(table, file=stream)
        if self.json == "-":
            print(text)  # alone: a program reads it
        for line in warnings:
            say(f"warning: {line}")
        if isinstance(results, Scores):
            return self._explain(results)
        faulty = sum(isinstance(values, str) for _, values in results.rows)
        if faulty:
            say(f"{faulty} of {len(results.rows)} submissions could not be scored", "bad")
        return THEIRS if faulty else DONE

    def _write_files(self, results: Scores | ScoredSubmissions) -> str:
        """Write the files, and print the paths of those in a folder; return the text of the JSON."""
        if not (self.json or self.csv or self.results_yaml):
            return ""
        from segjudge.scoring.document import make_csv, make_results_yaml, make_scores_document
        from segjudge.scoring.scores import Scores

        files, document, tables = dict[str, str](), dict[str, Any](), dict[str, str]()
        if not isinstance(results, Scores):
            document = {"submissions": results.documents}
        elif self.json:
            document = make_scores_document(results.reports, results.provenance, results.notes)
        text = json.dumps(document, indent=1, allow_nan=False) if self.json else ""
        if self.json and self.json != "-":
            files[self.json] = f"{text}\n"
        if isinstance(results, Scores) and self.results_yaml:
            public = [report for report in results.reports if report.split not in self.hidden]
            files[self.results_yaml] = make_results_yaml(public, self.hub_dataset)
        if isinstance(results, Scores) and self.csv:
            tables = make_csv(results.reports, self.csv)
            make_folder(self.csv)
            page = [self.report] if self.report and self.report != "-" else []
            check_outputs([*files, *tables, *page], [])
        for path, content in {**files, **tables}.items():
            with open_output(path) as file:
                file.write(content)
        for path in tables:
            mention(f"Wrote {path}")
        return text

    def _explain(self, scores: Scores) -> int:
        """Write the page, or print the verdict on each split and the command that shows more."""
        from segjudge.evaluation_script.files.problems import printable
        from segjudge.families import tools_of

        if self.report:
            from segjudge.report.page import list_verdicts, make_page_options, render_page
            from segjudge.scoring.report import make_report

            page = make_report(scores, scores.title, make_page_options(self.images, _BUDGET))
            text, verdicts = render_page(page), list_verdicts(page)
            write_html(text, self.report, verdicts)
        if self.next_command:
            for report in scores.reports:
                loss = tools_of(report.protocol.family).describe_loss(report)
                which = f" on {printable(report.split)}" if len(scores.reports) > 1 else ""
                if loss:
                    mention(f"Verdict{which}: {loss}")
            mention(f"For causes and pictures, run: {self.next_command}")
        return DONE


def _merge(args: argparse.Namespace) -> int:
    from segjudge.scoring.parts import merge_parts
    from segjudge.scoring.scores import Scores

    outputs = _Outputs(args.json, args.csv, args.results_yaml, args.hub_dataset, args.all_metrics)
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
