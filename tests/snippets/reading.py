"""Find the snippets of a page, and their kinds."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: The variable that names the file of commands that ran; what pages share lies beside it.
DONE_VARIABLE = "SEGJUDGE_SNIPPETS_DONE"
#: What a line of a shell begins with.
COMMANDS = {
    "./run.sh", "segjudge", "python", ".venv/bin/python", "pip", "export", "evalai", "dask", "sqlite3", "cp", "git",
    "$",
}  # fmt: skip
FILE = re.compile(r"# (\w[\w-]*\.toml)\b")
LANGUAGES = {"sh": "shell", "bash": "shell", "console": "shell", "python": "python", "toml": "file"}
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """Some lines of a page that a reader would copy."""

    line: int
    #: `shell`, `python`, `file` (whose first line names it), or `text`.
    kind: str
    text: str


def snippets(page: Path) -> list[Snippet]:
    """Return the snippets of a page, in order."""
    text = page.read_text(encoding="utf-8")
    results = [
        Snippet(text[: match.start()].count("\n") + 2, LANGUAGES.get(match[2], "text"), textwrap.dedent(match[3]))
        for match in FENCE.finditer(text)
    ]
    outside = FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    return sorted([*results, *_indented(outside)], key=lambda snippet: snippet.line)


def _indented(text: str) -> Iterator[Snippet]:
    """Yield the blocks of indented lines after an empty one, split at other empty ones."""
    block: list[str] = []
    blank, margin = True, 4
    for number, line in enumerate([*text.splitlines(), ""], 1):
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent >= margin and (block or blank):
            block.append(line)
        elif block:
            joined = textwrap.dedent("\n".join(block)) + "\n"
            yield Snippet(number - len(block), kind_of(joined), joined)
            block = []
        if line.strip() and not indent:  # code of a numbered item is indented further than its text
            margin = 7 if re.match(r"\d+\. ", line) else 4
        blank = not line.strip()


def kind_of(text: str) -> str:
    """Return the kind of a snippet whose page does not state it."""
    if FILE.match(text):
        return "file"
    if {line.split()[0] for line in text.splitlines()} & COMMANDS:
        return "shell"
    try:
        statements = ast.parse(text.replace("…", "...")).body
    except SyntaxError:
        return "text"
    return "python" if any(not isinstance(statement, ast.Expr) for statement in statements) else "text"


def script_of(text: str) -> str:
    """Return the commands of a shell snippet; if it has prompts, only their lines, without output."""
    prompted = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    return "\n".join(prompted or text.splitlines()) + "\n"
