"""The output and files of commands on small results, case by case.

With a folder as argument, the module writes there.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

from segjudge.cli import main
from segjudge.evaluation_script.scoring import VERSION
from segjudge.system import bounds, sandbox

from .answers import Book, join_json, write_answers
from .pages import digest, round_numbers
from .scoring.mistakes import write_mistakes

FOLDER = Path(__file__).parent / "commands/results"
#: So many lines are kept of what a command prints and writes; of the others a digest.
_LINES = 40
#: Protocol → what its truth and results with mistakes are called.
NAMES = {"davis2017": "davis", "coco": "coco", "vspw": "vspw", "places2017": "places"}
#: The program that a command finds while it runs, if any; what a real one lacks differs between machines.
_SANDBOXES = {"there is no sandbox": None, "there is a sandbox that lacks nothing": "bwrap"}
#: What is typed, one after the other, in one folder; a line that begins with a colon says what the machine has.
COMMANDS = """
score davis-results.zip --truth davis-truth.zip --protocol davis2017
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --sequences a,c --json - --quiet
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --csv tables --json davis.json --save davis.saved
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --results-yaml results.yaml --hub-dataset o/n
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --part 1/2 --out 1.part
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --part 2/2 --out 2.part
merge 1.part 2.part
merge 1.part
score davis-truth.zip --truth davis-truth.zip --protocol davis2017
score davis-results.zip --truth davis-truth.zip --protocol coco
score davis-results.zip --truth davis-truth.zip --protocol davis2107
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --split none
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --sequences a,nobody
score nothing.zip --truth davis-truth.zip --protocol davis2017
score vspw-results.zip --truth davis-truth.zip --protocol davis2017
score davis-results.zip --truth davis-truth.zip --protocol davis2016 --json sixteen.json
pack --layout coco --root nothing.json --out nothing.zip
compress davis-results.zip --out small.zip
compress davis-results.zip --out small.json.gz --protocol davis2017
score small.zip --truth davis-truth.zip --protocol davis2017 --save small.saved --json small.json
compare davis=davis.saved small=small.saved
compare davis=davis-results.zip small=small.zip --truth davis-truth.zip --protocol davis2017 --markdown change.md --table t.tex
compare davis=davis-results.zip --truth davis-truth.zip --protocol davis2017
rank davis.json small.json
rank davis.json small.json --metric F-Mean --method rank-then-mean
rank davis.json sixteen.json
score coco-results.json --truth coco-truth.json --protocol coco --csv coco-tables --json coco.json
score coco-results.json --truth coco-truth.json --protocol coco --cap image --id-zero-quirk on
score coco-results.json nothing.json --truth coco-truth.json --protocol coco
score davis-results.zip vspw-results.zip coco-truth.json small.zip --truth davis-truth.zip --protocol davis2017 --all-metrics
score davis-results.zip small.zip --truth davis-truth.zip --protocol davis2017 --csv tables
score places-results.json --truth places-truth.json --protocol places2017 --style official
pack --layout coco --root coco-truth.json --out packed.zip
score coco-results.json --truth packed.zip --protocol davis2017
show --truth coco-truth.json --out shown
score
score davis-results.zip
score davis-results.zip --truth davis-truth.zip
score davis-results.zip --phase val
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --phase val
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --cap image
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --style official
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --annotations davis-truth.zip
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --part 1/2
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --part 1/2 --out x.part --save x.saved
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --scheduler tcp://x --part 1/2 --out x.part
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --results-yaml r.yaml
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --results-yaml r.yaml --hub-dataset odd
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --hub-dataset o/n
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --task unsupervised
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --strict --quiet
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --json davis-truth.zip
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --json same.json --results-yaml same.json --hub-dataset o/n
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --json none/x.json
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --jobs 2 --sequences a --report report.html
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --jobs none
score davis-results.zip --truth davis-truth.zip --protocol davis2017 --subset lost
score coco-results.json --truth coco-truth.json --protocol coco --style official --quiet
score coco-results.json --truth davis-truth.zip --protocol coco
score davis-truth.zip --truth coco-truth.json --protocol coco
merge davis.json
merge 1.part 1.part
pack --layout none --root davis-truth.zip --out none.zip
pack --layout davis2017 --root davis-truth.zip --out none.zip
pack --layout coco --root coco-truth.json --out packed.zip --split test --quiet
convert places
convert places davis out
compress lost.zip --out none.zip
compress davis-results.zip --out davis-results.zip
compress coco-truth.json --out none.zip
compress vspw-results.zip --out none.zip --protocol davis2017
compare davis.saved
compare davis=davis.saved davis=small.saved
compare davis=davis.saved lost=lost.saved
compare davis=davis.saved small=davis-results.zip
compare davis=davis.saved small=small.saved --metric none
compare davis=davis.saved small=small.saved --split none
compare davis=davis.saved small=small.saved --metric F-Mean --json compared.json --fail-below 0.1
compare davis=davis.saved small=small.saved --fail-below -0.1 --kinds --quiet
compare davis=davis.saved small=small.saved --film film.png
compare davis=davis.saved small=small.saved --frames 3
compare davis=davis.saved coco=coco.json
rank davis.json
rank davis.json lost.json
rank davis.json small.json --metric none
rank davis.json small.json --split none
rank davis.json small.json --draws 0
rank davis.json small.json --method none
rank a=davis.json b=small.json --smaller --average-ties --missing last --adjustment none --draws 20 --json ranked.json --quiet
rank davis.json davis.json
rank results.yaml davis.json
rank davis.json small.json --json - --quiet
show --truth coco-truth.json --out shown-too --iou 2
show --truth coco-truth.json --out shown-too --images lost
show --truth coco-truth.json --out shown-too --split none
show --truth lost.json --out shown-too
show coco-results.json --truth coco-truth.json --out shown-too --quiet --iou 0.3 --score 0.5
show --truth davis-truth.zip --out shown-video --protocol davis2017 --iou 0.3
show --truth davis-truth.zip --out shown-video --protocol davis2017 --split none
show --truth davis-truth.zip --out shown-video --protocol davis2017
show davis-results.zip --truth davis-truth.zip --out shown-video --protocol davis2017
show --truth burst-truth.json --out shown-video
report
report davis-results.zip
report davis-results.zip --truth davis-truth.zip
report davis-results.zip --truth davis-truth.zip --protocol davis2017 --split none
report davis-results.zip --truth davis-truth.zip --protocol davis2017 --out page.html --images coco-tables
report davis-results.zip --truth davis-truth.zip --protocol davis2017 --out page.html --title Mine
:there is no sandbox
arena agent.py --seconds 0
arena agent.py --env none
arena --static
:there is a sandbox that lacks nothing
arena agent.py --env none
arena --static
interactive
interactive run lost:method
interactive curve lost.csv
"""


def write_transcript() -> dict[str, str]:
    """Run the commands in a new folder; return everything that they print and write."""
    start_folder = os.getcwd()
    with (
        tempfile.TemporaryDirectory(prefix="segjudge-") as folder,
        contextlib.chdir(folder),
        contextlib.ExitStack() as stack,
    ):
        for protocol, name in NAMES.items():
            (Path(folder) / name).mkdir()
            files = write_mistakes(protocol, Path(folder) / name)
            for path, kind in ((Path(files.results), "results"), (Path(files.truth), "truth")):
                path.rename(f"{name}-{kind}{path.suffix}")  # a folder keeps none
        book = Book()
        for line in filter(None, COMMANDS.splitlines()):
            if line.startswith(":"):
                _place_sandbox(stack, _SANDBOXES[line[1:]])
                book.happen(line[1:])
            else:
                text = settle(run(line).replace(folder, "FOLDER").replace(start_folder, "CHECKOUT"))
                book.add(line.split()[0], f"segjudge {line}", shorten(join_json(text)))
    return book.texts()


def _place_sandbox(stack: contextlib.ExitStack, program: str | None) -> None:
    """Let commands use this sandbox until the stack ends."""
    sentences = bounds.missing_bounds(None) if program is None else []
    stack.enter_context(patch.object(sandbox, "find_sandbox", lambda *, required=False: program))
    stack.enter_context(patch.object(bounds, "missing_bounds", lambda _program: sentences))


def run(line: str) -> str:
    """Run a command; return its output, its code unless that is 0, and the texts that it writes."""
    before, output = _list_files(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            code = main(shlex.split(line))
        except SystemExit as error:
            code = error.code  # type: ignore[assignment]
    changed = sorted(Path(path) for path, state in _list_files().items() if before.get(path) != state)
    texts = [f"── {path} ──\n{_read(path)}" for path in changed]
    return "\n".join([output.getvalue(), *([f"exit code {code}"] if code else []), *texts])


def shorten(text: str) -> str:
    """Return a text completely, or its first lines and a digest of the others."""
    lines = text.splitlines(keepends=True)
    rest = digest("".join(lines[_LINES:]).encode())
    return (
        text if len(lines) <= _LINES + 10 else f"{''.join(lines[:_LINES])}… {len(lines) - _LINES} lines more: {rest}\n"
    )


def _list_files() -> dict[str, tuple[int, int]]:
    """Return the size and time of each file in this folder."""
    listed = {}
    for folder, folders, names in os.walk("."):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for path in (os.path.join(folder, name) for name in names):
            if os.path.isfile(path):
                state = os.stat(path)
                listed[path] = (state.st_size, state.st_mtime_ns)
    return listed


def _read(path: Path) -> str:
    texts = (".csv", ".json", ".yaml", ".tex", ".md")
    return path.read_text() if path.suffix in texts else "(not shown)"


def settle(text: str) -> str:
    """Omit what depends on versions, machines and rows: digests, sizes, days, invisible digits, lists of protocols."""
    text = re.sub(r"\b[0-9a-f]{12,}\b", "DIGEST", round_numbers(text).replace(VERSION, "VERSION"))
    text = re.sub(r"[\d,]+ bytes instead of [\d,]+, \d+\s?%", "N bytes instead of M", text)
    text = re.sub(r"(?<=html )\([\d.]+ kB\)|\([\d.]+ MB\)", "(N MB)", text)
    text = re.sub(r"\b20\d\d-\d\d-\d\d\b", "TODAY", text)
    text = re.sub(r'"(numpy|python|pillow)": "[^"]*"', r'"\1": "…"', text)
    text = re.sub(r"(choose from|a protocol of \w+:) [\w-]+, .* and \d+ more", r"\1 PROTOCOLS", text)
    return re.sub(r'"counted_by": "(kernel|numpy)"', '"counted_by": "…"', text)


if __name__ == "__main__":
    os.environ.pop("FORCE_COLOR", None)
    os.environ["COLUMNS"] = "100"  # as wide as the test's terminal
    write_answers(Path(sys.argv[1]).resolve() if sys.argv[1:] else FOLDER, write_transcript())
