"""Pages shown to their reader: in a file, below a notebook's cell, or in a browser."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from segjudge.system.arguments import PATH, check_arguments
from segjudge.system.errors import UsageError
from segjudge.system.files import open_output

if TYPE_CHECKING:
    from segjudge.report.page import PageOptions, ReportPage

#: The height of a page below a cell, in pixels.
_HEIGHT = 760


class ShownPage:
    """A result with a page; the options are those of `page`."""

    def page(self, *args: Any, **options: Any) -> str:
        """Make the page that `report` writes, as HTML."""
        raise NotImplementedError

    def report(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the page that the command writes."""
        check_arguments(PATH, path=path)
        text = self.page(**options)
        with open_output(path) as file:
            file.write(text)

    def show(self, **options: Any) -> None:
        """Show the page: below the cell of a notebook, elsewhere in a browser."""
        text, shell = self.page(**options), _find_notebook()
        if shell is not None:
            import html

            frame = f'<iframe srcdoc="{html.escape(text)}" width="100%" height="{_HEIGHT}" style="border:0"></iframe>'
            shell.display_pub.publish({"text/html": frame, "text/plain": "<page of segjudge>"})
            return
        import tempfile
        import webbrowser

        with tempfile.NamedTemporaryFile(
            "w", prefix="segjudge-", suffix=".html", encoding="utf-8", delete=False
        ) as file:
            file.write(text)  # this program may end before the browser reads it
        if not webbrowser.open(f"file://{file.name}"):
            raise UsageError(f"no browser was found; open {file.name}")


class PicturedPage(ShownPage):
    """A result whose page has pictures."""

    def make_page(self, options: PageOptions, title: str = "") -> ReportPage:
        raise NotImplementedError

    def page(self, *, images: str | os.PathLike[str] = "", budget: int = 6, title: str = "") -> str:
        """Make the page that `report` writes, as HTML.

        Args:
            images: the dataset's pictures, over which masks are drawn.
            budget: megabytes that the page may have.
            title: its title (default: the names of the results).

        """
        from segjudge.report.page import make_page_options, render_page

        return render_page(self.make_page(make_page_options(images, budget), title))


def _find_notebook() -> Any:
    """Find the shell of a notebook's kernel, which shows HTML; None elsewhere."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell if hasattr(shell, "kernel") else None
