"""Execute the notebook of the tutorials: `python docs/site/notebook.py` writes its outputs into it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[1] / "tutorials/notebook.ipynb"


def executed() -> dict[str, Any]:
    """Return the notebook with new outputs; the printed texts of a cell are joined."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=600).execute()
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            joined: list[Any] = []
            for output in cell.outputs:
                if joined and output.output_type == "stream" and joined[-1].get("name") == output.name:
                    joined[-1].text += output.text
                else:
                    joined.append(output)
            cell.outputs = joined
    found: dict[str, Any] = json.loads(nbformat.writes(notebook))
    return found


def as_markdown() -> str:
    """Return the stored notebook as a page of the site."""
    parts = []
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        shell = source.startswith("%%sh\n")
        parts.append(f"```{'sh' if shell else 'python'}\n{source.removeprefix('%%sh').lstrip()}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            text = "".join(output.get("text", data.get("text/plain", "")))
            parts.append("".join(data["text/html"]) if "text/html" in data else f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(json.dumps(executed(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
