"""The parser of a command line: its options in groups, its help, and errors that are sentences."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from segjudge.system.options import BUNDLE, read_number, read_whole

from . import GROUPS, RARE

PROGRAM = "segjudge"

#: The beginning of argparse's message about an unknown option.
_UNKNOWN = "unrecognized arguments: "
#: The beginning of argparse's message about missing arguments.
_LACKING = "the following arguments are required: "
#: The beginning of argparse's message about a value that is no choice.
_NO_CHOICE = r"(?s)argument (.+?): invalid choice: (.+?) \(choose from "
#: The maximum number of choices that a sentence about an unknown one lists, and how many it shows of more.
_MOST_CHOICES, _FIRST_CHOICES = 24, 4
#: The column at which the help of options begins.
_COLUMN = 24


class CommandParser(argparse.ArgumentParser):
    """A parser that lists what was added to it, and whose errors suggest the nearest name."""

    #: The options of the command that was typed.
    options: Sequence[str] = ()

    def __init__(self, **options: Any) -> None:
        #: The arguments and options in the order in which they were added, and the groups by title.
        self.arguments: list[argparse.Action] = []
        self.groups: dict[str, Any] = {}
        super().__init__(**{"formatter_class": argparse.RawTextHelpFormatter, **options})
        self.color = False  # Python 3.14 would colour the help, older ones not
        self.register("type", int, read_whole)
        self.register("type", float, read_number)

    def add_argument(self, *names: str, **options: Any) -> argparse.Action:
        self.arguments.append(super().add_argument(*names, **options))
        return self.arguments[-1]

    def add_subparsers(self, **options: Any) -> Any:
        actions = super().add_subparsers(**options)
        self.arguments.append(actions)
        return actions

    def options_of(self, title: str, *, exclusive: bool = False) -> Callable[..., argparse.Action]:
        """Return the function that adds an option to the group of a title; one of `exclusive` options may be used."""
        if title not in self.groups:
            self.groups[title] = self.add_argument_group(title)
        group = self.groups[title].add_mutually_exclusive_group() if exclusive else self.groups[title]

        def add(*names: str, **options: Any) -> argparse.Action:
            self.arguments.append(group.add_argument(*names, **options))
            return self.arguments[-1]

        return add

    def arrange_groups(self, *titles: str) -> None:
        """Create the groups of a command's help in the order in which the help shows them."""
        for title in titles:
            self.options_of(title)

    def list_options(self) -> list[str]:
        """Return the shown options of a command and of its actions."""
        shown = [argument for argument in self.arguments if argument.help != argparse.SUPPRESS]
        options = [option for argument in shown for option in argument.option_strings]
        return [*options, *(option for each in _list_actions(shown) for option in each.list_options())]

    def format_help(self) -> str:
        """Return the help: an example, the usage without optional options, then the groups of options."""
        self.usage = self.usage or f"%(prog)s [options]{''.join(map(_describe_needed, self.arguments))}"
        for argument in self.arguments:
            if argument.help and argument.help != argparse.SUPPRESS:
                names = {"choices": ", ".join(map(str, argument.choices or ())), "prog": self.prog}
                argument.help = fill(argument.help % {**vars(argument), **names}, _COLUMN).replace("%", "%%")
        return f"example:\n  {self.get_default('example')}\n\n{super().format_help()}"

    def print_help(self, file: Any = None) -> None:
        """Write the help; argparse ignores that it cannot be written."""
        (file or sys.stdout).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        from segjudge.evaluation_script.files.problems import nearest
        from segjudge.system.files import redact

        from .other_names import OPTIONS

        if message.startswith(_UNKNOWN):
            unknown = message.removeprefix(_UNKNOWN).split()
            # Without the dashes, which make all options similar.
            names = [option[2:] for option in self.options if option.startswith("--")]
            options = [word[2:].partition("=")[0] for word in unknown if word.startswith("--")]
            near = next(filter(None, (nearest(option, names) for option in options)), "")
            ours = next(filter(None, map(OPTIONS.get, options)), "")
            message += f"; here it is {ours}" if ours else f"; did you mean --{near}?" if near else ""
        elif fault := re.match(_NO_CHOICE, message):
            message = self._describe_choice(*fault.groups())
        subject = f"{as_typed(self.prog)}:"
        if message.startswith(_LACKING) and (example := self.get_default("example")):
            subject = f"{as_typed(self.prog)} needs"
            message = f"{message.removeprefix(_LACKING)}, for example:\n  {as_typed(example)}"
        self.exit(2, redact(f"{subject} {message}\nSee --help.\n"))

    def _describe_choice(self, name: str, shown: str) -> str:
        """Return the sentence about a value, shown as by `repr`, that is not among the choices of an argument."""
        from segjudge.evaluation_script.files.problems import name_list, near_hint

        choices = next(argument.choices for argument in self.arguments if _name_of(argument) == name) or ()
        value, names = shown[1:-1], [*map(str, choices)]  # without its quotes
        if {"score", "report"} <= {*names}:
            return _describe_command(value)
        hint, are_few = near_hint(value, names), len(names) <= _MOST_CHOICES
        if are_few or not hint:
            listing = name_list(names, _MOST_CHOICES if are_few else _FIRST_CHOICES)
            hint += f" Choose from {listing}" if hint else f"; choose from {listing}"
        faults = "".join(f"\n{fault}" for fault in getattr(choices, "faults", ()))
        return f"argument {name}: {shown} does not exist{hint}{faults}"


