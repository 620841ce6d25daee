"""Transcripts as cases with a title and an answer, which is shortened to its differences from a similar earlier one."""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

#: An answer of fewer lines is noted whole; of others at most this share, as differences from an earlier one.
_SHORT, _SHARE = 4, 0.7
#: The maximum length of a title or a call with its answer behind it.
LENGTH = 160
#: The maximum number of changes that are named before a case.
_EVENTS = 4
_EXIT_CODE = re.compile(r"\nexit code \d+\n*\Z")
_TITLE = re.compile(r"(?m)^(?=\$ )")
_INDENTED_JSON = re.compile(r"(?m)^[{\[]\n(?: .*\n)+[}\]]$")


class Answers:
    """The cases of one file, in the order in which they ran."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._events: list[str] = []
        #: Name → the lines of the last answer or file of that name.
        self._earlier: dict[str, list[str]] = {}

    def happen(self, event: str) -> None:
        """Note an event before the next case."""
        self._events.append(event)

    def add(self, title: str, answer: str, frame: str = "") -> None:
        """Note a case: `title` is the typed command or request; the answer shows files as `── path ──` and their lines.

        A frame is noted whole, and later answers are not compared with it.
        """
        output, *files = re.split(r"(?m)^── (.+) ──\n", join_json(answer))
        output, _, code = (
            output.rstrip("\n").rpartition("\nexit code ") if _EXIT_CODE.search(output) else (output, "", "")
        )
        earlier = [f"{len(self._events) - _EVENTS} earlier changes"] if len(self._events) > _EVENTS else []
        before = _wrap(f"(before: {'; '.join([*earlier, *self._events[-_EVENTS:]])})") if self._events else []
        self._events.clear()
        parts = [
            f"$ {title}{f' → exit code {code}' if code else ''}",
            *before,
            *frame.splitlines(),
            *self.shorten(f"`{title}`", output.strip("\n").splitlines()),
        ]
        hidden = []
        for path, text in zip(files[::2], files[1::2], strict=True):
            if text.strip() == "(not shown)":
                hidden.append(path)
            else:
                lines = self.shorten(f"{path} of `{title}`", text.strip("\n").splitlines())
                parts += [f"── {path} ──", *lines]
        parts += _wrap(f"── writes {', '.join(hidden)} ──") if hidden else []
        self.texts.append("\n".join(parts) + "\n")

    def shorten(self, name: str, lines: list[str]) -> list[str]:
        """Return the lines, or their differences from those of an earlier name."""
        shortest = lines
        if len(lines) >= _SHORT:
            common = sorted(self._earlier, key=lambda other: -len({*lines} & {*self._earlier[other]}))
            for candidate in common[:4]:
                changes = _compare(self._earlier[candidate], lines)
                if len(changes) + 1 < min(len(shortest), _SHARE * len(lines) + 1):
                    shortest = [f"as {candidate}{', but' if changes else ''}", *changes]
        self._earlier.pop(name, None)
        self._earlier[name] = lines
        return shortest


def join_json(text: str) -> str:
    """Return the text with each item of an indented JSON document in one line."""
    return _INDENTED_JSON.sub(_join_items, text)


def _join_items(document: re.Match[str]) -> str:
    """Return a document with one item per line, and its indentation; unchanged if the indentation varies."""
    first, *lines, last = document[0].splitlines()
    step, depth, items = len(lines[0]) - len(lines[0].lstrip()), 1, list[str]()
    for line in lines:
        text = line.lstrip()
        depth -= text[0] in "]}"
        if len(line) - len(text) != depth * step:
            return document[0]
        if depth == 1 and text[0] not in "]}":
            items.append(line)
        else:
            items[-1] += f"{' ' if items[-1][-1] == ',' else ''}{text}"
        depth += text[-1] in "[{"
    return "\n".join([f"{first} (indented by {step})", *items, last])


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, 140, break_long_words=False, break_on_hyphens=False)


def _compare(before: list[str], after: list[str]) -> list[str]:
    """Return removed lines (-), added ones (+), and lines that replace an equal number of others (~)."""
    changes = []
    for _, old, old_end, new, new_end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if before[old:old_end] == after[new:new_end]:
            continue
        if old_end - old == new_end - new:
            changes += [f"~ {line}" for line in after[new:new_end]]
        else:
            changes += [f"- {line}" for line in before[old:old_end]] + [f"+ {line}" for line in after[new:new_end]]
    return changes


class Book:
    """Files of cases: `choose` determines the file of a case."""

    def __init__(self) -> None:
        self.files: dict[str, Answers] = {}
        self._events: list[str] = []
        self._seen: dict[str, int] = {}

    def happen(self, event: str) -> None:
        """Note an event before the next case of each file."""
        self._events.append(event)

    def add(self, file: str, title: str, answer: str) -> None:
        cases = self.files.setdefault(file, Answers())
        for event in self._events[self._seen.get(file, 0) :]:
            cases.happen(event)
        self._seen[file] = len(self._events)
        cases.add(title, answer)

    def texts(self) -> dict[str, str]:
        return {name: "\n".join(cases.texts) for name, cases in self.files.items()}


def write_answers(folder: Path, texts: Mapping[str, str]) -> None:
    """Write a file for each name, and remove those of other names."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.txt"):
        path.unlink()
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")


