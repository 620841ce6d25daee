"""Masks in memory: packed bits, PNG, run lengths, polygons, and how similar two masks are.

What is done most often has two implementations, the compiled kernel and numpy, which give the same bits.
The contract is the modules, each imported by its name: numpy is loaded with the first of them.
`stack` has the packed masks that all others work on; `files` reads those of a sequence; `png`, `run_lengths` and
`polygons` are the forms they are written in; `similarity` compares masks (J and F), `overlaps` pairs of masks, boxes
and labels (IoU) and assigns by that; `stream` shows them in a page; `kernel` is the compiled library.
"""

__all__ = ["files", "kernel", "overlaps", "png", "polygons", "run_lengths", "similarity", "stack", "stream"]
