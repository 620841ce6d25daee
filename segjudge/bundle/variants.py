"""The four ways to run a challenge, and the keys in which their configs differ.

A variant is a change of the YAML's text that keeps every line at its place, so
that what EvalAI says of a line is true of the file that the host edits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from segjudge.evaluation_script.errors import HostError

from .field_values import TRUE
from .fields import CONFIG
from .problems import items

#: Keys of the challenge, by variant.
FLAGS = ("remote_evaluation", "is_docker_based", "is_static_dataset_code_upload")
PREDICTION = "prediction"
VARIANTS = {
    PREDICTION: (False, False, False),
    "remote": (True, False, False),
    "code-upload": (False, True, False),
    "static-code-upload": (False, True, True),
}
#: Variants whose truth stays with the host, so that the phases' line is taken out…
WITHOUT_ANNOTATIONS = ("remote", "code-upload")
ANNOTATION = "test_annotation_file"
#: …and the variant that has an image instead.
WITH_IMAGE = "code-upload"
IMAGE = "environment_image"
_BOM = "\ufeff"  # PyYAML does not count it
#: Until the host names a registry's.
DEFAULT_IMAGE = "segjudge-environment:latest"


@dataclass(frozen=True)
class Change:
    """One line of the YAML that a variant has differently."""

    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{CONFIG}:{self.line}: {self.before or '(nothing)'} → {self.after}"


def changed(text: str, variant: str, image: str = "") -> tuple[str, list[Change]]:
    """The YAML of a variant, and what was changed in it."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise HostError(f"{CONFIG}: is empty or no mapping of keys")
    editor = _Editor(text)
    for key, wanted in zip(FLAGS, VARIANTS[variant], strict=True):
        editor.set(root, key, wanted)
    phases = _value(root, "challenge_phases")
    for phase in phases.value if isinstance(phases, yaml.SequenceNode) else []:
        if isinstance(phase, yaml.MappingNode):
            _phase(editor, phase, variant, image)
    return editor.text(), sorted(editor.changes, key=lambda change: change.line)


def as_wanted(config: dict[str, Any], variant: str) -> None:
    """The text was changed; that it now says what it should is looked up, since a host may write YAML in many ways."""
    for key, wanted in zip(FLAGS, VARIANTS[variant], strict=True):
        told = config.get(key, False)
        if (isinstance(told, (str, int)) and told in TRUE) != wanted:
            raise HostError(f"{CONFIG}: {key} is {told!r} after the change; write it once, as {key}: {not wanted}")
    if variant in WITHOUT_ANNOTATIONS:
        for phase in items(config, "challenge_phases"):
            if phase.get(ANNOTATION):
                found = f"the phase {phase.get('codename')} still names {phase[ANNOTATION]}"
                raise HostError(f"{CONFIG}: {found}; write {ANNOTATION} once in each phase, on a line of its own")


def _phase(editor: _Editor, phase: yaml.MappingNode, variant: str, image: str) -> None:
    named = _value(phase, IMAGE)
    has_image = named is not None and named.tag != "tag:yaml.org,2002:null"
    line = f"{IMAGE}: {image or DEFAULT_IMAGE}"
    if variant == WITH_IMAGE and named is not None and (image or not has_image):
        editor.replace(phase, IMAGE, line)
    if variant in WITHOUT_ANNOTATIONS and _value(phase, ANNOTATION) is not None:
        here = variant == WITH_IMAGE and named is None
        editor.replace(phase, ANNOTATION, line if here else f"# no {ANNOTATION}: it stays with the host")
    elif variant == WITH_IMAGE and named is None:
        raise HostError(f"{CONFIG}:{phase.start_mark.line + 1}: the phase has no {IMAGE}: write {line}")


def _pair(mapping: yaml.MappingNode, key: str) -> tuple[Any, Any] | None:
    found = [pair for pair in mapping.value if pair[0].value == key]
    return found[-1] if found else None


def _value(mapping: yaml.MappingNode, key: str) -> yaml.Node | None:
    pair = _pair(mapping, key)
    return pair[1] if pair else None


class _Editor:
    """Replaces whole lines, and adds lines at the end alone."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)
        self.changes: list[Change] = []

    def text(self) -> str:
        """The lines as they are now."""
        return "".join(self._lines)

    def set(self, root: yaml.MappingNode, key: str, wanted: bool) -> None:  # noqa: FBT001 - a value, no switch
        """Make a flag of the challenge say so, which without a line is False."""
        node = _value(root, key)
        told = yaml.safe_load(node.value) in TRUE if isinstance(node, yaml.ScalarNode) else False
        if told == wanted:
            return
        if node is not None:
            self.replace(root, key, f"{key}: {wanted}")
            return
        if self._lines and not self._lines[-1].endswith("\n"):
            self._lines[-1] += "\n"
        end = "\r\n" if self._lines and self._lines[0].endswith("\r\n") else "\n"
        self._lines.append(f"{key}: {wanted}{end}")
        self.changes.append(Change(len(self._lines), "", f"{key}: {wanted}"))

    def replace(self, mapping: yaml.MappingNode, key: str, after: str) -> None:
        """Put something else in the place of a key's line."""
        pair = _pair(mapping, key)
        if pair is None:
            return
        number = pair[0].start_mark.line
        line = self._lines[number]
        alone = re.fullmatch(r"([\s\ufeff]*)[^\s#].*?(\r?\n)?", line)
        if pair[1].end_mark.line != number or alone is None or line.lstrip().startswith(("-", "{")):
            raise HostError(f"{CONFIG}:{number + 1}: write {key} on a line of its own, so that variants can change it")
        comment = "" if after.startswith("#") else line[pair[1].end_mark.column + line.startswith(_BOM) :].strip()
        kept = f"  {comment}" if comment.startswith("#") else ""
        self._lines[number] = f"{alone.group(1)}{after}{kept}{alone.group(2) or ''}"
        self.changes.append(Change(number + 1, line.strip(), after))
