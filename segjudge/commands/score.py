"""`segjudge score` and `merge`: what a participant runs, and the tables and files that come of it."""

from __future__ import annotations

import argparse
import json
import os
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS
from segjudge.evaluation_script.runner.tuning import reuse_memory
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import OutputFile, OutputFolder, check_outputs, file_name, make_folder, name_of, open_output

from .shared import (
    DONE,
    Command,
    InputPath,
    PhaseName,
    ProgressBar,
    add_jobs_option,
    add_truth_options,
    choose_stream,
    look,
    mention,
    names,
    read_options,
    say,
    write_page,
)

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import FamilyProtocol
    from segjudge.evaluation_script.families.base.reports import Report
    from segjudge.evaluation_script.scoring.phase import Phase
    from segjudge.scoring.scores import ScoreRequest, Scores

#: The tasks of DAVIS's script.
_TASKS = {"semi-supervised": "davis2017", "unsupervised": "davis2017-unsupervised"}
#: Options of the official tools, Places 2017's script and DAVIS's, by ours.
_OFFICIAL = {
    "results": ("preds_json", "results_path"),
    "truth": ("dataset_json", "davis_path"),
    "subset": ("set",),
    "categories": ("imgCatIdsFile",),
}


class _Output(NamedTuple):
    """What is written of scores, and how they are printed."""

    csv: str | None
    json: str | None
    results_yaml: str | None
    hub_dataset: str
    #: The page that is written as well.
    page: str | None
    #: Results were compared with a truth that the user named.
    compares: bool
    #: Tables are those of Places 2017's script.
    is_official: bool
    #: Splits whose scores are not for the file that hubs publish.
    hidden: frozenset[str]

    def check(self) -> None:
        """Refuse a file for model hubs that does not name their data set: the protocol's name is none of theirs."""
        if self.hub_dataset and not self.results_yaml:
            raise OptionError("hub-dataset goes with --results-yaml")
        if self.results_yaml and not re.fullmatch(r"[\w.-]+/[\w.-]+", self.hub_dataset, re.ASCII):
            fault = f"{self.hub_dataset!r} is not that" if self.hub_dataset else "as it is called there"
            raise OptionError(f"results-yaml needs --hub-dataset OWNER/NAME, the data set on the hub: {fault}")


class _Options(NamedTuple):
    """What to score; names are ours, whichever tool's options were given."""

    results: str
    phase: str | None
    annotations: str | None
    truth: str | None
    categories: str
    protocol: str
    subset: str
    layout: str
    split: str | None
    sequences: list[str] | None
    unseen: str
    jobs: Any
    scheduler: str | None
    cap: str | None
    id_zero_quirk: str | None
    style: str | None
    strict: bool
    chosen_part: tuple[int, int] | None
    out: str | None
    report: str | None
    save: str | None

    def request(self) -> ScoreRequest:
        from segjudge.families.truths import TruthSource
        from segjudge.scoring.scores import ScoreRequest

        source = TruthSource(self.truth or "", self.layout, self.subset, self.unseen, self.categories)
        protocol = _change_rules(PROTOCOLS[self.protocol], self.cap, self.id_zero_quirk)
        return ScoreRequest(self.results, source, protocol, self.split or "", self.sequences, self.strict, self.jobs)

    def phase_inputs(self) -> tuple[str, Phase, str, str, list[str] | None]:
        """The results, a phase as the options change it, its annotation file, and the part that is scored."""
        from segjudge.platforms.evalai.bundle.bundle_source import find_bundle

        source = find_bundle()
        phase = source.phase(self.phase or "")
        jobs = {None: phase.jobs, "auto": 0}.get(self.jobs, self.jobs)
        phase = replace(phase, strict=self.strict or phase.strict, jobs=jobs)
        annotations = self.annotations or os.path.join(source.root, phase.annotations)
        return self.results, phase, annotations, self.split or "", self.sequences


