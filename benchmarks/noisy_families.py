"""Compare the scoring of clean predictions with noisy ones, by families, and with official evaluators.

    python -m benchmarks.noisy_families [SET …] [--scale 1] [--repeat N] [--peers FOLDER] [--peer-python PYTHON]

Every set is made by the seeded generators of `tracks` and `sequences`, and is no benchmark's data.  The clean prediction is
slightly wrong, with smooth edges; the other one is the same with noise (`spoiling`).  Everything runs on one core, and
numbers of the noisy set are compared with the evaluator's.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import sequences, tracks
from benchmarks.families import NoisyTracks, merge_rows
from benchmarks.measuring import Table, Task, add_peers, least, options, segjudge, show, take_turns
from benchmarks.spoiling import spoil_folder, spoil_records

#: The kinds of predictions; the clean one is first.
KINDS = ("clean", "noisy")


def _write_videos(folder: Path, videos: int) -> None:
    sequences.write_dataset(folder, sequences.synthetic([20] * videos, [3, 2] * (videos // 2) + [1] * (videos % 2)))
    (folder / "predictions").rename(folder / KINDS[0])
    spoil_folder(folder / KINDS[0], folder / KINDS[1])


def _write_tracks(noisy_tracks: NoisyTracks, folder: Path, thousandths: int) -> None:
    tracked, (clean, noisy) = tracks.SETS[noisy_tracks.track_set], (folder / kind for kind in KINDS)
    noisy.mkdir()
    make = noisy_tracks.make or tracked.make
    make(clean, np.random.default_rng(1), thousandths / 1000, tracked.size)
    for path in clean.glob("truth*"):
        (noisy / path.name).symlink_to(path)
    results = clean / tracked.results
    if results.is_file():
        spoil_records(results, noisy / tracked.results)
    else:
        spoil_folder(results, noisy / tracked.results)


@dataclass(frozen=True)
class NoisySet:
    """A set with both kinds of predictions."""

    #: Writes so many units.
    write: Callable[[Path, int], None]
    #: How many a scale of 1 has.
    units: int
    #: The protocol, and the paths of the truth and of a kind of predictions.
    protocol: str
    truth: str = "truth"
    results: str = "{kind}"
    #: A program that scores the same, and its command for a folder, a kind and the options.
    peer: str = ""
    command: Callable[[Path, str, Namespace], Task] | None = None
    #: Whether it prints metrics with our names.
    prints: bool = False


def _run_videos(folder: Path, kind: str, args: Namespace) -> Task:
    masks = ["-g", str(folder / sequences.MASKS), "-m", str(folder / kind)]
    clean = f"import glob, os, runpy, sys; [os.remove(path) for path in glob.glob({str(folder / kind)!r} + '/*.csv')]"
    start = f"{clean}; sys.argv = sys.argv[1:]; sys.path[0] = '.'; runpy.run_path(sys.argv[0], run_name='__main__')"
    words = ["benchmark.py", "-n", "1", *masks]
    return Task([args.peer_python, "-c", start, *words], args.peers / sequences.PEER, is_peer=True)


def _prepare(noisy_tracks: NoisyTracks) -> NoisySet:
    tracked = tracks.SETS[noisy_tracks.track_set]
    peer, script = tracked.peers[noisy_tracks.protocol]

    def command(folder: Path, kind: str, args: Namespace) -> Task:
        return Task([args.peer_python, "-c", script, str(args.peers / peer), str(folder / kind)], is_peer=True)

    paths = (f"{KINDS[0]}/{tracked.truth}", f"{{kind}}/{tracked.results}")
    write = partial(_write_tracks, noisy_tracks)
    return NoisySet(write, noisy_tracks.thousandths, noisy_tracks.protocol, *paths, peer, command, prints=True)


#: Name → set.
FAMILIES: dict[str, NoisySet] = {
    "sequences": NoisySet(_write_videos, 4, sequences.PROTOCOL, "root", peer=sequences.PEER, command=_run_videos),
    **{name: _prepare(noisy_tracks) for name, noisy_tracks in merge_rows("NOISY_SETS").items()},
}
HEAD = ["set, protocol", "clean", "with noise", "ratio", "peer", "with noise", "times ours"]


def measure(name: str, args: Namespace, folder: Path) -> list[str]:
    """Return the row of a set: CPU seconds of both kinds of predictions, and of the peer with noise."""
    noisy_set = FAMILIES[name]
    noisy_set.write(folder, max(2, round(args.scale * noisy_set.units)))
    tasks = {}
    for kind in KINDS:
        sides = (folder / noisy_set.results.format(kind=kind), "--truth", folder / noisy_set.truth)
        score = segjudge("score", *sides, "--protocol", noisy_set.protocol, "--json", folder / f"{kind}.json")
        tasks[kind] = Task(score)
    clean, noisy = KINDS
    if noisy_set.command is not None:
        tasks[noisy_set.peer] = noisy_set.command(folder, noisy, args)
    runs = take_turns(tasks, args.repeat)
    costs = {task: least(known).cpu for task, known in runs.items()}
    row = [f"{name}, `{noisy_set.protocol}`", *(f"{costs[kind]:.2f}" for kind in KINDS)]
    row += [f"{costs[noisy] / costs[clean]:.2g}"]
    if noisy_set.peer not in runs:
        return [*row, "", "", ""]
    if noisy_set.prints:
        values = tracks.read_values(runs[noisy_set.peer][0])
        for text in tracks.differences(tracks.read_scores(folder / f"{noisy}.json"), values):
            print(f"{noisy_set.protocol}: {text}")
    return [*row, noisy_set.peer, f"{costs[noisy_set.peer]:.2f}", f"{costs[noisy_set.peer] / costs[noisy]:.2g}"]


def main(arguments: Sequence[str] | None = None) -> Table:
    parser = options(__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"of {', '.join(FAMILIES)}; by default all")
    parser.add_argument("--scale", type=float, default=1, help="how many times as many images")
    add_peers(parser)
    args = parser.parse_args(arguments)
    rows = []
    for name in args.families or FAMILIES:
        with tempfile.TemporaryDirectory() as temporary:
            rows.append(measure(name, args, Path(temporary).resolve()))
    return show(Table(HEAD, rows))


if __name__ == "__main__":
    main()
