"""The YAML, and where in it a finding lies."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import yaml

from .fields import CHALLENGE
from .problems import BundleProblem, crash

#: A config has some hundred values.
_NODES = 100_000


class _ValueError(yaml.constructor.ConstructorError):
    """A date, or a number, that cannot be: the server has no words for that."""


class _Loader(yaml.SafeLoader):
    """Says where a date is that no calendar has; PyYAML alone gives no place and another kind of error."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 (PyYAML's own)
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError, LookupError, AttributeError) as error:
            raise _ValueError(None, None, str(error), node.start_mark) from None

    def construct_yaml_timestamp(self, node: yaml.ScalarNode) -> Any:
        """A date with a time zone is one without, in UTC, for the server's PyYAML."""
        told = super().construct_yaml_timestamp(node)
        if isinstance(told, datetime.datetime) and told.tzinfo is not None:
            return told.astimezone(datetime.UTC).replace(tzinfo=None)
        return told


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_yaml_timestamp)


class YamlLines:
    """The places of a config's keys, by paths as findings write them: `challenge_phases[0].codename`."""

    def __init__(self, name: str, root: yaml.Node | None) -> None:
        self._name, self._root = name, root
        self._twice = list(_twice("", root, set()))

    def place(self, path: str) -> str:
        """File, line and column of the key, or of the nearest thing around it; nothing for what is no key at all."""
        node, mark = self._root, None
        for step in re.findall(r"[^.\[\]]+", path):
            if isinstance(node, yaml.SequenceNode) and step.isdecimal():
                # Findings count the mappings of a block alone, see `finding.items`.
                blocks = [item for item in node.value if isinstance(item, yaml.MappingNode)]
                if int(step) >= len(blocks):
                    break
                node = blocks[int(step)]
                mark = node.start_mark
                continue
            # The last one of two equal keys is the one that counts.
            found = [pair for pair in node.value if pair[0].value == step] if isinstance(node, yaml.MappingNode) else []
            if not found:
                break
            mark, node = found[-1][0].start_mark, found[-1][1]
        if mark is None:
            return self._name if path.split(".", maxsplit=1)[0].split("[", maxsplit=1)[0] in CHALLENGE else ""
        return _at(self._name, mark)

    def twice(self) -> Iterator[str]:
        """Paths of keys that one mapping has twice: PyYAML keeps the last and says nothing."""
        yield from self._twice


def _twice(path: str, node: yaml.Node | None, above: set[int]) -> Iterator[str]:
    if id(node) in above:
        return  # an alias that holds itself
    if isinstance(node, yaml.MappingNode):
        seen = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        yield from (f"{path}.{key}".lstrip(".") for key, count in seen.items() if count > 1)
        for key, value in node.value:
            yield from _twice(f"{path}.{key.value}", value, above | {id(node)})
    elif isinstance(node, yaml.SequenceNode):
        blocks = [item for item in node.value if isinstance(item, yaml.MappingNode)]
        for place, item in enumerate(blocks):
            yield from _twice(f"{path}[{place}]", item, above | {id(node)})


def read(name: str, text: bytes) -> tuple[Any, YamlLines]:
    """The content and its places; raises YAMLError, which `unreadable` explains."""
    try:
        loader = _Loader(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise yaml.YAMLError(f"it is not UTF-8 ({error.reason})") from None
    try:
        root = loader.get_single_node()
        if root is not None and _size(root, {}) > _NODES:
            raise yaml.YAMLError(f"its aliases unfold to more than {_NODES:,} values")
        # Before anything is made of it: merging changes the nodes.
        lines = YamlLines(name, root)
        return (None if root is None else loader.construct_document(root)), lines
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    finally:
        loader.dispose()


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node unfolds to, aliases included."""
    if id(node) not in known:
        known[id(node)] = 1  # one that holds itself
        parts = node.value if isinstance(node, (yaml.SequenceNode, yaml.MappingNode)) else []
        flat = [one for part in parts for one in (part if isinstance(part, tuple) else (part,))]
        known[id(node)] = 1 + sum(_size(one, known) for one in flat)
    return known[id(node)]


def unreadable(name: str, error: yaml.YAMLError) -> BundleProblem:
    """What keeps a file from being YAML, in the server's words as well."""
    if isinstance(error, _ValueError):
        told = crash(name, f"holds a value that cannot be: {error.problem}", "Correct that value", 5)
        return replace(told, at=_at(name, error.problem_mark) if error.problem_mark else name)
    if isinstance(error, yaml.reader.ReaderError):
        found = f"is not valid YAML: {error.reason} (character {error.character!r:.20}, at {error.position})"
        return BundleProblem(name, found, "Remove that character", "None in line None, column None", rule=5)
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None or not error.problem:
        return crash(name, f"is not valid YAML: {error}", "Correct it, and save it as UTF-8", 5)
    mark, problem = error.problem_mark, str(error.problem)
    quote = f"{problem.capitalize()} in line {mark.line + 1}, column {mark.column + 1}"
    found, remedy = f"is not valid YAML: {problem}", "Correct that line or the one above"
    return BundleProblem(name, found, remedy, quote, at=_at(name, mark), rule=5)


def _at(name: str, mark: yaml.Mark) -> str:
    """A place as compilers and editors write it, counted from one."""
    return f"{name}:{mark.line + 1}:{mark.column + 1}"
