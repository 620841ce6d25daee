"""Runs, their page, and datasets."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from PIL import Image

from segjudge.interactive import (
    DavisInteractiveSession,
    dataset,
    mask_datasets,
    runs,
)
from segjudge.report import colours
from tests.interactive.scene import answer

from . import Tale, drawn


def runs_and_their_page(tale: Tale) -> None:  # noqa: PLR0915 - a list
    def model(*, sequence: str, scribbles: Any, new_sequence: bool, images: Any) -> Any:
        del new_sequence
        return answer(sequence, len(images), 1 + len(scribbles["scribbles"]) % 3)

    def begin(name: str, **terms: Any) -> DavisInteractiveSession:
        options = {"max_nb_interactions": 2, "report_save_dir": tale.folder / name, "clock": tale.clock, **terms}
        return DavisInteractiveSession(davis_root=str(tale.root), **options)

    opened = dataset.Davis(str(tale.root))

    def progress(*facts: object) -> None:
        tale.clock.now += 2.5
        tale.say("progress:", facts)

    for name in ("mine", "other"):
        tale.say(
            "run:",
            runs.run(
                begin(name, subset="val" if name == "mine" else "mine"),
                model,
                opened.image_paths,
                progress,
                steps=name == "mine",
            ),
        )
        (csv,) = (tale.folder / name).glob("*.csv")
        csv.rename(tale.folder / name / "r.csv")
        for path in [*(tale.folder / name).glob("result*")]:
            path.rename(path.with_name("r" + "".join(path.suffixes[-1:] if path.is_dir() else path.suffixes)))
    step = json.loads((tale.folder / "mine/r.steps/duo-1-02.json").read_text())
    tale.say({key: value if len(str(value)) < 400 else str(value)[:400] for key, value in step.items()})
    for about, bad in (
        ("nothing", lambda **_: None),
        ("an error", lambda **_: 1 / 0),
        ("wrong masks", lambda **_: [[1]]),
    ):
        error = tale.try_out(
            about,
            lambda: runs.run(begin(f"bad {about}"), bad, opened.image_paths, lambda *_: None, steps=False),  # noqa: B023
        )  # type: ignore[arg-type]
        assert error is None

    def dawdle(*, sequence: str, new_sequence: bool, **more: Any) -> Any:
        tale.clock.now += 1000 * (sequence == "box" and new_sequence)
        return model(sequence=sequence, new_sequence=new_sequence, **more)

    slow = begin("slow", max_nb_interactions=3, max_time=500, subset="val")
    tale.try_out("a slow start", lambda: runs.run(slow, dawdle, opened.image_paths, progress, steps=False)["auc"])
    mine, second = (f"{name}={tale.folder / name}/r.csv" for name in ("mine", "other"))
    ran = [runs.read_run(mine), runs.read_run(second.partition("=")[2])]
    tale.say([(run.name, run.complete, run.metric, run.steps.name) for run in ran])
    runs.plot(ran, tale.folder / "plot", lambda *facts: tale.say("draws:", facts))
    tale.say(
        sorted(
            path.relative_to(tale.folder / "plot").as_posix()
            for path in (tale.folder / "plot").rglob("*")
            if path.is_file()
        )
    )
    tale.say("row:", [runs._make_row(run) for run in ran])
    page = (tale.folder / "plot/index.html").read_text()
    tale.say([match[:600] for match in re.findall(r'\{"palette".*?\}\]?\}|\{"runs".*?\]\}', page)])
    tale.say((tale.folder / "plot/steps/0-duo-1-02.js").read_text()[-120:])
    for name in ("frames/1/00000.jpg", "curves.png"):
        with Image.open(tale.folder / "plot" / name) as image:
            tale.say(name, image.size)
    svg = (tale.folder / "plot/curves.svg").read_text()
    tale.say(
        re.findall(r">([^<\n]*[a-zA-Z][^<\n]*)</text>", svg),
        [colour in svg for colour in colours.METHODS[:3]],
    )
    with mock.patch("matplotlib.figure.Figure.savefig", autospec=True) as save, contextlib.suppress(ValueError):
        runs._write_curves([ran[0]] * 9, tale.folder / "plot")
    (axes,) = save.call_args_list[0][0][0].axes
    tale.say(
        "axes:",
        axes.get_xlim()[0],
        axes.get_ylim(),
        axes.get_xlabel(),
        axes.get_ylabel(),
        save.call_args_list[0][0][0].get_size_inches(),
    )
    tale.say(
        [
            (line.get_linestyle(), line.get_color(), line.get_marker(), line.get_markersize())
            for line in axes.get_lines()
        ]
    )
    tale.say(
        [options for _, options in save.call_args_list],
        [(text.get_text(), text.get_color()) for text in axes.texts][:2],
        axes.spines["top"].get_visible(),
    )
    report = (tale.folder / "other/r.csv").read_text()
    bad_dir = tale.folder / "reports"
    bad_dir.mkdir()
    for about, text, summary in (
        ("no columns", "a,b\n1,2\n", None), ("interaction 17", report.replace(",box,1,1,", ",box,1,17,"), None),
        ("interaction 0", report.replace(",box,1,1,", ",box,1,0,"), None), ("fine", report, None), ("no summary", report, "{}"),
        ("no JSON", report, "{"), ("not finite", report, '{"auc": NaN, "metric_at_threshold": {"J": 1}, "curve": {"time": [0, 1], "J": [0, 1]}}'),
        ("short", report, '{"auc": 1, "metric_at_threshold": {"J": 1}, "curve": {"time": [0], "J": [0]}}'),
        ("uneven", report, '{"auc": 1, "metric_at_threshold": {"J": 1}, "curve": {"time": [0, 1], "J": [0, 1, 1]}}'),
        ("J", report, '{"auc": 1, "metric_at_threshold": {"J": 1}, "curve": {"time": [0, 1], "J": [0, 1]}}'),
        ("IoU", report, '{"auc": 1, "metric_at_threshold": {"I": 1}, "curve": {"time": [0, 1], "I": [0, 1]}}'),
    ):  # fmt: skip
        (bad_dir / "r.csv").write_text(text)
        (bad_dir / "r.summary.json").unlink(missing_ok=True)
        if summary is not None:
            (bad_dir / "r.summary.json").write_text(summary)
        tale.try_out(
            about,
            lambda: (
                (run := runs.read_run(f"{bad_dir}/r.csv", {("box", 3): 2}))
                and (run.name, run.complete, run.summary["auc"])
            ),
        )
    tale.try_out("not there", lambda: runs.read_run("x=nowhere.csv"))
    (bad_dir / "r.summary.json").write_text(
        '{"auc": 1, "metric_at_threshold": {"J": 1}, "curve": {"time": [0, 1], "J": [0, 1]}}'
    )
    tale.try_out(
        "two metrics",
        lambda: runs.plot([ran[0], runs.read_run(f"{bad_dir}/r.csv")], tale.folder / "p", lambda *_: None),
    )
    steps = tale.folder / "mine/r.steps"
    for change in (
        {"size": [4, 0, 1]},
        {"size": 3},
        {"images": [1]},
        {"images": 1},
        {"frames": []},
        {"interaction": "1"},
        {"scribbles": [[]]},
    ):
        (steps / "duo-1-02.json").write_text(json.dumps({**step, **change}))
        tale.try_out(str(change), lambda: runs.plot(ran[:1], tale.folder / "p", lambda *_: None))
    (steps / "duo-1-02.json").write_text(json.dumps({**step, "images": ["gone.jpg"]}))
    runs.plot(ran[:1], tale.folder / "q", lambda *_: None)
    tale.say(sorted(path.name for path in (tale.folder / "q").rglob("*.jpg")))
    frames = runs.Frames([])
    tale.try_out("no pictures", lambda: frames[0])
    tale.say(
        len(frames),
        frames[0:2],
        np.shape(runs.Frames(opened.image_paths("box"))[1]),
        len(runs.Frames(opened.image_paths("box"))[1:]),
    )
    tale.say(
        runs._thin_line([[number / 7, 0.0] for number in range(10)])[-2:],
        len(runs._thin_line([[number / 7, 0.0] for number in range(11)])),
    )


def programs_of_the_framework(tale: Tale) -> None:
    """Programs run as Python runs them, and their messages have levels."""
    program = tale.folder / "program.py"
    program.write_text(
        "import sys, davisinteractive\nprint(__name__, sys.argv[1:], sys.path[0], davisinteractive.__name__)\n"
    )
    (tale.folder / "module.py").write_text("import sys\nprint(__name__, sys.argv)\n")
    for arguments in (
        [str(program), "a", "-b"],
        ["-m", "module", "c"],
        [],
        ["-m"],
        ["-x"],
        [str(tale.folder / "nowhere.py")],
    ):
        out = io.StringIO()
        path = [str(tale.folder), *sys.path[1:]]
        names = [name for name in sys.modules if name.split(".")[0] == "davisinteractive"]
        with (
            mock.patch.object(sys, "argv", ["x", *arguments]), mock.patch.object(sys, "path", ["first", *path]), mock.patch.dict(sys.modules),
            contextlib.redirect_stdout(out),
        ):  # fmt: skip
            for name in names:
                del sys.modules[name]
            try:
                runpy.run_module("segjudge.davisinteractive.__main__", run_name="segjudge.davisinteractive.__main__")
            except (SystemExit, OSError) as error:
                out.write(f"{type(error).__name__}: {error}")
        tale.say(arguments, "→", out.getvalue().strip())
    from segjudge.davisinteractive import logging

    with (
        mock.patch.dict(logging._levels),
        mock.patch.object(logging, "_logger", mock.Mock(handlers=[])) as logger,
        mock.patch.object(logging, "info", logger.info),
    ):
        for level in (-9, -3, -1, 0, 1, 9):
            logging.set_verbosity(level)
            tale.say("verbosity", level, logger.setLevel.call_args, logging.get_verbosity())
        for level, before in ((2, -1), (1, 1), (0, 0)):
            logging.set_verbosity(before)
            logger.reset_mock()
            with mock.patch.object(logging.standard.getLogger(), "handlers", [] if level else [1]):
                logging.set_info_level(level)
            for number in range(4):
                logging.verbose("%s", number, number)
            logging.log(number - 4, "m", 1, extra={})
            logging.vlog(9, "n")
            tale.say(
                level,
                before,
                logging.get_verbosity(),
                [(name, message) for name, message, _ in logger.method_calls if name != "addHandler"],
                logger.addHandler.call_count,
            )


def datasets_and_what_is_wrong_with_them(tale: Tale) -> None:  # noqa: PLR0915 - a list
    opened = dataset.Davis(str(tale.root))
    tale.say(
        list(opened.sets)[:8],
        len(opened.sets),
        len(opened.dataset),
        [opened.dataset[name] for name in ("box", "duo", "bear")],
    )
    tale.try_out("both", lambda: opened.sequences("trainval"))
    tale.say(
        opened.sets["trainval"],
        opened.num_scribbles("box"),
        opened.num_scribbles("bear"),
        Path(opened.image_paths("duo")[-1]).name,
    )
    tale.say(
        opened.load_images("box").shape,
        opened.load_annotations("duo", np.int16).dtype,
        opened.load_annotations("box").sum(),
    )
    for about, work in (
        ("no root", lambda: dataset.Davis("")), ("a new root", lambda: dataset.Davis(tale.folder / "new").davis_root),
        ("not there", lambda: dataset.Davis.existing(tale.folder / "nowhere")), ("unknown", lambda: opened.dataset["nobody"]),
        ("no subset", lambda: opened.sequences("nobody")), ("bear", lambda: opened.check_files(["bear"])),
        ("no masks", lambda: opened.load_annotations("bear")), ("no images", lambda: opened.load_images("bear")),
        ("no scribbles", lambda: opened.load_scribble("box", 9)),
    ):  # fmt: skip
        tale.try_out(about, work)
    with mock.patch.dict(dataset.Davis.sets, {"val": ["duo"], "new": ["box"]}):
        tale.say(
            "changed by a program:",
            opened.sets["val"],
            opened.sets["mine"],
            opened.sets["new"],
            "test-dev" in opened.sets,
        )
    tale.try_out("not changed", lambda: opened.sets["new"])
    path = tale.root / "Scribbles/box/001.json"
    good = path.read_text()
    for text in (
        "{",
        "[]",
        '{"scribbles": 1}',
        '{"scribbles": [], "sequence": "duo"}',
        '{"scribbles": [[]], "sequence": "box"}',
    ):
        path.write_text(text)
        tale.try_out(text, lambda: dataset.load_first_scribbles(opened, "box", 1))
    path.write_text(good)
    mask = tale.root / "Annotations/480p/box/00001.png"
    before = mask.read_bytes()
    for about, data in (("colour", np.zeros((40, 60, 3), np.uint8)), ("size", np.zeros((40, 61), np.uint8))):
        Image.fromarray(data).save(mask)
        dataset._read_masks.cache_clear()
        tale.try_out(about, lambda: dataset.Davis(str(tale.root)).load_annotations("box"))
    mask.write_bytes(b"PNG")
    tale.try_out("no picture", lambda: dataset.Davis(str(tale.root)).load_annotations("box"))
    mask.write_bytes(before)
    (tale.root / "ImageSets/2017/val.txt").write_bytes(b"\xff")
    tale.try_out("no UTF-8", lambda: dataset.Davis(str(tale.root)))
    (tale.root / "ImageSets/2017/val.txt").write_text("box\nduo\n")
    empty = tale.folder / "empty"
    (empty / "Annotations/480p/bear").mkdir(parents=True)
    Image.fromarray(np.full((4, 5), 255, np.uint8)).save(empty / "Annotations/480p/bear/00000.png")
    bare = dataset.Davis(str(empty))
    tale.try_out("of the catalogue", lambda: bare.check_files(["bear"]))
    tale.try_out("another shape", lambda: bare.load_annotations("bear"))
    (empty / "JPEGImages/480p/bear").mkdir(parents=True)
    Image.new("RGB", (5, 4)).save(empty / "JPEGImages/480p/bear/00000.jpg")
    tale.try_out("another shape of images", lambda: bare.load_images("bear"))
    (empty / "ImageSets/2017").mkdir(parents=True)
    (empty / "ImageSets/2017/own.txt").write_text("bear")
    tale.try_out("void alone", lambda: dataset.Davis(str(empty)).dataset["bear"])
    for sets, name in ((1, "box"), (2, "duo"), (9, "duo")):
        lines = mask_datasets.DrawnScribbles(opened, sets)
        for number in range(1, min(sets, 3) + 1):
            shown = lines.load_scribble(name, number)
            tale.say(sets, name, number, shown["annotated_frame"], [(line["object_id"], len(line["path"]), line["path"][0], line["path"][-1])
                                                                    for each in shown["scribbles"] for line in each])  # fmt: skip
    for region in (drawn("....", ".#..", "...."), drawn("##", "##"), drawn("#"), drawn("...")):
        tale.say(mask_datasets._draw_lines(region, 3))
    with mock.patch.object(mask_datasets, "OPTIONAL_LAYOUTS", ("b", "a")):
        tale.try_out("no layout", lambda: mask_datasets.MaskDataset("x", "nothing"))
    generic = mask_datasets.MaskDataset(str(tale.root), "davis2017")
    tale.say(generic.sequences("val"), generic.dataset["duo"], generic.num_scribbles("duo"), generic.image_paths("box"))
    tale.try_out("scribbles", lambda: generic.load_scribble("box", 1))
    tale.try_out("files", lambda: generic.check_files(["box"]))
    tale.try_out("no sequence", lambda: generic.dataset["nobody"])
    tale.say(np.array_equal(generic.load_annotations("duo"), opened.load_annotations("duo")))
    for name, sizes, label in (("odd", (4, 5), 1), ("blank", (4, 4), 0)):
        (tale.folder / "masks" / name).mkdir(parents=True)
        for number, size in enumerate(sizes):
            mask = Image.fromarray(np.full((4, size), label, np.uint8))
            mask.save(tale.folder / "masks" / name / f"{number:05d}.png")
        single = mask_datasets.MaskDataset(str(tale.folder / "masks"))
        tale.say(single.sequences(""))
        tale.try_out(name, lambda name=name, single=single: single.dataset[name])
    with mock.patch.object(dataset.Davis, "opened", None):
        tale.try_out("a catalogue without a root", lambda: dataset.Davis.sets["nobody"])
    for draw in (0, 2):
        tale.say(type(mask_datasets.open_dataset(str(tale.root), None, None, draw)).__name__)
    scenes = mask_datasets.make_demo_scenes()
    tale.say([(scene.name, scene.size, scene.frames, len(scene.shapes)) for scene in scenes])
    for sets in (0, 2):
        mask_datasets.write_demo_root(tale.folder / f"demo{sets}", scenes[:1], sets)
        paths = [path.relative_to(tale.folder / f"demo{sets}") for path in (tale.folder / f"demo{sets}").rglob("*.*")]
        tale.say(
            sets,
            sorted(Counter(path.parent.as_posix() for path in paths).items()),
            sorted(path.name for path in paths)[::6],
        )
