"""`segjudge interactive`: serve sessions, run a method through one, plot its curve."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from segjudge.evaluation_script.files.problems import HostError, Problem, SubmissionError, quantity
from segjudge.masks import DEMO_SEED
from segjudge.system.errors import UsageError
from segjudge.system.files import OutputFolder

from .shared import (
    DONE,
    Command,
    InputPath,
    ProgressBar,
    add_quiet_option,
    listen,
    program,
    read_options,
    say,
    seconds,
    whole_number,
)

if TYPE_CHECKING:
    from segjudge.interactive import DavisInteractiveSession
    from segjudge.interactive.dataset import InteractiveDataset
    from segjudge.interactive.reports import Sample, Summary
    from segjudge.interactive.runs import Model

_LOOPBACK, _PORT = "127.0.0.1", 8897
_USER_KEY = "SEGJUDGE_USER_KEY"


@dataclass(frozen=True)
class _Dataset:
    """The sequences of a session."""

    root: str | None
    layout: str | None
    images: str | None
    subset: str
    draw: int

    def open(self) -> InteractiveDataset:
        from segjudge.interactive.other_datasets import open_dataset

        return open_dataset(self.root or "", self.layout, self.images, self.draw)


@dataclass(frozen=True)
class _Terms:
    """When a session ends, and what it sums up."""

    max_time: float | None
    max_nb_interactions: int
    metric: str

    def check(self) -> None:
        """Refuse a session that would never end."""
        if not self.max_time and not self.max_nb_interactions:
            raise UsageError("a session without limits would never end: give --max-time or --max-nb-interactions")


def _interactive(args: argparse.Namespace) -> int:
    from segjudge.evaluation_script.files.packed import NotWritten

    try:
        code: int = args.action(args)
    except NotWritten:
        raise
    except OSError as error:  # of a dataset, a report, a server
        raise HostError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from None
    except ModuleNotFoundError as error:
        if "the interactive session needs more" not in str(error):
            raise
        raise UsageError(str(error)) from None
    return code


def _serve(args: argparse.Namespace) -> int:
    from segjudge.interactive.server import serve
    from segjudge.interactive.session import SessionTerms
    from segjudge.interactive.session_host import SessionLimits, hold_sessions, read_users

    ends = read_options(_Terms, args)
    ends.check()
    users = read_users(args.users)
    port = listen(args.bind, args.port)
    dataset = read_options(_Dataset, args).open()
    terms = SessionTerms(args.subset, args.shuffle, ends.max_time, ends.max_nb_interactions, ends.metric)
    limits = SessionLimits(
        args.max_body << 20, args.max_runs << 20, args.max_pixels << 20, args.sessions, args.idle,
        args.sessions_per_sequence,
    )  # fmt: skip
    with hold_sessions(Path(args.data), dataset, terms, users, limits) as host:
        sequences = quantity(len(dataset.sequences(args.subset)), "sequence")
        say(f"{sequences} for {quantity(len(users), 'user')}; {args.data} keeps the sessions.")
        if args.bind not in (_LOOPBACK, "::1", "localhost"):
            say("Keys and masks cross the network unencrypted: put a proxy with TLS in front of it.")
        host_name = f"[{args.bind}]" if ":" in args.bind else args.bind
        print(f"Sessions are held at http://{host_name}:{port.getsockname()[1]} until you press Ctrl-C.", flush=True)
        serve(host, port)
    return DONE


@dataclass(frozen=True)
class _Run:
    """Where a method's session is held, and where its report goes."""

    host: str | None
    user_key: str | None
    out: str
    resume: bool


