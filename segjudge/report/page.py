"""Pages of a report: sections in one self-contained HTML file, whose policy forbids loading anything else."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from segjudge.evaluation_script.files.problems import quantity
from segjudge.evaluation_script.scoring import VERSION

from .tables import number

PAGES = os.path.join(os.path.dirname(__file__), "pages")


@dataclass(frozen=True)
class PageOptions:
    """The options of a page that users set."""

    #: The folder of a dataset's pictures, over which masks are drawn.
    images: str = ""
    #: Bytes that the page may have, about.
    budget: int = 6_000_000


@dataclass(frozen=True)
class Section:
    """A part of a page: the template `pages/TEMPLATE.html`, and its scripts `TEMPLATE.js` and `TEMPLATE_….js`.

    The template sees `values` and the macros of `parts.html`; the script sees `data` as `section.data`.
    """

    template: str
    title: str
    values: Mapping[str, object]
    #: Anything that JSON can hold.
    data: object = None

    @property
    def id(self) -> str:
        """Its anchor in the page."""
        return re.sub("[^a-z0-9]+", "-", self.title.lower()).strip("-")

    def of_split(self, split: str) -> Section:
        """Return the section under a title that names its split too."""
        return replace(self, title=f"{self.title}: {split}")


#: Sections of a split, and the streams that they read.
Sections = tuple[list[Section], dict[str, bytes]]


@dataclass(frozen=True)
class ReportPage:
    """A page of sections, in their order."""

    title: str
    sections: list[Section]
    #: What scripts read by `page.bytes(NAME)` when they need it, or `page.inflated(NAME)` where it is a zlib stream.
    streams: Mapping[str, bytes] = field(default_factory=dict)
    #: What tells its truth and results from others, in plain letters.
    origin: str = ""
    #: Kinds of files beside it that it reads: `img`, `script`.
    beside: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return where templates of pages are found; they refuse undefined names and escape all values."""
    made = Environment(
        loader=FileSystemLoader(PAGES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters.update(number=number, counted=quantity)
    return made


def link(name: str, stream: str) -> Markup:
    """Return the name of a sequence, which opens it."""
    return Markup('<a href="#frames" data-open="{}">{}</a>').format(stream, name)


def rendered(page: ReportPage) -> str:
    """Return the page as HTML; equal pages give equal bytes."""
    template, script = environment().get_template("page.html"), _script(page)
    beside = dict.fromkeys(page.beside, " 'self' file:")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return template.render(
        page=page,
        version=VERSION,
        policy=f"default-src 'none'; img-src data: blob:{beside.get('img', '')}; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'{beside.get('script', '')}; "
        "base-uri 'none'; form-action 'none'",
        style=Markup(_asset("page.css")),  # noqa: S704 - a file of the package
        script=Markup(script),  # noqa: S704 - files of the package
        data=_json({one.id: one.data for one in page.sections if one.data is not None}),
        streams={name: base64.b64encode(stream).decode("ascii") for name, stream in page.streams.items()},
    )


def _script(page: ReportPage) -> str:
    """Return the page's script: what all sections use, then each section's own."""
    text = _asset("page.js")
    for section in page.sections:
        own = "\n".join(map(_asset, _scripts(section.template)))
        if own:
            text += f"\npage.section({json.dumps(section.id)}, (section) => {{\n{own}}});"
    return text + "\n"


def _scripts(template: str) -> list[str]:
    """Return a template's scripts: what is of its own in `TEMPLATE_….js`, then `TEMPLATE.js`."""
    return sorted(
        (name for name in os.listdir(PAGES) if re.fullmatch(rf"{template}(_[a-z]+)?\.js", name)), reverse=True
    )


def _asset(name: str) -> str:
    with open(os.path.join(PAGES, name), encoding="utf-8") as file:
        return file.read()


def _json(value: object) -> Markup:
    """Return JSON that ends no element, whatever names are in it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028"))  # noqa: S704 - nothing in it opens a tag
