"""Completion in shells: commands, their options, and the values that an option may have."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import NamedTuple

from segjudge.commands import COMMANDS as ALL_COMMANDS
from segjudge.commands import EVALAI, PLATFORMS
from segjudge.commands.shared import DONE, PROGRAM, Command, add_quiet_option
from segjudge.evaluation_script.families import PROTOCOLS

_BASH = """# {how}
_{program}() {{
  local command="${{COMP_WORDS[1]}}" current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local words="" options=""
  if [ "$COMP_CWORD" -eq 1 ]; then words="{commands}"
  elif [ "$command" = help ]; then words="{commands} --all"
  else
    case "$command $before" in
{values}
    esac
    if [ -z "$words" ]; then
      case "$command" in
{options}
      esac
      case "$current" in -*) words="$options" ;; esac
    fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _{program} {program}
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"
_HOW = {
    "bash": f'eval "$({PROGRAM} completion bash)" in ~/.bashrc',
    "zsh": f'eval "$({PROGRAM} completion zsh)" in ~/.zshrc, after compinit',
    "fish": f"{PROGRAM} completion fish > ~/.config/fish/completions/{PROGRAM}.fish",
}


class _Option(NamedTuple):
    """An option of a command: names (none for a positional), possible values, and help."""

    names: list[str]
    values: list[str]
    about: str


def _add_options(parser: argparse.ArgumentParser) -> None:
    about = "the shell: %(choices)s; the first line of the output says where it goes"
    parser.add_argument("shell", metavar="SHELL", choices=list(_HOW), help=about)


def _print(args: argparse.Namespace) -> int:
    options = {name: list(_list_options(name)) for name in ALL_COMMANDS}
    write = _write_fish if args.shell == "fish" else _write_bash
    text = write(options)
    sys.stdout.write(text if args.shell != "zsh" else _ZSH + text.replace(_HOW["bash"], _HOW["zsh"]))
    return DONE


def _list_options(name: str) -> Iterator[_Option]:
    """List the options of a command, on every platform."""
    tables = [ALL_COMMANDS, *PLATFORMS.values()]
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    for module in dict.fromkeys(table[name].module for table in tables if name in table):
        command: Command = import_module(f"segjudge.commands.{module}").COMMANDS[name]
        command.add_options(parser)
    if any(name in table for table in PLATFORMS.values()):
        parser.add_argument("--platform", choices=[EVALAI, *PLATFORMS])
    add_quiet_option(parser)
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list of them
        values = list(PROTOCOLS) if action.dest == "protocol" else [str(value) for value in action.choices or ()]
        if (action.option_strings or values) and action.help != argparse.SUPPRESS:
            yield _Option(list(action.option_strings), values, (action.help or "").replace("%%", "%"))


def _write_bash(options: dict[str, list[_Option]]) -> str:
    values, names = [], []
    for command, command_options in options.items():
        values += [
            f"      {'|'.join(shlex.quote(f'{command} {name}') for name in option.names)}) "
            f"words={shlex.quote(' '.join(option.values))} ;;"
            for option in command_options
            if option.names and option.values
        ]
        flags = " ".join(name for option in command_options for name in option.names)
        operands = " ".join(word for option in command_options if not option.names for word in option.values)
        names.append(f"        {command}) options={shlex.quote(flags)} words={shlex.quote(operands)} ;;")
    return _BASH.format(
        how=_HOW["bash"],
        program=PROGRAM,
        commands=" ".join([*options, "help"]),
        values="\n".join(values),
        options="\n".join(names),
    )


def _write_fish(options: dict[str, list[_Option]]) -> str:
    lines = [f"# {_HOW['fish']}", f"complete -c {PROGRAM} -e"]
    lines.append(f"complete -c {PROGRAM} -n __fish_use_subcommand -f -a help -d {_quote_fish('List the commands.')}")
    lines.append(f"complete -c {PROGRAM} -n '__fish_seen_subcommand_from help' -f -a '{' '.join(options)}' -l all")
    for command, row in ALL_COMMANDS.items():
        about = _quote_fish(row.about)
        lines.append(f"complete -c {PROGRAM} -n __fish_use_subcommand -f -a {command} -d {about}")
        for option in options[command]:
            flags = [f"-{'l' if name.startswith('--') else 's'} {name.lstrip('-')}" for name in option.names]
            choices = (
                [f"-{'x' if option.names else 'f'} -a {_quote_fish(' '.join(option.values))}"] if option.values else []
            )
            arguments = [*flags, *choices, f"-d {_quote_fish(option.about)}"]
            lines.append(f"complete -c {PROGRAM} -n '__fish_seen_subcommand_from {command}' {' '.join(arguments)}")
    return "\n".join(lines) + "\n"


def _quote_fish(text: str) -> str:
    """Return text quoted for fish, which escapes quotes with a backslash."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


COMMANDS = {"completion": Command(_add_options, _print, 'eval "$(segjudge completion bash)"')}
