"""Texts that are their own scripts: calls, and below each the noted answer, in cases that can run alone.

The lines before the first title are the setting: every case starts with it, in a new namespace and a new folder. A call may
take several lines while its brackets are open. Its answer is indented below it, or a comment behind it.

    # A mask of another size is refused
    score([prediction[:2]], [truth], "davis2017")
        davis2017: SubmissionError: …
"""

from __future__ import annotations

import ast
import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from .calls import answer_call, hold_lines, strip_comment

#: Returns the names that calls may use while a case runs.
Setting = Callable[[], contextlib.AbstractContextManager[Mapping[str, Any]]]


@dataclass(frozen=True)
class Case:
    """Calls under a title, with their noted answers."""

    file: Path
    title: str
    noted: str
    setting: str

    def __str__(self) -> str:
        return f"{self.file.stem}: {self.title}"

    def run(self, names: Setting) -> str:
        """Return the calls with their current answers."""
        with tempfile.TemporaryDirectory(prefix="segjudge-") as folder, contextlib.chdir(folder), names() as given:
            space = dict(given)
            exec(compile(self.setting, f"{self.file.stem}, setting", "exec"), space)
            lines = [line for call in list_calls(self.noted) for line in answer_call(call, space)]
        return "\n".join([f"# {self.title}", *lines]).replace(folder, "FOLDER") + "\n"

    def hold(self, names: Setting) -> None:
        """Fail if an answer differs from the noted one."""
        hold_lines(f"# {self.title}\n{self.noted}", self.run(names), self.file.name)


def read_cases(file: Path) -> list[Case]:
    """Return the cases of a text; their titles differ."""
    lines = file.read_text(encoding="utf-8").splitlines()
    titles = [number for number, line in enumerate(lines) if line.startswith("# ")]
    setting = "\n".join(lines[: titles[0]])
    blocks = zip(titles, [*titles[1:], len(lines)], strict=True)
    cases = [Case(file, lines[top][2:], "\n".join(lines[top + 1 : end]).rstrip(), setting) for top, end in blocks]
    assert len({case.title for case in cases}) == len(cases), f"{file}: a title stands twice"
    return cases


def list_calls(noted: str) -> Iterator[str]:
    """Yield the calls of a case without their answers."""
    lines = iter(noted.splitlines())
    for line in lines:
        if line and not line.startswith("    "):
            call = line
            while not _is_complete(call):
                call += f"\n{next(lines)}"
            yield strip_comment(call)


def write_cases(file: Path, names: Setting) -> None:
    """Note the current answers of a text's calls."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    setting = "".join(takewhile(lambda line: not line.startswith("# "), lines))
    file.write_text("\n".join([setting.rstrip() + "\n", *(case.run(names) for case in read_cases(file))]), "utf-8")


def _is_complete(call: str) -> bool:
    try:
        ast.parse(call)
    except SyntaxError as error:
        return "was never closed" not in error.msg
    return True