def split_answers(name: str, text: str) -> dict[str, str]:
    """Return the cases of a file by the file's name and their titles; repeated titles are numbered."""
    cases: dict[str, str] = {}
    for case in filter(str.strip, _TITLE.split(text)):
        title = re.split("  → | → exit code ", case.splitlines()[0][2:])[0]
        same = sum(candidate.partition(" #")[0] == f"{name}: {title}" for candidate in cases)
        cases[f"{name}: {title}{f' #{same + 1}' if same else ''}"] = case.rstrip("\n")
    return cases


def read_answers(folder: Path) -> dict[str, str]:
    """Return the cases of all files of a folder by their titles."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.txt"))}
    return {title: case for name, text in texts.items() for title, case in split_answers(name, text).items()}


def lay(title: str, lines: list[str], mark: str = ": ", length: int = LENGTH) -> list[str]:
    """Return a title and its lines, in one line if there is one and both fit."""
    if len(lines) == 1 and title and len(title) + len(lines[0].strip()) < length:
        return [f"{title}{mark}{lines[0].strip()}"]
    return [title, *lines]


def _is_python(title: str) -> bool:
    try:
        ast.parse(title)
    except SyntaxError:
        return False
    return True


def fold(text: str) -> str:
    """Return a text of titles with indented answers, each shortened by `Answers.shorten`.

    A line that begins with `──` or `══` begins a section, whose answers are compared with each other alone.
    """
    cases, folded = Answers(), list[str]()
    for block in re.findall(r"(?m)^.*\n(?:(?: +.*)?\n(?= |\n* ))*(?: +.*\n)*", text):
        title, *lines = block.splitlines()
        if title.startswith(("──", "══")):
            cases = Answers()
        shortest = cases.shorten(f"`{title}`", lines)
        if len(shortest) == 1 and shortest != lines:
            folded.append(f"{title}: {shortest[0]}")
        else:
            answer = [line if line in lines else f"    {line}" for line in shortest]
            folded += lay(title, answer, "  # " if _is_python(title) else ": ")
    return "".join(f"{line}\n" for line in folded)


def fold_sections(text: str, mark: str = "── ") -> str:
    """Return the text with its sections shortened by `Answers.shorten`; a line with this mark begins a section."""
    cases, folded = Answers(), list[str]()
    for section in re.split(f"(?m)^(?={mark})", text):
        title, *lines = section.splitlines() if section.startswith(mark) else ["", *section.splitlines()]
        blank = [""] if lines[-1:] == [""] else []
        lines = lines[: len(lines) - len(blank)]
        shortest = cases.shorten(f"`{title.removeprefix(mark)}`", lines) if title else lines
        folded += [*([title] if title else []), *(line if line in lines else f"  {line}" for line in shortest), *blank]
    return "\n".join(folded)


def count_repeats(text: str) -> str:
    """Return the text with repeated lines merged into one line and their number."""
    return re.sub(r"(?m)^(.+)\n(?:\1\n)+", lambda run: f"{run[1]} ({run[0].count(chr(10))} times)\n", text)
