"""`segjudge interactive`: serve sessions, run a method through one, plot its curve."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.files.problems import HostError, Problem, SubmissionError, quantity
from segjudge.masks import DEMO_SEED
from segjudge.system.errors import UsageError
from segjudge.system.files import OutputFolder
from segjudge.system.options import whole_number

from .parser import CommandParser, fill, program
from .shared import (
    DONE,
    OUTPUT,
    Command,
    InputPath,
    ProgressBar,
    add_help_option,
    add_quiet_option,
    listen,
    say,
    seconds,
)

if TYPE_CHECKING:
    from segjudge.interactive import DavisInteractiveSession
    from segjudge.interactive.dataset import InteractiveDataset
    from segjudge.interactive.reports import Sample, Summary
    from segjudge.interactive.runs import Model

_LOOPBACK, _PORT = "127.0.0.1", 8897
_USER_KEY = "SEGJUDGE_USER_KEY"
#: The groups of options in the help.
_DATASET, _SESSION, _SERVER, _LIMITS = "dataset", "session", "server", "limits"


def _open_dataset(args: argparse.Namespace) -> InteractiveDataset:
    from segjudge.interactive.mask_datasets import open_dataset

    return open_dataset(args.root or "", args.layout, args.images, args.draw)


def _check_terms(args: argparse.Namespace) -> None:
    """Raise UsageError for a session that would never end."""
    if not args.max_time and not args.max_nb_interactions:
        raise UsageError("a session without limits would never end: give --max-time or --max-nb-interactions")


def _run_action(args: argparse.Namespace) -> int:
    from segjudge.evaluation_script.files.packed import NotWritten

    try:
        code: int = args.action(args)
    except NotWritten:
        raise
    except OSError as error:  # of a dataset, a report, a server
        raise HostError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from None
    return code


def _serve(args: argparse.Namespace) -> int:
    from segjudge.interactive.server import serve
    from segjudge.interactive.session import SessionTerms
    from segjudge.interactive.session_host import SessionLimits, hold_sessions, read_users

    _check_terms(args)
    users = read_users(args.users)
    port = listen(args.bind, args.port)
    dataset = _open_dataset(args)
    terms = SessionTerms(args.subset, args.shuffle, args.max_time, args.max_nb_interactions, args.metric)
    limits = SessionLimits(
        args.max_body << 20, args.max_runs << 20, args.max_pixels << 20, args.sessions, args.idle,
        args.sessions_per_sequence,
    )  # fmt: skip
    with hold_sessions(Path(args.data), dataset, terms, users, limits) as host:
        sequences = quantity(len(dataset.sequences(args.subset)), "sequence")
        say(f"{sequences} for {quantity(len(users), 'user')}; sessions are stored in {args.data}.")
        if args.bind not in (_LOOPBACK, "::1", "localhost"):
            say("Keys and masks cross the network unencrypted: put a TLS proxy in front of the server.")
        host_name = f"[{args.bind}]" if ":" in args.bind else args.bind
        print(f"Serving sessions at http://{host_name}:{port.getsockname()[1]} until you press Ctrl-C.", flush=True)
        serve(host, port)
    return DONE


def _run(args: argparse.Namespace) -> int:
    import traceback

    from segjudge.interactive.remote_session import NoServerError, UnknownSessionError
    from segjudge.interactive.reports import TEMPORARY
    from segjudge.interactive.runs import ModelError, run

    model = _load_model(args.model)
    with ProgressBar("interaction") as bar, _plain_warnings():
        try:
            session, image_paths = _open_session(args)
            summary = run(session, model, image_paths, bar, steps=args.steps)
        except (NoServerError, UnknownSessionError) as error:
            raise HostError(str(error)) from None
        except ModelError as error:
            if error.is_first:  # an empty report, with which nothing can be resumed
                (session.report_save_dir / f"{session.report_name}{TEMPORARY}").unlink(missing_ok=True)
            traceback.print_exception(error.__cause__)
            fault = f"failed at {error.interaction} ({type(error.__cause__).__name__}: {error.__cause__})"
            remedy = "Fix it, and run it again" if error.is_first else "Fix it, and continue with --resume"
            raise SubmissionError.from_problem(Problem(args.model, fault, remedy)) from None
    _print_summary(session, summary)
    return DONE


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print a session's warnings as single lines; others as Python shows them."""
    import warnings

    import segjudge.interactive

    ours = os.path.dirname(segjudge.interactive.__file__)
    with warnings.catch_warnings():
        show_as_python = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], filename: str, *line: Any, **options: Any) -> None:
            if filename.startswith(ours):
                say(f"warning: {message}")
            else:
                show_as_python(message, category, filename, *line, **options)

        warnings.showwarning = show
        yield


