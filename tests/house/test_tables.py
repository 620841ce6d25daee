"""The tables of pages are generated from the rows: protocols, metrics, limits."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from docs.site import tables
from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS, folder_of
from segjudge.families import tools_of
from tests.families.plugins import counting

LIST = tables.ROOT / tables.LIST
COMMAND = ".venv/bin/python -m docs.site.tables"


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.stem)
def test_marked_places_hold_the_tables_of_the_rows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert tables.fill(text) == text, f"{page} differs from the rows; run `{COMMAND}`"
    assert len(tables.MARKED.findall(text)) == text.count("<!-- tables: ") == text.count("<!-- /tables -->")


def test_the_list_has_each_protocol_with_its_rule() -> None:
    text = LIST.read_text(encoding="utf-8")
    for family in tables.list_families():
        section = text.partition(f"\n## {family.entry.title}\n")[2].partition("\n## ")[0]
        for row in family.protocols:
            assert f"| `{row.name}` | {row.about} | `{row.metrics[0]}` |" in section


def test_a_page_with_another_rule_is_noticed_and_mended() -> None:
    page = "Before\n<!-- tables: limits -->\n<!-- /tables -->\nafter\n"
    right = tables.fill(page)
    assert right != page
    assert tables.fill(right.replace("200,000", "200,001")) == right


@pytest.mark.parametrize("family", FAMILIES)
def test_a_metric_without_a_meaning_is_named_with_the_file_to_write_it_in(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = next(iter(FAMILIES[family].protocols.values())).metrics[0]
    monkeypatch.setattr(type(tools_of(family)), "describe_metric", lambda _, name: name)
    sentence = (
        f"the metric {metric} has no meaning; "
        f"write one in `describe_metric` of segjudge/families/{folder_of(family)}/__init__.py"
    )
    with pytest.raises(LookupError, match=f"^{re.escape(sentence)}$"):
        tables.list_benchmarks()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda _: None, "the family {0} is in no list of benchmarks; write ENTRY in {1}/benchmarks.py"),
        (
            lambda entry: entry._replace(benchmarks=entry.benchmarks[1:]),
            "{2}: the protocols of the family {0} and those of its list of benchmarks differ; correct ENTRY in {1}/benchmarks.py",
        ),
    ],
    ids=["no entry", "a protocol is missing"],
)
def test_a_protocol_that_no_list_has_is_named_with_the_file_to_write_it_in(
    change: Any, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = list(FAMILIES)[-1]
    tools = tools_of(name)
    entry = tools.read_entry()
    monkeypatch.setattr(type(tools), "read_entry", lambda _: change(entry))
    folder = f"segjudge/families/{folder_of(name)}"
    expected = sentence.format(name, folder, ", ".join(sorted(entry.benchmarks[0].protocols)))  # type: ignore[union-attr]
    with pytest.raises(LookupError, match=f"^{re.escape(expected)}$"):
        tables.list_families()


def test_plug_ins_are_in_no_table(tmp_path: Path) -> None:
    code = (
        "from docs.site import tables; from segjudge.evaluation_script.families import PROTOCOLS; "
        "print('counting' in PROTOCOLS, [tables.fill(text) == text for page in tables.PAGES "
        "for text in [page.read_text(encoding='utf-8')] if 'tables: ' in text])"
    )
    environment = {**os.environ, "PYTHONPATH": f"{counting(tmp_path)}{os.pathsep}{tables.ROOT}"}
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    known, _, pages = done.stdout.partition(" ")
    assert known == "True"
    assert "True" in pages
    assert "False" not in pages
    assert "counting" not in PROTOCOLS


def test_the_extras_of_a_page_have_the_packages_that_pip_installs() -> None:
    text = (tables.ROOT / "docs/installing.md").read_text(encoding="utf-8")
    project = tomllib.loads((tables.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in tables._PURPOSES:
        (line,) = re.findall(rf"^\| `{name}` \|.*\|$", text, re.MULTILINE)
        for requirement in project["optional-dependencies"][name]:
            package, _, extras = re.split(r"[>=<]", requirement)[0].rstrip("]").partition("[")
            assert (
                all(f"`{extra}`" in line for extra in extras.split(",")) if package == "segjudge" else package in line
            )
