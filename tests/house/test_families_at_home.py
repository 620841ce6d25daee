"""A protocol's name occurs in its family's folders and in few other files; a new family's commit has few files."""

from __future__ import annotations

import re
import subprocess

import pytest

from segjudge.evaluation_script.families import PROTOCOLS, folder_of
from tests.data import ROOT

#: The maximum number of files outside a family's folders that may name a protocol.
MOST_FILES = 4
#: Files about all benchmarks: commands write them or their tables, or they record history.
LISTS = (
    "CHANGELOG.md", "README.md", "docs/benchmarks.md", "docs/hosts.md", "docs/participants.md", "docs/python.md",
    "docs/speed.md", "benchmarks/figures.json",
)  # fmt: skip
#: Benchmarks' pages.
PAGES = "docs/benchmarks/"
#: Protocols that demo, docs and tests take as examples, and names that are also those of layouts, data sets or families.
HOUSE_EXAMPLES = {
    "davis2016", "davis2017", "davis2017-unsupervised", "lvos", "vos-benchmark", "sav", "places2017",
    "places2017-official",
    "coco", "coco-box", "vspw", "semantic", "cityscapes", "mots", "volumes",
}  # fmt: skip


def list_files() -> list[str]:
    """Return the files of the repository that are not links."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.splitlines() if not (ROOT / path).is_symlink() and (ROOT / path).exists()]


@pytest.fixture(scope="module")
def files_of_names() -> dict[str, list[str]]:
    """Return the files outside its folders that name each protocol."""
    files: dict[str, list[str]] = {protocol: [] for protocol in PROTOCOLS}
    longest_first = sorted(map(re.escape, PROTOCOLS), key=len, reverse=True)
    name = re.compile(rf"(?<![\w-])(?:{'|'.join(longest_first)})(?![\w-])")
    for path in list_files():
        if path in LISTS or path.startswith(PAGES):
            continue
        try:
            named = set(name.findall((ROOT / path).read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
        family = re.match(r"(?:evaluation_script|segjudge|tests|benchmarks)/families/(\w+)[./]", path)
        for protocol in named:
            if family is None or family[1] != folder_of(PROTOCOLS[protocol].family):
                files[protocol].append(path)
    return files


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name not in HOUSE_EXAMPLES])
def test_a_protocol_is_named_in_few_files_beside_its_folders(
    protocol: str, files_of_names: dict[str, list[str]]
) -> None:
    files = files_of_names[protocol]
    assert len(files) <= MOST_FILES, (
        f"{protocol} stands in {files}: move what they say into its family's folders,"
        " or add the name to HOUSE_EXAMPLES if it is also a common word"
    )


def test_examples_of_the_house_are_named_in_more_files(files_of_names: dict[str, list[str]]) -> None:
    rare = {protocol for protocol in HOUSE_EXAMPLES if len(files_of_names[protocol]) <= MOST_FILES - 2}
    assert not rare, "take these out of HOUSE_EXAMPLES: few files name them"


def test_the_commit_of_a_new_family_has_few_files() -> None:
    page = (ROOT / "docs/adding-a-family.md").read_text(encoding="utf-8")
    section = page[page.index("## In this house") :].partition("\n## ")[0]
    commit = section[section.index("The commit of a new family") :].partition("\n\n|")[0]
    written, made = (part for part in commit.split("Commands write"))
    paths = re.findall(r"`([\w/.-]+\.(?:py|md|jinja))`", written)
    assert len(set(paths)) == len(paths) <= 11
    for family in ("microscopy", "saliency"):
        page_name = {"microscopy": "cellpose", "saliency": "salient-objects"}[family]
        for path in paths:
            name = path.replace("docs/benchmarks/NAME", f"docs/benchmarks/{page_name}").replace("NAME", family)
            assert (ROOT / name).exists(), name
    assert "tests/families/NAME/golden/" in made
