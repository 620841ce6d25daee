"""`segjudge pack`, `convert`, `compress`, `show`, `demo`: datasets and results in other files, and a look at them."""

import argparse
import json
import os

from segjudge.datasets.demo import SEED
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.files.problems import name_hint, verb
from segjudge.families import LAYOUTS
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.system.errors import UsageError
from segjudge.system.files import BuiltFile, OutputFile, OutputFolder, check_outputs, written

from .shared import DONE, ProgressBar, say


def pack(args: argparse.Namespace) -> int:
    """Make an annotation file from a dataset in its published layout."""
    from segjudge.datasets import opening

    source = opening.TruthSource(args.root, args.layout, args.subset, args.unseen, args.categories or "")
    with ProgressBar("item") as bar:
        truth = opening.pack(source, args.out, args.split, bar)
    _warn(truth.notes)
    print(f"{args.out}: split {truth.split}, {truth.about}, {os.path.getsize(args.out) / 1e6:.1f} MB")
    return DONE


def convert(args: argparse.Namespace) -> int:
    """Convert Places-style PNGs to COCO's JSON, as the official converter does."""
    from segjudge.families.instances.published import convert as convert_places

    root, out = (_given(args, *names) for names in (("png_dir", "ann_dir"), ("out", "output_json")))
    categories = _given(args, "categories", "imgCatIdsFile")
    with ProgressBar("image") as bar:
        document, oddities = convert_places(root, categories, bar)
    with written(out) as file:
        json.dump(document, file)
    _warn(oddities)
    print(f"{out}: {len(document['images']):,} images, {len(document['annotations']):,} instances")
    return DONE


def _given(args: argparse.Namespace, ours: str, theirs: str) -> str:
    """Return the value of our option or of the official tool's."""
    values = {getattr(args, name) for name in (ours, theirs)} - {None}
    if len(values) != 1:
        name = f"--{ours}" if ours == "categories" else ours.upper()
        raise UsageError(f"convert needs {name} or --{theirs}" + ", and only one of them" * bool(values))
    return str(values.pop())


def _warn(lines: list[str]) -> None:
    for line in lines:
        say(f"warning: {line}")


def compress(args: argparse.Namespace) -> int:
    """Make results smaller for an upload, and prove that no pixel changed."""
    from segjudge.datasets.compression import PNGS, RUN_LENGTHS
    from segjudge.datasets.compression import compress as compress_results

    if not args.out.endswith((RUN_LENGTHS, PNGS)):
        raise UsageError(f"--out ends in {RUN_LENGTHS} (run lengths, the smallest) or in {PNGS} (PNGs), not {args.out}")
    with ProgressBar("file" if args.out.endswith(PNGS) else "sequence") as bar:
        saving = compress_results(args.results, args.out, bar)
    share = saving.after / saving.before
    print(f"{args.out}: {saving.after:,} bytes instead of {saving.before:,}, {share:.0%}")
    print(f"Read again and compared: {saving.compared}, all equal.")
    return DONE


def show(args: argparse.Namespace) -> int:
    """Draw truth, and detections beside it, over images: PNGs and one page."""
    from segjudge.datasets.opening import LOCAL_LIMITS, TruthSource
    from segjudge.evaluation_script.families.instances.submission import read_records
    from segjudge.families.instances.published import open_instances
    from segjudge.report.drawing import View, draw_all

    if not 0 < args.iou <= 1:
        raise UsageError(f"--iou is a fraction above 0, not {args.iou:g}")
    if args.images and not os.path.isdir(args.images):
        raise UsageError(f"--images {args.images}: there is no such folder")
    with ProgressBar("image") as bar:
        opened = open_instances(TruthSource(args.truth, categories=args.categories or ""), progress=bar)
    _warn(opened.notes)
    name = args.split or next(iter(opened.splits))
    if name not in opened.splits:
        raise UsageError(f"{args.truth} has no split {name!r}{name_hint(name, opened.splits)}")
    truth, records = opened.splits[name], None
    if truth.images.frames is not None:
        raise UsageError(f"{args.truth}: holds videos; show draws images")
    if args.results:
        records = read_records(args.results, truth.images, INSTANCE_PROTOCOLS["coco"], LOCAL_LIMITS)
    pictures = [args.images] if args.images else []
    check_outputs([BuiltFile(os.path.join(args.out, name)) for name in ("index.html", "images/1.png")], pictures)
    with ProgressBar("image") as bar:
        drawn = draw_all(truth, records, args.out, View(args.images or "", args.iou, args.score), bar)
    print(f"{os.path.join(args.out, 'index.html')}: {len(drawn)} {verb(len(drawn), 'image', 'images')}")
    return DONE


