"""The inputs of a command: a published truth, matching results, and the other named files."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

from PIL import Image

from segjudge import cli
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.sequences.layouts import ALIASES
from tests.data import GOLDEN

from .reading import DONE_VARIABLE

#: What was made here, and for which truth: results of the same name are made again for another one.
MADE = Path(".made.json")
#: A protocol whose layout has another name.
LAYOUTS = {"places2017": "coco", "generic": "davis2017"}


def prepare(arguments: list[str]) -> None:
    """Make the missing files of a command of `MAKERS`."""
    MAKERS[arguments[0]](Command(arguments))


class Command:
    """The arguments of a command, and its options by name."""

    def __init__(self, arguments: list[str]) -> None:
        self.name = arguments[0]
        self.places: list[str] = []
        self.options: dict[str, str] = {}
        pending = arguments[1:]
        while pending:
            word = pending.pop(0)
            if word == "--":
                break
            if word.startswith("--"):
                self.options[word] = pending.pop(0) if pending and not pending[0].startswith("--") else ""
            else:
                self.places.append(word)


def score(command: Command) -> None:
    options = command.options
    if "--davis_path" in options:
        truth(options["--davis_path"], "davis2017", options.get("--set", "val"))
        results(options["--results_path"], options["--davis_path"], "davis2017")
    elif "--dataset_json" in options:
        truth(options["--dataset_json"], "coco")
        results(options["--preds_json"], options["--dataset_json"], "coco")
    elif "--phase" in options:
        sample(command.places[0], options["--phase"])
    elif "--categories" in options:
        pngs(options["--truth"], options["--categories"])
        detections(command.places[0], options["--truth"], options["--categories"])
    else:
        scored(command.places, options)
    if "--part" in options:
        other_parts(command.places[0], options)


def other_parts(path: str, options: dict[str, str]) -> None:
    """Write the other parts, as the other machines do."""
    asked, of = map(int, options["--part"].split("/"))
    for number in set(range(1, of + 1)) - {asked}:
        out = options["--out"].replace(str(asked), str(number))
        arguments = ["score", path, "--truth", options["--truth"], "--protocol", options["--protocol"]]
        if not Path(out).exists():
            quietly([*arguments, "--part", f"{number}/{of}", "--out", out])


def scored(paths: list[str], options: dict[str, str]) -> None:
    truth(options["--truth"], options["--protocol"], options.get("--subset", ""))
    for number, path in enumerate(paths):
        results(path.rpartition("=")[2], options["--truth"], options["--protocol"], poor=number > 0)


def compare(command: Command) -> None:
    if "--truth" not in command.options:
        return  # what was saved before
    scored(command.places, command.options)
    if "--images" in command.options and Path(command.places[0]).is_dir():
        shutil.copytree(command.places[0], command.options["--images"], dirs_exist_ok=True)  # volumes stand for scans
    elif "--images" in command.options:
        truth(command.options["--images"], command.options["--protocol"])  # a dataset's folder has both
        with zipfile.ZipFile(command.places[0]) as archive:
            for name in archive.namelist():
                picture = Path(command.options["--images"], "JPEGImages/480p", name).with_suffix(".jpg")
                picture.parent.mkdir(parents=True, exist_ok=True)
                Image.open(archive.open(name)).convert("RGB").save(picture)


def new(command: Command) -> None:
    options = command.options
    protocol = options.get("--protocol", "davis2017")
    if "--truth" in options:
        truth(options["--truth"], protocol, options.get("--subset", ""))


def pack(command: Command) -> None:
    options = command.options
    if "--categories" in options:
        pngs(options["--root"], options["--categories"])
        return
    layout = options["--layout"]
    names = [name for name in PROTOCOLS if ALIASES.get(name, name) == layout]
    truth(options["--root"], names[0] if names else LAYOUTS[layout], options.get("--subset", ""))


def draw(command: Command) -> None:
    options = command.options
    truth(options["--truth"], options.get("--protocol", "coco"))
    for path in command.places:
        results(path, options["--truth"], options.get("--protocol", "coco"))
    if "--images" in options:
        folder = Path(options["--images"])
        folder.mkdir(parents=True, exist_ok=True)
        for image in json.loads(Path(options["--truth"]).read_text(encoding="utf-8"))["images"]:
            Image.new("RGB", (image["width"], image["height"]), "gray").save(folder / image["file_name"])


def compress(command: Command) -> None:
    truth("compressed/DAVIS", "davis2017")
    results(command.places[0], "compressed/DAVIS", "davis2017")


def rank(command: Command) -> None:
    for path in map(Path, command.places):
        if path.suffix == ".csv" and not path.exists():
            rows = [
                f"{name},{case},{0.5 + place / 10 + case / 50}\n"
                for place, name in enumerate("abc")
                for case in range(8)
            ]
            path.write_text("algorithm,case,value\n" + "".join(rows), encoding="utf-8")
        elif not path.exists():
            stored(path)


def stored(path: Path) -> None:
    """Write the JSON of scores."""
    same = "truth.zip" if Path("truth.zip").exists() else "ranked/DAVIS"  # what is ranked has one truth
    if same != "truth.zip":
        truth(same, "davis2017")
    results(f"{path.stem}.zip", same, "davis2017", poor=True)
    quietly(["score", f"{path.stem}.zip", "--truth", same, "--protocol", "davis2017", "--json", str(path)])


def report(command: Command) -> None:
    if "--draw" in command.options:
        draw(command)
    elif "--truth" in command.options:
        compare(command)
    elif not Path(command.places[0]).exists():
        stored(Path(command.places[0]))


def interactive(command: Command) -> None:
    what, *places = command.places
    if "--users" in command.options:
        Path(command.options["--users"]).write_text(f"me {'0123456789abcdef' * 2}\n", encoding="utf-8")
    if what == "plot":
        for path in (Path(place.rpartition("=")[2]) for place in places):
            if not path.exists():
                shutil.copy(next(Path("runs").glob("result_*.csv")), path)
    if what in ("run", "serve"):
        root = Path(command.options["--root"])
        if not root.exists():
            quietly(["interactive", "demo", "--out", str(root)])
        subset = root / "ImageSets/2017" / f"{command.options.get('--subset', 'val')}.txt"
        shutil.copy(root / "ImageSets/2017/val.txt", subset) if not subset.exists() else None


MAKERS = {
    "score": score, "compare": compare, "new": new, "pack": pack,
    "compress": compress, "rank": rank, "interactive": interactive, "report": report,
}  # fmt: skip


def truth(path: str, protocol: str, subset: str = "") -> None:
    """Write a truth as its benchmark publishes it, unless it exists."""
    target = Path(path)
    if target.exists() and path not in made():
        return
    from tests.published import published  # which takes longer to import than most commands run

    with tempfile.TemporaryDirectory() as name:
        source = published(protocol, Path(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir() and target.suffix == ".zip":
            quietly(["pack", "--layout", ALIASES.get(protocol, protocol), "--root", str(source), "--out", path])
        elif source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copytree(Path(name), target.parent, dirs_exist_ok=True)
            (target.parent / source.name).rename(target)
    lists = target / "ImageSets/2017"
    if subset and lists.is_dir():
        shutil.copy(lists / "val.txt", lists / f"{subset}.txt") if subset != "val" else None
    note(path, protocol)


def results(path: str, truth_path: str, protocol: str, *, poor: bool = False) -> None:
    """Write results as a participant would send them, unless they exist."""
    key = f"{truth_path} {protocol} {poor}"
    if Path(path).exists() and made().get(path, key) == key:
        return
    sample = "poor.zip" if poor else "good.zip"
    # A published truth is the same on every page, and so are the samples of its challenge.
    shared = Path(os.environ[DONE_VARIABLE]).with_name(f"{made().get(truth_path)}-{protocol}-{sample}")
    if truth_path not in made() or not shared.exists():
        with tempfile.TemporaryDirectory() as name:
            quietly(["new", f"{name}/challenge", "--protocol", protocol, "--truth", truth_path])
            (source,) = Path(name, "challenge/examples").glob(f"*/{sample}")
            shutil.copy(source, shared)
    as_named(shared, Path(path))
    note(path, key)


def as_named(source: Path, target: Path) -> None:
    """Copy a sample in the form that a file's name requires."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.name.endswith(".json.gz"):
        target.unlink(missing_ok=True)
        quietly(["compress", str(source), "--out", str(target)])
    elif target.suffix == ".json":
        with zipfile.ZipFile(source) as archive:
            target.write_bytes(archive.read(archive.namelist()[0]))
    elif target.suffix == ".zip":
        shutil.copy(source, target)
    else:
        shutil.unpack_archive(source, target)
        for path in target.rglob("*.png"):  # as large as people send them
            with Image.open(path) as image:
                image.copy().save(path, compress_level=0)


