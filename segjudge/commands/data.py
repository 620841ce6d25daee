"""`segjudge pack`, `compress` and `demo`: write datasets and results in other formats; `convert` and `show` are earlier
names.
"""

from __future__ import annotations

import argparse
import json
import os

from segjudge.evaluation_script.families import LAYOUTS, PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError, quantity
from segjudge.masks import DEMO_SEED
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import BuiltFile, OutputFile, OutputFolder, make_folder, open_output

from .drawing import IOU, Drawing
from .parser import CommandParser, program
from .shared import DONE, OTHER_TOOLS, OUTPUT, RARELY, Command, InputPath, ProgressBar, choose_bundle, say
from .truths import TruthChoice, add_truth_choice

#: The ending for which `pack` writes a JSON instead of an annotation file, and the layout that allows it.
_JSON, _PLACES = ".json", "places2017"
#: The protocol by which `show` draws by default.
_SHOWN_PROTOCOL = "coco"
#: The group of options about the dataset, and the help of `--categories`.
_DATASET = "dataset"
_CATEGORIES = "with Places-style PNGs: JSON with the categories, and optionally the list of images"


def _pack(args: argparse.Namespace) -> int:
    from segjudge.families.truths import TruthSource, pack

    source = TruthSource(args.root, args.layout, args.subset, args.unseen, args.categories or "")
    if args.out.endswith(_JSON):
        return _pack_json(args)
    try:
        with ProgressBar("item") as bar:
            truth = pack(source, args.out, args.split, bar)
    except HostError as error:
        raise HostError(f"{str(error).rstrip('.')}.{_describe_layout(args, str(error))}") from error.__cause__
    _warn(truth.notes)
    print(f"Wrote {args.out}: split {truth.split}, {truth.about}, {os.path.getsize(args.out) / 1e6:.1f} MB")
    return DONE


def _describe_layout(args: argparse.Namespace, fault: str) -> str:
    """Return the hint that `benchmarks` shows a layout's files, if a fault is about the root."""
    from segjudge.families import layout_of

    names = [protocol.name for protocol in PROTOCOLS.values() if layout_of(protocol) == args.layout]
    if not names or not fault.startswith(f"{args.root}: "):
        return ""
    shown = f"`{program()} benchmarks {names[0]}` shows the files of {args.layout}"
    return f" {shown}: name the folder that holds them, or another --layout"


def _pack_json(args: argparse.Namespace) -> int:
    """Write Places-style PNGs as COCO's JSON; raises UsageError for other layouts."""
    if args.layout != _PLACES or not os.path.isdir(args.root):
        fault = f"{args.out}: ends in {_JSON}, which needs a folder of PNGs and --layout {_PLACES}"
        raise UsageError(f"{fault}; name the annotation file {args.out.removesuffix(_JSON)}.zip")
    for option in ("subset", "split", "unseen"):
        if getattr(args, option):
            raise OptionError(f"{option} does not apply to COCO's JSON")
    if not args.categories:
        raise UsageError(f"{args.root}: is a folder of PNGs, which needs --categories FILE")
    return _write_json(args.root, args.categories, args.out)


def _convert(args: argparse.Namespace) -> int:
    root = _choose("PNG_DIR", args.png_dir, "--ann_dir", args.ann_dir)
    out = _choose("OUT", args.out, "--output_json", args.output_json)
    categories = _choose("--categories", args.categories, "--imgCatIdsFile", args.imgCatIdsFile)
    return _write_json(root, categories, out)


def _write_json(root: str, categories: str, out: str) -> int:
    """Write Places-style PNGs as COCO's JSON."""
    from segjudge.families.instances.published import convert

    with ProgressBar("image") as bar:
        document, oddities = convert(root, categories, bar)
    make_folder(os.path.dirname(out) or os.curdir)
    with open_output(out) as file:
        json.dump(document, file)
    _warn(oddities)
    instances = quantity(len(document["annotations"]), "instance")
    print(f"Wrote {out}: {quantity(len(document['images']), 'image')}, {instances}")
    return DONE


def _choose(option: str, value: str | None, official_option: str, official_value: str | None) -> str:
    """Return the value of Segjudge's option or of the official tool's."""
    values = {value, official_value} - {None}
    if len(values) != 1:
        raise UsageError(f"convert needs {option} or {official_option}" + ", and only one of them" * bool(values))
    return str(values.pop())


def _warn(lines: list[str]) -> None:
    for line in lines:
        say(f"warning: {line}")


def _compress(args: argparse.Namespace) -> int:
    from segjudge.families.sequences.compression import PNGS, RUN_LENGTHS, compress
    from segjudge.scoring.results_names import name_results_in_errors

    out: str = args.out
    if not out.endswith((RUN_LENGTHS, PNGS)):
        raise UsageError(f"--out ends in {RUN_LENGTHS} (run lengths, the smallest) or in {PNGS} (PNGs), not {out}")
    with name_results_in_errors(args.results), ProgressBar("file" if out.endswith(PNGS) else "sequence") as bar:
        saving = compress(args.results, out, bar, PROTOCOLS[args.protocol] if args.protocol else None)
    share = saving.after / saving.before
    print(f"Wrote {out}: {quantity(saving.after, 'byte')} instead of {saving.before:,}, {share:.0%}")
    print(f"Verified: {saving.compared}, all equal.")
    if saving.of_objects and not args.protocol:
        print("Only protocols for objects in videos read this format (davis2017, ...); --protocol NAME checks it.")
    return DONE


