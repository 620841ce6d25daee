"""The tables of pages are generated from the rows: protocols, metrics, limits."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from docs.site import tables

LIST = tables.ROOT / tables.LIST
COMMAND = ".venv/bin/python -m docs.site.tables"


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.stem)
def test_marked_places_hold_the_tables_of_the_rows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert tables.fill(text) == text, f"{page} differs from the rows; run `{COMMAND}`"
    assert len(tables.MARKED.findall(text)) == text.count("<!-- tables: ") == text.count("<!-- /tables -->")


def test_a_page_with_another_rule_is_noticed_and_mended() -> None:
    page = "Before\n<!-- tables: limits -->\n<!-- /tables -->\nafter\n"
    right = tables.fill(page)
    assert right != page
    assert tables.fill(right.replace("200,000", "200,001")) == right


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
