"""The options of every command: accepted and rejected values, and defaults, as one text."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from segjudge.commands import COMMANDS, PLATFORMS
from segjudge.commands.parser import CommandParser

FILE = Path(__file__).with_name("options.txt")
#: Values tried on each function that reads a text, in addition to its bounds.
_TEXTS = (
    "", "x", "-1", "0", "+1", "256", "257", "0.1", "nan", "9999999", "10000000", "auto", "1/1", "2/3", "3/2", "0/1", "1/0",
    "1/2/3", "100000/100000", "1/100001", " a, ,b ",
)  # fmt: skip
#: The maximum number of choices that are listed; longer lists are those of a table.
_MOST_CHOICES = 8
#: The functions that read the texts of options, by name, if they have no bounds of their own.
_readers = dict[str, Callable[[str], Any]]()


def list_options() -> str:
    rows = {name: row.module for name, row in COMMANDS.items()}
    rows |= {
        f"{name} --platform {platform}": row.module
        for platform, table in PLATFORMS.items()
        for name, row in table.items()
    }
    lines = list[str]()
    for title, module in rows.items():
        parser = CommandParser(add_help=False)
        import_module(f"segjudge.commands.{module}").COMMANDS[title.partition(" ")[0]].add_options(parser)
        lines += _list_parser(title, parser)
    lines = [
        *_fold(lines),
        "# what reads a text",
        *(f"{name}: {_try_texts(read, _TEXTS)}" for name, read in _readers.items()),
    ]
    return "\n".join(lines) + "\n"


def _fold(lines: list[str]) -> Iterator[str]:
    """Yield the lines; options that equal those of the last command with them are in one line, by name."""
    latest, same = dict[str, str](), list[str]()
    for line in [*lines, "#"]:
        name, _, description = line.partition(": ")
        if line.startswith("#"):
            yield from [f"as above: {', '.join(same)}"] if same else []
            same.clear()
        if latest.get(name) == description and name.startswith("--"):
            same.append(name)
        elif line != "#":
            latest[name] = description
            yield line


def _list_parser(title: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"# {title}"
    together = [group for group in parser._mutually_exclusive_groups if group._group_actions]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield f"one of {', '.join(action.choices)}{', required' * action.required}"
            for name, sub in action.choices.items():
                yield from _list_parser(f"{title} {name}", sub)
        elif not isinstance(action, argparse._HelpAction):
            yield f"{'/'.join(action.option_strings) or action.dest}: {_describe(action)}"
    for group in together:
        yield f"not together: {', '.join(action.option_strings[0] for action in group._group_actions)}"


def _describe(action: argparse.Action) -> str:
    arguments = [
        action.metavar if isinstance(action.metavar, str) else "",
        "required" if action.required and action.nargs != "*" else "",
    ]
    arguments += [
        f"values {action.nargs}" if action.nargs is not None else "",
        "hidden" if action.help == "==SUPPRESS==" else "",
    ]
    arguments += [
        f"{action.default!r}, else {action.const!r}" if action.const is not None else f"default {action.default!r}"
    ]
    if action.choices is not None:
        names = [*action.choices]
        arguments.append(f"of {', '.join(names)}" if len(names) <= _MOST_CHOICES else "of a table")
    return "; ".join(filter(None, [*arguments, _describe_type(action.type)]))


def _describe_type(kind: Any) -> str:
    if kind is None or isinstance(kind, type):
        return kind.__name__ if kind else ""
    bounds = re.search(r"a whole number from (-?\d+) to (\d+)$", str(_read(kind, "x")))
    if bounds and isinstance(_read(kind, "auto"), Exception):
        least, largest = map(int, bounds.groups())
        return _try_texts(kind, (str(least - 1), str(least), str(largest), str(largest + 1)))
    _readers.setdefault(kind.__name__.strip("_"), kind)
    return str(kind.__name__.strip("_"))


def _try_texts(read: Callable[[str], Any], texts: Sequence[str]) -> str:
    refused = [text for text in texts if isinstance(_read(read, text), Exception)]
    taken = [f"{text!r} = {_read(read, text)!r}" for text in texts if text not in refused]
    return f"takes {', '.join(taken)}; refuses {', '.join(f'{text!r}' for text in refused)}: {_read(read, 'x')}"


def _read(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except (argparse.ArgumentTypeError, ValueError) as error:
        return error


if __name__ == "__main__":
    FILE.write_text(list_options(), encoding="utf-8")
