"""A protocol's name occurs in its family's folders and in few other files; a new family's commit has few files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from segjudge.evaluation_script.families import FAMILIES, FOLDERS, PROTOCOLS, folder_of
from segjudge.families import tools_of
from tests.data import ROOT

#: The maximum number of files outside a family's folders that may name a protocol.
MOST_FILES = 4
#: The file that a command writes with all measurements.
FIGURES = "benchmarks/figures.json"
#: The tables that commands write, and the addresses of benchmarks' pages.
WRITTEN = re.compile(r"<!-- (tables|figures): [\w-]+ -->.*?<!-- /\1 -->|benchmarks/[\w-]+\.md(?:#[\w-]+)?", re.DOTALL)
#: A family's folders, and its benchmark.
HOMES = re.compile(r"(?:evaluation_script|segjudge|tests|benchmarks)/families/(\w+)[./]|benchmarks/(\w+)\.py")
#: Protocols of the demonstration challenge and of examples in docs and tests.
HOUSE_EXAMPLES = {"davis2017", "places2017", "coco"}
#: Protocols whose names are also common words, datasets, evaluators or modules: they count in quotes, and behind an option.
COMMON_WORDS = {"semantic", "components", "volumes", "vos-benchmark", "cityscapes", "lvis"}


def list_files() -> list[str]:
    """Return the files of the repository that are not links."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.splitlines() if not (ROOT / path).is_symlink() and (ROOT / path).exists()]


def pattern_of_names() -> re.Pattern[str]:
    """Return what finds a protocol's name in a text; names of which another begins with it are found whole."""
    plain, common = (
        "|".join(sorted(map(re.escape, names), key=len, reverse=True))
        for names in (PROTOCOLS.keys() - COMMON_WORDS, COMMON_WORDS)
    )
    quoted = rf'(?<=`)(?:{common})(?=`)|(?<=")(?<![a-z]\[")(?<!/ ")(?:{common})(?=")|(?<=--protocol )(?:{common})'
    return re.compile(rf"(?<![\w-])(?:{plain}|{quoted})(?![\w-])")


def homes_of(path: str) -> set[str]:
    """Return the folders of the families at home in a file."""
    if path == "evaluation_script/families/__init__.py":
        return set(FOLDERS)
    if family := HOMES.match(path):
        return {family[1] or family[2]}
    page = path.removeprefix("docs/benchmarks/")
    return {
        folder_of(name) for name in FAMILIES
        if (entry := tools_of(name).read_entry()) and page in {row.page.partition("#")[0] for row in entry.benchmarks}
    }  # fmt: skip


@pytest.fixture(scope="module")
def files_of_names() -> dict[str, list[str]]:
    """Return the files outside its folders that name each protocol."""
    files: dict[str, list[str]] = {protocol: [] for protocol in PROTOCOLS}
    name = pattern_of_names()
    for path in list_files():
        if path == FIGURES or ROOT / path == Path(__file__):
            continue
        try:
            named = set(name.findall(WRITTEN.sub("", (ROOT / path).read_text(encoding="utf-8"))))
        except UnicodeDecodeError:
            continue
        homes = homes_of(path) if named else set()
        for protocol in named:
            if folder_of(PROTOCOLS[protocol].family) not in homes:
                files[protocol].append(path)
    return files


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name not in HOUSE_EXAMPLES])
def test_a_protocol_is_named_in_few_files_beside_its_folders(
    protocol: str, files_of_names: dict[str, list[str]]
) -> None:
    files = files_of_names[protocol]
    assert len(files) <= MOST_FILES, (
        f"{protocol} stands in {files}: move what they say into its family's folders,"
        " or let tests and docs choose a protocol by a property"
    )
