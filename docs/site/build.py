"""Build the site of the documentation: `./run.sh site [--out FOLDER]` (default: `dist/site`).

The pages are README.md, docs/ and the project's other Markdown, with links that lead from one to another; files of the
code that they link to come along.  Zensical makes HTML of them; then every link of the HTML is followed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from notebook import NOTEBOOK, as_markdown
from PIL import Image
from reference import write_reference

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = Path(__file__).with_name("site.yml")
#: Pages outside docs/, and their places in the site.
OUTSIDE = {
    name: name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "logo.png")
} | {"README.md": "overview.md", "docs/site/site.css": "site.css", "docs/site/site.js": "site.js"}
#: The first page, and the tables of figures in it.
START = ROOT / "docs/index.md"
FIGURES = re.compile(r"<!-- figures: .*?<!-- /figures -->", re.DOTALL)
SECONDS = re.compile(r"^(\| [^|]+ \| )([\d.]+)(?= \|)", re.MULTILINE)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+\.webp)\)")
LINK = re.compile(r"(\]\()([^)#:\s]+)([)#])")
#: Where what belongs to a numbered item begins: Python's Markdown wants a space more.
LISTED = re.compile(r"^   (?=(    )?\S)", re.MULTILINE)


def build(out: Path) -> list[str]:
    """Write the site; return its faults."""
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
    """Return the path of a checkout's file in the site."""
    name = source.relative_to(ROOT).as_posix()
    if source == NOTEBOOK:
        return "tutorials/notebook.md"
    return OUTSIDE.get(name) or (name.removeprefix("docs/") if name.startswith("docs/") else f"source/{name}")


def put_pages(pages: Path) -> None:
    """Copy the pages with their links, and the linked files."""
    inside = [path for path in (ROOT / "docs").rglob("*") if path.is_file() and SETTINGS.parent not in path.parents]
    pending = [*(path for path in map(ROOT.joinpath, OUTSIDE) if path.exists()), *inside]
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
        if source == START:
            text = FIGURES.sub(lambda table: with_bars(table[0]), text)

        def moved(link: re.Match[str], source: Path = source) -> str:
            linked = Path(os.path.normpath(source.parent / link[2]))
            if linked.is_file():
                pending.append(linked)
                return link[1] + os.path.relpath(place_of(linked), os.path.dirname(place_of(source)) or ".") + link[3]
            return link[0]

        text = LINK.sub(moved, LISTED.sub(r"\g<0> ", text))
        stills = partial(with_still, page=target)
        target.write_text(PICTURE.sub(stills, text), encoding="utf-8")


def with_still(picture: re.Match[str], page: Path) -> str:
    """Show a still frame of a moving picture to readers who prefer reduced motion."""
    alt, link = picture.groups()
    with Image.open(ROOT / "docs" / Path(link).name) as image:
        frames = getattr(image, "n_frames", 1)
        if frames == 1:
            return picture[0]
        image.seek(frames // 2)
        still = link.removesuffix(".webp") + "-still.webp"
        image.save(page.parent / still)
    source = f'<source srcset="{still}" media="(prefers-reduced-motion: reduce)">'
    return f'<picture>{source}<img alt="{alt}" src="{link}"></picture>'


def with_bars(table: str) -> str:
    """Add bars of proportional length to the seconds of a table."""
    longest = max(float(row[2]) for row in SECONDS.finditer(table))

    def bar(row: re.Match[str]) -> str:
        return f'{row[1]}<span class="bar" style="--share: {float(row[2]) / longest:.4f}">{row[2]}</span>'

    return SECONDS.sub(bar, table)


def settings(pages: Path) -> dict[str, Any]:
    """Return Zensical's settings, with every page in the navigation."""
    found: dict[str, Any] = yaml.safe_load(SETTINGS.read_text(encoding="utf-8"))
    entries = {title: entry for titled in found["nav"] for title, entry in titled.items()}
    sections = {title: entry for title, entry in entries.items() if isinstance(entry, list)}
    named = {page for entry in entries.values() for page in ([entry] if isinstance(entry, str) else entry)}
    for page in sorted(path.relative_to(pages).as_posix() for path in pages.rglob("*.md")):
        if page not in named:
            sections.get(page.split("/")[0].capitalize(), sections["Reference"]).append(page)
    found["nav"] = [entry for entry in found["nav"] if all(entry.values())]
    for plugin in found["plugins"]:
        if "mkdocstrings" in plugin:
            plugin["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT)]
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    if repository := urls.get("Repository") or urls.get("Source"):  # as a link: `repo_url` asks its server for stars
        icon = {"icon": "lucide/git-branch", "link": repository, "name": "Repository"}
        found["extra"] = {"social": [icon]}
    return found


class Page(HTMLParser):
    """The links of a page, and its anchors."""

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
    """Return the broken links, and the files that a browser would fetch from elsewhere."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    return [
        f"{path.relative_to(site)}: {link} is not in the site"
        for path, page in pages.items()
        if path.name != "404.html"  # its links are absolute, for a server
        for link in page.links
        if link in page.fetched or not leads(path, link, pages)
    ]


def leads(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    """Return whether a link of this page has a target; other sites are not tried."""
    address = urlsplit(link)
    if address.scheme or address.netloc:
        return True
    target = Path(os.path.normpath(path.parent / unquote(address.path))) if address.path else path
    target = target / "index.html" if target.is_dir() else target
    place = unquote(address.fragment)
    return target.exists() and (not place or target not in pages or place in pages[target].places)


def is_replaceable(out: Path) -> bool:
    """Return whether a folder is empty, or a site that an earlier build wrote."""
    return out.is_dir() and (not any(out.iterdir()) or (out / "reference/commands.html").is_file())


def main(arguments: list[str]) -> int:
    """Return 0 if the site is complete, 2 for an unsuitable folder."""
    parser = argparse.ArgumentParser(prog="./run.sh site", description="Build the site of the documentation.")
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help="the same as --out")
    parser.add_argument("--out", metavar="FOLDER", help="the folder to write (default: dist/site)")
    options = parser.parse_args(arguments)
    if options.folder and options.out:
        parser.error("FOLDER and --out are two folders; name one")
    out = Path(options.out or options.folder or ROOT / "dist/site")
    if out.exists() and not is_replaceable(out):
        parser.error(f"{out} is not a site that this command wrote, and would be deleted; name a new folder")
    problems = build(out)
    print("\n".join(problems) or f"Built {os.path.relpath(out)}/index.html.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
