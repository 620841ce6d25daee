"""Calls as a text of typed lines, each with its value or error: behind it if both fit in a line, otherwise below it."""

from __future__ import annotations

import ast
import contextlib
import difflib
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .answers import lay
from .pages import round_numbers

#: What `tests.answers.fold` adds to a call whose answer equals an earlier one.
_SAME = re.compile(r": as `.*`$")


def read_session(file: Path, section: str = "") -> str:
    """Return the calls and comments of a noted text, or of its section with this title, without the answers."""
    text = file.read_text(encoding="utf-8")
    sections = re.split(r"(?m)^── (.+) ──\n", text)
    part = dict(zip(sections[1::2], sections[2::2], strict=True))[section] if section else text
    calls = [line for line in part.splitlines() if not line.startswith("    ")]
    return "".join(f"{_SAME.sub('', line)}\n" for line in calls)


def run_calls(session: str, names: Mapping[str, Any], folder: str = "") -> str:
    """Run lines of Python one after another in one namespace; return them with their output, if any, and comments.

    The name of a folder becomes FOLDER before lines are laid out, which may not depend on its length.
    """
    space, lines = dict(names), list[str]()
    for line in filter(None, session.splitlines()):
        nodes = ast.parse(line).body
        calls = [line.encode()[node.col_offset : node.end_col_offset].decode() for node in nodes]
        lines += [answer for call in calls for answer in answer_call(call, space, folder)] or [line]
    return "\n".join(lines) + "\n"


def strip_comment(call: str) -> str:
    """Return a call without what follows it on its last line."""
    node, lines = ast.parse(call).body[-1], call.splitlines()[: ast.parse(call).body[-1].end_lineno]
    return "\n".join([*lines[:-1], lines[-1].encode()[: node.end_col_offset].decode()])


def answer_call(call: str, space: dict[str, Any], folder: str = "") -> list[str]:
    """Run a statement; return it with its value or error, or alone if it is not a call."""
    if isinstance(ast.parse(call).body[0], ast.Expr):
        text = _say(call, space)
        answer = [f"    {line}" for line in (text.replace(folder, "FOLDER") if folder else text).splitlines()]
        return [call, *answer] if "\n" in call else lay(call, answer, "  # ")
    exec(compile(call, "session", "exec"), space)
    return [call]


def run_session(session: str, names: Mapping[str, Any]) -> str:
    """Run lines of Python in a new folder, whose name is removed; `print` collects the values for `printed`."""
    printed = list[str]()
    talk = {
        "print": lambda *values, sep=" ": printed.append(sep.join(map(str, values))),
        "printed": lambda: ("\n".join(printed), printed.clear())[0],
    }
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder, contextlib.chdir(folder):
        return run_calls(session.lstrip(), {**talk, **names}, folder)


def _say(text: str, space: dict[str, Any]) -> str:
    try:
        output = eval(text, space)
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
        return f"{type(error).__name__}: {error}"
    return "" if output is None else round_numbers(output if isinstance(output, str) else repr(output))


def outcome(call: Callable[[], Any]) -> Any:
    """Return the value of a call, or its error as a line."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - whatever is raised is compared
        return f"{type(error).__name__}: {error}"


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
