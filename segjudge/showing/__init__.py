"""What is shown of scores: a page, a notebook's cell, figures for a screen and for paper.

`report` makes the page of one result, of a truth alone, and of a stored result; `browser` brings it to its reader;
`notebook` shows scores below a cell; `figures` draws with matplotlib.  What several methods show is in
`segjudge.analysis`.
"""

__all__ = ["browser", "figures", "notebook", "report"]
