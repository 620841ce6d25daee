"""Calls as a text of typed lines, each with its value or error below it."""

from __future__ import annotations

import ast
import contextlib
import difflib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .pages import round_numbers


def run_calls(session: str, names: Mapping[str, Any]) -> str:
    """Run lines of Python one after another in one namespace; return them with their output, if any."""
    space, lines, source = dict(names), list[str](), session.splitlines()
    for node in ast.parse(session).body:
        text = source[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()  # no call has two lines
        lines += [text, *answer_call(text, space)]
    return "\n".join(lines) + "\n"


def answer_call(call: str, space: dict[str, Any]) -> list[str]:
    """Run a statement; return the indented lines of its value or error, or none if it is not a call."""
    if isinstance(ast.parse(call).body[0], ast.Expr):
        return [f"    {line}" for line in _say(call, space).splitlines()]
    exec(compile(call, "session", "exec"), space)
    return []


def run_session(session: str, names: Mapping[str, Any]) -> str:
    """Run lines of Python in a new folder, whose name is removed; `print` collects the values for `printed`."""
    printed = list[str]()
    talk = {
        "print": lambda *words, sep=" ": printed.append(sep.join(map(str, words))),
        "printed": lambda: ("\n".join(printed), printed.clear())[0],
    }
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder, contextlib.chdir(folder):
        return run_calls(session.lstrip(), {**talk, **names}).replace(folder, "FOLDER")


def _say(text: str, space: dict[str, Any]) -> str:
    try:
        output = eval(text, space)
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
        return f"{type(error).__name__}: {error}"
    return "" if output is None else round_numbers(output if isinstance(output, str) else repr(output))


def hold(text: str, file: Path) -> None:
    """Compare a text with the noted one, line by line; show the differences."""
    hold_lines(file.read_text(encoding="utf-8"), text, file.name)


def hold_lines(noted: str, text: str, name: str) -> None:
    """Fail with the lines in which a text differs from the noted one."""
    lines = difflib.unified_diff(noted.splitlines(), text.splitlines(), name, "now", lineterm="", n=1)
    changes = "\n".join([*lines][:60])
    assert not changes, changes


def labels(rows: str) -> Any:
    """Draw a map of labels: a digit for each pixel, a space between rows."""
    return np.array([list(map(int, row)) for row in rows.split()], np.uint8)
