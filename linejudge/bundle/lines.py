"""The YAML, and where in it a finding lies."""

from __future__ import annotations

import re
from typing import Any

import yaml

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
        return _at(self._name, mark) if mark else ""


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
        return Finding(name, f"is not valid YAML: {error}", "Mend that place")
    mark, problem = error.problem_mark, str(error.problem)
    quote = f"{problem.capitalize()} in line {mark.line + 1}, column {mark.column + 1}"
    return Finding(_at(name, mark), f"is not valid YAML: {problem}", "Mend that line or the one above", quote)


def _at(name: str, mark: yaml.Mark) -> str:
    """A place as compilers and editors write it, counted from one."""
    return f"{name}:{mark.line + 1}:{mark.column + 1}"
