"""Options and stand-ins give the noted values, output and errors, which only an intended change renews."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module

import pytest

from segjudge.commands import COMMANDS, PLATFORMS
from segjudge.commands.parser import CommandParser
from tests import calls
from tests.commands import drop_ins, interactions, options, rehearsals


# The noted calls send masks of a later frame and exchanged objects; test_drop_in.py holds the warnings.
@pytest.mark.filterwarnings(r"ignore:(sent|swapped)\W val\W:UserWarning")
def test_stand_ins_return_and_refuse_what_was_noted() -> None:
    calls.hold(drop_ins.write_drop_ins(), drop_ins.FILE)


def test_options_take_and_are_what_was_noted() -> None:
    calls.hold(options.list_options(), options.FILE)


def test_every_option_is_explained() -> None:
    assert list_unexplained() == []


@pytest.mark.long
def test_sessions_are_run_and_drawn_as_was_noted() -> None:
    calls.hold(interactions.write_interactions(), interactions.FILE)


@pytest.mark.long
def test_a_rehearsal_begins_and_ends_as_was_noted() -> None:
    calls.hold(rehearsals.write_rehearsals(), rehearsals.FILE)


def list_unexplained() -> list[str]:
    """Return the options without a help text, of earlier names of commands too."""
    tables = [COMMANDS, *PLATFORMS.values()]
    modules = sorted({row.module for table in tables for row in table.values()})
    unexplained = list[str]()
    for name, command in (
        row for module in modules for row in import_module(f"segjudge.commands.{module}").COMMANDS.items()
    ):
        parser = CommandParser(add_help=False)
        command.add_options(parser)
        unexplained += [f"{name} {action.dest}" for action in _list_actions(parser) if not action.help]
    return unexplained


def _list_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from _list_actions(sub)
        else:
            yield action