def _open_session(args: argparse.Namespace) -> tuple[DavisInteractiveSession, Callable[[str], list[str]]]:
    """Return the session of the options, and a function from a sequence to its image paths."""
    from segjudge.interactive import DavisInteractiveSession
    from segjudge.interactive.dataset import list_files

    def of_option(sequence: str) -> list[str]:
        return list_files(os.path.join(args.images, sequence), ".jpg") if args.images else []

    if args.host:
        key = args.user_key or os.environ.get(_USER_KEY)
        if not key:
            raise UsageError(f"--host needs --user-key, or the variable {_USER_KEY}")
        return DavisInteractiveSession(args.host, key, report_save_dir=args.out, resume=args.resume), of_option
    if not args.root:
        raise UsageError("give --root, or --host for a session on a server")
    _check_terms(args)
    dataset = _open_dataset(args)
    session = DavisInteractiveSession(
        subset=args.subset, max_time=args.max_time, max_nb_interactions=args.max_nb_interactions,
        metric_to_optimize=args.metric, report_save_dir=args.out, resume=args.resume, dataset=dataset,
    )  # fmt: skip
    return session, of_option if args.images and not args.layout else dataset.image_paths


def _print_summary(session: DavisInteractiveSession, summary: Summary) -> None:
    from segjudge.interactive.runs import METRIC_NAMES

    (metric,) = summary["curve"].keys() - {"time"}
    print(f"interaction  seconds  {METRIC_NAMES[metric]}")
    rows = list(zip(summary["curve"]["time"], summary["curve"][metric], strict=True))[1:-1]
    for number, (spent, value) in enumerate(rows, 1):
        print(f"{number:<11}  {spent:7.1f}  {value:.4f}")
    end = summary["metric_at_threshold"]
    print(f"AUC {summary['auc']:.4f}, {METRIC_NAMES[metric]} at {end['threshold']:g} s {end[metric]:.4f}")
    report = os.path.relpath(session.report_save_dir / f"{session.report_name}.csv")
    print(f"Report: {report}\nLook at it: {program()} interactive plot {report} --out page")


def _load_model(name: str) -> Model:
    """Return the object named by MODULE:FUNCTION; a class is instantiated."""
    import importlib
    import traceback

    module, _, attribute = name.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        attribute_value = getattr(importlib.import_module(module), attribute)
        model: Model = attribute_value() if isinstance(attribute_value, type) else attribute_value
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise UsageError(f"{name}: is not a MODULE:FUNCTION that Python can import ({error})") from None
    except Exception as error:  # noqa: BLE001 - a participant's own code
        traceback.print_exc()
        fault = f"cannot be made ({type(error).__name__}: {error})"
        raise SubmissionError.from_problem(Problem(name, fault, "Fix it")) from None
    return model


