"""Masks in memory: packed bits, PNG, run lengths, polygons, and how similar two masks are.

What is done most often has two implementations, the compiled kernel and numpy, which give the same bits.
"""
