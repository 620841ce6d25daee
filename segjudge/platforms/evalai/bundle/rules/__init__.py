"""The rules by which EvalAI rejects a bundle, block by block of the YAML, in the order in which the server tests.

A problem's `rule` is its position in that order.  What the server answers with an error 500 has no quote.
"""
