"""The pages of the site that are made from code: public names, commands, the keys of a challenge's YAML."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import segjudge
from segjudge import cli
from segjudge.commands import COMMANDS, EXIT_CODES, GROUPS, PLATFORMS, RARE

ROOT = Path(__file__).resolve().parents[2]
#: Names that are described in addition to `segjudge.__all__`.
DESCRIBED = (
    "segjudge.evaluation_script.scoring.phase.Phase",
    "segjudge.evaluation_script.scoring.phase.PhaseSplit",
    "segjudge.evaluation_script.scoring.phase.Notify",
    "segjudge.evaluation_script.files.limits.ArchiveLimits",
    "segjudge.agent.Environment",
    "segjudge.static.write_submission",
    "segjudge.torch.SegmentationMetric",
    "segjudge.drop_in.coco.COCO",
    "segjudge.drop_in.cocoeval.COCOeval",
    "segjudge.drop_in.cocoeval.Params",
    "segjudge.drop_in.davis2017.DAVISEvaluation",
    "segjudge.drop_in.vos_benchmark.benchmark",
)
#: Characters that Markdown would read as markup.
SIGNS = re.compile(r"[\\*_\[\]<|]")


def write_reference(folder: Path) -> None:
    folder.mkdir()
    names = [*(f"segjudge.{name}" for name in segjudge.__all__), *DESCRIBED]
    described = "\n".join(f"::: {name}\n" for name in names)
    schema = json.loads((ROOT / "docs/challenge_config.schema.json").read_text(encoding="utf-8"))
    pages = {
        "python.md": f"# Python, name by name\n\n{described}",
        "commands.md": "\n".join(describe_commands()),
        "challenge-config.md": "\n".join(describe_keys(schema)),
    }
    for name, text in pages.items():
        (folder / name).write_text(f"{text}\n", encoding="utf-8")


def describe_commands() -> Iterator[str]:
    """Yield the lines of the page of commands: all at a glance, then each with its options, on every platform."""
    yield "# Commands\n\nWhat `segjudge COMMAND --help` says. In a checkout, `./run.sh COMMAND` does the same.\n"
    groups = {**GROUPS, **RARE}
    for title, names in groups.items():
        yield f"{title.capitalize()}:\n\n| command | what it does |\n| --- | --- |"
        yield from (f"| [`{name}`](#{name}) | {plain(COMMANDS[name].about)} |" for name in names)
        yield ""
    yield "Exit codes of all commands:\n\n| code | meaning |\n| --- | --- |"
    yield from (f"| {code} | {plain(meaning)} |" for code, meaning in EXIT_CODES.items())
    yield ""
    for names in groups.values():
        for name in names:
            platforms = [platform for platform, table in PLATFORMS.items() if name in table]
            for arguments in ([name], *([name, "--platform", platform] for platform in platforms)):
                yield from describe_parser(" ".join(arguments), parser_of(arguments))


def parser_of(arguments: list[str]) -> argparse.ArgumentParser:
    """Return the parser of one command, without the other commands."""
    return next(iter(inner_parsers(cli.make_parser(arguments)).values()))  # what `--help` prints


def inner_parsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    tables = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
    return {name: inner for table in tables for name, inner in table.items()}


def describe_parser(title: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield a section on a command, then sections on the commands within it."""
    yield f"{'##' if ' ' not in title else '###'} {title}\n\n{plain(parser.description or '')}\n"
    formatter = argparse.HelpFormatter(f"{parser.prog} [OPTION …]", width=88)
    needed = [action for action in parser._actions if action.required or not action.option_strings]  # noqa: SLF001
    formatter.add_usage(None, needed, (), prefix="")
    yield f"```text\n{formatter.format_help()}```\n"
    rows = [
        f"| `{formatter._format_action_invocation(action)}` | {plain(formatter._expand_help(action))} |"  # noqa: SLF001 - as `--help` does
        for action in parser._actions  # noqa: SLF001
        if action.help not in (argparse.SUPPRESS, None) and action.dest != "help"
    ]
    if rows:
        yield "\n".join(["| option | meaning |", "| --- | --- |", *rows, ""])
    for name, inner in inner_parsers(parser).items():
        yield from describe_parser(f"{title} {name}", inner)


def plain(text: str) -> str:
    """Return a text as Markdown that shows it unchanged, except between backticks."""
    parts = " ".join(text.split()).split("`")
    parts[::2] = [SIGNS.sub(lambda sign: f"&#{ord(sign[0])};", part) for part in parts[::2]]
    return "`".join(parts)


def describe_keys(schema: dict[str, Any], title: str = "") -> Iterator[str]:
    """Yield the lines of a table of a YAML's keys, then the tables within it."""
    head = "key | type | meaning"
    yield f"## {title}\n" if title else "# challenge_config.yaml, key by key\n"
    yield from (f"| {head} |", f"| {re.sub('[a-z]+', '---', head)} |")
    for key, facts in schema["properties"].items():
        kinds = facts.get("type") or "mapping"
        kind = " or ".join(one for one in ([kinds] if isinstance(kinds, str) else kinds) if one != "null")
        needed = ", **required**" if key in schema.get("required", []) else ""
        kind = kind.replace("object", "mapping").replace("array", "list")
        yield f"| `{key}` | {kind}{needed} | {facts.get('description', '')} |"
    yield ""
    for key, facts in schema["properties"].items():
        for inner in (facts, facts.get("items")):
            if isinstance(inner, dict) and "properties" in inner:
                yield from describe_keys(inner, f"{title} → {key}".removeprefix(" → "))
