"""`segjudge new --family`: the repository of a plug-in whose family scores, packs and has tests.

Its sources are the blocks of `docs/adding-a-family.md`, with the new family's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path

from segjudge.evaluation_script.families import FAMILIES, LAYOUTS, PROTOCOLS
from segjudge.system.errors import UsageError
from segjudge.system.files import open_draft
from segjudge.system.plugins import TOOLKITS, UPLOADS

from .lock import FILE as LOCK
from .lock import format_lock

#: The example's name on the page, in the package `segjudge_counting` of the distribution `segjudge-counting`.
_EXAMPLE = "counting"
_HERE = Path(__file__).parent
_BLOCK = re.compile(r"^```\w+\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: The places of the page's files in a distribution, by their folders in Segjudge's sources.
_FOLDERS = {
    f"evaluation_script/families/{_EXAMPLE}/": f"segjudge_{_EXAMPLE}/upload/",
    f"segjudge/families/{_EXAMPLE}/": f"segjudge_{_EXAMPLE}/toolkit/",
    "tests/": "tests/",
    "pyproject.toml": "pyproject.toml",
}
#: The files that are not on the page, by those beside this module.
_MORE = {
    "README.md": "README.md",
    "LICENSE": "LICENSE",
    ".gitignore": "gitignore",
    ".github/workflows/tests.yml": "tests.yml",
}
#: A name that is valid for a module, a distribution and a protocol.
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@dataclass(frozen=True)
class NewFamily:
    """The choices of a plug-in's author."""

    folder: str
    name: str
    #: The wheel of the Segjudge that tests it, or the git address of a commit (default: a wheel of this one).
    segjudge: str = ""


def create_family(family: NewFamily) -> None:
    """Write the repository in one step."""
    _check_name(family.name)
    with open_draft(family.folder) as draft:
        for path, text in make_files(family.name).items():
            target = Path(draft, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        Path(draft, LOCK).write_text(format_lock(family.segjudge, draft, "host"), encoding="utf-8")


def _check_name(name: str) -> None:
    """Raise UsageError if a family cannot have this name."""
    if not _NAME.fullmatch(name) or iskeyword(name):
        raise UsageError(f"--family {name}: is not a module name; use small letters, digits and _, as in my_family")
    if _is_taken(name):
        raise UsageError(f"--family {name}: is already used in Segjudge or a plug-in; choose another name")


def make_files(name: str) -> dict[str, str]:
    """Return the files of a plug-in with the family of that name, by path."""
    files = {f"segjudge_{_EXAMPLE}/__init__.py": f'"""The family of {_EXAMPLE}, for Segjudge."""\n'}
    for title, text in _read_blocks().items():
        files |= {title.replace(start, path, 1): text for start, path in _FOLDERS.items() if title.startswith(start)}
    files |= {path: (_HERE / "family" / source).read_text(encoding="utf-8") for path, source in _MORE.items()}
    return {_rename(path, name): _rename(text, name) for path, text in files.items()}


@cache
def _read_blocks() -> dict[str, str]:
    """Return the page's code blocks by their first lines, which name their files."""
    return dict(_BLOCK.findall((_HERE / "adding-a-family.md").read_text(encoding="utf-8")))


def _rename(text: str, name: str) -> str:
    """Replace the example's name: in distributions, classes, constants, modules and sentences."""
    words = name.split("_")
    names = {
        f"segjudge-{_EXAMPLE}": f"segjudge-{'-'.join(words)}",
        f"{_EXAMPLE.title()}(?=[A-Z])": "".join(map(str.capitalize, words)),
        _EXAMPLE.title(): " ".join(words).capitalize(),
        _EXAMPLE.upper(): name.upper(),
        _EXAMPLE: name,
    }
    pattern = re.compile("|".join(f"({example})" for example in names))
    return pattern.sub(lambda match: list(names.values())[(match.lastindex or 1) - 1], text)


def _is_taken(name: str) -> bool:
    """Return whether the name is taken by a module, a family, a protocol, a layout or an imported class."""
    classes = {_rename(f"{_EXAMPLE.title()}{noun}", name) for noun in ("Protocol", "Submission", "Tools")}
    imported = {word for text in _read_blocks().values() for word in re.findall(r"\w+", text)}
    if name in {*FAMILIES, *LAYOUTS, *PROTOCOLS} or (name != _EXAMPLE and classes & imported):
        return True
    try:
        return any(map(find_spec, (f"{UPLOADS}.{name}", f"{TOOLKITS}.{name}", f"segjudge_{name}")))
    except ImportError:  # a plug-in of that name lacks its package
        return True
