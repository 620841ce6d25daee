"""The demo challenge's photographs: films and images composed of cut-outs, and methods that fail at them in known ways.

`python -m demo` writes all of it into the checkout.  Nothing here is uploaded or installed.
"""