def _score(args: argparse.Namespace) -> int:
    reuse_memory()
    options = _translate(vars(args))
    _check(options)
    output = read_options(
        _Output,
        args,
        page=options.report,
        compares=bool(options.truth),
        is_official=options.style == "official",
        hidden=_list_hidden(options) if options.phase and args.results_yaml else frozenset(),
    )
    output.check()
    if options.chosen_part:
        return _score_part(options)
    with ProgressBar("part" if options.scheduler else "sequence") as bar:
        scores = _score_all(options, bar)
        if options.save:
            scores.save(options.save, kinds=True)
    _show(scores.reports, scores.notes, scores.provenance, output)
    if options.report:
        from segjudge.report.page import PageOptions
        from segjudge.scoring.report import make_report

        write_page(make_report(scores, name_of(options.results), PageOptions()), options.report)
    return DONE


def _translate(arguments: dict[str, Any]) -> _Options:
    """Call the options by our names: those of the official tools come with the defaults of those tools."""
    protocol, subset = arguments["protocol"], arguments["subset"]
    if arguments["task"]:
        of_task = _TASKS[arguments["task"]]
        if protocol not in (None, of_task):
            raise UsageError(
                f"--task {arguments['task']} means --protocol {of_task}, not {protocol}; give one of the two"
            )
        protocol = of_task
    if arguments["dataset_json"] and not protocol:
        protocol = "places2017-official"  # what the script with these options computes
    if arguments["davis_path"]:
        protocol = protocol or _TASKS["unsupervised"]
        arguments = {**arguments, "set": arguments["set"] or subset or "val"}
    ours = {name: arguments[name] for name in _Options._fields} | {"protocol": protocol or ""}
    for name, official in _OFFICIAL.items():
        options = [f"--{option}" for option in official if arguments[option]]
        values = {arguments[option] for option in (name, *official)} - {None, ""}
        if len(values) > 1:
            raise UsageError(f"{' and '.join(options)}: {name} is given twice, as {' and '.join(sorted(values))}")
        ours[name] = next(iter(values), arguments[name])
    return _Options(**ours)


def _check(options: _Options) -> None:
    """Refuse options of this command that would be ignored or lack others; `segjudge.score` refuses the rest."""
    if not options.results:
        raise UsageError("score needs the results to score")
    if bool(options.phase) == bool(options.truth):
        raise UsageError("score needs either --phase, or --truth with --protocol")
    of_truth = ("protocol", "subset", "layout", "unseen", "cap", "id_zero_quirk", "categories")
    family = PROTOCOLS[options.protocol].family if options.protocol else ""
    ignored = {
        "--phase": (*of_truth, "chosen_part", "scheduler") if options.phase else (),
        "--scheduler": ("chosen_part",) if options.scheduler else (),
        "--part": ("report", "save") if options.chosen_part else (),
        "--truth": ("annotations",) if options.truth else (),
        family: ("cap", "id_zero_quirk", "style") if family and not FAMILIES[family].adjustable_rules else (),
    }
    for subject, fields in ignored.items():
        for field in fields:
            if getattr(options, field):
                raise UsageError(f"--{field.removeprefix('chosen_').replace('_', '-')} has no meaning for {subject}")
    if options.truth and not options.protocol:
        raise UsageError("--truth needs --protocol NAME; `segjudge benchmarks` lists the names")
    if bool(options.chosen_part) != bool(options.out):
        raise UsageError("--part and --out go together")


def _change_rules(protocol: FamilyProtocol, cap: str | None, quirk: str | None) -> FamilyProtocol:
    """Change the rules that were asked for, which the protocol's description then names."""
    if not cap and not quirk:
        return protocol
    from segjudge.evaluation_script.families.instances.protocols import PER_CATEGORY, PER_IMAGE, InstanceProtocol

    if not isinstance(protocol, InstanceProtocol):
        return protocol
    changed_protocol = replace(
        protocol,
        cap=cap or protocol.cap,
        id_zero_quirk=quirk == "on" if quirk else protocol.id_zero_quirk,
    )
    if changed_protocol == protocol:
        return protocol
    unit = {PER_IMAGE: "image", PER_CATEGORY: "image and category"}[changed_protocol.cap]
    effect = "cannot be matched" if changed_protocol.id_zero_quirk else "is as any other"
    about = f"changed: up to {protocol.detections[-1]} for each {unit}; the annotation with id 0 {effect}."
    return replace(changed_protocol, about=about)