def sample(path: str, phase: str) -> None:
    """Copy a sample of a phase of the bundle, unless the results exist."""
    if Path(path).exists() and made().get(path, phase) == phase:
        return
    (source,) = [item for item in sorted(Path("examples", phase).iterdir()) if item.suffix == Path(path).suffix][-1:]
    shutil.copy(source, path)
    note(path, phase)


def pngs(folder: str, categories: str) -> None:
    """Copy Places-style PNGs and the list of their categories."""
    if not Path(folder).exists():
        shutil.copytree(GOLDEN / "places" / "png", folder)
        images = [
            {"id": number, "file_name": f"{path.stem}.jpg", "width": 100, "height": 100}
            for number, path in enumerate(sorted(Path(folder).iterdir()), 1)
        ]
        for image in images:
            with Image.open(Path(folder, image["file_name"]).with_suffix(".png")) as opened:
                image["width"], image["height"] = opened.size
        known = [{"id": number, "name": f"category {number}"} for number in range(1, 101)]
        Path(categories).write_text(json.dumps({"categories": known, "images": images}), encoding="utf-8")


def detections(path: str, folder: str, categories: str) -> None:
    """Write detections that match such PNGs."""
    with tempfile.TemporaryDirectory() as name:
        document = Path(name, "truth.json")
        quietly(
            ["pack", "--layout", "places2017", "--root", folder, "--out", str(document), "--categories", categories]
        )
        annotations = json.loads(document.read_text(encoding="utf-8"))["annotations"]
    Path(path).write_text(json.dumps([{**annotation, "score": 0.5} for annotation in annotations]), encoding="utf-8")
    note(path, folder)


def made() -> dict[str, str]:
    """Return the files made here."""
    return json.loads(MADE.read_text(encoding="utf-8")) if MADE.exists() else {}


def note(path: str, key: str) -> None:
    MADE.write_text(json.dumps({**made(), path: key}), encoding="utf-8")


def quietly(arguments: list[str]) -> None:
    """Run a command of the toolkit."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = cli.main(arguments)
    if code:
        raise AssertionError(f"{' '.join(arguments)}: {output.getvalue()}")
