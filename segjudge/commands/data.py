"""`segjudge pack`, `convert`, `compress`, `show`, `demo`: datasets and results in other files, and a look at them."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace

from segjudge.evaluation_script.families import LAYOUTS, PROTOCOLS
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.files.problems import inflect, name_hint, quantity
from segjudge.masks import DEMO_SEED
from segjudge.system.errors import UsageError
from segjudge.system.files import (
    BuiltFile,
    OutputFile,
    OutputFolder,
    check_outputs,
    make_folder,
    name_of,
    open_output,
)

from .shared import DONE, Command, InputPath, ProgressBar, choose_bundle, say, score_openly, write_page

#: From which overlap a detection is right.
_IOU = 0.5
#: How large the page of the player is at most, in bytes, and the sections that it has.
_SHOWN_BYTES = 20_000_000
_SHOWN_SECTIONS = ("frames", "confusion")


def _pack(args: argparse.Namespace) -> int:
    from segjudge.families.truths import TruthSource, pack

    source = TruthSource(args.root, args.layout, args.subset, args.unseen, args.categories or "")
    with ProgressBar("item") as bar:
        truth = pack(source, args.out, args.split, bar)
    _warn(truth.notes)
    print(f"{args.out}: split {truth.split}, {truth.about}, {os.path.getsize(args.out) / 1e6:.1f} MB")
    return DONE


def _convert(args: argparse.Namespace) -> int:
    from segjudge.families.instances.published import convert

    root = _choose("PNG_DIR", args.png_dir, "--ann_dir", args.ann_dir)
    out = _choose("OUT", args.out, "--output_json", args.output_json)
    categories = _choose("--categories", args.categories, "--imgCatIdsFile", args.imgCatIdsFile)
    with ProgressBar("image") as bar:
        document, oddities = convert(root, categories, bar)
    with open_output(out) as file:
        json.dump(document, file)
    _warn(oddities)
    instances = quantity(len(document["annotations"]), "instance")
    print(f"{out}: {quantity(len(document['images']), 'image')}, {instances}")
    return DONE


def _choose(ours: str, value: str | None, theirs: str, their_value: str | None) -> str:
    """Take the value of our option or of the official tool's."""
    values = {value, their_value} - {None}
    if len(values) != 1:
        raise UsageError(f"convert needs {ours} or {theirs}" + ", and only one of them" * bool(values))
    return str(values.pop())


def _warn(lines: list[str]) -> None:
    for line in lines:
        say(f"warning: {line}")


def _compress(args: argparse.Namespace) -> int:
    from segjudge.masks.compression import PNGS, RUN_LENGTHS, compress

    out: str = args.out
    if not out.endswith((RUN_LENGTHS, PNGS)):
        raise UsageError(f"--out ends in {RUN_LENGTHS} (run lengths, the smallest) or in {PNGS} (PNGs), not {out}")
    with ProgressBar("file" if out.endswith(PNGS) else "sequence") as bar:
        saving = compress(args.results, out, bar, PROTOCOLS[args.protocol] if args.protocol else None)
    share = saving.after / saving.before
    print(f"{out}: {saving.after:,} bytes instead of {saving.before:,}, {share:.0%}")
    print(f"Read again and compared: {saving.compared}, all equal.")
    if saving.of_objects and not args.protocol:
        print("Only protocols of objects in videos read this form, as davis2017 and sav do; --protocol NAME checks it.")
    return DONE


def _show(args: argparse.Namespace) -> int:
    if PROTOCOLS[args.protocol].family != "instances":
        return _show_player(args)
    from segjudge.evaluation_script.files.limits import LOCAL_LIMITS
    from segjudge.families.instances.pictures import View, draw_images
    from segjudge.families.instances.published import open_instances, read_predictions
    from segjudge.families.truths import TruthSource

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
        protocol = INSTANCE_PROTOCOLS[args.protocol]
        rules = protocol if protocol.streets else INSTANCE_PROTOCOLS["coco"]
        records = read_predictions(args.results, truth, rules, LOCAL_LIMITS)
    pictures = [args.images] if args.images else []
    check_outputs([BuiltFile(os.path.join(args.out, name)) for name in ("index.html", "images/1.png")], pictures)
    with ProgressBar("image") as bar:
        drawn = draw_images(truth, records, args.out, View(args.images or "", args.iou, args.score), bar)
    print(f"{os.path.join(args.out, 'index.html')}: {len(drawn)} {inflect(len(drawn), 'image', 'images')}")
    return DONE