def demo(args: argparse.Namespace) -> int:
    """Make the synthetic annotation files and sample submissions."""
    from segjudge.datasets.demo.make import frames, make

    if args.frames:
        frames(args.frames, args.seed)
        print(f"{args.frames}: the pictures of the sequences")
        return DONE
    for path in make(args.out or find_bundle().root, args.seed):
        print(f"{os.path.relpath(path)} ({os.path.getsize(path) / 1e3:,.0f} kB)")
    return DONE


# ── options ─────────────────────────────────────────────────────────────────


def pack_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `pack`."""
    sub.add_argument("--layout", required=True, choices=LAYOUTS, metavar="LAYOUT", help=", ".join(LAYOUTS))
    sub.add_argument(
        "--categories", help="with Places-style PNGs: JSON with categories, and images where there is a list"
    )
    sub.add_argument("--root", required=True, help="the dataset's folder or zip")
    sub.add_argument("--subset", default="", help="the list of sequences, e.g. val")
    sub.add_argument("--out", required=True, type=BuiltFile, help="the annotation file to write")
    sub.add_argument("--split", default="", help="add the dataset to OUT under this name")
    sub.add_argument("--unseen", default="", help="file with the names of unseen sequences or categories")


def show_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `show`."""
    sub.add_argument("results", nargs="?", help="the detections; without them the truth is drawn alone")
    sub.add_argument("--truth", required=True, help="COCO's JSON, a packed file of instances, or Places-style PNGs")
    sub.add_argument("--categories", metavar="FILE", help="with PNGs as truth: JSON with their categories")
    sub.add_argument("--split", help="which split of a packed file (default: the first)")
    sub.add_argument("--images", help="folder of the images; without it masks are drawn on a plain ground")
    sub.add_argument("--iou", type=float, default=0.5, help="from which overlap a detection is right (0.5)")
    sub.add_argument("--score", type=float, default=0.0, help="leave out detections with a lower score")
    sub.add_argument("--out", required=True, type=OutputFolder, help="folder for index.html and the pictures")


def compress_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `compress`."""
    sub.add_argument("results", help="a folder or archive of PNGs, or JSON")
    about = "NAME.json.gz for run lengths of objects, NAME.zip for PNGs"
    sub.add_argument("--out", required=True, type=OutputFile, help=about)


def convert_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `convert`."""
    sub.add_argument("kind", nargs="?", default="places", choices=["places"], help="what is converted (places)")
    sub.add_argument("png_dir", nargs="?", help="folder of PNGs: red holds the category, green the instance")
    sub.add_argument("out", nargs="?", type=OutputFile, help="the JSON to write")
    sub.add_argument("--categories", metavar="FILE", help="JSON with categories, and images where there is a list")
    official = sub.add_argument_group("as the official converter calls them")
    official.add_argument("--ann_dir", metavar="DIR", help="PNG_DIR")
    official.add_argument("--imgCatIdsFile", metavar="FILE", help="as --categories")
    official.add_argument("--output_json", metavar="FILE", type=OutputFile, help="OUT")


def demo_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `demo`."""
    sub.add_argument("--out", type=OutputFolder, help="another folder than the bundle")
    sub.add_argument(
        "--frames", metavar="DIR", type=OutputFolder, help="write the pictures of its sequences instead, for agents"
    )
    sub.add_argument("--seed", type=int, default=SEED)