def fill(text: str, column: int = 0) -> str:
    """Return text wrapped to the terminal beside the words before a column; names keep their hyphens."""
    width = max(shutil.get_terminal_size().columns - 2 - column, 16)
    return textwrap.fill(" ".join(text.split()), width, break_on_hyphens=False)


def program(folder: str = os.curdir) -> str:
    """Return the command that started this program, as it is typed in a folder."""
    checkout = os.environ.get(BUNDLE)
    if not checkout:
        return PROGRAM
    from segjudge.system.extras import format_script_path

    return format_script_path(os.path.join(checkout, "run.sh"), folder)


def as_typed(line: str) -> str:
    """Return a command line as it is typed in this folder."""
    return line.replace(PROGRAM, program(), 1)


def _list_actions(arguments: Sequence[argparse.Action]) -> list[CommandParser]:
    """Return the parsers of a command's actions."""
    choices = [argument.choices for argument in arguments if isinstance(argument.choices, dict)]
    return [each for parsers in choices for each in parsers.values() if isinstance(each, CommandParser)]


def _name_of(argument: argparse.Action) -> str:
    """Return the name of an argument in argparse's messages."""
    return "/".join(argument.option_strings) or str(argument.metavar or argument.dest)


def _describe_command(name: str) -> str:
    """Return the sentence about an unknown command, with the most similar one."""
    from segjudge.evaluation_script.files.problems import name_list, nearest

    from .other_names import suggest_commands

    fault, shown = f"there is no command {name!r}", [each for names in GROUPS.values() for each in names]
    if lines := suggest_commands(name, program()):
        return "\n".join([f"{fault}; you may mean", *lines])
    near = nearest(name, [*shown, *(each for names in RARE.values() for each in names)])
    return f"{fault}; did you mean {near}?" if near else f"{fault}; choose from {name_list(shown, len(shown))}"


def _describe_needed(argument: argparse.Action) -> str:
    """Return the words of an argument in the usage; empty for an optional one."""
    name = str(argument.metavar or argument.dest.upper())
    if argument.option_strings:
        return f" {argument.option_strings[-1]} {name}" if argument.required else ""
    forms = {"?": f" [{name}]", "*": f" [{name} ...]", "+": f" {name} ...", argparse.PARSER: f" {name} ..."}
    return forms.get(str(argument.nargs), f" {name}")
