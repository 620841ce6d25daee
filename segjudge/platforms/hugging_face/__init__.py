"""The Hugging Face Hub: a challenge whose Space takes submissions, scored by an evaluator anywhere.

`build` writes the content of the four repositories, and `push` uploads it. The Space runs `app` on `space`, with the
public `settings` of the challenge, and writes `requests`. `worker` reads these: it is the ledger's evaluator, anywhere;
`jobs` lets the Hub run it. `static` makes a page of an event that has ended.
"""

__all__ = ["app", "build", "jobs", "push", "requests", "settings", "space", "static", "worker"]
