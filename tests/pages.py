"""The pages and terminal output of results with many mistakes, and the content of new challenges, in every form.

    python -m tests.pages [FAMILY…]
    python -m tests.pages FOLDER

The first notes what is shown now, as a digest of each part, of all families or of some: run it after an intended change.
The second writes the texts themselves: do so before and after a change, and compare the folders.
"""

from __future__ import annotations

import datetime
import io
import json
import re
import sys
import tempfile
import zipfile
import zlib
from base64 import b64decode
from collections.abc import Callable, Collection
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from PIL import Image

import segjudge
from segjudge.evaluation_script.families import FOLDERS, PROTOCOLS, folder_of
from segjudge.families import tools_of
from segjudge.families.truths import TruthSource
from segjudge.report.page import PageOptions, make_page_options, render_page
from segjudge.scoring.report import make_truth_report
from segjudge.scoring.scores import Scores
from segjudge.starting.new_challenge import NewChallenge, create, write_demo_truth
from segjudge.system.errors import UsageError

from .builders import zipped
from .families.contract import examples, examples_of, golden_path, value_of
from .golden.rows import read_rows, write_rows
from .scoring.mistakes import write_mistakes

#: In the golden folder of each family's tests: protocol → show → part → digest of its text.
FILE = "pages.json"
#: A protocol of each form of report.
FORMS = examples("pages")
SHOWS = ("challenge", "report", "truth", "compare", "rank", "text")


def show(protocol: str, folder: Path, shows: Collection[str] = SHOWS) -> dict[str, dict[str, str]]:
    """Score results with mistakes and a moved truth, and return their displays: show → part → text."""
    made = {"challenge": _write_challenge(protocol, folder)} if "challenge" in shows else {}
    if set(shows) - {"challenge"}:
        files, options = write_mistakes(protocol, folder), make_page_options("", 6)
        value_of(protocol, "spoil_pages", Path)(files.results)
        scores = segjudge.score(files.results, files.truth, protocol)
        made["report"] = _read(render_page(scores.make_page(options, "mistakes")))
    if set(shows) - {"challenge", "report"}:
        truths = [scorer.truth for scorer in scores.open_inputs().scorers.values()]
        moved, rules = folder / "moved.zip", scores.reports[0].protocol
        moved.write_bytes(zipped(dict(tools_of(rules.family).make_sample(truths, rules, 0.05))))
        made |= _show_methods({"mistakes": scores, "moved": segjudge.score(moved, files.truth, protocol)}, options)
    return {name: {part: _settle(text) for part, text in made[name].items()} for name in shows}


def _show_methods(methods: dict[str, Scores], options: PageOptions) -> dict[str, dict[str, str]]:
    scores, compared, ranked = methods["mistakes"], segjudge.compare(methods), segjudge.rank(methods)
    return {
        "truth": _read(_say(lambda: _show_truth(scores, options))),
        "compare": _read(_say(lambda: render_page(compared.make_page(options)))),
        "rank": _read(render_page(ranked.make_page())),
        "text": {
            "score": repr(scores), "notebook": scores._repr_html_(), "compare": compared.text(), "latex": compared.latex(),
            "kinds": _say(lambda: scores.kinds.to_csv(index=False)), "kinds compared": _say(compared.kinds_text),
            "markdown": _say(compared.markdown),
            "compare in a notebook": _say(compared._repr_html_), "rank": ranked.text(), "rank in a notebook": ranked._repr_html_(),
        },
    }  # fmt: skip


def _write_challenge(protocol: str, folder: Path) -> dict[str, str]:
    """Make the challenge of a synthetic truth, and return the content of its files by name."""
    (folder / "synthetic").mkdir()
    truth = write_demo_truth(PROTOCOLS[protocol], str(folder / "synthetic"))
    commit, day = f"git+https://example.org/segjudge@{'0' * 40}", datetime.date(2030, 1, 2)
    challenge = NewChallenge(str(folder / "mine"), protocol, TruthSource(truth), "Mine", commit, today=day)
    notes = create(challenge, lambda *_: None)
    files = {path.relative_to(folder / "mine").as_posix(): path for path in sorted((folder / "mine").rglob("*.*"))}
    texts = {name: _read_file(path.read_bytes()) for name, path in files.items() if path.is_file()}
    texts.pop("requirements.txt")  # the version and digests of this Segjudge
    return {**texts, "notes": "\n".join(notes)}


