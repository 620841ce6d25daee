"""The demo challenge: films and images composed of cut-outs of photographs, and methods with known faults.

`python -m demo` writes all of it into the checkout.  Nothing here is uploaded or installed.
"""