def _plot(args: argparse.Namespace) -> int:
    from segjudge.interactive.runs import plot, read_run

    samples = _count_objects(_open_dataset(args), args.subset) if args.root else None
    runs = [read_run(report, samples) for report in args.reports]
    for run in runs:
        if not run.complete:
            say(
                f"{run.name}: this report has no summary in its folder, so samples without masks in time are skipped; "
                "to count them as 0, name the dataset with --root."
            )
    out = Path(args.out)
    with ProgressBar("interaction") as bar:
        plot(runs, out, bar)
    for run in runs:
        print(f"{run.name}  AUC {run.summary['auc']:.4f}")
    end_times = [run.summary["curve"]["time"][-1] for run in runs]
    if max(end_times) > 1.01 * min(end_times):
        say("Each AUC covers the time of its own run; compare only runs with the same --max-time.")
    print(f"Wrote {out / 'curves.png'}, {out / 'curves.svg'} and {out / 'index.html'}")
    return DONE


def _count_objects(dataset: InteractiveDataset, subset: str) -> dict[Sample, int]:
    """Count the objects of each sample of a session."""
    return {
        (name, number): dataset.dataset[name]["num_objects"]
        for name in dataset.sequences(subset)
        for number in range(1, dataset.num_scribbles(name) + 1)
    }


def _write_demo(args: argparse.Namespace) -> int:
    from segjudge.interactive.mask_datasets import make_demo_scenes, write_demo_root

    write_demo_root(Path(args.out), make_demo_scenes(args.seed))
    command = f"{program()} interactive run my_method:answer --root {args.out}"
    print(f"Wrote {args.out}; try: {command}")
    return DONE


#: The column at which the descriptions of actions begin.
_ABOUT_COLUMN = 14


def _add_options(sub: CommandParser) -> None:
    actions = sub.add_subparsers(required=True, metavar="ACTION")
    for name, (about, action) in _ACTIONS.items():
        parser = actions.add_parser(name, help=fill(about, _ABOUT_COLUMN), description=fill(about), add_help=False)
        parser.set_defaults(action=action.run, example=action.example)
        action.add_options(parser)
        add_quiet_option(parser, within=True)
        add_help_option(parser)


def _add_run_options(sub: CommandParser) -> None:
    about = "your method, called with sequence, scribbles, new_sequence and images"
    sub.add_argument("model", metavar="MODULE:FUNCTION", help=about)
    sub.arrange_groups(_DATASET, OUTPUT, _SESSION, _SERVER)
    _add_session_options(sub, required=False)
    add = sub.options_of(OUTPUT)
    add("--out", metavar="FOLDER", default=".", type=OutputFolder, help="the folder for the report (default: here)")
    add("--steps", action="store_true", help="keep scribbles and masks of each interaction for `plot`")
    add("--resume", action="store_true", help="continue the newest unfinished report in FOLDER")
    add = sub.options_of(_SERVER)
    add("--host", metavar="URL", help="run against this server, which sets subset, order and limits")
    add("--user-key", metavar="KEY", help=f"your key on the server (default: the variable {_USER_KEY})")


def _add_demo_options(sub: CommandParser) -> None:
    add = sub.options_of(OUTPUT)
    add("--out", metavar="FOLDER", required=True, type=OutputFolder, help="the folder to write")
    add("--seed", metavar="N", type=int, default=DEMO_SEED, help="the seed of the videos (default: %(default)s)")


def _add_plot_options(sub: CommandParser) -> None:
    about = "the CSV report of a session; NAME= sets the name in the legend"
    sub.add_argument("reports", nargs="+", type=InputPath, metavar="[NAME=]REPORT", help=about)
    out = "the folder for curves.png, curves.svg and index.html"
    sub.options_of(OUTPUT)("--out", metavar="FOLDER", required=True, type=OutputFolder, help=out)
    _add_dataset_options(sub, required=False)


def _add_session_options(sub: CommandParser, *, required: bool) -> None:
    _add_dataset_options(sub, required=required)
    add = sub.options_of(_SESSION)
    about = "interactions per sample (default: 5)"
    add("--max-nb-interactions", metavar="N", type=whole_number(0, 16), default=5, help=about)
    add("--max-time", metavar="SECONDS", type=seconds, help="time limit for each object of a sample")
    about = "the metric of the curve (default: J_AND_F)"
    add("--metric", default="J_AND_F", choices=["J", "F", "J_AND_F"], help=about)


