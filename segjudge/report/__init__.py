"""What pages and tables of scores are made of, for every family and by every command.

`page` has the sections that a page is made of, those that any family can show among them, and makes one HTML file of
them, which `browser` brings to its reader; `player` is the section in which one steps through frames; `colours` are
those of pictures; `tables` writes numbers for terminals, CSV and pandas; `stored` reads what `evaluate()` or
`score --json` left.  Templates and scripts are in the folder `pages`.  Nothing here knows a family: one that is written
elsewhere builds its sections of these.
"""

__all__ = ["browser", "colours", "page", "player", "stored", "tables"]
