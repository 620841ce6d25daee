"""Build the site of the documentation: `./run.sh site [FOLDER]` (default: `dist/site`).

The pages are README.md, docs/ and the project's other Markdown, with links that lead from one to another; files of the
code that they link to come along.  Zensical makes HTML of them; then every link of the HTML is followed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from notebook import NOTEBOOK, as_markdown

import segjudge
from segjudge.cli import main as run_command
from segjudge.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = Path(__file__).with_name("site.yml")
#: Pages outside docs/, and their places in the site.
OUTSIDE = {
    name: name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "logo.png")
} | {"README.md": "index.md"}
#: What is described in the reference beside `segjudge.__all__`.
DESCRIBED = (
    "segjudge.evaluation_script.scoring.phase.Phase",
    "segjudge.evaluation_script.scoring.phase.PhaseSplit",
    "segjudge.evaluation_script.scoring.phase.Notify",
    "segjudge.evaluation_script.files.limits.ArchiveLimits",
    "segjudge.agent.Environment",
    "segjudge.static.write_submission",
    "segjudge.torch.SegmentationMetric",
    "segjudge.drop_in.cocoeval.COCOeval",
    "segjudge.drop_in.cocoeval.Params",
    "segjudge.drop_in.davis2017.DAVISEvaluation",
    "segjudge.drop_in.vos_benchmark.benchmark",
)
LINK = re.compile(r"(\]\()([^)#:\s]+)([)#])")
#: Where what belongs to a numbered item begins: Python's Markdown wants a space more.
LISTED = re.compile(r"^   (?=(    )?\S)", re.MULTILINE)


def build(out: Path) -> list[str]:
    """Write the site; return what is wrong with it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = folder / "pages"
        put_pages(pages)
        write_reference(pages / "reference")
        (folder / "mkdocs.yml").write_text(yaml.safe_dump(settings(pages)), encoding="utf-8")
        command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", "mkdocs.yml"]
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode or "ERROR" in done.stdout:  # strict leaves out what the reference's plugin reports
            return [done.stdout]
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(folder / "site", out)
    return broken_links(out)


def place_of(source: Path) -> str:
    """Return where a file of the checkout stands in the site."""
    name = source.relative_to(ROOT).as_posix()
    if source == NOTEBOOK:
        return "tutorials/notebook.md"
    return OUTSIDE.get(name) or (name.removeprefix("docs/") if name.startswith("docs/") else f"source/{name}")


def put_pages(pages: Path) -> None:
    """Copy the pages with their links, and what they link to."""
    pending = [*(ROOT / name for name in OUTSIDE), *(path for path in (ROOT / "docs").rglob("*") if path.is_file())]
    pending = [path for path in pending if path.exists() and "site" not in path.relative_to(ROOT).parts]
    done = set()
    while pending:
        source = pending.pop()
        target = pages / place_of(source)
        if target in done:
            continue
        done.add(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source == NOTEBOOK:
            target.write_text(as_markdown(), encoding="utf-8")
            continue
        if source.suffix != ".md":
            shutil.copyfile(source, target)
            continue
        text = source.read_text(encoding="utf-8")

        def moved(link: re.Match[str], source: Path = source) -> str:
            linked = Path(os.path.normpath(source.parent / link[2]))
            if linked.is_file():
                pending.append(linked)
                return link[1] + os.path.relpath(place_of(linked), os.path.dirname(place_of(source)) or ".") + link[3]
            return link[0]

        target.write_text(LINK.sub(moved, LISTED.sub(r"\g<0> ", text)), encoding="utf-8")


def write_reference(folder: Path) -> None:
    """Write the pages that the code describes itself."""
    folder.mkdir()
    names = [*(f"segjudge.{name}" for name in segjudge.__all__), *DESCRIBED]
    described = "\n".join(f"::: {name}\n" for name in names)
    (folder / "python.md").write_text(f"# Python, name by name\n\n{described}", encoding="utf-8")
    os.environ["COLUMNS"] = "100"
    helps = "\n".join(f"## {name}\n\n```text\n{help_of(name)}```\n" for name in COMMANDS)
    (folder / "commands.md").write_text(
        f"# Commands\n\nWhat `segjudge COMMAND --help` says.\n\n{helps}", encoding="utf-8"
    )
    schema = json.loads((ROOT / "docs/challenge_config.schema.json").read_text(encoding="utf-8"))
    (folder / "challenge-config.md").write_text("\n".join(keys_of(schema)) + "\n", encoding="utf-8")


def keys_of(schema: dict[str, Any], title: str = "") -> Iterator[str]:
    """Yield the lines of a table of a YAML's keys, then those of the tables within it."""
    head = "key | type | meaning"
    yield f"## {title}\n" if title else "# challenge_config.yaml, key by key\n"
    yield from (f"| {head} |", f"| {re.sub('[a-z]+', '---', head)} |")
    for key, facts in schema["properties"].items():
        kinds = facts.get("type") or "mapping"
        kind = " or ".join(one for one in ([kinds] if isinstance(kinds, str) else kinds) if one != "null")
        needed = ", **required**" if key in schema.get("required", []) else ""
        kind = kind.replace("object", "mapping").replace("array", "list")
        yield f"| `{key}` | {kind}{needed} | {facts.get('description', '')} |"
    yield ""
    for key, facts in schema["properties"].items():
        for inner in (facts, facts.get("items")):
            if isinstance(inner, dict) and "properties" in inner:
                yield from keys_of(inner, f"{title} → {key}".removeprefix(" → "))


def help_of(command: str) -> str:
    """Return what a command says about itself."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        run_command([command, "--help"])
    return printed.getvalue()


def settings(pages: Path) -> dict[str, Any]:
    """Return Zensical's settings, with every page in the navigation."""
    found: dict[str, Any] = yaml.safe_load(SETTINGS.read_text(encoding="utf-8"))
    sections = {title: section for entry in found["nav"] for title, section in entry.items() if title != "Start"}
    named = {"index.md", *(page for section in sections.values() for page in section)}
    for page in sorted(path.relative_to(pages).as_posix() for path in pages.rglob("*.md")):
        if page not in named:
            sections.get(page.split("/")[0].capitalize(), sections["Reference"]).append(page)
    found["nav"] = [entry for entry in found["nav"] if all(entry.values())]
    for plugin in found["plugins"]:
        if "mkdocstrings" in plugin:
            plugin["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT)]
    return found


class Page(HTMLParser):
    """The links of a page, and the places in it that links may name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        self.links += [given[name] for name in ("href", "src") if name in given]
        self.fetched += [given["src"]] if urlsplit(given.get("src", "")).netloc else []


def broken_links(site: Path) -> list[str]:
    """Return the links that lead nowhere, and what a browser would fetch from elsewhere."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    return [
        f"{path.relative_to(site)}: {link} is not in the site"
        for path, page in pages.items()
        if path.name != "404.html"  # its links are absolute, for a server
        for link in page.links
        if link in page.fetched or not leads(path, link, pages)
    ]


def leads(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    """Return whether a link of this page leads to something; addresses of other sites are not tried."""
    address = urlsplit(link)
    if address.scheme or address.netloc:
        return True
    target = Path(os.path.normpath(path.parent / unquote(address.path))) if address.path else path
    target = target / "index.html" if target.is_dir() else target
    place = unquote(address.fragment)
    return target.exists() and (not place or target not in pages or place in pages[target].places)


def main(arguments: list[str]) -> int:
    """0 when the site is whole."""
    out = Path(arguments[0]) if arguments else ROOT / "dist/site"
    problems = build(out)
    print("\n".join(problems) or f"Built {os.path.relpath(out)}/index.html.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