def _add_dataset_options(sub: CommandParser, *, required: bool) -> None:
    from segjudge.evaluation_script.families.sequences.layouts import LAYOUTS

    add = sub.options_of(_DATASET)
    root = "the root of DAVIS; with --layout another dataset or a packed annotation file"
    add("--root", metavar="PATH", required=required, type=InputPath, help=root)
    add("--subset", metavar="LIST", default="val", help="the list or split of sequences (default: val)")
    add("--images", metavar="DIR", type=InputPath, help="the folder of pictures (default: beside the masks)")
    add("--layout", choices=sorted(LAYOUTS), metavar="LAYOUT", help="the file layout of the dataset: %(choices)s")
    about = "number of first scribbles that the robot draws for each sequence"
    add("--draw", type=whole_number(0, 100), default=0, metavar="SETS", help=about)


def _add_serve_options(sub: CommandParser) -> None:
    sub.arrange_groups(_DATASET, _SERVER, _SESSION, _LIMITS)
    _add_session_options(sub, required=True)
    sub.options_of(_SESSION)("--shuffle", action="store_true", help="shuffle the samples of each session")
    add = sub.options_of(_SERVER)
    add("--users", required=True, type=InputPath, metavar="FILE", help="file with a line `name key` for each user")
    about = "the folder of the sessions (default: %(default)s)"
    add("--data", metavar="DIR", default=os.path.join(".segjudge", "interactive"), help=about)
    add("--bind", metavar="ADDRESS", default=_LOOPBACK, help=f"the address to listen on (default: {_LOOPBACK})")
    about = f"the port to listen on (default: {_PORT}; 0: any free port)"
    add("--port", metavar="N", type=whole_number(0, 65535), default=_PORT, help=about)
    add = sub.options_of(_LIMITS)
    about = "maximum unfinished sessions per user (default: 4)"
    add("--sessions", metavar="N", type=whole_number(1, 1000), default=4, help=about)
    about = "maximum number of sessions, in total, in which a user may submit masks of one sequence (default: 5)"
    add("--sessions-per-sequence", type=whole_number(1, 10**6), default=5, metavar="N", help=about)
    about = "close a session after this time without a request (default: a day)"
    add("--idle", type=seconds, default=24 * 3600.0, metavar="SECONDS", help=about)
    about = "maximum size of a submission (default: 64)"
    add("--max-body", type=whole_number(1, 4096), default=64, metavar="MB", help=about)
    about = "maximum size of the run lengths in a submission (default: 32)"
    add("--max-runs", type=whole_number(1, 4096), default=32, metavar="MB", help=about)
    pixels = "maximum frames × height × width of a sequence, in millions (default: 1024)"
    add("--max-pixels", type=whole_number(1, 1 << 20), default=1024, metavar="M", help=pixels)


_EXAMPLE = "segjudge interactive run my_method:segment --root DAVIS"
#: The actions of the command, with their help.
_ACTIONS = {
    "serve": (
        "Serve sessions to users on other machines.",
        Command(_add_serve_options, _serve, "segjudge interactive serve --root DAVIS --users users.txt"),
    ),
    "run": (
        "Run a method through a complete session; it answers scribbles with masks.",
        Command(_add_run_options, _run, _EXAMPLE),
    ),
    "demo": (
        "Write a small synthetic dataset with pictures and scribbles.",
        Command(_add_demo_options, _write_demo, "segjudge interactive demo --out demo"),
    ),
    "plot": (
        "Draw the curves of runs, and a page that steps through each interaction.",
        Command(_add_plot_options, _plot, "segjudge interactive plot ours=report.csv --out page"),
    ),
}
COMMANDS = {"interactive": Command(_add_options, _run_action, _EXAMPLE)}
