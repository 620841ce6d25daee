"""The four ways to run a challenge, and the keys in which their configs differ.

A variant is a change of the YAML's text that keeps every line at its place, so
that what EvalAI says of a line is true of the file that the host edits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.files.problems import HostError

from .field_values import TRUE
from .fields import CONFIG
from .problems import mappings_in

if TYPE_CHECKING:
    import yaml

#: Keys of the challenge, by variant.
FLAGS = ("remote_evaluation", "is_docker_based", "is_static_dataset_code_upload")
PREDICTION = "prediction"
VARIANTS = {
    PREDICTION: (False, False, False),
    "remote": (True, False, False),
    "code-upload": (False, True, False),
    "static-code-upload": (False, True, True),
}
#: Variants whose truth stays with the host, so that the phases do not name it.
WITHOUT_ANNOTATIONS = ("remote", "code-upload")
ANNOTATION = "test_annotation_file"
#: The variant whose phases name an image instead.
WITH_IMAGE = "code-upload"
IMAGE = "environment_image"
#: PyYAML does not count the byte order mark as a column.
_BOM = "\ufeff"
#: The image until the host names one in a registry.
DEFAULT_IMAGE = "segjudge-environment:latest"


@dataclass(frozen=True)
class LineChange:
    """One line of the YAML in which a variant differs."""

    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{CONFIG}:{self.line}: {self.before or '(nothing)'} → {self.after}"


def with_variant(text: str, variant: str, image: str = "") -> tuple[str, list[LineChange]]:
    """Return the YAML of a variant, and what was changed in it."""
    import yaml

    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise HostError(f"{CONFIG}: is empty or not a mapping of keys")
    editor = _LineEditor(text)
    for key, value in zip(FLAGS, VARIANTS[variant], strict=True):
        editor.set_flag(root, key, value)
    _, phases = _key_and_value(root, "challenge_phases")
    for phase in phases.value if isinstance(phases, yaml.SequenceNode) else []:
        if isinstance(phase, yaml.MappingNode):
            _edit_phase(editor, phase, variant, image)
    return "".join(editor.lines), sorted(editor.changes, key=lambda change: change.line)


def check_variant(config: dict[str, Any], variant: str) -> None:
    """Raise `HostError` where the changed YAML, once parsed, is not the variant: a host may write YAML in many ways."""
    for key, expected in zip(FLAGS, VARIANTS[variant], strict=True):
        value = config.get(key, False)
        if (isinstance(value, (str, int)) and value in TRUE) != expected:
            raise HostError(f"{CONFIG}: {key} is {value!r} after the change; write it once, as {key}: {not expected}")
    if variant in WITHOUT_ANNOTATIONS:
        for phase in mappings_in(config, "challenge_phases"):
            if phase.get(ANNOTATION):
                fault = f"the phase {phase.get('codename')} still names {phase[ANNOTATION]}"
                raise HostError(f"{CONFIG}: {fault}; write {ANNOTATION} once in each phase, on a line of its own")


def _edit_phase(editor: _LineEditor, phase: yaml.MappingNode, variant: str, image: str) -> None:
    _, image_node = _key_and_value(phase, IMAGE)
    has_image = image_node is not None and image_node.tag != "tag:yaml.org,2002:null"
    line = f"{IMAGE}: {image or DEFAULT_IMAGE}"
    if variant == WITH_IMAGE and image_node is not None and (image or not has_image):
        editor.replace(phase, IMAGE, line)
    if variant in WITHOUT_ANNOTATIONS and _key_and_value(phase, ANNOTATION)[1] is not None:
        takes_image = variant == WITH_IMAGE and image_node is None
        editor.replace(phase, ANNOTATION, line if takes_image else f"# no {ANNOTATION}: it stays with the host")
    elif variant == WITH_IMAGE and image_node is None:
        raise HostError(f"{CONFIG}:{phase.start_mark.line + 1}: the phase has no {IMAGE}: write {line}")


def _key_and_value(mapping: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | tuple[None, None]:
    """Return the nodes of a key, of which the last counts."""
    pairs = [pair for pair in mapping.value if pair[0].value == key]
    return pairs[-1] if pairs else (None, None)


class _LineEditor:
    """Replaces whole lines of the YAML, and adds lines only at the end, so that no other line moves."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)
        self.changes: list[LineChange] = []

    def set_flag(self, root: yaml.MappingNode, key: str, value: bool) -> None:  # noqa: FBT001 - a value, no switch
        """Give a flag of the challenge a value; a flag without a line is False."""
        import yaml

        _, node = _key_and_value(root, key)
        before = yaml.safe_load(node.value) in TRUE if isinstance(node, yaml.ScalarNode) else False
        if before == value:
            return
        if node is not None:
            self.replace(root, key, f"{key}: {value}")
            return
        if self.lines and not self.lines[-1].endswith("\n"):
            self.lines[-1] += "\n"
        end = "\r\n" if self.lines and self.lines[0].endswith("\r\n") else "\n"
        self.lines.append(f"{key}: {value}{end}")
        self.changes.append(LineChange(len(self.lines), "", f"{key}: {value}"))

    def replace(self, mapping: yaml.MappingNode, key: str, after: str) -> None:
        """Replace the line of a key."""
        key_node, value_node = _key_and_value(mapping, key)
        if key_node is None or value_node is None:
            return
        number, end = key_node.start_mark.line, value_node.end_mark
        line = self.lines[number]
        parts = re.fullmatch(r"([\s\ufeff]*)[^\s#].*?(\r?\n)?", line)
        if end.line != number or parts is None or line.lstrip().startswith(("-", "{")):
            raise HostError(f"{CONFIG}:{number + 1}: write {key} on a line of its own, so that variants can change it")
        comment = "" if after.startswith("#") else line[end.column + line.startswith(_BOM) :].strip()
        comment = f"  {comment}" if comment.startswith("#") else ""
        self.lines[number] = f"{parts.group(1)}{after}{comment}{parts.group(2) or ''}"
        self.changes.append(LineChange(number + 1, line.strip(), after))