def _show_player(args: argparse.Namespace) -> int:
    """Write a page of the player, and of what classes are taken for, in the place of pictures of all images."""
    from segjudge.families.truths import TruthSource, open_truth
    from segjudge.report.page import PageOptions
    from segjudge.scoring.report import make_report, make_truth_report
    from segjudge.scoring.scores import ScoreRequest

    protocol, source = PROTOCOLS[args.protocol], TruthSource(args.truth)
    if args.iou != _IOU or args.score or args.categories:
        raise UsageError(f"--iou, --score and --categories have no meaning for {protocol.name}")
    out = os.path.join(args.out, "index.html")
    check_outputs([BuiltFile(out)], [args.images] if args.images else [])
    options = PageOptions(args.images or "", _SHOWN_BYTES)
    if args.results:
        request = ScoreRequest(args.results, source, protocol, args.split or "")
        page = make_report(score_openly(request), name_of(args.results), options)
    else:
        with ProgressBar() as bar:
            splits = open_truth(source, protocol, bar).splits
        if args.split and args.split not in splits:
            raise UsageError(f"{args.truth} has no split {args.split!r}{name_hint(args.split, splits)}")
        chosen = {name: truth for name, truth in splits.items() if args.split in (None, "", name)}
        page = make_truth_report(chosen, protocol.family, name_of(args.truth), options)
    sections = [section for section in page.sections if section.template in _SHOWN_SECTIONS]
    if not sections:
        print(f"nothing is wrong with {args.results or args.truth}, so nothing is drawn")
        return DONE
    make_folder(args.out)
    write_page(replace(page, sections=sections), out)
    return DONE


def _make_demo(args: argparse.Namespace) -> int:
    from segjudge.masks.demo import write_frames
    from segjudge.starting.demo import make

    if args.frames:
        write_frames(args.frames, args.seed)
        print(f"{args.frames}: the pictures of the sequences")
        return DONE
    for path in make(args.out or choose_bundle("").root, args.seed):
        print(f"{os.path.relpath(path)} ({os.path.getsize(path) / 1e3:,.0f} kB)")
    return DONE


# ── options ─────────────────────────────────────────────────────────────────


def _add_pack_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("--layout", required=True, choices=LAYOUTS, metavar="LAYOUT", help="%(choices)s")
    categories = "with Places-style PNGs: JSON with categories, and images where there is a list"
    add("--categories", type=InputPath, help=categories)
    add("--root", required=True, type=InputPath, help="the dataset's folder or zip")
    add("--subset", default="", help="the list of sequences, e.g. val")
    add("--out", required=True, type=BuiltFile, help="the annotation file to write")
    add("--split", default="", help="add the dataset to OUT under this name")
    add("--unseen", default="", type=InputPath, help="file with the names of unseen sequences or categories")


def _add_show_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("results", nargs="?", type=InputPath, help="the detections; without them the truth is drawn alone")
    truth = "COCO's JSON, a packed file of instances, or Places-style PNGs"
    add("--truth", required=True, type=InputPath, help=truth)
    add("--categories", metavar="FILE", type=InputPath, help="with PNGs as truth: JSON with their categories")
    add("--split", help="which split of a packed file (default: the first)")
    add("--images", type=InputPath, help="folder of the images; without it masks are drawn on a plain ground")
    protocol = "what is drawn: instances by default, of any other family the player of its report"
    add("--protocol", default="coco", choices=PROTOCOLS, metavar="PROTOCOL", help=protocol)
    add("--iou", type=float, default=_IOU, help="from which overlap a detection is right (0.5)")
    add("--score", type=float, default=0.0, help="leave out detections with a lower score")
    add("--out", required=True, type=OutputFolder, help="folder for index.html and the pictures")


def _add_compress_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("results", type=InputPath, help="a folder or archive of PNGs, or JSON")
    about = "NAME.json.gz for run lengths of objects, NAME.zip for PNGs"
    sub.add_argument("--out", required=True, type=OutputFile, help=about)
    protocol = "which protocol is to read it; refused where it does not read run lengths of objects"
    sub.add_argument("--protocol", choices=PROTOCOLS, metavar="PROTOCOL", help=protocol)


def _add_convert_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("kind", nargs="?", default="places", choices=["places"], help="what is converted (places)")
    add("png_dir", nargs="?", type=InputPath, help="folder of PNGs: red holds the category, green the instance")
    add("out", nargs="?", type=OutputFile, help="the JSON to write")
    categories = "JSON with categories, and images where there is a list"
    add("--categories", metavar="FILE", type=InputPath, help=categories)
    # The options of the official converter are taken, and described in docs/participants.md.
    add("--ann_dir", type=InputPath, help=argparse.SUPPRESS)
    add("--imgCatIdsFile", type=InputPath, help=argparse.SUPPRESS)
    add("--output_json", type=OutputFile, help=argparse.SUPPRESS)


def _add_demo_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--out", type=OutputFolder, help="another folder than the bundle")
    frames = "write the pictures of its sequences instead, for agents"
    sub.add_argument("--frames", metavar="DIR", type=OutputFolder, help=frames)
    sub.add_argument("--seed", type=int, default=DEMO_SEED)


COMMANDS = {
    "pack": Command(_add_pack_options, _pack),
    "show": Command(_add_show_options, _show),
    "convert": Command(_add_convert_options, _convert),
    "compress": Command(_add_compress_options, _compress),
    "demo": Command(_add_demo_options, _make_demo),
}
