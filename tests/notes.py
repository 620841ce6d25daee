"""All texts that tests compare with current pages, output, answers and files.

    python -m tests.notes [WORD…]
    python -m tests.notes --count

writes those again whose modules' names or, in `tests/families/`, paths contain a word, or all of them. Run it after an
intended change; `git diff` shows what moved. `--count` lists the lines of the texts and of their writers.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from segjudge.evaluation_script.families import FOLDERS

ROOT = Path(__file__).parent.parent
#: How a module writes its text, or one for each family.
WRITES = re.compile(r"(?<![\w.])FILE\)?\.write_text\(|golden_path\(folder, FILE\)|^ +write_answers\(", re.MULTILINE)
#: The maximum number of lines of the noted texts and their writers, without so many lines of each family, so that a new
#: family has room; lower it with their number.
CEILING, OF_A_FAMILY = 16_737, 100
#: Names of files with lines of texts, and of those that are not noted but written by hand.
_TEXTS, _BY_HAND = ("*.txt", "pages.json"), ("*requirements.txt", "*-pinned.txt")


def list_writers() -> list[str]:
    """Return the modules of tests that write such a text when they run."""
    files = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path != Path(__file__)]
    paths = [path.relative_to(ROOT).with_suffix("") for path in files if WRITES.search(path.read_text("utf-8"))]
    return [".".join(path.parts).removesuffix(".__main__") for path in paths]


def list_case_texts() -> list[str]:
    """Return the families' texts that are their own scripts."""
    return [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests/families").glob("*/golden/*.txt"))]


def count_lines() -> dict[str, int]:
    """Return the lines of each noted text and of each of their writers, by path."""
    tests = ROOT / "tests"
    by_hand = {path for name in _BY_HAND for path in tests.rglob(name)}
    paths = {path for name in _TEXTS for path in tests.rglob(name)} - by_hand
    for name in list_writers():
        path = ROOT.joinpath(*name.split("."))
        paths |= {*path.glob("*.py")} if path.is_dir() else {path.with_suffix(".py")}
    return {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in sorted(paths)}


def count_towards_ceiling() -> int:
    """Return the number of lines without the first ones of each family."""
    rooms: Counter[str] = Counter()
    for path, lines in count_lines().items():
        family = re.match(r"tests/families/(\w+)/", path)
        rooms[family[1] if family else ""] += lines
    return sum(max(0, lines - OF_A_FAMILY * (name in FOLDERS)) for name, lines in rooms.items())


def show_count() -> str:
    """Return the counted lines as a table, the longest files first."""
    lines = sorted(count_lines().items(), key=lambda item: -item[1])
    rows = [
        *lines,
        ("together", sum(count_lines().values())),
        (f"without the first {OF_A_FAMILY} of each family, of at most {CEILING}", count_towards_ceiling()),
    ]
    return "\n".join(f"{count:6} {name}" for name, count in rows)


def main(arguments: list[str]) -> int:
    if arguments == ["--count"]:
        print(show_count())
        return 0

    def choose(names: list[str]) -> list[str]:
        return [name for name in names if not arguments or any(word in name for word in arguments)]

    writers, texts = choose(list_writers()), choose(list_case_texts())
    for name in writers:
        print(name, flush=True)
        _run(name)
    if texts:
        print(*texts, sep="\n", flush=True)
        _run("tests.families.cases", *texts)
    return 0 if writers or texts else 2


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=True, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
