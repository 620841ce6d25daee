"""The templates of a platform's files: YAML and Markdown, whose values come from the host."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def open_templates(package: str, **marks: str) -> Environment:
    """Return the templates in the folder `files` of a package; `marks` replace the usual ones of values."""
    return Environment(  # noqa: S701 - no HTML
        loader=PackageLoader(package, "files"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **marks,  # type: ignore[arg-type]  # each is a text
    )
