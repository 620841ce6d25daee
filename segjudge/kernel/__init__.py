"""The kernel's C sources and their compilation; `evaluation_script/masks/library.py` loads the result.

The contract is `compiling`, which needs the standard library alone; `wheels` is for setuptools.
"""

__all__ = ["compiling"]