def _read_file(data: bytes) -> str:
    """Return a text, the names and contents of an archive, or a digest; pictures by their pixels."""
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return "\n".join(f"{name}: {_read_file(archive.read(name))}" for name in archive.namelist())
    if data.startswith(b"\x89PNG"):
        with Image.open(io.BytesIO(data)) as image:
            return f"{image.mode} {image.size} {digest(image.tobytes())}"
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _digest_stream(data)


def _say(make: Callable[[], str]) -> str:
    """Return a text, or the reason why there is none."""
    try:
        return make()
    except UsageError as error:
        return str(error)


def _show_truth(scores: Scores, options: PageOptions) -> str:
    inputs = scores.open_inputs()
    truths = {name: scorer.truth for name, scorer in inputs.scorers.items()}
    return render_page(make_truth_report(truths, scores.reports[0].protocol.family, "truth", options))


def _read(page: str) -> dict[str, str]:
    """Take a page apart: its sections, its scripts' inputs, and streams; styles and scripts are omitted."""
    parts = {"head": page.partition("<section")[0]}
    for section in re.findall(r"<section\b.*?</section>", page, re.DOTALL):
        parts[re.search(r'id="([^"]*)"', section)[1]] = section  # type: ignore[index]
    parts.pop("what-was-scored", None)  # digests of files
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    parts["data"] = json.dumps(json.loads(data[1]), indent=0) if data else ""
    streams = re.findall(r'<script type="text/plain" data-stream="([^"]*)">(.*?)</script>', page, re.DOTALL)
    parts["streams"] = "\n".join(f"{name} {_digest_stream(b64decode(text))}" for name, text in streams)
    return parts


def _digest_stream(stream: bytes) -> str:
    with suppress(zlib.error):
        stream = zlib.decompress(stream)
    return digest(stream)


def _settle(text: str) -> str:
    """Omit styles, scripts, files of pictures, the version, and digits that no page shows."""
    text = re.sub(r"<(style|script)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r"data:image/[\w.+-]+;base64,[\w+/=]*", "data:image", text)
    text = re.sub(r"sha256-[\w+/=]+|segjudge \d[\w.+-]*|, (kernel|numpy)(?=</small>)", "", text)
    text = re.sub(r"\btruth \w{12}, .*", "", text)
    return round_numbers(text)


def round_numbers(text: str) -> str:
    """Round numbers to the digits that pages show, since other machines may compute the rest differently."""
    return re.sub(r"\d+\.\d{5,}(e-\d+)?", lambda number: f"{float(number[0]):.5g}", text)


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:12]


def digest_all(shows: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    return {name: {part: digest(text.encode()) for part, text in parts.items()} for name, parts in shows.items()}


def run(protocol: str, shows: Collection[str] = SHOWS) -> dict[str, dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        return show(protocol, Path(folder), shows)


def read_digests(protocol: str) -> dict[str, dict[str, str]]:
    """Return the noted digests of a protocol: show → part → digest."""
    path = golden_path(folder_of(PROTOCOLS[protocol].family), FILE)
    digests: dict[str, dict[str, str]] = read_rows(path).get(protocol, {})
    return digests


def note_digests(folder: str) -> None:
    """Note the displays of a family's examples."""
    protocols = examples_of(folder, "pages")
    write_rows(golden_path(folder, FILE), {protocol: digest_all(run(protocol)) for protocol in protocols}, depth=2)


def write_texts(out: Path) -> None:
    for protocol in FORMS:
        for name, texts in run(protocol).items():
            for part, text in texts.items():
                path = Path(out, protocol, name, f"{part}.txt")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)


def main(arguments: list[str]) -> None:
    families = [word for word in arguments if word in FOLDERS]
    if arguments == families:
        for folder in families or FOLDERS:
            note_digests(folder)
    elif len(arguments) == 1 and not arguments[0].startswith("-"):
        write_texts(Path(arguments[0]))
    else:
        print(__doc__)
        sys.exit(arguments != ["--help"])


if __name__ == "__main__":
    main(sys.argv[1:])
