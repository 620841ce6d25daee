"""Reading the YAML with the line of each key."""

from __future__ import annotations

import copy
import datetime
import functools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import yaml

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.rules.problems import BundleProblem, crash

from .fields import CHALLENGE

#: The maximum number of values in a config, which has some hundred.
_NODES = 100_000


class _ValueError(yaml.constructor.ConstructorError):
    """Raised for a date or number that does not exist; the server has no message for it."""


class _Loader(yaml.SafeLoader):
    """PyYAML's loader, which raises `_ValueError` with a position for values that PyYAML cannot convert."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:  # noqa: FBT001, FBT002 (PyYAML's own)
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError, LookupError, AttributeError) as error:
            raise _ValueError(None, None, str(error), node.start_mark) from None

    def construct_yaml_timestamp(self, node: yaml.ScalarNode) -> datetime.date:
        """Return a date with a time zone as UTC without a zone, as the server's PyYAML does.

        The server's version takes any number of hours and minutes in a time zone.
        """
        match = self.timestamp_regexp.match(node.value)
        if not match or not match["tz"]:
            return super().construct_yaml_timestamp(node)
        local = yaml.ScalarNode(node.tag, node.value[: match.start("tz")].rstrip(), node.start_mark, node.end_mark)
        offset = datetime.timedelta(hours=int(match["tz_hour"] or 0), minutes=int(match["tz_minute"] or 0))
        date = super().construct_yaml_timestamp(local)
        return date + offset if match["tz_sign"] == "-" else date - offset


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_yaml_timestamp)


class YamlLines:
    """The locations of a config's keys, by paths as problems write them: `challenge_phases[0].codename`."""

    def __init__(self, name: str, root: yaml.Node | None) -> None:
        self._name, self._root = name, root
        #: The paths of keys that a mapping has twice: PyYAML silently keeps the last one.
        self.duplicate_keys = list(_duplicate_keys("", root, set()))

    def location(self, path: str) -> str:
        """Return file, line and column of a key or its surroundings; "" for others."""
        mark, _ = self._find_node(path)
        if mark is None:
            return self._name if re.split(r"[.\[]", path)[0] in CHALLENGE else ""
        return _location(self._name, mark)

    def has_time_zone(self, path: str) -> bool:
        _, node = self._find_node(path)
        match = _Loader.timestamp_regexp.match(node.value) if isinstance(node, yaml.ScalarNode) else None
        return bool(match and match["tz"])

    def _find_node(self, path: str) -> tuple[yaml.Mark | None, yaml.Node | None]:
        """Return the location of a key or its surroundings, and its value."""
        node, mark = self._root, None
        for step in re.findall(r"[^.\[\]]+", path):
            if isinstance(node, yaml.SequenceNode) and step.isdecimal():
                items = _mappings(node)
                if int(step) >= len(items):
                    break
                node = items[int(step)]
                mark = node.start_mark
                continue
            # Of two equal keys, the last one counts.
            pairs = [pair for pair in node.value if pair[0].value == step] if isinstance(node, yaml.MappingNode) else []
            if not pairs:
                break
            mark, node = pairs[-1][0].start_mark, pairs[-1][1]
        return mark, node


def _mappings(node: yaml.SequenceNode) -> list[yaml.MappingNode]:
    """Return the mappings of a list; only these are counted (see `problems.mappings_in`)."""
    return [item for item in node.value if isinstance(item, yaml.MappingNode)]


def _duplicate_keys(path: str, node: yaml.Node | None, parents: set[int]) -> Iterator[str]:
    if id(node) in parents:
        return  # an alias that contains itself
    if isinstance(node, yaml.MappingNode):
        counts = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        yield from (f"{path}.{key}".lstrip(".") for key, count in counts.items() if count > 1)
        for key, value in node.value:
            yield from _duplicate_keys(f"{path}.{key.value}", value, parents | {id(node)})
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(_mappings(node)):
            yield from _duplicate_keys(f"{path}[{index}]", item, parents | {id(node)})


def read_yaml(name: str, text: bytes) -> tuple[object, YamlLines]:
    """Return parsed YAML; raises YAMLError, which `yaml_problem` explains."""
    try:
        content, lines = _parse(name, text)
        return copy.deepcopy(content), lines
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None


def parse_config(name: str, text: bytes) -> dict[str, Any]:
    """Return the keys of a challenge's YAML; raises `HostError` where it is not a mapping."""
    try:
        config, _ = read_yaml(name, text)
    except yaml.YAMLError as error:
        raise HostError(str(yaml_problem(name, error))) from None
    if not isinstance(config, dict):
        raise HostError(f"{name}: is empty or not a mapping of keys")
    return config


@functools.lru_cache(maxsize=2)
def _parse(name: str, text: bytes) -> tuple[object, YamlLines]:
    """Return parsed YAML, cached, since PyYAML is slow."""
    try:
        loader = _Loader(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise yaml.YAMLError(f"it is not UTF-8 ({error.reason})") from None
    try:
        root = loader.get_single_node()
        if root is not None and _count_values(root, {}) > _NODES:
            raise yaml.YAMLError(f"its aliases unfold to more than {_NODES:,} values")
        # Before the content is constructed: merging keys changes the nodes.
        lines = YamlLines(name, root)
        return (None if root is None else loader.construct_document(root)), lines
    finally:
        loader.dispose()


def _count_values(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Return the number of values of a node with aliases expanded; `sizes` caches by id."""
    if id(node) not in sizes:
        sizes[id(node)] = 1  # for an alias that contains itself
        children = node.value if isinstance(node, (yaml.SequenceNode, yaml.MappingNode)) else []
        nodes = [value for child in children for value in (child if isinstance(child, tuple) else (child,))]
        sizes[id(node)] = 1 + sum(_count_values(value, sizes) for value in nodes)
    return sizes[id(node)]


def yaml_problem(name: str, error: yaml.YAMLError) -> BundleProblem:
    """Return the problem of invalid YAML, with the server's message."""
    if isinstance(error, _ValueError):
        problem = crash(name, f"holds an invalid value: {error.problem}", "Correct that value", 5)
        return replace(problem, location=_location(name, error.problem_mark) if error.problem_mark else name)
    if isinstance(error, yaml.reader.ReaderError):
        fault = f"is not valid YAML: {error.reason} (character {error.character!r:.20}, at {error.position})"
        return BundleProblem(name, fault, "Remove that character", "None in line None, column None", 5)
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None or not error.problem:
        return crash(name, f"is not valid YAML: {error}", "Correct it, and save it as UTF-8", 5)
    mark, reason = error.problem_mark, str(error.problem)
    quote = f"{reason.capitalize()} in line {mark.line + 1}, column {mark.column + 1}"
    fault, remedy = f"is not valid YAML: {reason}", "Correct that line or the one above"
    return BundleProblem(name, fault, remedy, quote, 5, location=_location(name, mark))


def _location(name: str, mark: yaml.Mark) -> str:
    """Return a location as compilers write it, counted from one."""
    return f"{name}:{mark.line + 1}:{mark.column + 1}"