def _show(args: argparse.Namespace) -> int:
    """Draw as `report --draw` does; the protocol defaults to COCO's."""
    protocol = args.protocol or ("" if args.phase else _SHOWN_PROTOCOL)
    choice = TruthChoice.read({**vars(args), "protocol": protocol}).complete("show")
    return Drawing(args.results or "", choice, args.out, choice.choose_images(args.images), args.iou, args.score).draw()


def _make_demo(args: argparse.Namespace) -> int:
    from segjudge.masks.demo import write_frames
    from segjudge.starting.demo import make

    if args.frames:
        write_frames(args.frames, args.seed)
        print(f"Wrote {args.frames}: the pictures of the sequences")
        return DONE
    for path in make(args.out or choose_bundle("").root, args.seed):
        print(f"Wrote {os.path.relpath(path)} ({os.path.getsize(path) / 1e3:,.0f} kB)")
    return DONE


# ── options ─────────────────────────────────────────────────────────────────


def _add_pack_options(sub: CommandParser) -> None:
    sub.arrange_groups(_DATASET, OUTPUT, RARELY)
    add = sub.options_of(_DATASET)
    add("--root", required=True, metavar="PATH", type=InputPath, help="the dataset's folder or zip")
    add("--layout", required=True, choices=LAYOUTS, metavar="LAYOUT", help="its file layout: %(choices)s")
    add("--subset", default="", metavar="LIST", help="the dataset's list of sequences, e.g. val")
    add = sub.options_of(OUTPUT)
    about = f"the annotation file to write, FILE.zip; for Places-style PNGs also FILE{_JSON}, COCO's format"
    add("--out", required=True, metavar="FILE", type=BuiltFile, help=about)
    about = "add the dataset to FILE as a split of this name"
    add("--split", default="", metavar="NAME", help=about)
    add = sub.options_of(RARELY)
    add("--categories", metavar="FILE", type=InputPath, help=_CATEGORIES)
    about = "file that lists the unseen sequences or categories"
    add("--unseen", metavar="FILE", default="", type=InputPath, help=about)


def _add_show_options(sub: CommandParser) -> None:
    add = sub.add_argument
    add("results", nargs="?", metavar="RESULTS", type=InputPath, help="the detections; omit them to draw the truth")
    add_truth_choice(sub, "COCO's JSON, a packed file, or Places-style PNGs", _SHOWN_PROTOCOL)
    add("--split", metavar="NAME", help="the split of a packed file (default: the first)")
    add("--images", metavar="DIR", type=InputPath, help="the folder of images; without it the background is plain")
    add("--iou", metavar="IOU", type=float, default=IOU, help="minimum IoU of a correct detection (default: 0.5)")
    add("--score", metavar="SCORE", type=float, default=0.0, help="skip detections with a lower score")
    add("--out", required=True, metavar="FOLDER", type=OutputFolder, help="the folder for index.html and the pictures")


def _add_compress_options(sub: CommandParser) -> None:
    about = "the results: a folder or archive of PNGs, or JSON"
    sub.add_argument("results", metavar="RESULTS", type=InputPath, help=about)
    add = sub.options_of(OUTPUT)
    about = "NAME.json.gz writes run lengths of objects, NAME.zip writes PNGs"
    add("--out", required=True, metavar="FILE", type=OutputFile, help=about)
    about = "the benchmark that will read the file; refuses run lengths that it cannot read"
    add("--protocol", choices=PROTOCOLS, metavar="NAME", help=about)


def _add_convert_options(sub: CommandParser) -> None:
    add = sub.add_argument
    add("kind", nargs="?", default="places", choices=["places"], help="the format to convert (default: places)")
    about = "folder of PNGs; red is the category, green the instance"
    add("png_dir", nargs="?", metavar="PNG_DIR", type=InputPath, help=about)
    add("out", nargs="?", metavar="OUT", type=OutputFile, help="the JSON to write")
    add("--categories", metavar="FILE", type=InputPath, help=_CATEGORIES)
    add = sub.options_of(OTHER_TOOLS)
    add("--ann_dir", metavar="DIR", type=InputPath, help="PNG_DIR")
    add("--imgCatIdsFile", metavar="FILE", type=InputPath, help="--categories FILE")
    add("--output_json", metavar="FILE", type=OutputFile, help="OUT")


def _add_demo_options(sub: CommandParser) -> None:
    add = sub.options_of(OUTPUT)
    about = "the folder to write (default: the challenge in the current folder, else the checkout)"
    add("--out", metavar="FOLDER", type=OutputFolder, help=about)
    frames = "write only the pictures of the sequences, for agents"
    add("--frames", metavar="DIR", type=OutputFolder, help=frames)
    add("--seed", metavar="N", type=int, default=DEMO_SEED, help="the seed of the drawings (default: %(default)s)")


COMMANDS = {
    "pack": Command(
        _add_pack_options, _pack, "segjudge pack --layout davis2017 --root DAVIS --subset val --out truth.zip"
    ),
    "show": Command(_add_show_options, _show, "segjudge report results.json --truth truth.json --draw pictures"),
    "convert": Command(
        _add_convert_options,
        _convert,
        "segjudge pack --layout places2017 --root PNGS --categories FILE --out FILE.json",
    ),
    "compress": Command(_add_compress_options, _compress, "segjudge compress masks.zip --out small.json.gz"),
    "demo": Command(_add_demo_options, _make_demo, "segjudge demo --out demo"),
}