def _run(args: argparse.Namespace) -> int:
    import traceback

    from segjudge.interactive.remote_session import NoServerError, UnknownSessionError
    from segjudge.interactive.reports import TEMPORARY
    from segjudge.interactive.runs import ModelError, run

    model = _load_model(args.model)
    options = (read_options(_Run, args), read_options(_Dataset, args), read_options(_Terms, args))
    with ProgressBar("interaction") as bar, _plain_warnings():
        try:
            session, image_paths = _open_session(*options)
            summary = run(session, model, image_paths, bar, steps=args.steps)
        except (NoServerError, UnknownSessionError) as error:
            raise HostError(str(error)) from None
        except ModelError as error:
            if error.is_first:  # an empty report, with which nothing can be resumed
                (session.report_save_dir / f"{session.report_name}{TEMPORARY}").unlink(missing_ok=True)
            traceback.print_exception(error.__cause__)
            fault = f"failed at {error.interaction} ({type(error.__cause__).__name__}: {error.__cause__})"
            remedy = "Fix it, and run it again" if error.is_first else "Fix it, and go on from here with --resume"
            raise SubmissionError.of(Problem(args.model, fault, remedy)) from None
    _print_summary(session, summary)
    return DONE


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Say what a session warns of in a line; warnings of a method and its libraries are shown as Python shows them."""
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


def _open_session(
    run: _Run, source: _Dataset, terms: _Terms
) -> tuple[DavisInteractiveSession, Callable[[str], list[str]]]:
    """Open the session that the options name; return a function too, from a sequence to the paths of its images."""
    from segjudge.interactive import DavisInteractiveSession
    from segjudge.interactive.dataset import list_files

    def of_option(sequence: str) -> list[str]:
        return list_files(os.path.join(source.images, sequence), ".jpg") if source.images else []

    if run.host:
        key = run.user_key or os.environ.get(_USER_KEY)
        if not key:
            raise UsageError(f"--host needs --user-key, or the variable {_USER_KEY}")
        return DavisInteractiveSession(run.host, key, report_save_dir=run.out, resume=run.resume), of_option
    if not source.root:
        raise UsageError("give --root, or --host for a session over the wire")
    terms.check()
    dataset = source.open()
    session = DavisInteractiveSession(
        subset=source.subset, max_time=terms.max_time, max_nb_interactions=terms.max_nb_interactions,
        metric_to_optimize=terms.metric, report_save_dir=run.out, resume=run.resume, dataset=dataset,
    )  # fmt: skip
    return session, of_option if source.images and not source.layout else dataset.image_paths


def _print_summary(session: DavisInteractiveSession, summary: Summary) -> None:
    from segjudge.interactive.runs import METRIC_NAMES

    (metric,) = summary["curve"].keys() - {"time"}
    print(f"interaction  seconds  {METRIC_NAMES[metric]}")
    rows = list(zip(summary["curve"]["time"], summary["curve"][metric], strict=True))[1:-1]
    for number, (spent, value) in enumerate(rows, 1):
        print(f"{number:<11}  {spent:7.1f}  {value:.4f}")
    at = summary["metric_at_threshold"]
    print(f"AUC {summary['auc']:.4f}, {METRIC_NAMES[metric]} at {at['threshold']:g} s {at[metric]:.4f}")
    report = os.path.relpath(session.report_save_dir / f"{session.report_name}.csv")
    print(f"Report: {report}\nLook at it: {program()} interactive plot {report} --out page")


def _load_model(name: str) -> Model:
    """Import what MODULE:FUNCTION names; of a class, make an instance."""
    import importlib
    import traceback

    module, _, attribute = name.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        attribute_value = getattr(importlib.import_module(module), attribute)
        model: Model = attribute_value() if isinstance(attribute_value, type) else attribute_value
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise UsageError(f"{name}: is not a MODULE:FUNCTION that can be imported here ({error})") from None
    except Exception as error:  # noqa: BLE001 - a participant's own code
        traceback.print_exc()
        fault = f"cannot be made ({type(error).__name__}: {error})"
        raise SubmissionError.of(Problem(name, fault, "Fix it")) from None
    return model


def _plot(args: argparse.Namespace) -> int:
    from segjudge.interactive.runs import plot, read_run

    source = read_options(_Dataset, args)
    samples = _count_objects(source.open(), source.subset) if source.root else None
    runs = [read_run(report, samples) for report in args.reports]
    for run in runs:
        if not run.complete:
            say(f"{run.name}: no summary is beside this report, so samples without masks in time are left out; "
                "name the dataset with --root, and they count as 0.")  # fmt: skip
    out = Path(args.out)
    with ProgressBar("interaction") as bar:
        plot(runs, out, bar)
    for run in runs:
        print(f"{run.name}  AUC {run.summary['auc']:.4f}")
    end_times = [run.summary["curve"]["time"][-1] for run in runs]
    if max(end_times) > 1.01 * min(end_times):
        say("Each area is over its run's own time; only runs with the same --max-time compare by it.")
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
    from segjudge.interactive.other_datasets import make_demo_scenes, write_demo_root

    write_demo_root(Path(args.out), make_demo_scenes(args.seed))
    command = f"{program()} interactive run segjudge.interactive.baseline:Baseline --root {args.out}"
    print(f"Wrote {args.out}; try: {command}")
    return DONE


class _Action(NamedTuple):
    """What one of the actions is, and does."""

    about: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def _add_options(sub: argparse.ArgumentParser) -> None:
    actions = sub.add_subparsers(required=True, metavar="ACTION")
    for name, action in _ACTIONS.items():
        parser = actions.add_parser(name, help=action.about, description=action.about)
        parser.set_defaults(action=action.run)
        action.add_options(parser)
        add_quiet_option(parser, within=True)


def _add_run_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("model", metavar="MODULE:FUNCTION", help="called with sequence, scribbles, new_sequence, images")
    _add_session_options(sub, required=False)
    add("--host", help="address of a server; subset, order and limits are then its own")
    add("--user-key", help=f"for --host (default: the variable {_USER_KEY})")
    add("--out", default=".", type=OutputFolder, help="where the report goes (here)")
    add("--resume", action="store_true", help="go on with the newest unfinished report there")
    add("--steps", action="store_true", help="keep scribbles and masks of each interaction for `plot`")


def _add_demo_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--out", required=True, type=OutputFolder, help="the folder to write")
    sub.add_argument("--seed", type=int, default=DEMO_SEED, help="another seed makes other videos")


def _add_plot_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("reports", nargs="+", type=InputPath, metavar="[NAME=]REPORT", help="CSV files of sessions")
    out = "folder for curves.png, curves.svg and index.html"
    sub.add_argument("--out", required=True, type=OutputFolder, help=out)
    _add_dataset_options(sub, required=False)


def _add_session_options(sub: argparse.ArgumentParser, *, required: bool) -> None:
    _add_dataset_options(sub, required=required)
    sub.add_argument("--max-time", type=seconds, help="seconds for each object of a sample")
    sub.add_argument("--max-nb-interactions", type=whole_number(0, 16), default=5, help="with each sample (5)")
    sub.add_argument("--metric", default="J_AND_F", choices=["J", "F", "J_AND_F"], help="what is summed up (J_AND_F)")


def _add_dataset_options(sub: argparse.ArgumentParser, *, required: bool) -> None:
    from segjudge.evaluation_script.families.sequences.layouts import LAYOUTS

    root = "DAVIS' root; with --layout any dataset or packed file"
    sub.add_argument("--root", required=required, type=InputPath, help=root)
    sub.add_argument("--layout", choices=sorted(LAYOUTS), metavar="LAYOUT", help=", ".join(sorted(LAYOUTS)))
    sub.add_argument(
        "--images", type=InputPath, help="where the pictures are, with --layout (default: beside the masks)"
    )
    sub.add_argument("--subset", default="val", help="list or split of sequences (val)")
    sub.add_argument("--draw", type=whole_number(0, 100), default=0, metavar="SETS",
                     help="let the robot draw so many sets of first scribbles for each sequence")  # fmt: skip


def _add_serve_options(sub: argparse.ArgumentParser) -> None:
    _add_session_options(sub, required=True)
    add = sub.add_argument
    add("--users", required=True, help="file with a line `name key` for each user")
    add("--data", default=os.path.join(".segjudge", "interactive"), help="where sessions are kept")
    add("--bind", default=_LOOPBACK, help=f"the address to listen at ({_LOOPBACK})")
    add("--port", type=whole_number(0, 65535), default=_PORT, help=f"default {_PORT}; 0 takes any")
    add("--shuffle", action="store_true", help="another order of samples for each session")
    add("--max-body", type=whole_number(1, 4096), default=64, metavar="MB", help="of a submission (64)")
    add("--max-runs", type=whole_number(1, 4096), default=32, metavar="MB", help="of run lengths in a submission (32)")
    pixels = "millions of frames × height × width of a sequence (1024)"
    add("--max-pixels", type=whole_number(1, 1 << 20), default=1024, metavar="M", help=pixels)
    add("--sessions", type=whole_number(1, 1000), default=4, help="unfinished ones of a user (4)")
    measured = "in which a user may have masks of one sequence measured, ever (5)"
    add("--sessions-per-sequence", type=whole_number(1, 10**6), default=5, metavar="N", help=measured)
    add("--idle", type=seconds, default=24 * 3600.0, metavar="SECONDS", help="after which a session is closed (a day)")


_ACTIONS = {
    "serve": _Action("Hold sessions for users elsewhere.", _add_serve_options, _serve),
    "run": _Action(
        "Run a method through a complete session: MODULE:FUNCTION answers scribbles with masks.", _add_run_options, _run
    ),
    "demo": _Action(
        "Write a small synthetic dataset with pictures and scribbles, to try a method on.",
        _add_demo_options,
        _write_demo,
    ),
    "plot": _Action(
        "Draw the curves of runs, and a page in which each interaction can be stepped through.",
        _add_plot_options,
        _plot,
    ),
}
COMMANDS = {"interactive": Command(_add_options, _interactive)}