def _score_part(options: _Options) -> int:
    from segjudge.evaluation_script.runner.parallel import Part
    from segjudge.scoring.scores import prepare
    from segjudge.scoring.sharing import PartCounter

    with ProgressBar() as bar:
        PartCounter(prepare(options.request(), bar)).write(Part(*options.chosen_part or (1, 1)), options.out or "", bar)
    mention(f"wrote {options.out}")
    return DONE


def _score_all(options: _Options, bar: ProgressBar) -> Scores:
    from segjudge.scoring.scores import prepare, prepare_phase

    if options.scheduler:
        from segjudge.scoring.sharing import connect, score_by_workers

        with connect(options.scheduler) as client:
            return score_by_workers(client, options.request(), bar)
    prepared = prepare_phase(*options.phase_inputs()) if options.phase else prepare(options.request(), bar)
    return prepared.score_openly(bar) if options.report or options.save else prepared.score(bar)


def _list_hidden(options: _Options) -> frozenset[str]:
    """List the splits whose scores a file for public hubs may not hold; refuses to write one of nothing else."""
    from segjudge.platforms.evalai.bundle.agreement import find_hidden_splits
    from segjudge.platforms.evalai.bundle.bundle_source import find_bundle

    source = find_bundle()
    phase = source.phase(options.phase or "")
    hidden = find_hidden_splits(source, phase)
    chosen_splits = {options.split} if options.split else {split.codename for split in phase.splits}
    if chosen_splits <= hidden:
        splits = f"{' and '.join(sorted(chosen_splits))} of {phase.codename}, whose scores participants are not shown"
        raise UsageError(f"--results-yaml writes what hubs publish, and nothing of {splits}")
    return hidden


def _merge(args: argparse.Namespace) -> int:
    from segjudge.scoring.parts import merge_parts

    output = read_options(_Output, args, page=None, compares=True, is_official=False, hidden=frozenset())
    output.check()
    _show(*merge_parts(args.parts), output)
    return DONE


def _show(
    reports: list[Report],
    notes: list[str],
    provenance: dict[str, Any],
    output: _Output,
) -> None:
    """Write the files that were asked for, and print what was scored, with notes on the truth and warnings."""
    from segjudge.evaluation_script.scoring.answer import public_warnings
    from segjudge.families import tools_of
    from segjudge.report.tables import format_report

    for note in public_warnings(notes):
        say(f"truth: {note}")
    document = _format_document(reports, provenance) if output.json else ""
    files: dict[str, str] = {}
    if output.csv:
        make_folder(output.csv)
        files = _make_csv(reports, output.csv)
        other_files = [path for path in (output.json, output.results_yaml, output.page) if path and path != "-"]
        check_outputs([*files, *other_files], [])
        for path, text in files.items():
            with open_output(path) as file:
                file.write(text)
    if output.json and output.json != "-":
        with open_output(output.json) as file:
            file.write(document + "\n")
    if output.results_yaml:
        with open_output(output.results_yaml) as file:
            public = [report for report in reports if report.split not in output.hidden]
            file.write(_make_results_yaml(public, output.hub_dataset))
    for path in files:
        mention(f"wrote {path}")
    for report in reports:
        if report.split in output.hidden:
            say(f"{report.split} is hidden from participants, and left out of {output.results_yaml}")
    stream = choose_stream(output.json)
    shown_on = look(stream)
    for report in reports:
        mention(f"Protocol {report.protocol.name}: {report.protocol.about}")
        text = tools_of(report.protocol.family).format_official(report) if output.is_official else ""
        text = text or format_report(report, compare=output.compares, look=shown_on) + "\n"
        print(text, file=stream)
    if output.json == "-":
        print(document)  # alone: a program reads it
    for line in public_warnings([line for report in reports for line in report.warnings]):
        say(f"warning: {line}")


def _format_document(reports: list[Report], provenance: dict[str, Any]) -> str:
    """Everything with full precision, as JSON."""
    from segjudge.scoring.document import make_document

    errors = [{report.split: report.errors()} for report in reports]
    intervals = [{report.split: report.intervals()} for report in reports]
    scores = {**make_document(reports, provenance), "errors": errors, "intervals": intervals}
    return json.dumps(scores, indent=1, allow_nan=False)


