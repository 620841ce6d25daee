"""What calls give or refuse, as one text: each line as it is typed, and below it what it returns or raises."""

from __future__ import annotations

import ast
import contextlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .pages import round_numbers


def run_calls(session: str, names: Mapping[str, Any]) -> str:
    """Run lines of Python one after another in one namespace; return them with what they say, where that is anything."""
    space, lines, source = dict(names), list[str](), session.splitlines()
    for node in ast.parse(session).body:
        text = source[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()  # no call has two lines
        lines.append(text)
        if isinstance(node, ast.Expr):
            lines += [f"    {line}" for line in _say(text, space).splitlines()]
        else:
            exec(compile(ast.Module([node], []), "session", "exec"), space)
    return "\n".join(lines) + "\n"


def run_session(session: str, names: Mapping[str, Any]) -> str:
    """Run lines of Python in a new folder, whose name is left out; `print` collects what `printed` takes."""
    printed = list[str]()
    talk = {
        "print": lambda *words, sep=" ": printed.append(sep.join(map(str, words))),
        "printed": lambda: ("\n".join(printed), printed.clear())[0],
    }
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder, contextlib.chdir(folder):
        return run_calls(session.lstrip(), {**talk, **names}).replace(folder, "FOLDER")


def _say(text: str, space: dict[str, Any]) -> str:
    try:
        said = eval(text, space)
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
        return f"{type(error).__name__}: {error}"
    return "" if said is None else round_numbers(said if isinstance(said, str) else repr(said))


def hold(text: str, file: Path) -> None:
    """Hold a text to what was noted, line by line."""
    assert text.splitlines() == file.read_text().splitlines()


def labels(rows: str) -> Any:
    """Draw a map of labels: a digit for each pixel, a space between rows."""
    return np.array([list(map(int, row)) for row in rows.split()], np.uint8)
