"""The YAML, and where in it a finding lies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import yaml

from .fields import CHALLENGE
from .finding import Finding


class _Loader(yaml.SafeLoader):
    """Says where a date is that no calendar has; PyYAML alone gives no place and another kind of error."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 (PyYAML's own)
        try:
            return super().construct_object(node, deep)
        except ValueError as error:
            raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from None


class Lines:
    """The places of a config's keys, by paths as findings write them: `challenge_phases[0].codename`."""

    def __init__(self, name: str, root: yaml.Node | None) -> None:
        self._name, self._root = name, root

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
        yield from _twice("", self._root, set())


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


def read(name: str, text: bytes) -> tuple[Any, Lines]:
    """The content and its places; raises YAMLError, which `unreadable` explains."""
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        return (None if root is None else loader.construct_document(root)), Lines(name, root)
    finally:
        loader.dispose()


def unreadable(name: str, error: yaml.YAMLError) -> Finding:
    """What keeps a file from being YAML, in the server's words as well."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return Finding(name, f"is not valid YAML: {error}", "Mend that place", rule=5)
    mark, problem = error.problem_mark, str(error.problem)
    quote = f"{problem.capitalize()} in line {mark.line + 1}, column {mark.column + 1}"
    return Finding(_at(name, mark), f"is not valid YAML: {problem}", "Mend that line or the one above", quote, rule=5)


def _at(name: str, mark: yaml.Mark) -> str:
    """A place as compilers and editors write it, counted from one."""
    return f"{name}:{mark.line + 1}:{mark.column + 1}"