def _make_csv(reports: list[Report], folder: str) -> dict[str, str]:
    from segjudge.families import tools_of
    from segjudge.report.tables import format_cell, format_csv

    files = {}
    for report in reports:
        metrics, split = list(report.protocol.metrics), file_name(report.split)
        means = format_csv(metrics, [[format_cell(report.values[metric]) for metric in metrics]])
        texts = {"global_results": means, **tools_of(report.protocol.family).make_files(report)}
        for stem, text in texts.items():
            name = "results.csv" if stem == "results" and len(reports) == 1 else f"{stem}-{split}.csv"
            files[os.path.join(folder, name)] = text
    return files


def _make_results_yaml(reports: list[Report], dataset: str) -> str:
    """Write the entries of splits for a model's folder `.eval_results`: one metric, and a note on the others."""
    import yaml

    from segjudge.evaluation_script.scoring import VERSION
    from segjudge.report.tables import format_number

    entries = []
    for report in reports:
        ranking, *other_metrics = report.protocol.metrics
        value = report.values[ranking]
        if value is not None:
            notes = "".join(f", {name} {format_number(report.values[name])}" for name in other_metrics)
            entries.append(
                {
                    "dataset": {"id": dataset, "task_id": report.split},
                    "value": float(value),
                    "date": datetime.now(UTC).date().isoformat(),
                    "notes": f"{ranking}{notes}; protocol {report.protocol.name}, scored by segjudge {VERSION}",
                }
            )
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1000)


def _part_number(text: str) -> tuple[int, int]:
    """Read a value such as 3/64."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= 100_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part such as 3/64")
    return int(number), int(count)


def _add_score_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("results", nargs="?", type=InputPath, help="folder, zip, tar(.gz) or JSON with the predicted masks")
    add("--phase", type=PhaseName, help="score as this phase of the bundle")
    add("--annotations", type=InputPath, help="with --phase: another annotation file")
    truth = "a packed annotation file, or a dataset root or zip in its published layout"
    add("--truth", type=InputPath, help=truth)
    add("--protocol", choices=PROTOCOLS, metavar="PROTOCOL", help="a benchmark of those that `benchmarks` lists")
    add_truth_options(sub)
    add("--split", help="score this split alone")
    add("--sequences", type=names, help="score these sequences alone, separated by commas")
    add_jobs_option(sub)
    add("--scheduler", metavar="ADDRESS", help="score by the workers of a Dask cluster: tcp://HOST:8786")
    add("--cap", choices=["image", "category"], help="instances: what the cap on detections counts")
    add("--id-zero-quirk", choices=["on", "off"], help="instances: the annotation with id 0 is lost")
    add("--style", choices=["official"], help="instances: print as the script of Places 2017 does")
    add("--strict", action="store_true", help="warnings are errors")
    add(
        "--part",
        dest="chosen_part",
        type=_part_number,
        metavar="K/N",
        help="count part K of N alone, for `merge`; needs --out",
    )
    add("--out", metavar="FILE", type=OutputFile, help="with --part: the file to write")
    add("--report", metavar="FILE", type=OutputFile, help="write the page that `segjudge report` writes")
    about = "write what was counted, for `compare` and `rank` without the truth; keep it where the truth is kept"
    add("--save", metavar="FILE", type=OutputFile, help=about)
    _add_output_options(sub)
    # The options of the scripts of DAVIS and Places 2017 are taken, and described in docs/participants.md.
    paths = ("--davis_path", "--results_path", "--dataset_json", "--preds_json", "--imgCatIdsFile")
    for option in paths:
        add(option, type=InputPath, help=argparse.SUPPRESS)
    add("--task", choices=list(_TASKS), help=argparse.SUPPRESS)
    add("--set", help=argparse.SUPPRESS)


def _add_merge_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("parts", nargs="+", type=InputPath, help="all parts of one scoring, in any order")
    _add_output_options(sub)


def _add_output_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("--csv", metavar="DIR", type=OutputFolder, help="write CSV files, for sequences as the official tool does")
    add("--json", metavar="FILE", type=OutputFile, help="write everything with full precision (- for stdout)")
    add("--results-yaml", metavar="FILE", type=OutputFile, help="write what model hubs read in .eval_results")
    add("--hub-dataset", metavar="OWNER/NAME", default="", help="with --results-yaml: the data set there")


COMMANDS = {"score": Command(_add_score_options, _score), "merge": Command(_add_merge_options, _merge)}
